//! Keys of the workflow whose value decides something here, each with a value of its own.

use std::time::Duration;

use dirigent::config::policy::{Caps, OnComment, Policy, RoutePolicy, RuntimeTimeouts};
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::failure::RunFailure;
use dirigent::domain::job::TicketFacts;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, RunKind, StopReason};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::Action;
use dirigent::engine::event::Event;
use dirigent::engine::provenance::{is_acknowledgement, is_addressed, is_trusted};
use dirigent::engine::route::choose;

use super::fixtures::{comment, commit, done_report, in_state, labelled, policy, route, ticket, with_comments};
use super::machine::Machine;

fn with(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = policy();
    change(&mut policy);
    policy
}

#[test]
fn each_cap_stops_a_run_for_its_ticket_and_for_the_day() {
    let caps: [(&str, Caps); 4] = [
        ("turns", Caps { max_turns: Some(2), ..Caps::default() }),
        ("tokens", Caps { max_tokens: Some(100), ..Caps::default() }),
        ("cost", Caps { max_cost_microusd: Some(100), ..Caps::default() }),
        ("time", Caps { max_run: Some(Duration::from_secs(60)), ..Caps::default() }),
    ];
    for (what, cap) in caps {
        for daily in [false, true] {
            let mut machine = Machine::working(with(|policy| {
                let budget = &mut policy.budget;
                *(if daily { &mut budget.daily } else { &mut budget.ticket }) = cap.clone();
            }));
            let stopped = |action: &Action| match action {
                Action::StopRun { reason: StopReason::Budget { .. }, .. } => !daily,
                Action::StopRun { reason: StopReason::DailyBudget, .. } => daily,
                _ => false,
            };
            let usage = Usage { output: 60, cost_microusd: 60, ..Usage::default() };
            let spend = Activity::Agent { usage, tool_open_since: None, said: None };
            machine.progress("a", spend.clone());
            machine.progress("a", Activity::TurnEnded { turns: 1 });
            assert_eq!(machine.emitted(stopped), 0, "{what}, daily: {daily}");
            machine.pass(Duration::from_secs(60));
            machine.progress("a", spend);
            machine.progress("a", Activity::TurnEnded { turns: 2 });
            assert_eq!(machine.emitted(stopped), 1, "{what}, daily: {daily}");
        }
    }
}

#[test]
fn whose_words_count_is_the_files_to_say() {
    let person = |name: &str, trust| Author::new(name, trust);
    let policy = with(|policy| {
        policy.tracker.trusted = vec![TrustLevel::Admin];
        policy.tracker.trusted_accounts = vec!["Bo".into()];
        policy.tracker.mention = "helper".into();
        policy.tracker.acknowledgements = vec!["seen".into()];
    });
    assert!(is_trusted(&person("ann", TrustLevel::Admin), &policy));
    assert!(!is_trusted(&person("ann", TrustLevel::Write), &policy));
    assert!(is_trusted(&person("bo", TrustLevel::Stranger), &policy));
    assert!(is_addressed("@helper, rename it", &policy) && !is_addressed("@dirigent rename it", &policy));
    assert!(is_acknowledgement("Seen!", &policy) && !is_acknowledgement("lgtm", &policy));
}

#[test]
fn on_comment_decides_whether_a_plain_comment_holds_or_starts_a_rework() {
    for (on_comment, phase) in [(OnComment::Hold, Phase::WaitingForChecks), (OnComment::Rework, Phase::Rework)] {
        let mut machine = Machine::with_pr(with(|policy| policy.orchestration.on_comment = on_comment));
        let said = comment(1, TrustLevel::Member, "another name would be better");
        machine.poll(vec![with_comments(ticket("a"), vec![said])]);
        assert_eq!(machine.phase("a"), phase, "{on_comment:?}");
    }
}

#[test]
fn a_terminal_state_is_one_that_the_file_names() {
    let mut machine = Machine::working(with(|policy| policy.tracker.terminal_states = vec!["Archived".into()]));
    machine.poll(vec![in_state("a", "archived")]);
    let ended = |action: &Action| matches!(action, Action::StopRun { reason: StopReason::TerminalState, .. });
    assert_eq!(machine.emitted(ended), 1);
}

#[test]
fn without_auto_create_the_branch_waits_for_a_person() {
    let mut machine = Machine::working(with(|policy| policy.pr.auto_create = false));
    machine.run_ends("a", done_report(&commit("one")));
    assert_eq!(machine.phase("a"), Phase::WaitingForHuman);
    assert_eq!(machine.emitted(|action| matches!(action, Action::PushBranch { .. } | Action::OpenPr { .. })), 0);
}

#[test]
fn a_branch_begins_with_the_prefix_of_the_file() {
    let machine = Machine::working(with(|policy| policy.branch_prefix = "bot/".into()));
    assert!(machine.job("a").delivery.branch.name.starts_with("bot/a"), "{}", machine.job("a").delivery.branch.name);
}

#[test]
fn silence_within_a_turn_has_a_limit_of_its_own() {
    let timeouts = RuntimeTimeouts { turn: Duration::from_secs(50), ..RuntimeTimeouts::default() };
    let mut machine = Machine::working(with(|policy| {
        policy.agent.timeouts.insert("codex".into(), timeouts);
    }));
    machine.pass(Duration::from_secs(50));
    machine.step(Event::TimerFired);
    let late = |action: &Action| {
        matches!(action, Action::StopRun { reason: StopReason::Limit { failure: RunFailure::TurnTimeout { .. } }, .. })
    };
    assert_eq!(machine.emitted(late), 1);
}

#[test]
fn a_route_is_chosen_by_label_priority_state_and_role() {
    let routed = |change: fn(&mut RoutePolicy), ticket: &Ticket, kind| {
        let mut wanted = RoutePolicy { route: route("claude", "own").route, ..route("codex", "default") };
        change(&mut wanted);
        let policy = with(|policy| policy.agent.routes.insert(0, wanted));
        choose(&policy, &TicketFacts::of(ticket), kind).unwrap().runtime.clone()
    };
    let mut special = labelled("a", &["ui"]);
    (special.priority, special.state) = (Some(1), "Todo".into());
    let plain = Ticket { priority: None, state: "In Progress".into(), ..ticket("a") };
    let (implement, review) = (RunKind::Implement, RunKind::Review);
    type Change = fn(&mut RoutePolicy);
    let by: [(&str, Change); 3] = [
        ("labels", |route| route.labels = vec!["ui".into()]),
        ("priority", |route| route.priority = vec![1]),
        ("state", |route| route.states = vec!["todo".into()]),
    ];
    for (what, change) in by {
        assert_eq!(routed(change, &special, implement), "claude", "{what}");
        assert_eq!(routed(change, &plain, implement), "codex", "{what}");
    }
    assert_eq!(routed(|route| route.role = Some("review".into()), &plain, review), "claude");
    assert_eq!(routed(|route| route.role = Some("review".into()), &plain, implement), "codex");
}
