//! What GitHub answers when something is wrong: each of it told apart, nothing dropped, and never read as "the issue is gone".

use std::time::Duration;

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ticket::Dispatchable;
use dirigent::domain::time::Timestamp;
use dirigent::tracker::{BoardAnswer, CommentFound, Found, Tracker, TrackerError};

use super::{GithubBoard, ask, client, id, mark, open, permit, plain_board, tracker, tracker_of};
use crate::github::{Fault, Gone, Hub, Instead, Lag, Thing, When};

fn always(hub: &Hub, route: &str, instead: Instead) {
    hub.add_fault(Fault { route: route.into(), when: When::After, instead, skip: 0, times: u32::MAX });
}

#[tokio::test]
async fn a_listing_that_fails_is_an_error_of_its_kind() {
    let cases: Vec<(Instead, &str)> = vec![
        (Instead::Status(404), "status"),
        (Instead::Status(410), "status"),
        (Instead::Status(451), "refused"),
        (Instead::Status(500), "status"),
        (Instead::Status(502), "status"),
        (Instead::Status(503), "status"),
        (Instead::Html(200), "response"),
        (Instead::Html(503), "status"),
        (Instead::Truncated, "response"),
        (Instead::LoopingLink, "pagination"),
        (Instead::Status(401), "auth"),
        (Instead::Forbidden, "refused"),
        (Instead::SecondaryLimit { status: 403, retry_after: Some(30) }, "rate_limited"),
        (Instead::SecondaryLimit { status: 429, retry_after: None }, "rate_limited"),
        (Instead::Disconnect, "request"),
    ];
    for (fault, code) in cases {
        let hub = Hub::start();
        hub.add_issue("ada", "A bug", "", &[]);
        let tracker = tracker(&hub);
        always(&hub, "issues/list-for-repo", fault);
        let answer = tracker.poll(&open(), None).await;
        let told = answer.as_ref().map_err(TrackerError::code);
        assert_eq!(told.err(), Some(code), "{answer:?}");
    }
}

#[tokio::test]
async fn no_failure_says_that_an_issue_is_gone() {
    for fault in
        [Instead::Status(500), Instead::Html(200), Instead::Truncated, Instead::Forbidden, Instead::Status(401)]
    {
        let hub = Hub::start();
        let number = hub.add_issue("ada", "A bug", "", &[]);
        let tracker = tracker(&hub);
        tracker.fetch_by_states(&open()).await.unwrap();
        always(&hub, "*", fault);
        let answer = tracker.fetch_by_ids(&[id(number)]).await;
        assert!(answer.is_err(), "{answer:?}");
    }
}

#[tokio::test]
async fn what_became_of_an_issue_is_told_by_its_kind() {
    let hub = Hub::start();
    hub.add_repository("acme", "gears");
    let numbers: Vec<u64> = (0..5).map(|n| hub.add_issue("ada", &format!("Issue {n}"), "", &[])).collect();
    hub.push("ada", "topic", &[("a.txt", Some("a\n"))], "a");
    let pull = hub.open_pull("ada", "topic", "main", "A pull request", "");
    let tracker = tracker(&hub);
    hub.lose(numbers[0], Gone::Deleted);
    hub.lose(numbers[1], Gone::Hidden);
    hub.lose(numbers[2], Gone::Transferred { repository: 4242, number: 9 });
    hub.lose(numbers[3], Gone::Transferred { repository: 4242, number: numbers[3] });
    let asked: Vec<_> = numbers.iter().copied().chain([pull, 999]).map(id).collect();
    let found = tracker.fetch_by_ids(&asked).await.unwrap();
    let words: Vec<String> = found
        .iter()
        .map(|(_, found)| match found {
            Found::Ticket(_) => "there".into(),
            Found::Gone(why) => format!("gone: {why}"),
            Found::NotVisible => "not visible".into(),
            Found::Unreadable(why) => format!("unreadable: {why}"),
        })
        .collect();
    assert!(words[0].starts_with("gone: This issue was deleted"), "{words:?}");
    assert_eq!(words[1], "not visible");
    assert!(words[2].starts_with("gone: it was transferred to"), "{words:?}");
    assert!(words[3].starts_with("gone: it was transferred to"), "the same number by chance: {words:?}");
    assert_eq!(words[4], "there");
    assert_eq!(words[5], "gone: it is a pull request");
    assert_eq!(words[6], "not visible");
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_found_under_its_new_name() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.rename("gadgets");
    let tracker = tracker(&hub);
    let listed = tracker.fetch_by_states(&open()).await.unwrap();
    assert_eq!(listed.len(), 1, "{}", hub.print());
    assert!(matches!(tracker.fetch_by_ids(&[id(number)]).await.unwrap()[0].1, Found::Ticket(_)));
    let now = Timestamp(hub.now().as_millisecond());
    tracker.comment(&permit(), &id(number), "k#1", "Started.", now).await.unwrap();
    assert_eq!(hub.comments(number).len(), 1);
    let report = tracker.check_setup().await.unwrap();
    assert!(report.wrong[0].contains("is called acme/gadgets now"), "{report:?}");
}

#[tokio::test]
async fn a_private_repository_without_rights_is_told_as_such() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    hub.add_token("stranger", "strange-token");
    let tracker = dirigent::tracker::github::GithubTracker::new(client(&hub, "strange-token"), plain_board());
    let refused = tracker.probe().await.unwrap_err().to_string();
    assert!(refused.contains("stranger does not see acme/widgets"), "{refused}");
    let answer = tracker.fetch_by_ids(&[id(1)]).await;
    assert!(matches!(answer, Err(TrackerError::Status { status: 404, .. })), "{answer:?}");
}

#[tokio::test]
async fn a_token_that_may_only_read_sees_the_board_and_trusts_nobody() {
    let hub = Hub::start();
    for n in 0..3 {
        hub.add_issue(["ada", "zoe", "robot"][n], "A bug", "", &[]);
    }
    hub.grant("reader", crate::github::Permission::Read);
    hub.add_token("reader", "reader-token");
    let tracker = dirigent::tracker::github::GithubTracker::new(client(&hub, "reader-token"), plain_board());
    let listed = tracker.fetch_by_states(&open()).await.unwrap();
    let trust: Vec<_> = listed.iter().map(|one| one.author.as_ref().unwrap().trust).collect();
    assert_eq!(trust, [TrustLevel::Stranger; 3]);
    assert_eq!(hub.count("repos/get-collaborator-permission-level"), 1, "asked once: {}", hub.print());
    assert!(matches!(tracker.permission("ada").await, Err(TrackerError::Refused(_))), "unknown is not an answer");
}

#[tokio::test]
async fn what_strangers_write_into_an_issue_leads_nowhere_else() {
    let hub = Hub::start();
    let body = "Blocked by ../../user#1\nBlocked by #99999999999\nBlocked by nobody/nothing#7\nDepends on #2";
    let number = hub.add_issue("zoe", "Odd", body, &["agent"]);
    hub.add_issue("ada", "Fine", "", &["agent"]);
    let tracker = tracker(&hub);
    let listed = tracker.fetch_by_states(&open()).await.unwrap();
    let blockers: Vec<_> = listed[0].blocked_by.iter().map(|one| (one.id.as_str(), one.state.as_deref())).collect();
    assert_eq!(blockers, [("nobody/nothing#7", None), ("GH-2", Some("open"))]);
    assert!(matches!(tracker.fetch_by_ids(&[id(number)]).await.unwrap()[0].1, Found::Ticket(_)));
    let found = tracker.fetch_by_ids(&["nobody/nothing#7".into(), "../../user#1".into()]).await.unwrap();
    assert!(found.iter().all(|(_, found)| *found == Found::NotVisible), "{found:?}");
}

#[tokio::test]
async fn a_deleted_account_and_a_locked_issue_are_read_like_any_other() {
    let hub = Hub::start();
    let number = hub.add_issue("zoe", "A bug", "text", &["agent"]);
    hub.comment("zoe", number, "a word");
    hub.forget_authors(number);
    hub.lock("ada", number);
    let tracker = tracker(&hub);
    let listed = tracker.fetch_by_states(&open()).await.unwrap();
    assert_eq!(listed[0].author.as_ref().unwrap().name, "ghost");
    let (_, Found::Ticket(ticket)) = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0) else { panic!() };
    assert_eq!(ticket.known_comments()[0].author.name, "ghost");
}

#[tokio::test]
async fn fields_are_named_when_github_refuses_them() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let tracker = tracker(&hub);
    let errors =
        serde_json::json!([{"resource": "IssueComment", "field": "body", "code": "custom", "message": "is not nice"}]);
    hub.fault("issues/create-comment", When::Before, Instead::Unprocessable(errors));
    let now = Timestamp(hub.now().as_millisecond());
    let refused = tracker.comment(&permit(), &id(number), "k", "text", now).await.unwrap_err();
    assert_eq!(refused.code(), "refused");
    assert!(refused.to_string().contains("IssueComment.body: is not nice"), "{refused}");
}

#[tokio::test]
async fn a_token_that_expires_in_the_middle_is_told_and_nothing_is_done() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let tracker = tracker(&hub);
    let since = mark(ask(&tracker, None).await);
    hub.revoke("robot-token");
    let answer = tracker.poll(&open(), since.as_ref()).await;
    assert!(matches!(answer, Err(TrackerError::Auth(_))), "{answer:?}");
    let found = tracker.find_comment(&id(number), &"77".into()).await;
    assert!(matches!(found, Err(TrackerError::Auth(_))), "never `Gone`: {found:?}");
}

#[tokio::test]
async fn a_replica_that_goes_back_in_time_moves_nothing_back() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "Before", "", &[]);
    hub.advance(60);
    let tracker = tracker(&hub);
    let since = mark(ask(&tracker, None).await);
    hub.lag(Thing::Issue(number), Lag::Frozen);
    hub.retitle("ada", number, "After");
    hub.advance(60);
    hub.release(&Thing::Issue(number));
    let answer = ask(&tracker, since.as_ref()).await;
    assert!(matches!(&answer, BoardAnswer::Changed { tickets, .. } if tickets[0].title == "After"), "{answer:?}");
    let since = mark(answer);
    // The other replica, an hour late.
    always(
        &hub,
        "issues/list-for-repo",
        Instead::Edited(Box::new(|body| {
            body[0]["title"] = "Before".into();
            body[0]["updated_at"] = "2020-01-01T00:00:00Z".into();
        })),
    );
    hub.edit_comment(hub.comment("ada", number, "x"), "y");
    hub.advance(60);
    match ask(&tracker, since.as_ref()).await {
        BoardAnswer::Changed { tickets, mark } => {
            assert!(tickets.is_empty(), "{tickets:?}");
            hub.clear_faults();
            let BoardAnswer::Changed { tickets, .. } = ask(&tracker, Some(&mark)).await else { panic!("lost") };
            assert_eq!(tickets[0].title, "After");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_comment_is_gone_only_beside_an_issue_that_is_there() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let said = hub.comment("ada", number, "a word");
    let tracker = tracker(&hub);
    let look = async || tracker.find_comment(&id(number), &said.to_string().as_str().into()).await;
    assert_eq!(look().await, Ok(CommentFound::There));
    hub.lose(number, Gone::Hidden);
    assert_eq!(look().await, Ok(CommentFound::NotVisible));
}

#[tokio::test]
async fn silence_ends_and_a_write_that_met_it_may_be_done() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let access = dirigent::github::Access::new(
        Some(hub.api().to_owned()),
        dirigent::github::Credential::Token("robot-token".into()),
    );
    let access = dirigent::github::Access { timeout: Duration::from_millis(400), ..access };
    let github = dirigent::github::Github::new(access).unwrap();
    let tracker = dirigent::tracker::github::GithubTracker::new(github, plain_board());
    let now = Timestamp(hub.now().as_millisecond());
    hub.fault("issues/create-comment", When::After, Instead::Silence);
    let answer = tracker.comment(&permit(), &id(number), "k", "text", now).await;
    assert!(matches!(answer, Err(TrackerError::MaybeDone(_))), "{answer:?}");
    hub.fault("issues/list-for-repo", When::Before, Instead::Silence);
    let answer = tracker.fetch_by_states(&open()).await;
    assert!(matches!(answer, Err(TrackerError::Request(_))), "{answer:?}");
}

#[tokio::test]
async fn the_file_may_ask_for_an_assignee_or_a_milestone() {
    let hub = Hub::start();
    let theirs = hub.add_issue("ada", "Not ours", "", &[]);
    let ours = hub.add_issue("ada", "Ours", "", &[]);
    hub.assign("ada", ours, "robot");
    hub.set_milestone(ours, "v1");
    for board in [
        GithubBoard { assignee: Some("me".into()), ..plain_board() },
        GithubBoard { assignee: Some("Robot".into()), ..plain_board() },
        GithubBoard { milestone: Some("v1".into()), ..plain_board() },
    ] {
        let listed = tracker_of(&hub, board).fetch_by_states(&open()).await.unwrap();
        let may: Vec<_> = listed.iter().map(|one| (one.id.clone(), one.dispatchable == Dispatchable::Yes)).collect();
        assert_eq!(may, [(id(theirs), false), (id(ours), true)]);
    }
}
