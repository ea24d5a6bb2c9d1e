//! Hints: what may have changed is read alone, and what a hint spoke of is waited for.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::hint::{Hint, RemarkId};
use dirigent::domain::ids::{CommentId, PrNumber};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{PullRequest, Verdict};
use dirigent::domain::remark::RemarkKind;
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{Event, Lookup};

use super::fixtures::{commit, id, in_state, policy, review, ticket};
use super::machine::{Machine, START};

fn is_look(action: &Action) -> bool {
    matches!(action, Action::InspectPr { .. })
}

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

fn hinted(machine: &mut Machine, hint: Hint) {
    machine.step(Event::Hinted { hints: vec![hint] });
}

fn as_of(ticket: Ticket, minute: i64) -> Ticket {
    Ticket { updated_at: Some(Timestamp(START.0 + minute * 60_000)), ..ticket }
}

#[test]
fn a_hint_about_a_ticket_asks_for_that_ticket_and_nothing_else() {
    let mut machine = Machine::with_pr(policy());
    hinted(&mut machine, Hint::ticket(id("b")));
    assert!(
        matches!(&machine.last[..], [one] if matches!(&one.action, Action::RefreshTickets { ids } if *ids == [id("b")]))
    );
    machine.refresh(ticket("b"));
    assert_eq!(machine.phase("b"), Phase::Implementing, "a new ticket needs no list to be found");
    assert!(!machine.last.iter().any(|effect| is_look(&effect.action)), "no pull request was looked at");
}

#[test]
fn a_hint_about_a_pull_request_looks_at_that_one() {
    let mut machine = Machine::with_pr(policy());
    hinted(&mut machine, Hint::PullRequest { number: PrNumber(7), floor: None });
    assert!(machine.last.is_empty(), "nobody knows that one");
    hinted(&mut machine, Hint::PullRequest { number: PrNumber(1), floor: None });
    assert!(matches!(&machine.last[..], [one] if is_look(&one.action) && one.ticket == Some(id("a"))));
}

#[test]
fn a_reading_that_does_not_reach_the_hint_starts_nothing() {
    let mut machine = Machine::new(policy());
    let floor = as_of(ticket("a"), 5).updated_at;
    hinted(&mut machine, Hint::Ticket { id: id("a"), floor });
    machine.refresh(as_of(ticket("a"), 1));
    machine.poll(vec![as_of(ticket("a"), 1)]);
    assert_eq!(machine.emitted(is_start), 0, "the replica has not heard of what was spoken of");
    machine.refresh(as_of(in_state("a", "Backlog"), 5));
    assert_eq!(machine.emitted(is_start), 0);
    machine.refresh(as_of(ticket("a"), 6));
    assert_eq!(machine.emitted(is_start), 1);
}

#[test]
fn a_known_ticket_waits_for_a_reading_that_reaches_the_hint() {
    let mut machine = Machine::new(policy());
    machine.policy.agent.max_concurrent = 1;
    machine.poll(vec![as_of(ticket("a"), 0), as_of(ticket("b"), 0)]);
    machine.run_starts("a");
    hinted(&mut machine, Hint::Ticket { id: id("b"), floor: as_of(ticket("b"), 5).updated_at });
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    assert_eq!(machine.emitted(is_start), 1, "what is known of it is old");
    machine.refresh(as_of(ticket("b"), 5));
    assert_eq!(machine.emitted(is_start), 2);
}

#[test]
fn a_hint_that_is_never_reached_holds_nothing_for_long() {
    let mut machine = Machine::new(policy());
    machine.poll(Vec::new());
    hinted(&mut machine, Hint::Ticket { id: id("a"), floor: Some(Timestamp(i64::MAX)) });
    machine.refresh(as_of(ticket("a"), 1));
    machine.seconds(61);
    machine.refresh(as_of(ticket("a"), 1));
    assert_eq!(machine.emitted(is_start), 1, "a minute is enough");
    hinted(&mut machine, Hint::Ticket { id: id("b"), floor: Some(Timestamp(i64::MAX)) });
    machine.looked_up("b", Lookup::NotVisible);
    machine.poll(vec![as_of(ticket("a"), 1)]);
    let asks = |action: &Action| matches!(action, Action::RefreshTickets { ids } if ids.contains(&id("b")));
    assert_eq!(machine.emitted(asks), 1, "what nobody can show is not asked for again and again");
}

#[test]
fn a_review_that_was_spoken_of_holds_the_merge_until_a_look_shows_it() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", machine.good_pr("a"));
    let verdict = review(3, TrustLevel::Member, Verdict::ChangesRequested, &commit("one"));
    let floor = Some(RemarkId { kind: RemarkKind::Verdict, id: verdict.id.clone() });
    hinted(&mut machine, Hint::PullRequest { number: PrNumber(1), floor });
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.emitted(is_merge), 0, "the look has not heard of the review");
    machine.observe("a", PullRequest { reviews: Some(vec![verdict]), ..machine.good_pr("a") });
    assert_eq!(machine.emitted(is_merge), 0);
    assert_eq!(machine.phase("a"), Phase::Rework);
}

#[test]
fn a_comment_that_never_shows_holds_the_merge_for_a_minute() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", machine.good_pr("a"));
    let floor = Some(RemarkId { kind: RemarkKind::PrComment, id: CommentId::new("deleted at once") });
    hinted(&mut machine, Hint::PullRequest { number: PrNumber(1), floor });
    machine.lands("a");
    assert_eq!(machine.emitted(is_merge), 0);
    machine.seconds(61);
    machine.lands("a");
    assert_eq!(machine.emitted(is_merge), 1);
}
