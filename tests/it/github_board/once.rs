//! No write is sent twice: what took effect and was not confirmed is found again.

use std::sync::Arc;

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ticket::NewTicket;
use dirigent::domain::time::Timestamp;
use dirigent::tracker::github::{Done, GithubTracker};
use dirigent::tracker::{Acknowledgement, Edited, Move, Tracker, TrackerError};

use super::{GithubBoard, id, permit, plain_board, tracker, tracker_of};
use crate::github::{ANY_WRITE, Hub, Instead, When};

fn now(hub: &Hub) -> Timestamp {
    Timestamp(hub.now().as_millisecond())
}

fn faults() -> Vec<Instead> {
    vec![Instead::Status(502), Instead::Html(502), Instead::Truncated, Instead::Disconnect, Instead::Status(500)]
}

#[track_caller]
fn assert_maybe_done<T: std::fmt::Debug>(answer: Result<T, TrackerError>) {
    assert!(matches!(answer, Err(TrackerError::MaybeDone(_))), "{answer:?}");
}

fn lose(hub: &Hub, fault: Instead) {
    hub.fault(ANY_WRITE, When::After, fault);
}

async fn comment(hub: &Hub, tracker: &Arc<GithubTracker>, number: u64) -> Result<bool, TrackerError> {
    let written = tracker.comment(&permit(), &id(number), "started:1#ab", "Started.", now(hub)).await?;
    Ok(written.existed)
}

#[tokio::test]
async fn a_comment_that_took_effect_is_found_by_its_mark() {
    for fault in faults() {
        let hub = Hub::start();
        let number = hub.add_issue("ada", "A bug", "", &[]);
        let tracker = tracker(&hub);
        lose(&hub, fault);
        assert_maybe_done(comment(&hub, &tracker, number).await);
        assert_eq!(hub.writes().len(), 1, "sent once: {}", hub.print());
        assert_eq!(comment(&hub, &tracker, number).await, Ok(true));
        assert_eq!(hub.comments(number).len(), 1);
        assert_eq!(hub.writes().len(), 1, "{}", hub.print());
    }
}

#[tokio::test]
async fn a_label_a_close_and_a_reaction_that_took_effect_are_not_repeated() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    let tracker = tracker(&hub);
    let label = async || tracker.label(&permit(), &id(number), &["later".into()], &["agent".into()]).await;
    lose(&hub, Instead::Status(502));
    assert_maybe_done(label().await);
    label().await.unwrap();
    assert_eq!(hub.labels(number), ["later"]);
    assert_eq!(hub.writes().len(), 2, "one added, one removed: {}", hub.print());

    lose(&hub, Instead::Status(502));
    assert_maybe_done(tracker.move_ticket(&permit(), &id(number), "closed", &[]).await);
    assert_eq!(tracker.move_ticket(&permit(), &id(number), "closed", &[]).await, Ok(Move::Already));
    assert_eq!(hub.count("issues/update"), 1, "{}", hub.print());

    let said = hub.comment("ada", number, "/dirigent explain");
    lose(&hub, Instead::Status(502));
    let react = async || {
        let comment = said.to_string().as_str().into();
        tracker.react(&permit(), &id(number), &comment, Acknowledgement::Seen).await
    };
    assert_maybe_done(react().await);
    react().await.unwrap();
    assert_eq!(hub.reactions(said), [("robot".to_owned(), "eyes".to_owned())]);
}

#[tokio::test]
async fn a_ticket_that_took_effect_is_found_and_its_relations_are_completed() {
    let hub = Hub::start();
    let before = hub.add_issue("ada", "Before", "", &[]);
    let tracker = tracker(&hub);
    let new = NewTicket {
        title: "After".into(),
        description: "Left over".into(),
        labels: vec!["agent".into()],
        priority: Some(1),
        parent: Some(id(before)),
        blocked_by: vec![id(before)],
    };
    // The issue itself, its parent, its blocker: each answer is lost once.
    for _ in 0..3 {
        lose(&hub, Instead::Status(502));
        assert_maybe_done(tracker.create_ticket(&permit(), &new, "k").await);
        hub.clear_faults();
        hub.advance(5);
    }
    let made = tracker.create_ticket(&permit(), &new, "k").await.unwrap();
    assert_eq!(hub.count("issues/create"), 1, "{}", hub.print());
    assert_eq!(hub.writes().len(), 3, "{}", hub.print());
    let (_, found) = tracker.fetch_by_ids(std::slice::from_ref(&made)).await.unwrap().remove(0);
    let dirigent::tracker::Found::Ticket(ticket) = found else { panic!("{found:?}") };
    assert_eq!((ticket.parent, ticket.blocked_by.len(), ticket.priority), (Some(id(before)), 1, Some(1)));
}

#[tokio::test]
async fn an_edit_that_took_effect_is_not_sent_again() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let tracker = tracker(&hub);
    let made = tracker.comment(&permit(), &id(number), "workpad#1", "Plan A", now(&hub)).await.unwrap();
    let edit = async || tracker.edit_comment(&permit(), &id(number), &made.id, "Plan B").await;
    lose(&hub, Instead::Status(502));
    assert_maybe_done(edit().await);
    assert_eq!(edit().await, Ok(Edited::Done));
    assert_eq!(hub.count("issues/update-comment"), 1, "{}", hub.print());
}

#[tokio::test]
async fn nothing_has_left_where_there_is_nobody_to_hear() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let access = dirigent::github::Access::new(
        // A port that nothing listens on.
        Some("http://127.0.0.1:9".into()),
        dirigent::github::Credential::Token("x".into()),
    );
    let nobody = GithubTracker::new(dirigent::github::Github::new(access).unwrap(), plain_board());
    let answer = nobody.comment(&permit(), &id(number), "k", "text", now(&hub)).await;
    assert!(matches!(answer, Err(TrackerError::Request(_))), "{answer:?}");
}

#[tokio::test]
async fn the_labels_of_finished_work_are_changed_also_when_somebody_else_closed_it() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent", "keep"]);
    let done = Done { state: "closed".into(), add_labels: vec!["shipped".into()], remove_labels: vec!["agent".into()] };
    let tracker = tracker_of(&hub, GithubBoard { done, ..plain_board() });
    hub.close("ada", number, "completed");
    for _ in 0..2 {
        assert_eq!(tracker.move_ticket(&permit(), &id(number), "closed", &[]).await, Ok(Move::Already));
        assert_eq!(hub.labels(number), ["keep", "shipped"]);
    }
    assert_eq!(hub.writes().len(), 2, "{}", hub.print());
}

#[tokio::test]
async fn a_comment_that_is_too_long_is_cut_with_a_pointer() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let tracker = tracker(&hub);
    let long = "long ".repeat(20_000);
    tracker.comment(&permit(), &id(number), "k#1", &long, now(&hub)).await.unwrap();
    let said = hub.comments(number).remove(0).body;
    assert!(said.chars().count() <= 65_536 && said.contains("cut here"), "{}", said.len());
    assert!(tracker.comment(&permit(), &id(number), "k#1", &long, now(&hub)).await.unwrap().existed);
}

#[tokio::test]
async fn a_permission_is_what_the_repository_says_and_not_an_association() {
    let hub = Hub::start();
    hub.grant("tess", crate::github::Permission::Triage);
    hub.grant("rhea", crate::github::Permission::Read);
    let tracker = tracker(&hub);
    for (login, trust) in [
        ("ada", TrustLevel::Admin),
        ("robot", TrustLevel::Write),
        ("tess", TrustLevel::Triage),
        ("rhea", TrustLevel::Stranger),
        ("nobody-at-all", TrustLevel::Stranger),
        ("jürgen", TrustLevel::Stranger),
    ] {
        assert_eq!(tracker.permission(login).await, Ok(trust), "{login}");
    }
}

fn blocked_by(blocker: &str) -> NewTicket {
    NewTicket {
        title: "Follow up".into(),
        description: "What was left over.".into(),
        labels: Vec::new(),
        priority: None,
        parent: None,
        blocked_by: vec![blocker.into()],
    }
}

#[tokio::test]
async fn a_new_ticket_may_wait_for_one_of_another_repository() {
    let hub = Hub::start();
    hub.add_repository("acme", "gears");
    let (number, blocker) = hub.add_issue_elsewhere("ada", "First");
    let new = blocked_by(&format!("acme/gears#{number}"));
    tracker(&hub).create_ticket(&permit(), &new, "follow up 1").await.unwrap();
    let writes = hub.writes();
    let relation = writes.iter().find(|entry| entry.route == "issues/add-blocked-by-dependency").unwrap();
    assert_eq!(relation.body["issue_id"], blocker);
}

#[tokio::test]
async fn a_ticket_that_would_wait_for_nothing_that_exists_is_not_made() {
    let hub = Hub::start();
    for nowhere in ["acme/nothing#7", "GH-7", "tk-1"] {
        let refused = tracker(&hub).create_ticket(&permit(), &blocked_by(nowhere), "follow up 1").await;
        assert!(matches!(&refused, Err(TrackerError::NotFound(id)) if id.as_str() == nowhere), "{refused:?}");
    }
    assert!(hub.writes().is_empty(), "{}", hub.print());
}
