//! A new life: lost runs, effects that were not confirmed, timers, and nothing decided before the past is settled.

use dirigent::domain::ids::RunId;
use dirigent::domain::job::{DoneHow, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{PrState, PullRequest};
use dirigent::domain::run::{RunOutcome, Salvage, StopReason};
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::{EffectError, Event, Lookup, LostRun, OperatorCommand};

use super::fixtures::{commit, done_report, exit, failed, id, policy, report, ticket};
use super::machine::Machine;

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

#[test]
fn nothing_is_started_before_the_past_is_settled() {
    let mut machine = Machine::asleep(policy());
    machine.poll(vec![ticket("a")]);
    machine.seconds(60);
    assert!(machine.effects.is_empty(), "{:?}", machine.effects);
    machine.step(Event::Recovered { lost: Vec::new() });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn nothing_is_started_before_the_board_was_read_in_this_life() {
    let mut machine = Machine::new(policy());
    machine.policy.agent.max_concurrent = 0;
    machine.poll(vec![ticket("a")]);
    machine.policy.agent.max_concurrent = 1;
    machine.restart();
    machine.seconds(60);
    assert_eq!(machine.code("a"), "tracker", "the kill-switch label may be there by now");
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn live_runs_of_the_old_life_are_lost_and_retried_with_their_salvage_told() {
    let mut machine = Machine::working(policy());
    let run = machine.run_of("a");
    let salvage = Salvage { reference: "refs/x".into(), commit: commit("s"), files: 2, left_out: Vec::new() };
    machine.state.recovered = false;
    machine.step(Event::Recovered {
        lost: vec![LostRun { run, salvage: Some(salvage), head: Some(commit("h")), spent: None }],
    });
    assert_eq!(machine.phase("a"), Phase::Implementing, "it starts again at once");
    assert_eq!((machine.job("a").failures, machine.job("a").losses), (0, 1), "which costs no retry");
    assert_eq!(machine.job("a").delivery.head, Some(commit("h")));
    assert!(machine.emitted_last(|action| matches!(action, Action::Comment { said: Said::Salvaged { .. }, .. })));
    assert!(machine.job("a").evidence.no_progress_with.is_none());
}

#[test]
fn a_run_that_the_recovery_does_not_name_is_lost_too() {
    let mut machine = Machine::working(policy());
    machine.state.recovered = false;
    let lost = machine.run_of("a");
    machine.step(Event::Recovered { lost: Vec::new() });
    assert!(!machine.state.runs.contains(&lost));
    assert_ne!(machine.run_of("a"), lost, "another one takes its place");
}

/// Losing the runner is not the job's failure, but a job that loses it each time may be what ends it.
#[test]
fn a_job_whose_runs_are_lost_again_and_again_is_blocked() {
    let mut machine = Machine::working(policy());
    for times in 1..10 {
        machine.restart();
        machine.poll(vec![ticket("a")]);
        assert_eq!(machine.phase("a"), Phase::Implementing, "after {times} losses");
        machine.run_starts("a");
    }
    machine.restart();
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.code("a"), "lost_again");
    assert_eq!(machine.job("a").failures, 0);
    machine.operator(OperatorCommand::Retry { ticket: super::fixtures::id("a") });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_second_recovery_in_the_same_life_changes_nothing() {
    let mut machine = Machine::working(policy());
    let run = machine.run_of("a");
    let before = machine.state.clone();
    machine.step(Event::Recovered { lost: vec![LostRun { run, salvage: None, head: None, spent: None }] });
    assert_eq!(machine.state, before);
    machine.step(Event::Recovered {
        lost: vec![LostRun { run: RunId::new("unknown"), salvage: None, head: None, spent: None }],
    });
    assert_eq!(machine.state, before);
}

#[test]
fn what_was_written_and_not_confirmed_is_done_again_and_starts_are_not() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    machine.restart();
    assert_eq!(machine.emitted_last_starts(), 0, "a start is not repeated blindly");
    machine.poll(vec![ticket("a")]);
    machine.run_starts("a");
    machine.run_ends("a", done_report(&commit("one")));
    let push = machine.pending(|action| matches!(action, Action::PushBranch { .. })).unwrap();
    machine.restart();
    let again: Vec<_> = machine.last.iter().map(|effect| effect.id).collect();
    assert!(again.contains(&push), "the same effect, under the same number");
    machine.publish("a");
    assert_eq!(machine.code("a"), "checks");
}

impl Machine {
    fn emitted_last_starts(&self) -> usize {
        self.last.iter().filter(|effect| matches!(effect.action, Action::StartRun { .. })).count()
    }
}

/// Whether it was merged is asked first. Much may have been said since, so a merge never leaves without a look.
#[test]
fn an_unconfirmed_merge_is_looked_for_before_it_is_repeated() {
    let merge = |action: &Action| matches!(action, Action::MergePr { .. });
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.restart();
    assert!(!machine.emitted_last(merge));
    assert!(machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })));
    let mut merged = machine.clone();
    let shown = PullRequest { state: PrState::Merged { commit: None }, ..merged.good_pr("a") };
    merged.observe("a", shown);
    assert!(matches!(merged.stage("a"), Stage::Done { how: DoneHow::Merged { by_us: true, .. }, .. }));
    machine.lands("a");
    assert!(machine.emitted_last(merge), "it was not merged, and nothing speaks against it");
}

#[test]
fn an_effect_whose_purpose_is_gone_is_not_done_again() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    machine.operator(OperatorCommand::Stop { ticket: super::fixtures::id("a") });
    assert_eq!(machine.code("a"), "set_aside");
    machine.restart();
    assert!(!machine.emitted_last(|action| matches!(action, Action::PushBranch { .. })));
}

#[test]
fn retry_times_and_counters_survive() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(exit()));
    let before = machine.job("a").clone();
    machine.restart();
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.job("a").stage, before.stage);
    assert_eq!(machine.job("a").failures, 1);
    machine.wake();
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_restart_during_rework_keeps_branch_conversation_and_counters() {
    use dirigent::domain::pr::CheckStatus;
    use dirigent::domain::run::Activity;
    let mut machine = Machine::with_pr(policy());
    let mut failing = machine.good_pr("a");
    failing.checks = Some(vec![super::fixtures::check("build", CheckStatus::Failed)]);
    machine.observe("a", failing);
    machine.run_starts("a");
    machine.progress("a", Activity::SessionKnown { session: dirigent::domain::ids::SessionId::new("talk") });
    let before = machine.job("a").clone();
    machine.restart();
    machine.poll(vec![ticket("a")]);
    let after = machine.job("a");
    assert_eq!(machine.phase("a"), Phase::Rework);
    assert_eq!((&after.delivery.branch, &after.session), (&before.delivery.branch, &before.session));
    assert_eq!(after.rework_cycles, 1);
    assert!(machine.emitted_last(|action| matches!(action, Action::StartRun { resume: Some(_), .. })));
}

#[test]
fn a_held_effect_stays_held_across_a_restart() {
    let mut machine = Machine::working(policy());
    machine.operator(OperatorCommand::PauseAll);
    machine.run_ends("a", done_report(&commit("one")));
    machine.restart();
    assert!(!machine.emitted_last(|action| matches!(action, Action::PushBranch { .. })));
    machine.seconds(600);
    machine.operator(OperatorCommand::ResumeAll);
    assert!(machine.emitted_last(|action| matches!(action, Action::PushBranch { .. })));
}

#[test]
fn an_effect_that_was_due_keeps_its_time() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    let push = |action: &Action| matches!(action, Action::PushBranch { .. });
    machine.fail(push, EffectError::Transient { detail: "502".into(), retry_after: None });
    machine.restart();
    assert!(!machine.emitted_last(push));
    machine.wake();
    assert!(machine.emitted_last(push));
}

/// Where the board tells only what changed since the last life, it says nothing about what was open then.
#[test]
fn what_the_board_had_not_settled_is_asked_for_in_the_next_life() {
    let mut machine = Machine::working(policy());
    machine.looked_up("a", Lookup::NotVisible);
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::NotVisible }));
    let (starts, ask_for) = (machine.emitted(is_start), machine.state.to_ask_for());
    machine.restart_from(ask_for);
    let basis = machine.basis();
    machine.step(Event::PolledChanges { tickets: Vec::new(), base: Some(commit("base")), basis });
    assert_eq!(machine.emitted(is_start), starts, "nobody has seen the ticket in this life");
    let asks = |action: &Action| matches!(action, Action::RefreshTickets { ids } if *ids == [id("a")]);
    assert!(machine.emitted_last(asks));
    machine.refresh(ticket("a"));
    assert_eq!(machine.emitted(is_start), starts + 1);
}
