//! A worker moves its own ticket, in a workflow that keeps a directory per ticket: a claim, checked like any other, and never a person's.

use dirigent::config::policy::{ForgeKind, Policy};
use dirigent::domain::failure::RunFailure;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, MoveStep, RunReport};
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult};

use super::fixtures::{commit, done_report, failed, in_state, policy};
use super::machine::Machine;

fn directories() -> Policy {
    let mut policy = policy();
    policy.directories = true;
    policy.pr.forge = ForgeKind::None;
    policy
}

fn moves(machine: &mut Machine, to: &str, steps: &[MoveStep]) {
    for step in steps {
        machine.progress("a", Activity::MovedTicket { from: "Todo".into(), to: to.into(), step: *step });
    }
}

const DONE: [MoveStep; 2] = [MoveStep::Sent, MoveStep::Done];

fn leaves(action: &Action) -> bool {
    matches!(action, Action::CleanUp { .. })
}

fn stops(action: &Action) -> bool {
    matches!(action, Action::StopRun { .. })
}

#[test]
fn whoever_moves_its_own_ticket_comes_to_its_end_and_the_directory_goes_afterwards() {
    let mut machine = Machine::working(directories());
    moves(&mut machine, "Done", &DONE);
    machine.poll(vec![]);
    machine.refresh(in_state("a", "Done"));
    assert_eq!((machine.emitted(stops), machine.emitted(leaves)), (0, 0), "it may finish its turn");
    machine.run_ends("a", done_report(&commit("one")));
    assert_eq!(machine.phase("a"), Phase::Released);
    assert_eq!(machine.emitted(leaves), 1);
    machine.succeed(leaves, EffectResult::Plain);
    assert!(machine.job("a").directory.is_none());
}

#[test]
fn a_person_who_moves_it_elsewhere_stops_the_run() {
    let mut machine = Machine::working(directories());
    moves(&mut machine, "Done", &DONE);
    machine.refresh(in_state("a", "Cancelled"));
    assert_eq!(machine.emitted(stops), 1);
}

#[test]
fn a_claim_that_does_not_hold_moves_the_ticket_back() {
    let mut machine = Machine::working(directories());
    moves(&mut machine, "Done", &DONE);
    let nothing = RunReport { head: Some(commit("before")), commits_ahead: 0, ..done_report(&commit("before")) };
    machine.run_ends("a", nothing);
    assert_eq!(machine.phase("a"), Phase::Queued, "until the ticket is back");
    machine.refresh(in_state("a", "Done"));
    assert_eq!(machine.phase("a"), Phase::Queued, "an old reading");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MoveTicket { state, .. } if state == "Todo")), 1);
    machine.succeed(|action| matches!(action, Action::MoveTicket { .. }), EffectResult::Moved { version: None });
    assert_eq!(machine.phase("a"), Phase::Rework);
    assert_eq!(machine.emitted(leaves), 0);
}

#[test]
fn out_of_the_active_states_it_is_given_back_until_a_person_brings_it_back() {
    let mut machine = Machine::working(directories());
    moves(&mut machine, "Human Review", &DONE);
    machine.run_ends("a", done_report(&commit("one")));
    assert_eq!(machine.phase("a"), Phase::Released);
    machine.refresh(in_state("a", "Human Review"));
    assert_eq!(machine.emitted(leaves), 0, "not closed");
    machine.poll(vec![in_state("a", "In Progress")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_move_to_a_rework_state_is_no_wish_of_a_persons() {
    let mut policy = directories();
    policy.tracker.active_states.push("Rework".into());
    let mut machine = Machine::working(policy);
    moves(&mut machine, "Rework", &DONE);
    machine.poll(vec![in_state("a", "Rework")]);
    assert_eq!((machine.phase("a"), machine.job("a").rework_cycles), (Phase::Implementing, 0));
}

#[test]
fn a_refused_move_is_forgotten_and_a_lost_one_is_asked_for() {
    let mut machine = Machine::working(directories());
    moves(&mut machine, "Done", &[MoveStep::Sent, MoveStep::Refused]);
    assert!(machine.job("a").column.is_none() && machine.job("a").moved_by_worker.is_none());
    moves(&mut machine, "Done", &[MoveStep::Sent]);
    machine.run_ends("a", failed(RunFailure::Exit { code: 1, said: None }));
    machine.refresh(in_state("a", "Done"));
    assert_eq!(machine.phase("a"), Phase::Released, "it was done after all");
}

#[test]
fn a_directory_that_has_to_stay_is_said_once_and_tried_again_at_the_next_start() {
    let mut machine = Machine::working(directories());
    machine.run_ends("a", done_report(&commit("one")));
    assert_eq!(machine.phase("a"), Phase::WaitingForHuman);
    machine.refresh(in_state("a", "Done"));
    machine.succeed(leaves, EffectResult::Kept { because: "uncommitted work".into() });
    let said = |action: &Action| matches!(action, Action::Comment { key, .. } if key.starts_with("directory-kept:"));
    assert_eq!(machine.emitted(said), 1);
    machine.refresh(in_state("a", "Done"));
    machine.seconds(600);
    machine.poll(vec![]);
    assert_eq!(machine.emitted(leaves), 1, "not again and again");
    machine.restart();
    assert_eq!(machine.emitted(leaves), 2);
    machine.fail(leaves, EffectError::Permanent { detail: "read-only file system".into() });
    machine.poll(vec![]);
    assert_eq!(machine.emitted(leaves), 2, "nor this");
}
