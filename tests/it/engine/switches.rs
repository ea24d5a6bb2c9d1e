//! Kill switches, pause, rollout, preflight: nothing leaves the machine while they are on, and nothing is forgotten.

use dirigent::config::policy::{Policy, RolloutMode};
use dirigent::domain::job::{Stage, SwitchSource};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::PullRequest;
use dirigent::domain::run::{Activity, RunOutcome, Salvage, StopReason};
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};
use dirigent::engine::permit::{Reach, Refusal};

use super::fixtures::{SWITCH_LABEL, commit, done_report, id, in_state, labelled, policy, report, ticket};
use super::machine::Machine;

#[derive(Debug, Clone, Copy)]
enum Switch {
    File,
    TicketLabel,
    PrLabel,
    PauseAll,
    PauseTicket,
    Observe,
    Preflight,
}

const ALL: [Switch; 7] = [
    Switch::File,
    Switch::TicketLabel,
    Switch::PrLabel,
    Switch::PauseAll,
    Switch::PauseTicket,
    Switch::Observe,
    Switch::Preflight,
];

fn pull(machine: &mut Machine, switch: Switch) {
    match switch {
        Switch::File => drop(machine.step(Event::SwitchesChanged { file: true })),
        Switch::TicketLabel => machine.poll(vec![labelled("a", &[SWITCH_LABEL])]),
        Switch::PrLabel => {
            let shown = PullRequest { labels: vec![SWITCH_LABEL.into()], ..machine.good_pr("a") };
            machine.observe("a", shown);
        }
        Switch::PauseAll => machine.operator(OperatorCommand::PauseAll),
        Switch::PauseTicket => machine.operator(OperatorCommand::Pause { ticket: id("a") }),
        Switch::Observe => {
            machine.policy.rollout.mode = RolloutMode::Observe;
            machine.step(Event::PolicyReloaded);
        }
        Switch::Preflight => {
            machine.policy.rollout.preflight_missing = true;
            machine.step(Event::PolicyReloaded);
        }
    }
}

fn release(machine: &mut Machine, switch: Switch) {
    match switch {
        Switch::File => drop(machine.step(Event::SwitchesChanged { file: false })),
        Switch::TicketLabel => machine.poll(vec![ticket("a")]),
        Switch::PrLabel => machine.observe("a", machine.good_pr("a")),
        Switch::PauseAll => machine.operator(OperatorCommand::ResumeAll),
        Switch::PauseTicket => machine.operator(OperatorCommand::Resume { ticket: id("a") }),
        Switch::Observe => {
            machine.policy.rollout.mode = RolloutMode::Merge;
            machine.step(Event::PolicyReloaded);
        }
        Switch::Preflight => {
            machine.policy.rollout.preflight_missing = false;
            machine.step(Event::PolicyReloaded);
        }
    }
}

fn mutations(machine: &Machine) -> usize {
    machine.emitted(|action| action.kind().reach() != Reach::Harmless)
}

#[test]
fn every_switch_stops_a_live_run_without_costing_a_retry_and_it_goes_on_afterwards() {
    for switch in ALL {
        if matches!(switch, Switch::PrLabel | Switch::Preflight) {
            continue;
        }
        let mut machine = Machine::working(policy());
        pull(&mut machine, switch);
        assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { .. })), "{switch:?}");
        let before = mutations(&machine);
        let salvage = Salvage { reference: "refs/x".into(), commit: commit("s"), files: 1, left_out: Vec::new() };
        let mut killed = report(RunOutcome::Killed { reason: StopReason::KillSwitch });
        killed.salvage = Some(salvage);
        machine.run_ends("a", killed);
        for _ in 0..5 {
            machine.seconds(60);
        }
        assert_eq!(mutations(&machine), before, "{switch:?}");
        let expected = if matches!(switch, Switch::Observe) { "observe" } else { "kill_switch" };
        assert_eq!(machine.code("a"), expected);
        assert_eq!(machine.job("a").failures, 0);
        release(&mut machine, switch);
        assert_eq!(machine.phase("a"), Phase::Implementing, "{switch:?}");
        assert!(machine.emitted_last(|action| matches!(action, Action::Comment { .. })), "the salvage is told now");
    }
}

#[test]
fn no_switch_lets_a_merge_or_a_retried_write_out_and_afterwards_both_happen() {
    for switch in ALL {
        let mut machine = Machine::with_pr(policy());
        machine.lands("a");
        let merge = |action: &Action| matches!(action, Action::MergePr { .. });
        machine.fail(merge, EffectError::Transient { detail: "502".into(), retry_after: None });
        pull(&mut machine, switch);
        let before = mutations(&machine);
        for _ in 0..20 {
            machine.seconds(60);
        }
        assert_eq!(mutations(&machine), before, "{switch:?}");
        assert_ne!(machine.phase("a"), Phase::Merging, "{switch:?}: nothing is being merged");
        release(&mut machine, switch);
        machine.lands("a");
        assert_eq!(machine.phase("a"), Phase::Merging, "{switch:?}");
        machine.merge_succeeds();
        assert_eq!(machine.phase("a"), Phase::Done);
    }
}

#[test]
fn effects_of_a_step_under_a_switch_are_kept_and_let_go_later() {
    for switch in ALL {
        if matches!(switch, Switch::PrLabel) {
            continue;
        }
        let mut machine = Machine::working(policy());
        pull(&mut machine, switch);
        // The work was finished before the stop arrived.
        machine.run_ends("a", done_report(&commit("one")));
        assert_eq!(machine.code("a"), "opening_pr", "{switch:?}");
        assert!(!machine.emitted_last(|action| action.kind().reach() != Reach::Harmless), "{switch:?}");
        // The file is read from disk by the next life; everything else is remembered.
        if !matches!(switch, Switch::File) {
            machine.restart();
        }
        release(&mut machine, switch);
        assert!(machine.emitted_last(|action| matches!(action, Action::PushBranch { .. })), "{switch:?}");
        machine.publish("a");
        assert_eq!(machine.code("a"), "checks");
    }
}

#[test]
fn what_the_permit_refused_is_held_and_goes_on() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    machine.step(Event::SwitchesChanged { file: true });
    let refusal = Refusal::KillSwitch { switch: SwitchSource::File };
    machine.fail(|action| matches!(action, Action::StartRun { .. }), EffectError::Refused { refusal });
    assert_eq!(machine.code("a"), "kill_switch");
    assert!(machine.state.runs.is_empty());
    assert_eq!(machine.job("a").attempts, 0, "a start that never was is no attempt");
    machine.step(Event::SwitchesChanged { file: false });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_stop_by_a_person_outranks_a_switch_that_came_first() {
    let mut machine = Machine::working(policy());
    machine.step(Event::SwitchesChanged { file: true });
    machine.operator(OperatorCommand::Stop { ticket: id("a") });
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::KillSwitch }));
    machine.step(Event::SwitchesChanged { file: false });
    assert_eq!(machine.code("a"), "stopped");
}

#[test]
fn a_ticket_closed_while_a_switch_stops_its_run_is_not_started_again() {
    let mut machine = Machine::working(policy());
    machine.operator(OperatorCommand::PauseAll);
    machine.refresh(in_state("a", "Done"));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::KillSwitch }));
    machine.operator(OperatorCommand::ResumeAll);
    assert_eq!(machine.phase("a"), Phase::Released);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
}

#[test]
fn a_pr_label_stops_a_merge_that_is_retried() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    let merge = |action: &Action| matches!(action, Action::MergePr { .. });
    machine.fail(merge, EffectError::Transient { detail: "502".into(), retry_after: None });
    machine.poll(vec![ticket("a")]);
    assert!(
        machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })),
        "a merge that waits must still be looked at, or nobody sees the label"
    );
}

#[test]
fn a_pause_of_everything_writes_as_much_for_a_thousand_jobs_as_for_one() {
    let written = |jobs: usize| {
        let mut machine = Machine::new(policy());
        machine.policy.agent.max_concurrent = 1;
        machine.poll((0..jobs).map(|n| ticket(&format!("t{n}"))).collect());
        let state = &mut machine.state;
        let command = |command| Event::Operator { command, by: "ann".into() };
        let mut rows = |event: Event| {
            let _ = dirigent::engine::step(state, &machine.policy, machine.now, event);
            let changes = state.take_changes();
            (changes.jobs.len() + changes.runs.len(), changes.outbox.len(), changes.notes.len())
        };
        (rows(command(OperatorCommand::PauseAll)), rows(command(OperatorCommand::ResumeAll)))
    };
    assert_eq!(written(1_000), written(3), "what is true of all jobs is not written to each of them");
}

#[test]
fn a_switch_for_one_ticket_leaves_the_others_alone() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![labelled("a", &[SWITCH_LABEL]), ticket("b")]);
    assert_eq!(machine.code("a"), "kill_switch");
    assert_eq!(machine.phase("b"), Phase::Implementing);
    machine.operator(OperatorCommand::Pause { ticket: id("b") });
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { .. })));
    machine.poll(vec![ticket("a"), ticket("b")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn words_of_the_worker_are_kept_while_a_switch_is_on() {
    let mut machine = Machine::working(policy());
    machine.operator(OperatorCommand::PauseAll);
    machine.progress("a", Activity::Commented { text: "half way".into() });
    assert!(machine.last.is_empty());
    machine.restart();
    machine.operator(OperatorCommand::ResumeAll);
    assert!(machine.emitted_last(|action| matches!(action, Action::Comment { .. })));
}

#[test]
fn observe_from_the_start_changes_nothing_and_says_what_it_would_do() {
    let mut watching: Policy = policy();
    watching.rollout.mode = RolloutMode::Observe;
    watching.orchestration.workpad = true;
    let mut machine = Machine::new(watching);
    machine.poll(vec![ticket("a")]);
    machine.seconds(3600);
    assert_eq!(mutations(&machine), 0);
    assert_eq!(machine.code("a"), "observe");
    machine.policy.rollout.mode = RolloutMode::Mutate;
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn preflight_that_is_missing_refuses_every_mode() {
    for mode in [RolloutMode::Mutate, RolloutMode::Merge] {
        let mut policy = policy();
        policy.rollout.mode = mode;
        policy.rollout.preflight_missing = true;
        let mut machine = Machine::new(policy);
        machine.poll(vec![ticket("a")]);
        assert_eq!(machine.code("a"), "preflight");
        assert_eq!(mutations(&machine), 0);
    }
}

#[test]
fn shutdown_stops_runs_starts_nothing_and_the_next_life_goes_on() {
    let mut policy = policy();
    policy.agent.max_concurrent = 1;
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), ticket("b")]);
    machine.run_starts("a");
    machine.step(Event::Shutdown);
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { reason: StopReason::Shutdown, .. })));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Shutdown }));
    machine.seconds(60);
    assert!(machine.state.runs.is_empty());
    assert_eq!(machine.code("a"), "shutdown");
    assert_eq!(machine.code("b"), "shutdown");
    machine.restart();
    machine.poll(vec![ticket("a"), ticket("b")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    assert_eq!(machine.job("a").failures, 0);
}

#[test]
fn a_gate_that_was_held_runs_when_it_may() {
    let mut policy = policy();
    policy.gates.has_task_gates = true;
    let mut machine = Machine::working(policy);
    machine.operator(OperatorCommand::PauseAll);
    machine.run_ends("a", done_report(&commit("one")));
    assert!(matches!(machine.stage("a"), Stage::WaitingForChecks { .. }));
    machine.operator(OperatorCommand::ResumeAll);
    machine.succeed(|action| matches!(action, Action::RunGate { .. }), EffectResult::Gated { results: Vec::new() });
    assert_eq!(machine.code("a"), "opening_pr");
}
