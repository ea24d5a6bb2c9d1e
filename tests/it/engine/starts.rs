//! When a run starts, with which agent, and what a start or a stop on its way may meet.

use std::time::Duration;

use dirigent::config::policy::{RoutePolicy, RuntimeTimeouts};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::ids::SessionId;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, RunReport};
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};

use super::fixtures::{commit, done_report, failed, id, labelled, policy, route, ticket, turn_error};
use super::machine::Machine;

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::StopRun { .. })
}

fn is_gate(action: &Action) -> bool {
    matches!(action, Action::RunGate { .. })
}

fn is_workpad(action: &Action) -> bool {
    matches!(action, Action::WriteWorkpad { .. })
}

/// Why 8: five workers that meet one limit used to take the guess from 5 to 60 minutes within a second.
#[test]
fn workers_that_meet_one_usage_limit_together_wait_once() {
    let names = ["a", "b", "c", "d", "e"];
    let mut machine = Machine::new(policy());
    machine.poll(names.map(ticket).to_vec());
    names.iter().for_each(|name| machine.run_starts(name));
    for name in names {
        machine.run_ends(name, failed(turn_error(TurnError::RateLimit)));
    }
    let begun = machine.now;
    machine.wake();
    assert_eq!(machine.now.since(begun), Duration::from_secs(300));
    assert!(machine.emitted_last(is_start));
}

/// Why 8: the pool and the timeouts are those of the runtime that the ticket is routed to.
#[test]
fn quota_and_timeouts_follow_the_route() {
    let mut policy = policy();
    policy.agent.routes =
        vec![RoutePolicy { labels: vec!["ui".into()], ..route("claude", "max") }, route("codex", "pro")];
    policy.agent.timeouts.insert(
        "claude".into(),
        RuntimeTimeouts { stall: Duration::from_secs(10), turn: Duration::ZERO, quiet: Duration::ZERO },
    );
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), labelled("b", &["ui"]), labelled("c", &["ui"])]);
    for name in ["a", "b", "c"] {
        machine.run_starts(name);
    }
    let runtimes: Vec<&str> = machine.state.runs.values().map(|run| run.runtime.as_str()).collect();
    assert_eq!(runtimes, ["codex", "claude", "claude"]);
    machine.run_ends("b", failed(turn_error(TurnError::RateLimit)));
    assert_eq!(machine.code("b"), "quota");
    machine.run_ends("a", failed(RunFailure::Lost));
    assert_eq!(machine.phase("a"), Phase::Implementing, "its own pool is not used up");
    machine.seconds(10);
    assert!(machine.emitted_last(is_stop), "claude may be silent for ten seconds");
    assert_eq!(machine.emitted(is_stop), 1);
}

/// Why 13: what a corrected workflow lets be tried again was handed out twice after a restart.
#[test]
fn a_workflow_corrected_while_no_runner_was_up_is_tried_once() {
    let mut gated = policy();
    gated.gates.has_task_gates = true;
    let mut machine = Machine::working(gated);
    machine.run_ends("a", done_report(&commit("one")));
    let missing = GateResult {
        name: "check".into(),
        command: "true".into(),
        passed: false,
        exit_code: Some(127),
        timed_out: false,
        output_tail: "not found".into(),
        duration_ms: 1,
    };
    machine.succeed(is_gate, EffectResult::Gated { results: vec![missing] });
    assert_eq!(machine.code("a"), "effect_refused");
    machine.policy.hash = "policy-2".into();
    let before = machine.emitted(is_gate);
    machine.restart();
    assert_eq!(machine.emitted(is_gate), before + 1);
    assert_eq!(machine.code("a"), "gates");
}

/// Why 15: a stop that overtakes its own start found nothing to stop, and the run lived on.
#[test]
fn a_stop_that_came_before_its_run_is_repeated_when_the_run_is_there() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    machine.operator(OperatorCommand::Stop { ticket: id("a") });
    assert!(machine.emitted_last(is_stop));
    machine.run_starts_silently("a");
    assert_eq!(machine.emitted(is_stop), 2);
    let order: Vec<bool> = machine
        .effects
        .iter()
        .filter(|one| is_start(&one.action) || is_stop(&one.action))
        .map(|one| is_start(&one.action))
        .collect();
    assert_eq!(order, [true, false, false], "and never before the start");
}

/// Why 18: blocked while pushing or opening, then `retry`: the finished work used to be paid for again.
#[test]
fn a_retry_after_a_refused_push_or_opening_goes_on_with_the_work_that_is_there() {
    for opening in [false, true] {
        let mut machine = Machine::working(policy());
        machine.run_ends("a", done_report(&commit("one")));
        machine.perform_small();
        let push = |action: &Action| matches!(action, Action::PushBranch { .. });
        let open = |action: &Action| matches!(action, Action::OpenPr { .. });
        let denied = EffectError::Permanent { detail: "no access".into() };
        if opening {
            machine.succeed(push, EffectResult::Plain);
            machine.fail(open, denied);
        } else {
            machine.fail(push, denied);
        }
        assert_eq!(machine.code("a"), "effect_refused");
        machine.operator(OperatorCommand::Retry { ticket: id("a") });
        machine.publish("a");
        assert_eq!(machine.code("a"), "checks", "opening: {opening}");
        assert_eq!(machine.emitted(is_start), 1);
    }
}

/// Why 19: a laptop that slept two hours used to kill the run for a fresh start, and count a failure.
#[test]
fn time_asleep_is_nobodys_time_at_work() {
    let mut policy = policy();
    policy.agent.fresh_start = Duration::from_secs(1800);
    policy.agent.max_run = Duration::from_secs(3600);
    let mut machine = Machine::working(policy);
    machine.seconds(60);
    machine.pass(Duration::from_secs(7200));
    machine.step(Event::WasAway { away: Duration::from_secs(7200) });
    machine.seconds(60);
    assert_eq!(machine.emitted(is_stop), 0);
    assert_eq!(machine.job("a").failures, 0);
    for _ in 0..7 {
        machine.pass(Duration::from_secs(240));
        machine.progress("a", Activity::Agent { usage: Usage::default(), tool_open_since: None, said: None });
    }
    machine.seconds(120);
    assert_eq!(machine.emitted(is_stop), 1, "half an hour of its own time is over");
}

/// Why 21: a workpad whose creation was answered 502 and whose content has changed since used to stay at its old text.
#[test]
fn a_workpad_whose_answer_was_lost_is_brought_up_to_date() {
    let mut shown = policy();
    shown.orchestration.workpad = true;
    let mut machine = Machine::new(shown);
    machine.poll(vec![ticket("a")]);
    machine.fail(is_workpad, EffectError::MaybeDone { detail: "502".into() });
    machine.run_starts_silently("a");
    machine.run_ends("a", RunReport { head_before: Some(commit("base")), ..done_report(&commit("one")) });
    machine.seconds(60);
    let last = machine.effects.iter().rev().find(|effect| is_workpad(&effect.action)).unwrap();
    let Action::WriteWorkpad { shows } = &last.action else { unreachable!() };
    assert!(shows.contains("waiting_for_checks"), "{shows}");
    assert_eq!(machine.state.outbox.values().filter(|entry| is_workpad(&entry.effect.action)).count(), 1);
    // Somebody deletes it: it comes back.
    machine.succeed(is_workpad, EffectResult::Commented { comment: "pad".into() });
    machine.publish_only("a");
    machine.seconds(60);
    machine.succeed(is_workpad, EffectResult::CommentGone);
    machine.seconds(60);
    assert!(machine.pending(is_workpad).is_some());
}

impl Machine {
    /// The branch is pushed, and the other effects are left alone.
    fn publish_only(&mut self, name: &str) {
        self.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let head = self.job(name).delivery.head.clone().unwrap();
        let shown = super::fixtures::pr(1, &self.job(name).delivery.branch.name, &head);
        self.succeed(|action| matches!(action, Action::OpenPr { .. }), EffectResult::Opened { pr: shown });
    }
}

#[test]
fn three_workers_that_meet_a_limit_start_again_at_its_reset_two_minutes_later() {
    let names = ["a", "b", "c"];
    let mut machine = Machine::new(policy());
    machine.poll(names.map(ticket).to_vec());
    for name in names {
        machine.run_starts(name);
        machine.progress(name, Activity::SessionKnown { session: SessionId::new(format!("talk-{name}")) });
    }
    let reset = machine.now + Duration::from_secs(120);
    for name in names {
        let detail = "usage limit".to_owned();
        machine.run_ends(name, failed(RunFailure::Turn { class: TurnError::RateLimit, detail, reset_at: Some(reset) }));
    }
    let before = machine.emitted(is_start);
    while machine.now + Duration::from_secs(1) < reset {
        machine.seconds(1);
        machine.poll(names.map(ticket).to_vec());
        assert_eq!(machine.emitted(is_start), before, "{:?} before the reset", reset.since(machine.now));
        assert!(names.iter().all(|name| machine.code(name) == "quota"));
    }
    machine.wake();
    assert_eq!(machine.now, reset);
    assert_eq!(machine.emitted(is_start), before + 1, "one goes first");
    let first = names.into_iter().find(|name| machine.job(name).stage.run().is_some()).unwrap();
    machine.run_starts(first);
    let usage = Usage { output: 1, ..Usage::default() };
    machine.progress(first, Activity::Agent { usage, tool_open_since: None, said: None });
    assert_eq!(machine.emitted(is_start), before + 3, "it got through, the others follow");
    let mut resumed: Vec<String> = machine.effects[..]
        .iter()
        .filter_map(|effect| match &effect.action {
            Action::StartRun { resume: Some(session), .. } => Some(session.as_str().to_owned()),
            _ => None,
        })
        .collect();
    resumed.sort();
    assert_eq!(resumed, ["talk-a", "talk-b", "talk-c"], "the same conversations go on");
    assert!(names.iter().all(|name| machine.job(name).failures == 0), "no retry was used");
}
