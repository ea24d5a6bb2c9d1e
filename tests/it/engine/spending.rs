//! Budgets: per ticket and per day, counted while a run is under way, and durable.

use std::time::Duration;

use dirigent::config::policy::Caps;
use dirigent::domain::job::{BlockCause, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, RunOutcome, RunReport, StopReason};
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::{Action, Steering};
use dirigent::engine::event::{Event, OperatorCommand};

use super::fixtures::{exit, failed, id, policy, report, ticket};
use super::machine::Machine;

fn tokens(output: u64) -> Activity {
    Activity::Agent { usage: Usage { output, ..Usage::default() }, tool_open_since: None, said: None }
}

fn capped(tokens: u64) -> dirigent::config::policy::Policy {
    let mut policy = policy();
    policy.budget.ticket = Caps { max_tokens: Some(tokens), ..Caps::default() };
    policy
}

fn is_wrap_up(action: &Action) -> bool {
    matches!(action, Action::Steer { how: Steering::WrapUp { .. }, .. })
}

fn is_budget_stop(action: &Action) -> bool {
    matches!(action, Action::StopRun { reason: StopReason::Budget { .. }, .. })
}

#[test]
fn eighty_percent_warns_once_and_a_hundred_stops_within_that_event() {
    let mut machine = Machine::working(capped(100));
    machine.progress("a", tokens(79));
    assert_eq!(machine.emitted(is_wrap_up), 0);
    machine.progress("a", tokens(1));
    assert_eq!(machine.emitted(is_wrap_up), 1);
    machine.progress("a", tokens(19));
    assert_eq!(machine.emitted(is_wrap_up), 1);
    assert_eq!(machine.emitted(is_budget_stop), 0);
    machine.progress("a", tokens(1));
    assert!(machine.emitted_last(is_budget_stop));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    let Stage::Blocked { cause: BlockCause::BudgetExceeded { figure, cap, .. }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert_eq!((figure.as_str(), cap.as_str()), ("100", "100"));
    machine.seconds(10 * 86_400);
    machine.restart();
    assert_eq!(machine.code("a"), "budget_exceeded", "it is durable");
    machine.poll(vec![ticket("a")]);
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn what_failed_runs_spent_counts() {
    let mut machine = Machine::working(capped(100));
    machine.progress("a", tokens(60));
    machine.run_ends("a", RunReport { unreported_usage: Usage { output: 40, ..Usage::default() }, ..failed(exit()) });
    assert_eq!(machine.job("a").spending.total.output, 100);
    machine.wake();
    assert_eq!(machine.code("a"), "budget_exceeded");
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
}

#[test]
fn a_raised_budget_goes_on() {
    let mut machine = Machine::working(capped(100));
    machine.progress("a", tokens(100));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    machine.policy.budget.ticket.max_tokens = Some(50);
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.code("a"), "budget_exceeded");
    machine.policy.budget.ticket.max_tokens = Some(1000);
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn turns_and_time_are_capped_too() {
    let mut policy = policy();
    policy.budget.ticket = Caps { max_turns: Some(3), ..Caps::default() };
    let mut machine = Machine::working(policy.clone());
    machine.progress("a", Activity::TurnEnded { turns: 2 });
    machine.progress("a", Activity::TurnEnded { turns: 2 });
    assert_eq!(machine.emitted(is_budget_stop), 0, "the same turn twice is one turn");
    machine.progress("a", Activity::TurnEnded { turns: 3 });
    assert_eq!(machine.emitted(is_budget_stop), 1);

    policy.budget.ticket = Caps { max_run: Some(Duration::from_secs(200)), ..Caps::default() };
    let mut slow = Machine::working(policy);
    slow.pass(Duration::from_secs(150));
    slow.run_ends("a", failed(exit()));
    slow.wake();
    slow.run_starts("a");
    slow.wake();
    assert!(slow.emitted_last(is_wrap_up) || slow.emitted(is_wrap_up) > 0);
    slow.wake();
    assert!(slow.emitted(is_budget_stop) == 1, "time of earlier runs counts");
}

#[test]
fn the_days_budget_stops_everybody_until_midnight() {
    let mut policy = policy();
    policy.budget.daily = Caps { max_tokens: Some(100), ..Caps::default() };
    policy.agent.max_concurrent = 2;
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), ticket("b"), ticket("c")]);
    machine.run_starts("a");
    machine.run_starts("b");
    machine.progress("a", tokens(100));
    machine.seconds(1);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StopRun { .. })), 2);
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Quota }));
    machine.run_ends("b", report(RunOutcome::Killed { reason: StopReason::Quota }));
    for name in ["a", "b", "c"] {
        assert_eq!(machine.code(name), "daily_budget");
        assert_eq!(machine.job(name).failures, 0);
    }
    machine.wake();
    assert_eq!(machine.now.0 % 86_400_000, 0, "midnight");
    assert_eq!(machine.state.runs.len(), 2);
}

#[test]
fn a_clock_set_back_a_day_does_not_clear_the_account() {
    let mut policy = policy();
    policy.budget.daily = Caps { max_tokens: Some(100), ..Caps::default() };
    let mut machine = Machine::working(policy);
    machine.progress("a", tokens(100));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Quota }));
    machine.now = dirigent::domain::time::Timestamp(machine.now.0 - 86_400_000);
    machine.step(Event::TimerFired);
    assert_eq!(machine.code("a"), "daily_budget");
}

#[test]
fn time_while_the_runner_was_down_is_nobodys_run_time() {
    let mut policy = policy();
    policy.budget.ticket = Caps { max_run: Some(Duration::from_secs(3600)), ..Caps::default() };
    let mut machine = Machine::working(policy);
    machine.pass(Duration::from_secs(60));
    machine.progress("a", tokens(1));
    machine.seconds(1);
    machine.pass(Duration::from_secs(10 * 3600));
    machine.restart();
    assert!(
        machine.job("a").spending.run_ms_since_reset < 120_000,
        "{} ms",
        machine.job("a").spending.run_ms_since_reset
    );
    machine.poll(vec![ticket("a")]);
    machine.wake();
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn a_days_budget_is_that_of_the_local_day() {
    let hour = 3_600_000;
    let mut policy = policy();
    policy.budget.daily = Caps { max_tokens: Some(100), ..Caps::default() };
    policy.budget.days = dirigent::domain::time::LocalDays::new(vec![(dirigent::domain::time::Timestamp(0), 9 * hour)]);
    let mut machine = Machine::working(policy);
    machine.progress("a", tokens(100));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::DailyBudget }));
    assert_eq!(machine.code("a"), "daily_budget");
    // An hour back on the clock is still the same day, and gives nothing back.
    machine.now = dirigent::domain::time::Timestamp(machine.now.0 - hour);
    machine.step(Event::TimerFired);
    assert_eq!(machine.code("a"), "daily_budget");
    machine.wake();
    assert_eq!(machine.now.0.rem_euclid(24 * hour), 15 * hour, "midnight where the clock is nine hours ahead");
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

#[test]
fn what_a_lost_run_spent_after_the_last_checkpoint_is_counted_once() {
    let mut policy = policy();
    policy.budget.ticket = Caps { max_tokens: Some(1000), ..Caps::default() };
    let mut machine = Machine::working(policy);
    machine.progress("a", tokens(100));
    let run = machine.run_of("a");
    machine.restart_with(Default::default(), |_| Some(Usage { output: 700, ..Usage::default() }));
    assert_eq!(machine.job("a").spending.total.tokens(), 700, "100 were known");
    assert_eq!(machine.state.meta.daily.usage.tokens(), 700);
    assert!(!machine.state.runs.contains(&run));
}

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

#[test]
fn yesterdays_budget_is_not_todays_where_no_runner_is_up() {
    let mut policy = policy();
    policy.budget.daily = Caps { max_tokens: Some(100), ..Caps::default() };
    let mut machine = Machine::working(policy);
    machine.progress("a", tokens(100));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::DailyBudget }));
    assert_eq!(machine.code("a"), "daily_budget");
    machine.pass(Duration::from_secs(86_400));
    assert_eq!(machine.code("a"), "ready", "nobody has rolled the day over");
}

#[test]
fn nothing_starts_while_a_run_is_stopped_for_the_days_time() {
    let mut policy = policy();
    policy.budget.daily = Caps { max_run: Some(Duration::from_secs(100)), ..Caps::default() };
    let mut machine = Machine::working(policy);
    machine.seconds(100);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StopRun { .. })), 1);
    machine.poll(vec![ticket("a"), ticket("b")]);
    assert_eq!((machine.emitted(is_start), machine.code("b")), (1, "daily_budget"));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::DailyBudget }));
    assert_eq!((machine.code("a"), machine.job("b").attempts), ("daily_budget", 0));
    machine.wake();
    assert_eq!(machine.emitted(is_start), 3, "a new day");
}
