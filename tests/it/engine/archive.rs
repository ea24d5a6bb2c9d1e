//! Jobs that are over leave the state and come back with their past.

use std::time::Duration;

use dirigent::config::policy::Policy;
use dirigent::domain::job::Job;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{RunOutcome, StopReason};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};
use dirigent::engine::{step, unknown_tickets};

use super::fixtures::{commit, id, in_state, policy, report, ticket};
use super::machine::Machine;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn with_a_rest_of_one_day() -> Policy {
    Policy { archive_after: DAY, ..policy() }
}

fn closed() -> Ticket {
    Ticket { updated_at: Some(Timestamp(50)), ..in_state("a", "Done") }
}

/// Merged, told, and seen closed on the board.
fn merged(policy: Policy) -> Machine {
    let mut machine = Machine::with_pr(policy);
    machine.lands("a");
    machine.merge_succeeds();
    machine.perform_small();
    machine.refresh(closed());
    machine.poll(vec![]);
    machine
}

/// Lets the time pass and tells what was archived by the next event.
fn archived_after(machine: &mut Machine, span: Duration) -> Vec<Job> {
    machine.now = machine.now + span;
    step(&mut machine.state, &machine.policy, machine.now, Event::TimerFired);
    let changes = machine.state.take_changes();
    changes.archived.into_values().collect()
}

#[test]
fn a_job_that_has_been_over_for_a_while_leaves_the_state() {
    let mut machine = merged(with_a_rest_of_one_day());
    assert!(archived_after(&mut machine, DAY / 2).is_empty());
    assert_eq!(machine.phase("a"), Phase::Done, "people still see it");
    let archived = archived_after(&mut machine, DAY / 2);
    assert_eq!(archived.len(), 1);
    assert!(!machine.state.jobs.contains(&id("a")));
    for ids in [&machine.state.off_list, &machine.state.unseen, &machine.state.invisible] {
        assert!(ids.is_empty(), "{ids:?}");
    }
    assert!(machine.state.looked.is_empty());
}

#[test]
fn what_is_left_to_write_keeps_a_job() {
    let mut machine = Machine::with_pr(with_a_rest_of_one_day());
    machine.lands("a");
    let merged = EffectResult::Merged { commit: Some(commit("merged")) };
    machine.succeed(|action| matches!(action, Action::MergePr { .. }), merged);
    machine.refresh(closed());
    machine.poll(vec![]);
    let effect = machine.pending(|_| true).expect("something is left to write");
    assert!(archived_after(&mut machine, DAY * 2).is_empty());
    machine.step(Event::EffectFailed { effect, error: EffectError::Auth { detail: "401".into() } });
    assert!(archived_after(&mut machine, DAY * 2).is_empty(), "a refused access drops nothing");
}

#[test]
fn a_ticket_that_is_still_listed_keeps_its_job() {
    let mut machine = Machine::new(with_a_rest_of_one_day());
    machine.poll(vec![ticket("a")]);
    machine.run_starts("a");
    machine.operator(OperatorCommand::Forget { ticket: id("a") });
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    assert_eq!(machine.phase("a"), Phase::Released);
    machine.perform_small();
    assert!(archived_after(&mut machine, DAY * 2).is_empty(), "it would be taken for a new one with every list");
    machine.poll(vec![]);
    machine.perform_small();
    assert_eq!(archived_after(&mut machine, DAY).len(), 1);
}

/// What an archived record says of its ticket may be long out of date.
#[test]
fn a_retry_of_an_archived_job_starts_nothing_before_the_board_was_asked() {
    let mut machine = Machine::new(with_a_rest_of_one_day());
    machine.poll(vec![ticket("a")]);
    machine.run_starts("a");
    machine.operator(OperatorCommand::Forget { ticket: id("a") });
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    machine.poll(vec![]);
    machine.perform_small();
    let jobs = archived_after(&mut machine, DAY);
    let starts = |machine: &Machine| machine.emitted(|action| matches!(action, Action::StartRun { .. }));
    let before = starts(&machine);
    machine.step(Event::Recalled { jobs });
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(starts(&machine), before, "somebody may have moved it to the backlog meanwhile");
    machine.refresh(ticket("a"));
    assert_eq!(starts(&machine), before + 1);
}

#[test]
fn a_ticket_that_comes_back_goes_on_with_its_past() {
    let mut machine = merged(with_a_rest_of_one_day());
    let jobs = archived_after(&mut machine, DAY);
    let old = jobs[0].clone();
    let reopened = Ticket { updated_at: Some(Timestamp(60)), ..ticket("a") };
    let polled = Event::Polled { tickets: vec![reopened.clone()], base: None, basis: machine.basis() };
    assert_eq!(unknown_tickets(&machine.state, &polled), [id("a")]);
    machine.step(Event::Recalled { jobs });
    assert_eq!(machine.phase("a"), Phase::Done, "as it was");
    machine.poll(vec![reopened]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    let job = machine.job("a");
    assert_ne!(job.delivery.branch.name, old.delivery.branch.name, "the old branch was merged");
    assert_eq!(job.spending.total, old.spending.total);
}
