//! A silent run is shown and spoken to before silence ends it.

use std::time::Duration;

use dirigent::config::policy::{Policy, RuntimeTimeouts};
use dirigent::domain::failure::RunFailure;
use dirigent::domain::run::{Activity, StopReason};
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::{Action, Steering};
use dirigent::engine::event::Event;
use dirigent::engine::{next_due, snapshot};

use super::fixtures::policy;
use super::machine::Machine;

fn patient() -> Policy {
    let mut policy = policy();
    for timeouts in policy.agent.timeouts.values_mut() {
        *timeouts = RuntimeTimeouts { quiet: Duration::from_secs(100), ..*timeouts };
    }
    policy
}

fn nudges(machine: &Machine) -> usize {
    machine.emitted(|action| matches!(action, Action::Steer { how: Steering::Nudge { .. }, .. }))
}

fn said(text: &str) -> Activity {
    Activity::Agent { usage: Usage::default(), tool_open_since: None, said: Some(text.into()) }
}

fn quiet_for(machine: &Machine) -> Option<u64> {
    let picture = snapshot(&machine.state, &machine.policy, machine.now);
    let since = picture.jobs[0].run.as_ref().unwrap().quiet_since?;
    Some(machine.now.since(since).as_secs())
}

#[test]
fn silence_is_shown_then_answered_with_one_nudge_and_only_then_ends_the_run() {
    let mut machine = Machine::working(patient());
    machine.progress("a", said("reading"));
    let heard = machine.now;
    assert_eq!(next_due(&machine.state, &machine.policy), Some(heard + Duration::from_secs(100)), "it wakes up for it");
    machine.pass(Duration::from_secs(99));
    machine.step(Event::TimerFired);
    assert_eq!((nudges(&machine), quiet_for(&machine)), (0, None));
    machine.pass(Duration::from_secs(1));
    machine.step(Event::TimerFired);
    assert_eq!((nudges(&machine), quiet_for(&machine)), (1, Some(100)));
    machine.pass(Duration::from_secs(100));
    machine.step(Event::TimerFired);
    assert_eq!((nudges(&machine), quiet_for(&machine)), (1, Some(200)), "one for each silence");
    machine.pass(Duration::from_secs(100));
    machine.step(Event::TimerFired);
    let stalled = |action: &Action| {
        matches!(action, Action::StopRun { reason: StopReason::Limit { failure: RunFailure::Stalled { .. } }, .. })
    };
    assert_eq!(machine.emitted(stalled), 1);
}

#[test]
fn an_echo_of_the_nudge_earns_no_second_one_but_work_does() {
    let mut machine = Machine::working(patient());
    machine.pass(Duration::from_secs(100));
    machine.step(Event::TimerFired);
    machine.progress("a", said("the words of the nudge"));
    assert_eq!(quiet_for(&machine), None);
    let quiet = machine.now + Duration::from_secs(100);
    assert_eq!(next_due(&machine.state, &machine.policy), Some(quiet), "it is shown as quiet again");
    machine.pass(Duration::from_secs(200));
    machine.step(Event::TimerFired);
    assert_eq!((nudges(&machine), quiet_for(&machine)), (1, Some(200)));
    let usage = Usage { output: 1, ..Usage::default() };
    machine.progress("a", Activity::Agent { usage, tool_open_since: None, said: None });
    machine.pass(Duration::from_secs(100));
    machine.step(Event::TimerFired);
    assert_eq!(nudges(&machine), 2);
}

#[test]
fn an_open_tool_call_is_not_silence() {
    let mut machine = Machine::working(patient());
    let since = Some(machine.now);
    machine.progress("a", Activity::Agent { usage: Usage::default(), tool_open_since: since, said: None });
    machine.pass(Duration::from_secs(1000));
    machine.step(Event::TimerFired);
    assert_eq!((nudges(&machine), quiet_for(&machine)), (0, None));
}

#[test]
fn model_and_tool_are_part_of_the_picture() {
    let mut machine = Machine::working(policy());
    machine.progress("a", Activity::Doing { model: Some("large".into()), tool: Some("sh make".into()) });
    machine.progress("a", said("building"));
    machine.progress("a", Activity::Doing { model: None, tool: None });
    let picture = snapshot(&machine.state, &machine.policy, machine.now);
    let run = picture.jobs[0].run.clone().unwrap();
    assert_eq!((run.model.as_deref(), run.tool, run.said.as_deref()), (Some("large"), None, Some("building")));
}
