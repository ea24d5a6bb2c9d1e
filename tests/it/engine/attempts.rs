//! Failed runs: how long they wait, how often they are tried, what blocks at once, and what counts as nothing new.

use std::time::Duration;

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::ids::SessionId;
use dirigent::domain::job::{BlockCause, Stage, Wait};
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, Declared, RunOutcome, RunReport, StopReason};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::{Action, Steering};
use dirigent::engine::event::{Event, OperatorCommand};

use super::fixtures::{comment, commit, done_report, exit, failed, id, policy, report, ticket, turn_error};
use super::machine::Machine;

fn due(machine: &Machine) -> Timestamp {
    match machine.stage("a") {
        Stage::Queued { wait: Wait::Retry { due, .. } | Wait::Continuation { due }, .. } => *due,
        stage => panic!("no retry: {stage:?}"),
    }
}

#[test]
fn spec_8_an_abnormal_exit_is_retried_with_backoff() {
    let mut machine = Machine::working(policy());
    for expected in [10_000, 20_000, 40_000, 80_000, 160_000] {
        machine.run_ends("a", failed(exit()));
        let wait = due(&machine).since(machine.now).as_millis() as i64;
        assert!((wait - expected).abs() <= expected / 10, "{wait} instead of {expected}");
        machine.pass(Duration::from_millis(wait as u64 - 1));
        machine.step(Event::TimerFired);
        assert_eq!(machine.code("a"), "retry");
        machine.wake();
        machine.run_starts("a");
    }
    machine.run_ends("a", failed(exit()));
    assert!(matches!(
        machine.stage("a"),
        Stage::Blocked { cause: BlockCause::RetriesExhausted { attempts: 6, .. }, .. }
    ));
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 6);
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Implementing);
    assert_eq!(machine.job("a").failures, 0);
}

#[test]
fn permanent_kinds_block_at_once_with_what_to_do() {
    for failure in [
        turn_error(TurnError::Auth),
        turn_error(TurnError::Model),
        RunFailure::Launch { detail: "not found".into(), permanent: true },
        RunFailure::Workspace { detail: "no such base".into(), permanent: true },
        RunFailure::Prompt { detail: "unknown variable".into() },
    ] {
        let mut machine = Machine::working(policy());
        machine.run_ends("a", failed(failure.clone()));
        assert_eq!(machine.code("a"), "permanent_failure", "{failure:?}");
        assert_eq!(machine.job("a").stage.reason(machine.now).next, failure.fix());
        machine.seconds(86_400);
        assert_eq!(machine.phase("a"), Phase::Blocked);
    }
}

#[test]
fn a_corrected_prompt_is_tried_at_once() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(RunFailure::Prompt { detail: "unknown variable".into() }));
    machine.seconds(3600);
    assert_eq!(machine.phase("a"), Phase::Blocked);
    machine.policy.hash = "policy-2".into();
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn spec_8_waiting_for_a_slot_consumes_no_retry() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(exit()));
    machine.policy.agent.max_concurrent = 0;
    for _ in 0..50 {
        machine.seconds(60);
    }
    assert_eq!(machine.code("a"), "no_slot");
    assert_eq!(machine.job("a").failures, 1);
    machine.policy.agent.max_concurrent = 1;
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_tracker_that_cannot_be_asked_consumes_no_retry() {
    let mut machine = Machine::working(policy());
    for _ in 0..20 {
        machine.run_ends("a", failed(RunFailure::Tracker { detail: "502".into() }));
        machine.wake();
    }
    assert_eq!(machine.job("a").failures, 0);
    machine.run_ends("a", failed(RunFailure::Tracker { detail: "502".into() }));
    machine.step(Event::PollFailed { error: "502".into() });
    machine.seconds(3600);
    assert_eq!(machine.code("a"), "tracker");
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn an_operators_retry_does_not_wait_for_the_backoff() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(exit()));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_clock_that_was_set_back_does_not_make_a_retry_wait_for_ever() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(exit()));
    machine.now = Timestamp(machine.now.0 - 365 * 86_400_000);
    for _ in 0..20 {
        machine.seconds(60);
    }
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn spec_8_a_stall_is_stopped_and_retried() {
    let mut machine = Machine::working(policy());
    machine.seconds(299);
    assert!(!machine.emitted_last(|action| matches!(action, Action::StopRun { .. })));
    machine.seconds(1);
    assert!(machine.emitted_last(|action| matches!(
        action,
        Action::StopRun { reason: StopReason::Limit { failure: RunFailure::Stalled { .. } }, .. }
    )));
    machine.seconds(1);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StopRun { .. })), 1, "asked once");
    machine.run_ends("a", report(RunOutcome::Failed { failure: RunFailure::Signal { signal: 15, said: None } }));
    assert!(matches!(
        machine.stage("a"),
        Stage::Queued { wait: Wait::Retry { error: RunFailure::Stalled { .. }, .. }, .. }
    ));
}

#[test]
fn an_open_tool_call_has_its_own_clock() {
    let mut machine = Machine::working(policy());
    let since = machine.now;
    let agent = |tool| Activity::Agent { usage: Usage::default(), tool_open_since: tool, said: None };
    machine.progress("a", agent(Some(since)));
    machine.seconds(1799);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StopRun { .. })), 0);
    machine.seconds(1);
    assert!(machine.emitted_last(|action| matches!(
        action,
        Action::StopRun { reason: StopReason::Limit { failure: RunFailure::ToolTimeout { .. } }, .. }
    )));

    let mut closed = Machine::working(policy());
    closed.progress("a", agent(Some(closed.now)));
    closed.pass(Duration::from_secs(600));
    closed.progress("a", agent(None));
    closed.seconds(299);
    assert_eq!(closed.emitted(|action| matches!(action, Action::StopRun { .. })), 0);
    closed.seconds(1);
    assert_eq!(closed.emitted(|action| matches!(action, Action::StopRun { .. })), 1);
}

#[test]
fn start_up_and_the_whole_run_have_their_own_deadlines() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    machine.seconds(120);
    assert!(machine.emitted_last(|action| matches!(
        action,
        Action::StopRun { reason: StopReason::Limit { failure: RunFailure::Handshake { .. } }, .. }
    )));
    let mut policy = policy();
    policy.agent.max_run = Duration::from_secs(1000);
    let mut chatty = Machine::working(policy);
    for _ in 0..9 {
        chatty.pass(Duration::from_secs(100));
        chatty.progress("a", Activity::Agent { usage: Usage::default(), tool_open_since: None, said: None });
    }
    chatty.seconds(99);
    assert_eq!(chatty.emitted(|action| matches!(action, Action::StopRun { .. })), 0);
    chatty.seconds(1);
    assert_eq!(chatty.emitted(|action| matches!(action, Action::StopRun { .. })), 1);
}

/// A machine that slept, a runner that was stopped: the agent may have spoken all the time.
#[test]
fn a_silence_of_the_runner_is_not_the_agents() {
    let mut policy = policy();
    policy.agent.timeouts.insert("codex".into(), super::fixtures::TIMEOUTS);
    let mut machine = Machine::working(policy);
    machine.pass(Duration::from_secs(28_800));
    machine.step(Event::WasAway { away: Duration::from_secs(28_800) });
    machine.step(Event::TimerFired);
    let stops = |machine: &Machine| machine.emitted(|action| matches!(action, Action::StopRun { .. }));
    assert_eq!(stops(&machine), 0);
    machine.seconds(299);
    assert_eq!(stops(&machine), 0);
    machine.seconds(2);
    assert_eq!(stops(&machine), 1, "the agent has to speak from then on");
}

#[test]
fn a_run_that_brought_nothing_is_not_repeated_until_something_changes() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", report(RunOutcome::Done));
    machine.wake();
    assert_eq!(machine.code("a"), "no_new_evidence");
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
    machine.seconds(86_400);
    assert_eq!(machine.phase("a"), Phase::Blocked);
    let mut stranger = ticket("a");
    stranger.comments = Some(vec![comment(1, TrustLevel::Stranger, "me too")]);
    machine.poll(vec![stranger.clone()]);
    assert_eq!(machine.code("a"), "no_new_evidence", "a stranger's word is no evidence");
    stranger.labels = vec!["clearer".into()];
    machine.poll(vec![stranger]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn each_part_of_the_fingerprint_unblocks() {
    let stuck = || {
        let mut machine = Machine::working(policy());
        machine.run_ends("a", report(RunOutcome::Done));
        machine.wake();
        assert_eq!(machine.code("a"), "no_new_evidence");
        machine
    };
    let mut state = stuck();
    state.poll(vec![super::fixtures::in_state("a", "In Progress")]);
    assert_eq!(state.phase("a"), Phase::Implementing);
    let mut text = stuck();
    text.poll(vec![Ticket { description: Some("It is about the second file.".into()), ..ticket("a") }]);
    assert_eq!(text.phase("a"), Phase::Implementing);
    let mut title = stuck();
    title.poll(vec![Ticket { title: "Do something else".into(), ..ticket("a") }]);
    assert_eq!(title.phase("a"), Phase::Implementing);
    let mut prompt = stuck();
    prompt.policy.hash = "policy-2".into();
    prompt.step(Event::PolicyReloaded);
    assert_eq!(prompt.phase("a"), Phase::Implementing);
    let mut said = stuck();
    said.says("a", "try the other way");
    assert_eq!(said.phase("a"), Phase::Implementing);
}

/// Every merge of another ticket moves the base; that is no news to an agent that did nothing.
#[test]
fn a_base_that_moves_pays_for_no_further_attempt() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", report(RunOutcome::Done));
    machine.wake();
    assert_eq!(machine.code("a"), "no_new_evidence");
    for round in 0..50 {
        let (base, basis) = (Some(commit(&format!("base{round}x"))), machine.basis());
        machine.step(Event::Polled { tickets: vec![ticket("a")], base, basis });
        machine.seconds(60);
    }
    assert_eq!(machine.code("a"), "no_new_evidence");
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn what_changed_during_a_fruitless_run_is_new_evidence() {
    let mut machine = Machine::working(policy());
    let mut shown = ticket("a");
    shown.comments = Some(vec![comment(1, TrustLevel::Member, "the file is src/x.rs")]);
    machine.poll(vec![shown]);
    machine.run_ends("a", report(RunOutcome::Done));
    machine.wake();
    assert_eq!(machine.phase("a"), Phase::Implementing, "no attempt has seen that comment from its start");
    machine.run_starts("a");
    machine.run_ends("a", report(RunOutcome::Done));
    machine.wake();
    assert_eq!(machine.code("a"), "no_new_evidence");
}

#[test]
fn evidence_without_a_commit_does_not_go_on_for_ever() {
    let mut machine = Machine::working(policy());
    for _ in 0..3 {
        let evidence = dirigent::domain::evidence::Evidence {
            kind: dirigent::domain::evidence::EvidenceKind::Note { text: "looked around".into() },
            timestamp: machine.now,
        };
        machine.run_ends("a", RunReport { evidence: vec![evidence], ..report(RunOutcome::Done) });
        machine.wake();
        if machine.phase("a") == Phase::Blocked {
            return;
        }
        machine.run_starts("a");
    }
    panic!("run after run without a commit");
}

#[test]
fn infrastructure_failures_are_no_finished_attempts() {
    let mut machine = Machine::working(policy());
    for failure in [
        RunFailure::Launch { detail: "busy".into(), permanent: false },
        RunFailure::Lost,
        RunFailure::Handshake { detail: "slow".into() },
    ] {
        machine.run_ends("a", failed(failure));
        assert!(machine.job("a").evidence.no_progress_with.is_none());
        machine.wake();
        assert_eq!(machine.phase("a"), Phase::Implementing);
        machine.run_starts("a");
    }
}

#[test]
fn spec_7_a_normal_exit_with_progress_goes_on_after_about_a_second() {
    let mut policy = policy();
    policy.pr.forge = dirigent::config::policy::ForgeKind::None;
    let mut machine = Machine::working(policy);
    machine.run_ends("a", RunReport { declared: None, ..done_report(&commit("one")) });
    assert_eq!(machine.code("a"), "continuation");
    assert_eq!(due(&machine).since(machine.now), Duration::from_secs(1));
    machine.wake();
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_usage_limit_pauses_the_whole_pool_costs_no_retry_and_wakes_the_same_conversation() {
    let mut policy = policy();
    policy.agent.max_concurrent = 2;
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), ticket("b"), ticket("c")]);
    machine.run_starts("a");
    machine.run_starts("b");
    machine.progress("a", Activity::SessionKnown { session: SessionId::new("talk-a") });
    let reset = machine.now + Duration::from_secs(3600);
    let failure = RunFailure::Turn { class: TurnError::RateLimit, detail: "limit".into(), reset_at: Some(reset) };
    machine.run_ends("a", failed(failure));
    assert_eq!(machine.code("a"), "quota");
    assert_eq!(machine.code("c"), "quota");
    assert_eq!(machine.job("a").failures, 0);
    assert!(machine.emitted_last(|action| matches!(action, Action::Steer { how: Steering::StopAfterTurn, .. })));
    machine.run_ends("b", report(RunOutcome::Killed { reason: StopReason::Quota }));
    assert_eq!(machine.code("b"), "quota");
    machine.restart();
    machine.poll(vec![ticket("a"), ticket("b"), ticket("c")]);
    assert_eq!(machine.code("a"), "quota", "it is stored");
    machine.pass(Duration::from_secs(3599));
    machine.step(Event::TimerFired);
    assert_eq!(machine.state.runs.len(), 0);
    machine.wake();
    assert_eq!(machine.now, reset);
    assert!(machine.emitted_last(
        |action| matches!(action, Action::StartRun { resume: Some(session), .. } if session.as_str() == "talk-a")
    ));
    // One goes first, and the rest when it gets through.
    assert_eq!(machine.state.runs.len(), 1);
    assert_eq!((machine.code("b"), machine.code("c")), ("quota", "quota"));
    machine.run_starts("a");
    machine.seconds(60);
    assert_eq!(machine.state.runs.len(), 1, "silence says nothing");
    let usage = Usage { output: 1, ..Usage::default() };
    machine.progress("a", Activity::Agent { usage, tool_open_since: None, said: None });
    assert_eq!(machine.state.runs.len(), 2);
}

#[test]
fn a_limit_that_was_not_reset_is_met_by_one_run_alone() {
    let mut policy = policy();
    policy.agent.max_concurrent = 3;
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), ticket("b"), ticket("c")]);
    let limit = || failed(RunFailure::Turn { class: TurnError::RateLimit, detail: "limit".into(), reset_at: None });
    for name in ["a", "b", "c"] {
        machine.run_starts(name);
    }
    for name in ["a", "b", "c"] {
        machine.run_ends(name, limit());
    }
    let started = |machine: &Machine| machine.emitted(|action| matches!(action, Action::StartRun { .. }));
    for round in 1..4 {
        machine.wake();
        assert_eq!(started(&machine), 3 + round, "one try a window");
        let first = ["a", "b", "c"].into_iter().find(|name| machine.phase(name) == Phase::Implementing).unwrap();
        machine.run_starts(first);
        machine.run_ends(first, limit());
    }
    // One that fails for a reason of its own leaves the try to the next.
    machine.wake();
    let first = ["a", "b", "c"].into_iter().find(|name| machine.phase(name) == Phase::Implementing).unwrap();
    machine.run_starts(first);
    machine.run_ends(first, failed(exit()));
    assert_eq!(machine.state.runs.len(), 1);
}

#[test]
fn whoever_has_got_more_need_not_wait_for_the_reset() {
    let mut machine = Machine::working(policy());
    let reset = machine.now + Duration::from_secs(3600);
    let failure = RunFailure::Turn { class: TurnError::RateLimit, detail: "limit".into(), reset_at: Some(reset) };
    machine.run_ends("a", failed(failure));
    assert_eq!(machine.code("a"), "quota");
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.state.runs.len(), 1, "{}", machine.code("a"));
}

#[test]
fn a_question_parks_the_job_at_once() {
    let mut machine = Machine::working(policy());
    machine.progress("a", Activity::Asked { question: "may I?".into() });
    assert!(machine.emitted_last(|action| matches!(action, Action::Comment { .. })));
    machine.run_ends("a", failed(RunFailure::InputRequired { question: "may I?".into() }));
    assert_eq!(machine.code("a"), "worker_asked");
    assert_eq!(machine.job("a").failures, 0);
}

#[test]
fn events_of_a_run_that_is_over_change_nothing() {
    let mut machine = Machine::working(policy());
    let old = machine.run_of("a");
    machine.run_ends("a", failed(exit()));
    machine.wake();
    let before = machine.state.clone();
    let process = dirigent::domain::run::ProcessMark { pid: 1, started_ticks: 1 };
    let usage = Usage { output: 5, ..Usage::default() };
    for event in [
        Event::RunFinished { run: old.clone(), report: done_report(&commit("late")) },
        Event::RunStarted { run: old.clone(), process, worktree: "/w".into(), head: Some(commit("late")) },
        Event::RunProgress { run: old.clone(), activity: Activity::Agent { usage, tool_open_since: None, said: None } },
        Event::RunProgress { run: old, activity: Activity::Commented { text: "hi".into() } },
    ] {
        machine.step(event.clone());
        assert_eq!(machine.state, before, "{event:?}");
        assert!(machine.last.is_empty());
    }
}

#[test]
fn a_start_that_is_reported_twice_counts_once() {
    let mut machine = Machine::working(policy());
    machine.progress("a", Activity::SessionKnown { session: SessionId::new("talk") });
    let before = machine.state.clone();
    machine.run_starts("a");
    assert_eq!(machine.state, before);
}

#[test]
fn a_fresh_start_is_made_when_nothing_came_for_too_long() {
    let mut policy = policy();
    policy.agent.fresh_start = Duration::from_secs(100);
    let mut machine = Machine::working(policy.clone());
    machine.progress("a", Activity::SessionKnown { session: SessionId::new("talk") });
    machine.seconds(100);
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { reason: StopReason::FreshStart, .. })));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::FreshStart }));
    assert_eq!(machine.phase("a"), Phase::Implementing);
    assert!(machine.emitted_last(|action| matches!(action, Action::StartRun { resume: None, .. })));
    let mut busy = Machine::working(policy);
    busy.progress("a", Activity::Committed { head: commit("one") });
    busy.seconds(200);
    assert_eq!(busy.emitted(|action| matches!(action, Action::StopRun { .. })), 0);
}

#[test]
fn the_worker_may_say_that_it_is_stuck() {
    let mut machine = Machine::working(policy());
    let declared = Some(Declared::Blocked { reason: "no access to the server".into() });
    machine.run_ends("a", RunReport { declared, ..report(RunOutcome::Done) });
    assert!(machine.job("a").stage.reason(machine.now).sentence.contains("no access to the server"));
}
