//! How much is asked.

use dirigent::tracker::{BoardAnswer, Tracker};

use super::{ask, id, mark, open, plain_board, tracker, tracker_of};
use crate::github::Hub;

#[tokio::test]
async fn an_idle_tick_of_a_thousand_issues_is_one_request_answered_with_304() {
    let hub = Hub::start();
    for number in 0..1000 {
        hub.add_issue("ada", &format!("Issue {number}"), "text", if number % 10 == 0 { &["agent"] } else { &[] });
    }
    // They were not all made within the last minutes.
    hub.advance(3600);
    hub.comment("ada", 1, "the last that happened");
    hub.advance(60);
    let tracker = tracker(&hub);
    let first = ask(&tracker, None).await;
    assert!(matches!(&first, BoardAnswer::Listed { tickets, .. } if tickets.len() == 1000));
    let since = mark(first);
    for _ in 0..3 {
        hub.forget_requests();
        assert_eq!(ask(&tracker, since.as_ref()).await, BoardAnswer::Unchanged);
        let requests = hub.requests();
        let asked: Vec<_> = requests.iter().map(|entry| (entry.route.as_str(), entry.status)).collect();
        assert_eq!(asked, [("issues/list-for-repo", Some(304))], "{}", hub.print());
    }
    hub.label("ada", 7, "agent");
    hub.advance(60);
    hub.forget_requests();
    match ask(&tracker, since.as_ref()).await {
        BoardAnswer::Changed { tickets, .. } => {
            assert_eq!(tickets.iter().map(|ticket| ticket.id.as_str()).collect::<Vec<_>>(), ["GH-7"]);
            assert!(tickets[0].labels.contains(&"agent".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(hub.count("*"), 1, "{}", hub.print());
}

#[tokio::test]
async fn after_a_change_the_next_idle_tick_is_a_304_again() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    hub.advance(60);
    let tracker = tracker(&hub);
    let mut since = mark(ask(&tracker, None).await);
    hub.comment("ada", number, "hurry");
    hub.advance(60);
    since = mark(ask(&tracker, since.as_ref()).await);
    hub.forget_requests();
    assert_eq!(ask(&tracker, since.as_ref()).await, BoardAnswer::Unchanged);
    assert_eq!(hub.requests()[0].status, Some(304), "{}", hub.print());
}

#[tokio::test]
async fn what_leaves_the_filter_is_told_whatever_took_it_out() {
    let hub = Hub::start();
    let closed = hub.add_issue("ada", "Closed by hand", "", &["agent"]);
    let bare = hub.add_issue("ada", "Label taken off", "", &["agent"]);
    hub.advance(60);
    let board = super::GithubBoard { required_labels: vec!["agent".into()], ..plain_board() };
    let tracker = tracker_of(&hub, board);
    let since = mark(ask(&tracker, None).await);
    hub.close("ada", closed, "not_planned");
    hub.unlabel("ada", bare, "agent");
    hub.advance(60);
    let BoardAnswer::Changed { tickets, .. } = ask(&tracker, since.as_ref()).await else { panic!("not told") };
    let mut seen: Vec<_> = tickets.iter().map(|one| (one.id.clone(), one.state.as_str(), one.labels.len())).collect();
    seen.sort();
    assert_eq!(seen, [(id(closed), "closed", 1), (id(bare), "open", 0)]);
}

#[tokio::test]
async fn a_change_in_the_same_second_as_the_answer_is_not_lost() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    let comment = hub.comment("ada", number, "one word");
    let tracker = tracker(&hub);
    let since = mark(ask(&tracker, None).await);
    // GitHub's times are whole seconds, and an edit changes nothing else about the issue.
    hub.edit_comment(comment, "another word");
    match ask(&tracker, since.as_ref()).await {
        BoardAnswer::Changed { tickets, .. } => assert_eq!(tickets[0].id, id(number)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn many_tickets_are_refreshed_with_one_question() {
    let hub = Hub::start();
    let numbers: Vec<u64> = (0..20).map(|n| hub.add_issue("ada", &format!("Issue {n}"), "", &["agent"])).collect();
    hub.advance(60);
    let tracker = tracker(&hub);
    tracker.fetch_by_states(&open()).await.unwrap();
    hub.forget_requests();
    let ids: Vec<_> = numbers.iter().map(|number| id(*number)).collect();
    assert_eq!(tracker.fetch_by_ids(&ids).await.unwrap().len(), 20);
    assert_eq!(hub.count("graphql*"), 1, "{}", hub.print());
    assert_eq!(hub.count("*"), 1, "{}", hub.print());
}
