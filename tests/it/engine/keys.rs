//! Keys of the workflow whose value decides something here, each with a value of its own.

use std::time::Duration;

use dirigent::config::policy::{Caps, OnComment, Policy, RoutePolicy, RuntimeTimeouts};
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::job::TicketFacts;
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, Mergeability, PullRequest};
use dirigent::domain::remark::RemarkAnswer;
use dirigent::domain::run::{Activity, RunKind, RunReport, StopReason};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectResult, Event};
use dirigent::engine::provenance::{is_acknowledgement, is_addressed, is_trusted};
use dirigent::engine::route::choose;

use super::fixtures::{
    at_head, check, comment, commit, done_report, in_state, labelled, policy, route, thread, ticket, with_comments,
};
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
fn the_board_names_the_branch_where_the_file_says_so() {
    let named = |by_tracker: bool, name: &str| {
        let mut machine = Machine::new(with(|policy| policy.branch_by_tracker = by_tracker));
        machine.poll(vec![Ticket { branch_name: Some(name.into()), ..ticket("a") }]);
        machine.job("a").delivery.branch.name.clone()
    };
    assert_eq!(named(true, "ada/a-title"), "ada/a-title");
    assert!(named(false, "ada/a-title").starts_with("dirigent/"));
    assert!(named(true, "main").starts_with("dirigent/"), "not a ticket's branch");
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

#[test]
fn a_branch_is_updated_as_often_as_the_file_allows() {
    for allowed in [1, 2] {
        let mut machine = Machine::with_pr(with(|policy| {
            policy.merge.max_rebase_attempts = allowed;
            // In a queue it would wait for its turn first.
            policy.merge.queue = false;
        }));
        machine.pass(Duration::from_secs(61));
        let behind = |machine: &Machine| PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("a") };
        for round in 0..allowed {
            machine.observe("a", behind(&machine));
            let result = EffectResult::Updated { head: commit(&format!("updated{round}")), same_diff: true };
            machine.succeed(|action| matches!(action, Action::UpdateBranch { .. }), result);
            let shown = at_head(behind(&machine), &format!("updated{round}"));
            machine.pass(Duration::from_secs(61));
            machine.observe("a", shown);
        }
        assert_eq!(machine.emitted(|action| matches!(action, Action::UpdateBranch { .. })), allowed as usize);
        assert_eq!(machine.code("a"), "merge_held", "after {allowed}");
    }
}

#[test]
fn red_checks_hold_only_where_green_ones_are_required() {
    for (required, merges) in [(true, 0), (false, 1)] {
        let mut machine = Machine::with_pr(with(|policy| policy.merge.require_green_checks = required));
        machine.pass(Duration::from_secs(61));
        let red = Some(vec![check("build", CheckStatus::Failed)]);
        machine.lands_as("a", PullRequest { checks: red, ..machine.good_pr("a") });
        assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), merges, "{required}");
    }
}

#[test]
fn the_workpad_is_written_no_more_often_than_the_file_says() {
    for (pause, written) in [(0, 2), (600, 1)] {
        let mut machine = Machine::working(with(|policy| {
            policy.orchestration.workpad = true;
            policy.orchestration.workpad_min_interval = Duration::from_secs(pause);
        }));
        machine.perform_small();
        machine.pass(Duration::from_secs(1));
        machine.run_ends("a", done_report(&commit("one")));
        machine.perform_small();
        let workpads = machine.emitted(|action| matches!(action, Action::WriteWorkpad { .. }));
        assert!(if pause == 0 { workpads >= written } else { workpads == written }, "{pause}: {workpads}");
    }
}

#[test]
fn an_answered_conversation_is_resolved_where_the_file_says_so() {
    for resolves in [false, true] {
        let mut machine = Machine::with_pr(with(|policy| policy.pr.resolve_answered = resolves));
        machine.pass(Duration::from_secs(61));
        machine.observe("a", PullRequest { threads: Some(vec![thread(1, false)]), ..machine.good_pr("a") });
        machine.run_starts("a");
        machine.progress("a", Activity::Committed { head: commit("two") });
        machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
        machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
        machine.publish("a");
        let answered = |action: &Action| matches!(action, Action::AnswerThread { resolve, .. } if *resolve == resolves);
        assert_eq!(machine.emitted(answered), 1, "{resolves}");
    }
}

#[test]
fn the_result_of_the_gates_is_published_where_the_file_says_so() {
    for publishes in [false, true] {
        let mut machine = Machine::working(with(|policy| {
            policy.gates.has_task_gates = true;
            policy.pr.publish_gates = publishes;
        }));
        machine.run_ends("a", done_report(&commit("one")));
        let passed = GateResult {
            name: "make check".into(),
            command: "make check".into(),
            passed: true,
            exit_code: Some(0),
            timed_out: false,
            output_tail: String::new(),
            duration_ms: 1,
        };
        let result = EffectResult::Gated { results: vec![passed] };
        machine.succeed(|action| matches!(action, Action::RunGate { .. }), result);
        machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let published = machine.emitted(|action| matches!(action, Action::PublishGates { .. }));
        assert_eq!(published, usize::from(publishes));
    }
}
