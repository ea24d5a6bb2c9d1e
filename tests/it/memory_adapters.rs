//! The memory adapters keep the contracts of their traits, also while they misbehave.

use dirigent::config::policy::RolloutMode;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::CommentId;
use dirigent::domain::permit::Permit;
use dirigent::domain::pr::{MergeMethod, Mergeability, NewPr, PrState};
use dirigent::domain::ticket::NewTicket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::permit::{Circumstances, EffectKind, permit};
use dirigent::forge::memory::{Fault as ForgeFault, MemoryForge};
use dirigent::forge::{Forge, ForgeError, MergeOrder};
use dirigent::tracker::memory::{Fault, MemoryTracker};
use dirigent::tracker::{Edited, Found, Move, Tracker, TrackerError};

use crate::engine::fixtures::{commit, id, in_state, ticket};

fn allowed() -> Permit {
    let now = Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true };
    permit(EffectKind::Comment, &now).unwrap()
}

#[tokio::test]
async fn empty_lists_ask_nothing_and_ids_are_a_set() {
    let board = MemoryTracker::new([ticket("a"), in_state("b", "Done")]);
    assert!(board.fetch_by_states(&[]).await.unwrap().is_empty());
    assert!(board.fetch_by_ids(&[]).await.unwrap().is_empty());
    assert_eq!(board.calls(), 0);
    assert_eq!(board.fetch_by_states(&[" todo ".into()]).await.unwrap().len(), 1);
    let found = board.fetch_by_ids(&[id("b"), id("gone")]).await.unwrap();
    assert!(matches!(&found[..], [(_, Found::Ticket(_)), (_, Found::Gone(_))]), "{found:?}");
}

#[tokio::test]
async fn a_failed_page_fails_the_call_and_a_stale_read_shows_the_past() {
    let board = MemoryTracker::new([ticket("a")]);
    board.freeze();
    board.edit(&id("a"), |ticket| ticket.state = "Done".into());
    board.script([Fault::Fails(TrackerError::Pagination("page 2".into())), Fault::Stale]);
    assert!(matches!(board.fetch_by_ids(&[id("a")]).await, Err(TrackerError::Pagination(_))));
    for state in ["Todo", "Done"] {
        let found = board.fetch_by_ids(&[id("a")]).await.unwrap();
        assert!(matches!(&found[..], [(_, Found::Ticket(ticket))] if ticket.state == state), "{found:?}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_done_twice() {
    let board = MemoryTracker::new([ticket("a")]);
    let lost = || Fault::FailsAfterWriting(TrackerError::Request("timed out".into()));
    board.script([lost()]);
    assert!(board.comment(&allowed(), &id("a"), "started:1", "hello", Timestamp(0)).await.is_err());
    let made = board.comment(&allowed(), &id("a"), "started:1", "hello", Timestamp(0)).await.unwrap();
    assert!(made.existed);
    assert_eq!(board.comments(&id("a"), None).await.unwrap().len(), 1);
    assert_eq!(board.edit_comment(&allowed(), &id("a"), &made.id, "bye").await, Ok(Edited::Done));
    assert!(board.ticket(&id("a")).unwrap().known_comments()[0].body.starts_with("bye\n"));
    let theirs = board.say(&id("a"), Author::new("ann", TrustLevel::Admin), "mine");
    assert!(board.edit_comment(&allowed(), &id("a"), &theirs, "x").await.is_err());
    let none = board.edit_comment(&allowed(), &id("a"), &CommentId::new("none"), "x").await;
    assert_eq!(none, Ok(Edited::Gone));
    let new = NewTicket {
        title: "later".into(),
        description: String::new(),
        labels: vec![" Bug ".into()],
        priority: None,
        parent: None,
        blocked_by: Vec::new(),
    };
    board.script([lost()]);
    assert!(board.create_ticket(&allowed(), &new, "k").await.is_err());
    let created = board.create_ticket(&allowed(), &new, "k").await.unwrap();
    assert_eq!(board.fetch_by_states(&["Todo".into()]).await.unwrap().len(), 2);
    assert_eq!(board.ticket(&created).unwrap().labels, ["bug"]);
    let moved = board.move_ticket(&allowed(), &id("a"), "Done", &["Todo".into()]).await.unwrap();
    assert!(matches!(moved, Move::Moved(_)), "{moved:?}");
    let gone = board.move_ticket(&allowed(), &id("x"), "Done", &[]).await;
    assert!(matches!(gone, Err(TrackerError::NotFound(_))), "{gone:?}");
}

fn new_pr() -> NewPr {
    NewPr {
        title: "A change".into(),
        body: String::new(),
        head_branch: "work".into(),
        head: commit("one"),
        base_branch: "main".into(),
        draft: false,
        labels: Vec::new(),
        reviewers: Vec::new(),
    }
}

#[tokio::test]
async fn a_pull_request_is_opened_once_merged_once_and_only_on_its_head() {
    let forge = MemoryForge::default();
    forge.push_branch(&allowed(), "work", &commit("one")).await.unwrap();
    forge.script([ForgeFault::FailsAfterWriting(ForgeError::Request("timed out".into()))]);
    assert!(forge.open_pr(&allowed(), &new_pr()).await.is_err());
    let pr = forge.open_pr(&allowed(), &new_pr()).await.unwrap();
    assert_eq!(pr.number.0, 1);
    assert_eq!(forge.find_pr("work").await.unwrap().unwrap().number, pr.number);
    forge.push("work", &commit("two"));
    let merge = |head| {
        let (forge, permit, number) = (&forge, allowed(), pr.number);
        async move {
            let (expected_head, expected_base) = (commit(head), "main".to_owned());
            let order = MergeOrder { number, expected_head, expected_base, method: MergeMethod::Squash };
            forge.merge(&permit, &order).await
        }
    };
    assert!(matches!(merge("one").await, Err(ForgeError::HeadMoved { .. })));
    forge.edit(pr.number, |pr| pr.mergeability = Mergeability::Conflicting { files: vec!["x".into()] });
    assert!(matches!(merge("two").await, Err(ForgeError::Conflict { .. })));
    forge.edit(pr.number, |pr| pr.mergeability = Mergeability::Clean);
    forge.script([ForgeFault::FailsAfterWriting(ForgeError::Request("timed out".into()))]);
    assert!(merge("two").await.is_err());
    assert!(merge("two").await.is_ok(), "merged already is a success");
    assert_eq!(forge.merges().len(), 1);
    assert!(matches!(forge.inspect_many(&[pr.number]).await.remove(0).1.unwrap().pr.state, PrState::Merged { .. }));
    assert!(forge.reopen(&allowed(), pr.number).await.is_err());
    forge.delete_branch(&allowed(), "work", &commit("one")).await.unwrap();
    assert!(forge.branch("work").is_some(), "a branch that moved on is kept");
}
