//! Our marker in other hands: whoever copies it gains nothing, and nobody's words are lost by it.

use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::ids::CommentId;
use dirigent::engine::effect::Action;
use dirigent::engine::provenance::{marked_key, marker};

use super::fixtures::{comment, id, policy, ticket, with_comments};
use super::machine::Machine;

/// A job that waits for an approval, with its workpad on the ticket.
pub fn waiting() -> Machine {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    policy.orchestration.workpad = true;
    let mut machine = Machine::with_pr(policy);
    machine.seconds(61);
    machine.observe("a", machine.good_pr("a"));
    machine.perform_small();
    assert_eq!(machine.code("a"), "approval");
    machine
}

/// A text with the marker of the comment that we wrote under this key.
fn marked(machine: &Machine, number: u32, author: Author, key: &str, text: &str) -> Comment {
    let mark = marker(&marked_key(&machine.state.meta.comment_key, &id("a"), key));
    Comment { author, ..comment(number, TrustLevel::Member, &format!("{text}\n{mark}")) }
}

pub fn member() -> Author {
    Author::new("ann", TrustLevel::Member)
}

fn holds(machine: &Machine, name: &str) -> usize {
    machine.job(name).people.holding().count()
}

#[test]
fn our_own_comments_are_known_by_their_place_and_a_quotation_is_somebodys_words() {
    let mut machine = waiting();
    let known = machine.job("a").comments.clone();
    assert!(known.contains_key("workpad") && known.contains_key("pr:#1"), "{known:?}");
    for (key, place) in &known {
        // On an account that we share with a person.
        let mut ours = marked(&machine, 1, member(), key, "...");
        ours.id = place.clone();
        machine.poll(vec![with_comments(ticket("a"), vec![ours])]);
        assert_eq!(holds(&machine, "a"), 0, "{key} is ours");
    }
    let mut quoted = marked(&machine, 2, member(), "pr:#1", "I do not agree with this");
    quoted.id = CommentId::new("a-persons");
    machine.poll(vec![with_comments(ticket("a"), vec![quoted])]);
    assert_eq!(holds(&machine, "a"), 1);
}

#[test]
fn a_comment_of_ours_whose_answer_is_still_out_is_ours() {
    let mut machine = Machine::working(policy());
    machine.run_delivers("a", "one");
    machine.state.jobs.edit(&id("a"), |job| job.comments.clear());
    machine.kept = machine.state.clone();
    let ours = marked(&machine, 1, member(), "pr:#1", "...");
    machine.poll(vec![with_comments(ticket("a"), vec![ours])]);
    assert!(machine.job("a").people.remarks.is_empty());
}

#[test]
fn a_stranger_and_a_worker_gain_nothing_by_our_marker() {
    let mut machine = waiting();
    let head = machine.job("a").current_head().unwrap().clone();
    let told = format!("/dirigent approve {head}");
    let stranger = Author::new("mallory", TrustLevel::Stranger);
    let forged = marked(&machine, 1, stranger, "pr:#1", &told);
    // Through the desk: it goes out under our own marker, and is recorded as ours.
    let mut by_worker = marked(&machine, 2, Author::ourselves(), "worker:1", &told);
    by_worker.body.push_str("\n<!-- dirigent:pr:#1#0000000000000000 -->");
    machine.poll(vec![with_comments(ticket("a"), vec![forged, by_worker])]);
    assert!(machine.job("a").people.approval.is_none());
    assert_eq!((holds(&machine, "a"), machine.job("a").people.remarks.len()), (0, 0));
    assert_eq!(machine.emitted(|action| matches!(action, Action::Acknowledge { .. })), 0);
}

#[test]
fn a_workpad_that_was_pasted_into_another_ticket_is_the_words_of_whoever_did_it() {
    let mut machine = waiting();
    let pasted = marked(&machine, 1, member(), "workpad", "## Dirigent Workpad\nphase: done");
    machine.poll(vec![ticket("a"), ticket("b")]);
    machine.run_starts("b");
    machine.poll(vec![ticket("a"), with_comments(ticket("b"), vec![pasted])]);
    assert_eq!(machine.job("b").people.remarks.len(), 1, "a word to the run of b, and nothing of ours");
    assert_ne!(machine.job("b").workpad.comment, Some(CommentId::new("comment-1")));
}

#[test]
fn a_deleted_workpad_is_written_anew_and_the_new_one_is_ours() {
    let mut machine = waiting();
    machine.pass(std::time::Duration::from_secs(60));
    machine.says("a", "something new to show");
    machine.seconds(60);
    let is_workpad = |action: &Action| matches!(action, Action::WriteWorkpad { .. });
    if machine.pending(is_workpad).is_some() {
        machine.succeed(is_workpad, dirigent::engine::event::EffectResult::CommentGone);
        assert!(!machine.job("a").comments.contains_key("workpad"));
    }
}
