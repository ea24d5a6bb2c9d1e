//! Rights that are taken away: whoever tells us something is asked about in the very reading that brings their words.

use dirigent::domain::comment::TrustLevel;
use dirigent::tracker::github::{Columns, GithubTracker};
use dirigent::tracker::{Found, Tracker};

use super::{GithubBoard, id, plain_board, tracker, tracker_of};
use crate::github::{Hub, Permission};

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
