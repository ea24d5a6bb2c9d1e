//! Everything that can go wrong between us and Linear means what it should.

use std::time::Duration;

use dirigent::domain::ids::TicketId;
use dirigent::domain::time::Timestamp;
use dirigent::engine::permit::EffectKind;
use dirigent::tracker::{AgentApi, BoardAnswer, Found, Tracker, TrackerError};
use serde_json::json;

use super::{active, first_mark, found, listed, team, titles, tracker};
use crate::linear::{Instead, KEY, Linear, When};
use crate::support::allowed;

type Check = fn(&TrackerError) -> bool;

#[tokio::test]
async fn a_read_that_fails_is_an_error_and_never_a_part() {
    let linear = Linear::start();
    for number in 0..80 {
        linear.add_issue(&format!("ticket {number}"), "Todo", &[]);
    }
    let tracker = tracker(&linear, team("ENG"));
    let cases: Vec<(&str, Instead, Check)> = vec![
        ("partial", Instead::Partial, |e| matches!(e, TrackerError::Response(why) if why.contains("a part could not"))),
        ("200 with errors", Instead::Errors("INTERNAL_SERVER_ERROR", "oh"), |e| matches!(e, TrackerError::Response(_))),
        ("400", Instead::Status(400), |e| matches!(e, TrackerError::Response(_))),
        ("401", Instead::Status(401), |e| matches!(e, TrackerError::Auth(_))),
        ("403", Instead::Status(403), |e| matches!(e, TrackerError::Auth(_))),
        ("429", Instead::TooMany, |e| matches!(e, TrackerError::RateLimited { .. })),
        ("500", Instead::Status(500), |e| matches!(e, TrackerError::Status { status: 500, .. }) && e.is_transient()),
        ("502", Instead::Html(502), |e| matches!(e, TrackerError::Status { status: 502, .. })),
        ("an HTML page", Instead::Html(200), |e| matches!(e, TrackerError::Response(why) if why.contains("<html>"))),
        ("cut off", Instead::Truncated, |e| matches!(e, TrackerError::Request(_)) && e.is_transient()),
        ("disconnected", Instead::Disconnect, |e| matches!(e, TrackerError::Request(_))),
        // Last: after it no poll leaves before its time.
        ("400 RATELIMITED", Instead::RateLimited(Duration::from_secs(90)), |e| {
            *e == TrackerError::RateLimited { retry_after: Some(Duration::from_secs(90)) }
        }),
    ];
    for (what, instead, expected) in cases {
        // The second page of the list.
        linear.fault_later("Issues", When::After, instead, 1, 1);
        let error = tracker.poll(&active(), None).await.unwrap_err();
        assert!(expected(&error), "{what}: {error:?}");
        linear.heal();
        assert_eq!(listed(&tracker).await.len(), 80, "{what}: and then it works again");
    }
}

/// A board that takes longer than a call may, or more than an hour's limit allows, is read all the same.
#[tokio::test]
async fn a_list_that_breaks_off_goes_on_where_it_was() {
    let linear = Linear::start();
    let ada = linear.user("ada");
    for number in 0..80 {
        let id = linear.add_issue(&format!("ticket {number}"), "Todo", &[]);
        // More than the wide reading brings.
        (0..if number < 25 { 9 } else { 0 }).for_each(|word| drop(linear.say(&ada, &id, &format!("word {word}"))));
    }
    let whole = {
        let tracker = tracker(&linear, team("ENG"));
        listed(&tracker).await;
        linear.journal().iter().filter(|entry| entry.operation == "Issues").count()
    };
    assert_eq!(whole, 6, "three pages, and three of those with more comments");
    // Each call ends with its second request: by a limit, a broken line, or because nobody waits any longer.
    let breaks: [fn() -> Instead; 3] =
        [|| Instead::RateLimited(Duration::ZERO), || Instead::Html(502), || Instead::Silence];
    for instead in breaks {
        let tracker = tracker(&linear, team("ENG"));
        linear.forget_journal();
        let mut calls = 0;
        let tickets = loop {
            calls += 1;
            assert!(calls < 20, "it never ends");
            linear.fault_later("Issues", When::Before, instead(), 1, 1);
            let silent = || linear.journal().iter().filter(|entry| entry.status.is_none()).count();
            let before = silent();
            let nobody_waits = async {
                while silent() == before {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            let states = active();
            let answer = tokio::select! {
                answer = tracker.fetch_by_states(&states) => answer.ok(),
                () = nobody_waits => None,
            };
            linear.heal();
            if let Some(tickets) = answer {
                break tickets;
            }
        };
        assert_eq!(tickets.len(), 80);
        assert!(tickets.iter().all(|ticket| ticket.comments.as_ref().is_some_and(|said| [0, 9].contains(&said.len()))));
        let asked = linear.journal().iter().filter(|entry| entry.operation == "Issues").count();
        assert_eq!(asked, whole + calls - 1, "each call brings it on; only what broke off is asked again");
        // What is wrong with what was read does not last.
        linear.fault("Issues", When::After, Instead::Errors("INPUT_ERROR", "Invalid cursor"));
        assert!(tracker.fetch_by_states(&active()).await.is_err());
        assert_eq!(listed(&tracker).await.len(), 80);
    }
}

#[tokio::test]
async fn a_write_that_fails_says_whether_it_may_have_been_done() {
    let linear = Linear::start();
    let id = TicketId::new(linear.add_issue("one", "Todo", &[]));
    let tracker = tracker(&linear, team("ENG"));
    let permit = allowed(EffectKind::Comment);
    let cases: Vec<(&str, Instead, Check)> = vec![
        ("200 with errors", Instead::Errors("INTERNAL_SERVER_ERROR", "oh"), |e| {
            matches!(e, TrackerError::MaybeDone(_))
        }),
        ("partial", Instead::Partial, |e| matches!(e, TrackerError::MaybeDone(_))),
        ("RATELIMITED", Instead::RateLimited(Duration::from_secs(5)), |e| {
            matches!(e, TrackerError::RateLimited { .. })
        }),
        ("401", Instead::Status(401), |e| matches!(e, TrackerError::Auth(_))),
        ("500", Instead::Status(500), |e| matches!(e, TrackerError::MaybeDone(_))),
        ("502", Instead::Html(502), |e| matches!(e, TrackerError::MaybeDone(_))),
        ("an HTML page", Instead::Html(200), |e| matches!(e, TrackerError::MaybeDone(_))),
        ("cut off", Instead::Truncated, |e| matches!(e, TrackerError::MaybeDone(_))),
        ("disconnected", Instead::Disconnect, |e| matches!(e, TrackerError::MaybeDone(_))),
    ];
    let now = Timestamp(linear.now().as_millisecond());
    for (what, instead, expected) in cases {
        linear.fault("WriteComment", When::After, instead);
        let error = tracker.comment(&permit, &id, what, "Started.", now).await.unwrap_err();
        assert!(expected(&error), "{what}: {error:?}");
        assert_eq!(linear.comments(id.as_str()).len(), 1, "{what}: it was done");
        let again = tracker.comment(&permit, &id, what, "Started.", now).await.unwrap();
        assert!(again.existed, "{what}");
        assert_eq!(linear.comments(id.as_str()).len(), 1, "{what}: and not once more");
        linear.unsay(id.as_str(), again.id.as_str());
    }
    linear.fault("WriteComment", When::Before, Instead::Errors("FORBIDDEN", "You may not comment"));
    let refused = tracker.comment(&permit, &id, "refused", "Started.", now).await;
    assert!(matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("may not")), "{refused:?}");
}

#[tokio::test]
async fn a_key_that_may_only_read_has_written_nothing() {
    let linear = Linear::start();
    let id = TicketId::new(linear.add_issue("one", "Todo", &[]));
    let (tracker, permit) = (tracker(&linear, team("ENG")), allowed(EffectKind::Comment));
    let now = Timestamp(linear.now().as_millisecond());
    linear.fault_later("mutation", When::Before, Instead::Errors("FORBIDDEN", "You may not comment"), 0, 2);
    let refused = tracker.comment(&permit, &id, "1", "Started.", now).await;
    assert!(matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("may not")), "{refused:?}");
    assert!(linear.comments(id.as_str()).is_empty());
    linear.heal();
    // A comment that exists and is not shown yet, by words alone.
    linear.fault("WriteComment", When::Before, Instead::Errors("INPUT_ERROR", "Entity already exists"));
    linear.fault("EditComment", When::Before, Instead::Errors("INPUT_ERROR", "Nothing to change"));
    assert!(tracker.comment(&permit, &id, "1", "Started.", now).await.unwrap().existed);
}

#[tokio::test]
async fn what_an_agent_may_not_ask_locks_nobody_out() {
    let linear = Linear::start();
    let id = linear.add_issue("one", "Todo", &[]);
    let tracker = tracker(&linear, team("ENG"));
    let scope = super::agent_api::scope(&id, 0);
    let words = "Authentication required";
    for instead in [Instead::Status(401), Instead::Status(403), Instead::Errors("AUTHENTICATION_ERROR", words)] {
        linear.fault("query", When::Before, instead);
        let answer = tracker.read_api(&scope, &json!({"query": "{ viewer { id } }"})).await.unwrap();
        assert!(!answer.success, "{answer:?}");
    }
}

#[tokio::test]
async fn nobody_there_means_that_nothing_was_done() {
    let linear = Linear::start();
    let id = TicketId::new(linear.add_issue("one", "Todo", &[]));
    let tracker = tracker(&linear, team("ENG"));
    drop(linear);
    let error = tracker.attach_link(&allowed(EffectKind::Comment), &id, "https://x.invalid", "x").await.unwrap_err();
    assert!(matches!(&error, TrackerError::Request(_)), "{error:?}");
    assert!(!error.to_string().contains(KEY), "{error}");
}

#[tokio::test]
async fn a_cursor_that_repeats_ends_the_reading() {
    let linear = Linear::start();
    for number in 0..80 {
        linear.add_issue(&format!("ticket {number}"), "Todo", &[]);
    }
    let tracker = tracker(&linear, team("ENG"));
    // The same again, and a circle of two.
    for cursors in [&["cursor:3"][..], &["cursor:3", "cursor:6"]] {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let looping = Instead::Edited(Box::new(move |body| {
            let cursor = cursors[asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % cursors.len()];
            body["data"]["issues"]["pageInfo"] = json!({"hasNextPage": true, "endCursor": cursor});
        }));
        linear.fault_later("Issues", When::After, looping, 0, 50);
        let error = tracker.fetch_by_states(&active()).await.unwrap_err();
        assert!(matches!(error, TrackerError::Pagination(_)), "{error:?}");
        assert!(linear.journal().len() < 5, "it does not go on for ever");
        linear.heal();
        linear.forget_journal();
    }
}

#[tokio::test]
async fn a_malformed_record_is_left_out_of_a_list_and_said() {
    let linear = Linear::start();
    let broken = linear.add_issue("broken", "Todo", &[]);
    linear.add_issue("fine", "Todo", &[]);
    let tracker = tracker(&linear, team("ENG"));
    let mark = first_mark(&tracker).await;
    linear.garble(&broken);
    assert_eq!(titles(&listed(&tracker).await), ["fine"]);
    assert!(tracker.left_out()[0].contains(&broken), "{:?}", tracker.left_out());
    assert!(
        matches!(found(&tracker, &broken).await, Found::Unreadable(why) if why.contains("title") || why.contains("null"))
    );
    linear.edit(&broken, |issue| issue.priority = 1);
    let answer = tracker.poll(&active(), Some(&mark)).await.unwrap().answer;
    assert!(matches!(answer, BoardAnswer::Changed { ref tickets, .. } if tickets.is_empty()), "{answer:?}");
}

/// What is missing may be what the ticket waits for.
#[tokio::test]
async fn an_issue_of_which_only_a_part_is_read_is_left_out_of_a_list() {
    let linear = Linear::start();
    let blocked = linear.add_issue("blocked", "Todo", &[]);
    linear.add_issue("fine", "Todo", &[]);
    for number in 0..30 {
        let blocker = linear.add_issue(&format!("before {number}"), "Done", &[]);
        linear.block(&blocked, &blocker);
    }
    let tracker = tracker(&linear, team("ENG"));
    // The reading of this issue alone, and what follows it.
    for skip in [1, 2] {
        let malformed = Instead::Edited(Box::new(|body| {
            body["data"]["issues"]["nodes"][0]["inverseRelations"]["nodes"][0]["type"] = json!(null);
        }));
        linear.fault_later("Issues", When::After, malformed, skip, 1);
        assert_eq!(titles(&listed(&tracker).await), ["fine"], "{skip}");
        assert!(tracker.left_out()[0].contains(&blocked), "{:?}", tracker.left_out());
        linear.heal();
    }
    let hidden = Instead::Edited(Box::new(|body| body["data"]["issues"]["nodes"] = json!([])));
    linear.fault_later("Issues", When::After, hidden, 1, 1);
    assert_eq!(titles(&listed(&tracker).await), ["fine"]);
    assert_eq!(titles(&listed(&tracker).await), ["blocked", "fine"]);
    assert!(tracker.left_out().is_empty());
}

#[tokio::test]
async fn a_limit_that_is_near_makes_polls_wait() {
    let linear = Linear::start();
    let id = linear.add_issue("one", "Todo", &[]);
    let tracker = tracker(&linear, team("ENG"));
    linear.allow_requests(60);
    let mut refused = None;
    let mut mark = first_mark(&tracker).await;
    for _ in 0..70 {
        match tracker.poll(&active(), Some(&mark)).await.map(|reading| reading.answer) {
            Ok(BoardAnswer::Changed { mark: next, .. }) => mark = next,
            Ok(_) => {}
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    match refused {
        // Others go on: it is no limit that was hit.
        Some(TrackerError::Later { wait, .. }) => assert!(wait > Duration::from_secs(3000), "{wait:?}"),
        other => panic!("{other:?}"),
    }
    let asked = linear.journal().len();
    assert!(tracker.poll(&active(), Some(&mark)).await.is_err());
    assert_eq!(linear.journal().len(), asked, "nothing is asked meanwhile");
    assert!(tracker.whoami().await.is_ok(), "and what is left is for what is under way");
    let (asked, scope) = (linear.journal().len(), super::agent_api::scope(&id, 0));
    let refused = tracker.read_api(&scope, &json!({"query": "{ viewer { id } }"})).await.unwrap();
    assert!(!refused.success && refused.output.contains("ask again in"), "{refused:?}");
    assert_eq!(linear.journal().len(), asked, "and not for workers that ask and ask");
}
