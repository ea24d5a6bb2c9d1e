//! The board: who may be worked on, in which order, in how many slots, and what happens when tickets change under us.

use std::collections::BTreeMap;

use dirigent::config::policy::Order;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::job::{ReleaseReason, Stage, Wait};
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{RunOutcome, StopReason};
use dirigent::domain::ticket::{Blocker, Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, Event, Lookup, OperatorCommand};
use dirigent::engine::state::PendingStatus;

use super::fixtures::{blocker, commit, done_report, failed, id, in_state, labelled, policy, report, ticket};
use super::machine::Machine;

fn started(machine: &Machine) -> Vec<String> {
    machine
        .last
        .iter()
        .filter(|effect| matches!(effect.action, Action::StartRun { .. }))
        .filter_map(|effect| effect.ticket.as_ref().map(ToString::to_string))
        .collect()
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::StopRun { .. })
}

#[test]
fn spec_8_order_is_priority_then_age_then_identifier() {
    let with =
        |name: &str, priority, created| Ticket { priority, created_at: Some(Timestamp(created)), ..ticket(name) };
    let mut machine = Machine::new(policy());
    machine.poll(vec![
        with("none", None, 1),
        with("zero", Some(0), 2),
        with("low", Some(4), 1),
        with("young", Some(1), 9),
        with("twin-b", Some(1), 5),
        with("twin-a", Some(1), 5),
        with("five", Some(5), 3),
    ]);
    assert_eq!(started(&machine), ["twin-a", "twin-b", "young", "low", "none", "zero", "five"]);
}

#[test]
fn critical_path_puts_the_longest_chain_right_after_priority() {
    let mut policy = policy();
    policy.agent.order = Order::CriticalPath;
    let mut machine = Machine::new(policy);
    let after = |name: &str, on: &str| Ticket { blocked_by: vec![blocker(on, Some("Todo"))], ..ticket(name) };
    machine.poll(vec![ticket("alone"), ticket("root"), after("mid", "root"), after("leaf", "mid")]);
    assert_eq!(started(&machine), ["root", "alone"]);
}

#[test]
fn a_chain_of_many_thousands_is_no_problem() {
    let mut policy = policy();
    policy.agent.order = Order::CriticalPath;
    policy.agent.max_concurrent = 1;
    let mut machine = Machine::new(policy);
    let mut tickets = vec![ticket("t000000")];
    for n in 1..20_000 {
        let on = blocker(&format!("t{:06}", n - 1), Some("Todo"));
        tickets.push(Ticket { blocked_by: vec![on], ..ticket(&format!("t{n:06}")) });
    }
    machine.poll(tickets);
    assert_eq!(started(&machine), ["t000000"]);
}

#[test]
fn spec_8_global_and_per_state_slots() {
    let mut policy = policy();
    policy.agent.max_concurrent = 3;
    policy.agent.max_concurrent_by_state = BTreeMap::from([("todo".to_owned(), 1)]);
    let mut machine = Machine::new(policy);
    let mut board = vec![ticket("a"), ticket("b")];
    board.extend(["c", "d", "e"].map(|name| in_state(name, "In Progress")));
    machine.poll(board);
    assert_eq!(started(&machine), ["a", "c", "d"]);
    assert_eq!(machine.code("b"), "no_state_slot");
    assert_eq!(machine.code("e"), "no_slot");
}

#[test]
fn spec_8_slots_count_by_the_running_entrys_current_state() {
    let mut policy = policy();
    policy.agent.max_concurrent_by_state = BTreeMap::from([("todo".to_owned(), 1)]);
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a"), ticket("b")]);
    assert_eq!(machine.code("b"), "no_state_slot");
    machine.poll(vec![in_state("a", "In Progress"), ticket("b")]);
    assert_eq!(started(&machine), ["b"]);
}

#[test]
fn blockers_gate_and_a_failed_or_unknown_one_keeps_blocking() {
    let with = |blockers: Vec<Blocker>| Ticket { blocked_by: blockers, ..ticket("a") };
    for blockers in [
        vec![blocker("x", Some("Todo"))],
        vec![blocker("x", None)],
        vec![Blocker { failed: true, ..blocker("x", Some("Done")) }],
        vec![blocker("x", Some("Done")), blocker("y", Some("In Progress"))],
    ] {
        let mut machine = Machine::new(policy());
        machine.poll(vec![with(blockers.clone())]);
        assert_eq!(machine.code("a"), "blocked_by", "{blockers:?}");
        machine.poll(vec![with(vec![blocker("x", Some(" done "))])]);
        assert_eq!(machine.phase("a"), Phase::Implementing);
    }
}

#[test]
fn a_dependency_cycle_is_named() {
    let after = |name: &str, on: &str| Ticket { blocked_by: vec![blocker(on, Some("Todo"))], ..ticket(name) };
    let mut machine = Machine::new(policy());
    machine.poll(vec![after("a", "b"), after("b", "c"), after("c", "a"), after("d", "a")]);
    assert!(matches!(machine.stage("a"), Stage::Queued { wait: Wait::Cycle { keys }, .. } if keys.len() == 4));
    assert_eq!(machine.code("c"), "dependency_cycle");
    assert_eq!(machine.code("d"), "blocked_by");
}

#[test]
fn every_ticket_of_overlapping_cycles_is_named() {
    let after = |name: &str, on: &[&str]| Ticket {
        blocked_by: on.iter().map(|on| blocker(on, Some("Todo"))).collect(),
        ..ticket(name)
    };
    let mut machine = Machine::new(policy());
    machine.poll(vec![
        after("a", &["b", "c"]),
        after("b", &["d"]),
        after("c", &["d"]),
        after("d", &["a"]),
        after("e", &["a"]),
        after("f", &["f"]),
    ]);
    for name in ["a", "b", "c", "d", "f"] {
        let Stage::Queued { wait: Wait::Cycle { keys }, .. } = machine.stage(name) else {
            panic!("{name}: {:?}", machine.stage(name))
        };
        assert_eq!(keys.first(), keys.last());
        assert!(keys.iter().any(|key| key.as_str() == name), "{name}: {keys:?}");
    }
    assert_eq!(machine.code("e"), "blocked_by");
    machine.poll(vec![after("a", &["c"]), after("b", &["d"]), after("c", &[]), after("d", &["a"]), after("f", &[])]);
    for name in ["a", "b", "d"] {
        assert_eq!(machine.code(name), "blocked_by", "{name}");
    }
}

#[test]
fn labels_authors_and_the_adapters_word_decide_who_is_ours() {
    let mut labels = policy();
    labels.tracker.required_labels = vec!["agent".into()];
    let mut machine = Machine::new(labels);
    machine.poll(vec![ticket("a"), labelled("b", &["agent"])]);
    assert_eq!(machine.code("a"), "labels");
    assert_eq!(machine.phase("b"), Phase::Implementing);

    let mut blank = policy();
    blank.tracker.required_labels = vec![" ".into()];
    let mut machine = Machine::new(blank);
    machine.poll(vec![labelled("a", &["agent"])]);
    assert_eq!(machine.code("a"), "labels", "a blank label matches nothing");

    let mut authors = policy();
    authors.tracker.authors = vec!["Bob".into()];
    let mut machine = Machine::new(authors);
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.code("a"), "not_ours");

    let mut machine = Machine::new(policy());
    machine.poll(vec![Ticket { dispatchable: Dispatchable::No("it is a draft".into()), ..ticket("a") }]);
    assert_eq!(machine.code("a"), "not_ours");
    assert!(machine.job("a").stage.reason(machine.now).sentence.contains("draft"));
}

#[test]
fn spec_8_reconcile_terminal_stops_and_releases() {
    let mut machine = Machine::working(policy());
    machine.poll(Vec::new());
    assert!(machine.emitted_last(|action| matches!(action, Action::RefreshTickets { .. })));
    assert!(!machine.emitted_last(is_stop), "missing from a list is not gone");
    machine.refresh(in_state("a", "Cancelled"));
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { reason: StopReason::TerminalState, .. })));
    machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::TerminalState }));
    assert!(matches!(machine.stage("a"), Stage::Released { why: ReleaseReason::TicketClosed { .. }, .. }));
}

#[test]
fn spec_8_reconcile_not_active_not_eligible_or_gone_stops_and_keeps() {
    let mut moved = Machine::working(policy());
    moved.refresh(in_state("a", "Backlog"));
    assert!(moved.emitted_last(is_stop));
    moved.run_ends("a", report(RunOutcome::Killed { reason: StopReason::NotActive }));
    assert_eq!(moved.code("a"), "not_active");

    let mut policy = policy();
    policy.tracker.required_labels = vec!["agent".into()];
    let mut unlabelled = Machine::new(policy);
    unlabelled.poll(vec![labelled("a", &["agent"])]);
    unlabelled.run_starts("a");
    unlabelled.poll(vec![ticket("a")]);
    assert!(unlabelled.emitted_last(is_stop));
    unlabelled.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    assert_eq!(unlabelled.code("a"), "not_eligible");
    unlabelled.poll(vec![labelled("a", &["agent"])]);
    assert_eq!(unlabelled.phase("a"), Phase::Implementing);

    let mut gone = Machine::working(super::fixtures::policy());
    gone.looked_up("a", Lookup::Gone { because: "it was deleted".into() });
    assert!(gone.emitted_last(is_stop));
    gone.run_ends("a", report(RunOutcome::Killed { reason: StopReason::NotActive }));
    assert_eq!(gone.phase("a"), Phase::Released);

    // Not shown is not gone: the run stops, the job is kept, and goes on when the ticket is seen again.
    let mut hidden = Machine::working(super::fixtures::policy());
    hidden.looked_up("a", Lookup::NotVisible);
    assert!(hidden.emitted_last(is_stop));
    hidden.run_ends("a", report(RunOutcome::Killed { reason: StopReason::NotVisible }));
    assert_eq!(hidden.code("a"), "tracker");
    hidden.poll(vec![ticket("a")]);
    assert_eq!(hidden.phase("a"), Phase::Implementing);
}

#[test]
fn spec_8_a_failed_refresh_keeps_everything() {
    let mut machine = Machine::working(policy());
    machine.poll(Vec::new());
    let before = machine.state.jobs.clone();
    for _ in 0..10 {
        machine.step(Event::PollFailed { error: "500".into() });
    }
    assert_eq!(machine.state.jobs, before);
    assert_eq!(machine.emitted(is_stop), 0);
}

#[test]
fn spec_8_a_retry_of_a_ticket_that_is_no_longer_active_is_released() {
    for state in ["Done", "Backlog"] {
        let mut machine = Machine::working(policy());
        machine.run_ends("a", failed(RunFailure::Exit { code: 1, said: None }));
        machine.refresh(in_state("a", state));
        assert_eq!(machine.phase("a"), Phase::Released, "{state}");
        machine.seconds(3600);
        assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
    }
}

#[test]
fn a_state_that_stopped_being_active_in_the_workflow_is_not_dispatched() {
    let mut machine = Machine::new(policy());
    machine.policy.agent.max_concurrent = 0;
    machine.poll(vec![ticket("a")]);
    machine.policy.tracker.active_states = vec!["In Progress".into()];
    machine.policy.agent.max_concurrent = 1;
    machine.step(Event::PolicyReloaded);
    machine.poll(Vec::new());
    machine.refresh(ticket("a"));
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 0);
    assert_eq!(machine.phase("a"), Phase::Released);
}

#[test]
fn a_ticket_that_was_never_worked_on_waits_for_an_active_state() {
    let mut machine = Machine::new(policy());
    machine.policy.agent.max_concurrent = 0;
    machine.poll(vec![ticket("a")]);
    machine.policy.agent.max_concurrent = 1;
    machine.poll(vec![in_state("a", "Approved")]);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 0, "Approved is not active");
}

#[test]
fn a_retry_does_not_start_work_on_a_closed_ticket() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", failed(RunFailure::Exit { code: 1, said: None }));
    machine.refresh(in_state("a", "Done"));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Released);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
}

#[test]
fn a_ticket_given_back_stays_so_until_a_retry() {
    for working in [false, true] {
        let mut machine = Machine::working(policy());
        if !working {
            machine.run_ends("a", failed(RunFailure::Exit { code: 1, said: None }));
        }
        machine.operator(OperatorCommand::Forget { ticket: id("a") });
        if working {
            assert!(machine.emitted_last(is_stop));
            machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
        }
        for _ in 0..3 {
            machine.pass(std::time::Duration::from_secs(60));
            machine.poll(vec![ticket("a")]);
        }
        assert_eq!(machine.phase("a"), Phase::Released, "working: {working}");
        machine.operator(OperatorCommand::Retry { ticket: id("a") });
        assert_eq!(machine.phase("a"), Phase::Implementing);
    }
}

#[test]
fn a_reopened_ticket_starts_anew_on_a_new_branch() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.merge_succeeds();
    let old = machine.job("a").delivery.branch.name.clone();
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Done, "the board has not caught up yet");
    machine.refresh(Ticket { updated_at: Some(Timestamp(50)), ..in_state("a", "Done") });
    machine.poll(vec![Ticket { updated_at: Some(Timestamp(40)), ..ticket("a") }]);
    assert_eq!(machine.phase("a"), Phase::Done, "an old reading");
    machine.pass(std::time::Duration::from_secs(120));
    machine.poll(vec![Ticket { updated_at: Some(Timestamp(60)), ..ticket("a") }]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    assert_ne!(machine.job("a").delivery.branch.name, old);
    assert!(machine.job("a").delivery.pr.is_none());
}

#[test]
fn a_label_that_comes_back_goes_on_with_the_open_pull_request() {
    let mut policy = policy();
    policy.tracker.required_labels = vec!["agent".into()];
    let mut machine = Machine::new(policy);
    machine.poll(vec![labelled("a", &["agent"])]);
    machine.run_starts("a");
    machine.run_delivers("a", "one");
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Released);
    machine.poll(vec![labelled("a", &["agent"])]);
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1, "the work is there already");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_released_ticket_is_left_alone_by_writes_that_were_waiting() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    let push = |action: &Action| matches!(action, Action::PushBranch { .. });
    machine.fail(push, EffectError::Transient { detail: "502".into(), retry_after: None });
    machine.refresh(in_state("a", "Cancelled"));
    assert_eq!(machine.phase("a"), Phase::Released);
    machine.seconds(3600);
    assert_eq!(machine.emitted(push), 1, "nothing is pushed for a cancelled ticket");
    assert!(!machine.state.outbox.values().any(|entry| matches!(entry.status, PendingStatus::Due { .. })));
}

#[test]
fn what_the_board_says_twice_changes_nothing() {
    let mut machine = Machine::working(policy());
    machine.poll(vec![ticket("a")]);
    let before = machine.state.clone();
    machine.poll(vec![ticket("a")]);
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.state.jobs, before.jobs);
    assert_eq!(machine.state.runs, before.runs);
}

#[test]
fn follow_ups_are_created_only_where_allowed() {
    let new = dirigent::domain::ticket::NewTicket {
        title: "later".into(),
        description: String::new(),
        labels: Vec::new(),
        priority: None,
        parent: None,
        blocked_by: Vec::new(),
    };
    let activity = dirigent::domain::run::Activity::FollowUp { ticket: new, key: "k".into() };
    let mut allowed = Machine::working(policy());
    allowed.progress("a", activity.clone());
    assert!(allowed.emitted_last(|action| matches!(action, Action::CreateTicket { .. })));
    let mut policy = policy();
    policy.gates.allow_followups = false;
    let mut refused = Machine::working(policy);
    refused.progress("a", activity);
    assert!(refused.last.is_empty());
}

#[test]
fn spec_7_claimed_and_running_are_checked_before_launch() {
    let mut machine = Machine::new(policy());
    for _ in 0..5 {
        machine.poll(vec![ticket("a"), ticket("a")]);
        machine.step(Event::TimerFired);
    }
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
}
