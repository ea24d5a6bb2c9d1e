//! Rights that are taken away: whoever tells us something is asked about in the very reading that brings their words.

use std::time::Duration;

use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::tracker::github::{Columns, GithubTracker};
use dirigent::tracker::{Found, Tracker};

use super::{GithubBoard, id, plain_board, project_board, tracker, tracker_of};
use crate::github::{Hub, Instead, Permission, When};

/// How the author of the last comment stands, by both ways of reading it.
async fn last_author(tracker: &GithubTracker, number: u64) -> [TrustLevel; 2] {
    let found = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1;
    let Found::Ticket(ticket) = found else { panic!("{found:?}") };
    let by_id = ticket.comments.unwrap().pop().unwrap().author.trust;
    let listed = tracker.comments(&id(number), None).await.unwrap().pop().unwrap();
    [by_id, listed.author.trust]
}

#[tokio::test]
async fn whoever_tells_us_something_is_asked_about_anew() {
    let hub = Hub::start();
    hub.grant("bob", Permission::Write);
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    let tracker = tracker(&hub);
    hub.comment("bob", number, "I had a look");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Write; 2]);
    hub.grant("bob", Permission::Read);
    hub.comment("bob", number, "fine\n\n  /dirigent approve 0123456");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Stranger; 2]);
    // And the other way round.
    hub.grant("bob", Permission::Maintain);
    hub.comment("bob", number, "/dirigent approve 0123456");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Maintain; 2]);
    // Who only talks is remembered.
    hub.forget_requests();
    let other = hub.add_issue("ada", "Another", "", &["agent"]);
    hub.comment("bob", other, "just words");
    last_author(&tracker, other).await;
    assert_eq!(hub.count("repos/get-collaborator-permission-level"), 0, "{}", hub.print());
}

#[tokio::test]
async fn whoever_approves_by_moving_the_ticket_is_asked_about_anew() {
    let hub = Hub::start();
    hub.grant("bob", Permission::Write);
    let labels = [("Doing", "doing"), ("Approved", "approved")];
    let owned = labels.map(|(state, label)| (state.to_owned(), label.to_owned()));
    let board = GithubBoard {
        columns: Columns::of_labels(owned, &["Doing".to_owned()], &[]),
        approval_states: vec!["Approved".to_owned()],
        ..plain_board()
    };
    let tracker = tracker_of(&hub, board);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let mover = async || {
        let found = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1;
        let Found::Ticket(ticket) = found else { panic!("{found:?}") };
        ticket.state_changed.unwrap().by.unwrap().trust
    };
    hub.label("bob", number, "doing");
    assert_eq!(mover().await, TrustLevel::Write);
    hub.grant("bob", Permission::Read);
    assert_eq!(mover().await, TrustLevel::Write, "nothing follows from it");
    hub.label("bob", number, "approved");
    assert_eq!(mover().await, TrustLevel::Stranger);
}

/// Lets what is believed for ten minutes grow old.
async fn eleven_minutes_pass() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(660)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn whoever_is_no_collaborator_any_more_is_a_stranger() {
    let hub = Hub::start();
    hub.grant("bob", Permission::Write);
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    let tracker = tracker(&hub);
    hub.comment("bob", number, "I had a look");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Write; 2]);
    hub.grant("bob", Permission::None);
    eleven_minutes_pass().await;
    hub.comment("bob", number, "and another");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Stranger; 2]);
    hub.comment("ada", number, "thanks");
    assert_eq!(last_author(&tracker, number).await, [TrustLevel::Admin; 2]);
}

#[tokio::test]
async fn everybody_on_a_long_list_of_collaborators_is_known() {
    let hub = Hub::start();
    hub.grant("bob", Permission::Write);
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    hub.comment("bob", number, "I had a look");
    let many = |body: &mut serde_json::Value| {
        let list = body.as_array_mut().unwrap();
        let one = list.iter().find(|user| user["login"] == "bob").unwrap().clone();
        list.extend((0..2500).map(|number| {
            let mut other = one.clone();
            other["login"] = format!("member-{number}").into();
            other
        }));
    };
    hub.fault("repos/list-collaborators", When::After, Instead::Edited(Box::new(many)));
    assert_eq!(last_author(&tracker(&hub), number).await, [TrustLevel::Write; 2]);
}

/// Who moved the ticket into its state.
async fn mover(tracker: &GithubTracker, number: u64) -> Author {
    let found = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1;
    let Found::Ticket(ticket) = found else { panic!("{found:?}") };
    ticket.state_changed.unwrap().by.unwrap()
}

#[tokio::test]
async fn whoever_reopened_an_issue_did_not_put_its_label_on() {
    let hub = Hub::start();
    let states = [("Approved".to_owned(), "approved".to_owned())];
    let board = GithubBoard {
        columns: Columns::of_labels(states, &[], &[]),
        approval_states: vec!["Approved".to_owned()],
        ..plain_board()
    };
    let tracker = tracker_of(&hub, board);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.label("zoe", number, "approved");
    assert_eq!(mover(&tracker, number).await.name, "zoe");
    for _ in 0..100 {
        hub.label("robot", number, "seen");
        hub.unlabel("robot", number, "seen");
    }
    hub.close("ada", number, "completed");
    hub.reopen("ada", number);
    let by = mover(&tracker, number).await;
    assert!(by.trust == TrustLevel::Stranger && by.name != "ada", "{by:?}");
}

#[tokio::test]
async fn nobody_is_named_for_moving_a_card() {
    let hub = Hub::start();
    let tracker = project_board(&hub);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.move_in_project("ada", 0, number, "Done");
    let by = mover(&tracker, number).await;
    assert!(by.trust == TrustLevel::Stranger && by.name != "ada", "{by:?}");
}
