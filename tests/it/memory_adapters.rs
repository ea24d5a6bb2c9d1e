//! How the memory adapters misbehave when they are told to. That they behave otherwise is shown by the exams.

use std::time::{Duration, Instant};

use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::{PrNumber, TicketId};
use dirigent::domain::pr::{MergeMethod, Mergeability, NewPr};
use dirigent::domain::time::Timestamp;
use dirigent::engine::permit::EffectKind;
use dirigent::forge::memory::{Fault as ForgeFault, LookPart, MemoryForge};
use dirigent::forge::{Forge, ForgeError, MergeOrder};
use dirigent::tracker::memory::{Fault, MemoryTracker};
use dirigent::tracker::{Found, Move, Tracker, TrackerError};

use crate::engine::fixtures::{commit, id, ticket};
use crate::support::allowed;

async fn title(board: &MemoryTracker, id: &TicketId) -> String {
    match board.fetch_by_ids(std::slice::from_ref(id)).await.unwrap().remove(0).1 {
        Found::Ticket(ticket) => ticket.title,
        other => format!("{other:?}"),
    }
}

fn retitled(board: &MemoryTracker, id: &TicketId, titles: &[&str]) {
    for title in titles {
        board.edit(id, |ticket| ticket.title = (*title).to_owned());
    }
}

#[tokio::test]
async fn replicas_answer_in_turn_until_they_have_caught_up() {
    let board = MemoryTracker::new([ticket("a")]);
    retitled(&board, &id("a"), &["second", "third"]);
    board.replicas(&[0, 1, 9]);
    for _ in 0..2 {
        assert_eq!(title(&board, &id("a")).await, "third");
        assert_eq!(title(&board, &id("a")).await, "second");
        assert_eq!(title(&board, &id("a")).await, "NotVisible", "it has not heard of the ticket yet");
    }
    board.catch_up();
    retitled(&board, &id("a"), &["fourth", "fifth"]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(title(&board, &id("a")).await);
    }
    assert_eq!(seen, ["fifth", "fourth", "third"], "never older than what it had caught up with");
}

#[tokio::test]
async fn one_ticket_can_lag_alone_and_writes_are_decided_on_the_truth() {
    let board = MemoryTracker::new([ticket("a"), ticket("b")]);
    for name in ["a", "b"] {
        retitled(&board, &id(name), &["new"]);
    }
    board.lag(&id("a"), 1);
    assert_eq!((title(&board, &id("a")).await, title(&board, &id("b")).await), ("Do a".into(), "new".into()));
    board.edit(&id("a"), |ticket| ticket.state = "Done".into());
    let moved = board.move_ticket(&allowed(EffectKind::MoveTicket), &id("a"), "Doing", &["Todo".into()]).await;
    assert_eq!(moved, Ok(Move::Elsewhere("Done".into())));
    assert_eq!(board.ticket(&id("a")).unwrap().state, "Done");
}

#[tokio::test]
async fn a_listing_can_contain_a_ticket_twice_and_leave_comments_out() {
    let board = MemoryTracker::new([ticket("a"), ticket("b")]);
    retitled(&board, &id("a"), &["moved to the next page"]);
    board.list_twice(&id("a"));
    board.list_without_comments();
    let listed = board.fetch_by_states(&["Todo".into()]).await.unwrap();
    let titles: Vec<&str> = listed.iter().map(|ticket| ticket.title.as_str()).collect();
    assert_eq!(titles, ["Do a", "moved to the next page", "Do b"]);
    assert!(listed.iter().all(|ticket| ticket.comments.is_none()));
}

#[tokio::test]
async fn the_board_says_who_moved_and_labelled_a_ticket_and_when() {
    let board = MemoryTracker::new([ticket("a")]);
    let ann = Author::new("ann", TrustLevel::Write);
    board.set_clock(Timestamp(5_000));
    board.edit_as(ann.clone(), &id("a"), |ticket| {
        ticket.state = "Doing".into();
        ticket.labels.push("Agent".into());
    });
    let seen = board.ticket(&id("a")).unwrap();
    let moved = seen.state_changed.unwrap();
    assert_eq!((moved.at, moved.by.as_ref()), (Timestamp(5_001), Some(&ann)));
    let [label] = &seen.history.labelled[..] else { panic!("{:?}", seen.history.labelled) };
    assert_eq!((label.label.as_str(), &label.by), ("agent", &ann));
    let permit = allowed(EffectKind::MoveTicket);
    assert_eq!(
        board.move_ticket(&permit, &id("a"), "Done", &["doing".into()]).await,
        Ok(Move::Moved(Some(Timestamp(5_002))))
    );
    board.label(&permit, &id("a"), &[], &["agent".into()]).await.unwrap();
    let seen = board.ticket(&id("a")).unwrap();
    assert!(seen.state_changed.unwrap().by.unwrap().ourselves);
    assert!(seen.history.labelled.is_empty());
    assert_eq!(board.poll(&["Done".into()], None).await.unwrap().asked_at, Some(Timestamp(5_003)));
}

#[tokio::test]
async fn faults_come_in_order_and_an_outage_comes_before_them() {
    let board = MemoryTracker::new([ticket("a")]);
    let refused = TrackerError::Auth("401".into());
    board.script([Fault::Late(Duration::from_millis(40)), Fault::Fine, Fault::lost(false)]);
    board.outage(Some(refused.clone()));
    assert_eq!(board.whoami().await, Err(refused));
    board.outage(None);
    let asked = Instant::now();
    assert!(board.whoami().await.is_ok());
    assert!(asked.elapsed() >= Duration::from_millis(40));
    assert!(board.whoami().await.is_ok());
    assert!(matches!(board.whoami().await, Err(TrackerError::MaybeDone(_))));
    assert_eq!(board.calls(), 4);
}

async fn opened(forge: &MemoryForge, branch: &str) -> PrNumber {
    let new = NewPr {
        title: "A change".into(),
        body: String::new(),
        head_branch: branch.into(),
        head: commit(branch),
        base_branch: "main".into(),
        draft: false,
        labels: Vec::new(),
        reviewers: Vec::new(),
    };
    forge.open_pr(&allowed(EffectKind::OpenPr), &new).await.unwrap().number
}

#[tokio::test]
async fn whether_it_can_be_merged_is_known_at_the_second_look_after_a_move() {
    let forge = MemoryForge::default();
    let (one, two) = (opened(&forge, "one").await, opened(&forge, "two").await);
    let mergeability = async |number| forge.inspect(number).await.unwrap().mergeability;
    for number in [one, two] {
        assert_eq!(mergeability(number).await, Mergeability::Unknown);
        assert_eq!(mergeability(number).await, Mergeability::Clean);
    }
    let (expected_head, expected_base) = (commit("one"), "main".to_owned());
    let order =
        MergeOrder { number: one, expected_head, expected_base, method: MergeMethod::Squash, trailers: Vec::new() };
    forge.merge(&allowed(EffectKind::MergePr), &order).await.unwrap();
    assert_eq!(mergeability(two).await, Mergeability::Unknown, "the base has moved");
    assert_eq!(mergeability(two).await, Mergeability::Clean);
    forge.edit(two, |pr| pr.mergeability = Mergeability::Unknown);
    for _ in 0..2 {
        assert_eq!(mergeability(two).await, Mergeability::Unknown, "what somebody said stays said");
    }
}

#[tokio::test]
async fn looks_can_lag_and_lack_parts_and_fail() {
    let forge = MemoryForge::default();
    let number = opened(&forge, "one").await;
    forge.push("one", &commit("more"));
    forge.lag(number, 1);
    forge.withhold(number, &[LookPart::Reviews, LookPart::Checks]);
    forge.set_clock(Timestamp(7_000));
    let (_, look) = forge.inspect_many(&[number]).await.remove(0);
    let look = look.unwrap();
    assert_eq!(look.asked_at, Some(Timestamp(7_000)));
    assert_eq!((&look.pr.head, look.pr.ref_head.as_ref()), (&commit("one"), Some(&commit("more"))));
    assert_eq!((look.pr.reviews, look.pr.checks, look.pr.threads), (None, None, Some(Vec::new())));
    forge.withhold(number, &[]);
    forge.catch_up();
    let seen = forge.inspect(number).await.unwrap();
    assert!(seen.is_complete() && seen.shows_true_head());
    forge.script([ForgeFault::Fails(ForgeError::Response("half a body".into()))]);
    let looks = forge.inspect_many(&[number, number]).await;
    assert!(looks[0].1.is_err() && looks[1].1.is_ok(), "each look has a result of its own: {looks:?}");
}
