//! Random orders of events: late ones, duplicates, unknown ids, clocks that jump, crashes; the invariants after each step.

use std::time::Duration;

use dirigent::config::policy::{Caps, ClosedPrPolicy, Policy, RolloutMode};
use dirigent::domain::basis::{Basis, Moment};
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::failure::TurnError;
use dirigent::domain::hint::{Hint, RemarkId};
use dirigent::domain::ids::{CommentId, EffectId, RunId, SessionId, TicketId};
use dirigent::domain::job::SwitchSource;
use dirigent::domain::lane::Lane;
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest, Verdict};
use dirigent::domain::remark::{RemarkAnswer, RemarkKey, RemarkKind};
use dirigent::domain::run::{Activity, Declared, RunOutcome, RunReport, StopReason};
use dirigent::domain::ticket::{Ticket, same_state};
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, Lookup, OperatorCommand, RemarkFound};
use dirigent::engine::permit::Refusal;
use dirigent::engine::state::State;
use proptest::prelude::*;

use super::fixtures::{
    SWITCH_LABEL, blocker, check, comment, comment_key, commit, done_report, exit, failed, id, policy, pr, report,
    review, thread, ticket, turn_error,
};
use super::machine::Machine;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three numbers choose what happens; they mean something only against the state at that time.
pub type Choice = (u8, u8, u8);

fn policy_of(choice: u8) -> Policy {
    let mut policy = policy();
    policy.agent.max_concurrent = 1 + usize::from(choice & 1);
    policy.gates.has_task_gates = choice & 2 != 0;
    policy.merge.require_human_approval = choice & 4 != 0;
    policy.orchestration.workpad = choice & 8 != 0;
    policy.review.enabled = choice & 16 != 0;
    if choice & 32 != 0 {
        policy.budget.ticket = Caps { max_tokens: Some(500), max_turns: Some(20), ..Caps::default() };
        policy.budget.daily = Caps { max_tokens: Some(900), ..Caps::default() };
        policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
        policy.orchestration.states.insert(Phase::Blocked, "Stuck".into());
    }
    policy.pr.closed_pr =
        [ClosedPrPolicy::Stop, ClosedPrPolicy::Reopen, ClosedPrPolicy::NewBranch][usize::from(choice) % 3];
    policy
}

fn board(a: u8, b: u8) -> Vec<Ticket> {
    let states = ["Todo", "In Progress", "Done", "Backlog", "Rework", "Approved", "Todo", "Stuck"];
    NAMES
        .iter()
        .enumerate()
        .filter(|(at, _)| a & (1 << at) == 0)
        .map(|(at, name)| {
            let mut shown = ticket(name);
            shown.state = states[usize::from(b >> (at * 2)) & 7].into();
            if a & 8 != 0 && at == 0 {
                shown.labels = vec![SWITCH_LABEL.into()];
            }
            if a & 16 != 0 && at == 1 {
                shown.blocked_by = vec![blocker("a", Some("Todo")), blocker("c", None)];
            }
            if a & 32 != 0 {
                let trust = if b & 1 == 0 { TrustLevel::Member } else { TrustLevel::Stranger };
                let text = ["@dirigent more", "hm", "lgtm", "@dirigent no"][usize::from(b >> 2) & 3];
                shown.comments = Some((0..=u32::from(a >> 6)).map(|n| comment(n, trust, text)).collect());
            }
            if a & 64 != 0 && b & 8 != 0 {
                shown.comments = None;
            }
            shown
        })
        .collect()
}

fn looked_up(a: u8, b: u8) -> Vec<(TicketId, Lookup)> {
    let mut found: Vec<(TicketId, Lookup)> =
        board(a, b).into_iter().map(|ticket| (ticket.id.clone(), Lookup::Found { ticket })).collect();
    for name in NAMES.map(id) {
        if !found.iter().any(|(known, _)| *known == name) {
            let lookup = match b % 3 {
                0 => Lookup::Gone { because: "deleted".into() },
                1 => Lookup::NotVisible,
                _ => Lookup::Unreadable { because: "no state".into() },
            };
            found.push((name, lookup));
        }
    }
    found
}

/// Most questions are as old as their answers; some left long ago.
fn basis_of(machine: &Machine, a: u8) -> Basis {
    let now = machine.basis();
    if a.is_multiple_of(5) { Basis { after: Moment(now.after.0 / 2), ..now } } else { now }
}

fn shown_pr(machine: &Machine, name: &str, b: u8) -> PullRequest {
    let job = machine.state.jobs.get(&id(name));
    let head = match b % 5 {
        0 => commit("theirs"),
        _ => job.and_then(|job| job.delivery.head.clone()).unwrap_or_else(|| commit("one")),
    };
    let number = job.and_then(|job| job.delivery.pr.as_ref()).map_or(1, |facts| facts.number.0);
    let mut shown = pr(number, "branch", &head);
    match b % 20 {
        0 => shown.checks = Some(vec![check("build", CheckStatus::Failed)]),
        1 => shown.checks = Some(vec![check("build", CheckStatus::Pending)]),
        2 => shown.checks = Some(Vec::new()),
        3 => shown.mergeability = Mergeability::Behind,
        4 => shown.mergeability = Mergeability::Conflicting { files: vec!["x".into()] },
        5 => shown.state = PrState::Closed,
        6 => shown.state = PrState::Merged { commit: None },
        7 => shown.labels = vec![SWITCH_LABEL.into()],
        8 => shown.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::ChangesRequested, &head)]),
        9 => shown.threads = Some(vec![thread(u32::from(b), false)]),
        10 => shown.reviews = Some(vec![review(2, TrustLevel::Member, Verdict::Approved, &head)]),
        11 => shown.head = commit("older"),
        12 => shown.base_branch = "develop".into(),
        13 => shown.mergeability = Mergeability::Refused { because: "a rule".into() },
        14 => (shown.threads, shown.ref_head) = (None, None),
        15 => shown.comments = Some(vec![comment(u32::from(b), TrustLevel::Member, "@dirigent see here")]),
        16 => shown.threads = Some(vec![thread(9, true)]),
        _ => {}
    }
    shown
}

fn finished(machine: &Machine, b: u8) -> RunReport {
    let head = commit(&format!("h{b}"));
    match b % 12 {
        0 => report(RunOutcome::Done),
        1 => failed(exit()),
        2 => failed(turn_error(TurnError::RateLimit)),
        3 => failed(turn_error(TurnError::Auth)),
        4 => report(RunOutcome::Killed { reason: StopReason::KillSwitch }),
        5 => RunReport { declared: Some(Declared::Blocked { reason: "?".into() }), ..report(RunOutcome::Done) },
        6 => RunReport { commits_ahead: 0, ..done_report(&head) },
        7 => failed(dirigent::domain::failure::RunFailure::Lost),
        8 => RunReport { unreported_usage: Usage { output: 300, turns: 1, ..Usage::default() }, ..done_report(&head) },
        _ => RunReport { head_before: machine.state.base.clone(), ..done_report(&head) },
    }
}

fn activity(machine: &Machine, run: &RunId, b: u8) -> Activity {
    let usage = Usage { output: u64::from(b), ..Usage::default() };
    let job = machine.state.runs.get(run).and_then(|live| machine.state.jobs.get(&live.ticket));
    let remarks = job.map(|job| job.people.remarks.as_slice()).unwrap_or_default();
    let mut keys: Vec<RemarkKey> = remarks.iter().map(|remark| remark.key.clone()).collect();
    match b % 9 {
        0 => Activity::SessionKnown { session: SessionId::new(format!("s{b}")) },
        1 => Activity::TurnEnded { turns: u32::from(b) },
        2 => Activity::Commented { text: "hi".into() },
        3 => Activity::Committed { head: commit(&format!("h{b}")) },
        4 => Activity::Asked { question: "?".into() },
        5 => {
            // Also words that no reading has brought yet.
            keys.extend((b & 1 == 0).then(|| comment_key(&comment(u32::from(b), TrustLevel::Member, "hm"))));
            Activity::Delivered { remarks: keys }
        }
        6 if !keys.is_empty() => {
            let text = "because".to_owned();
            let answer = match b % 3 {
                0 => RemarkAnswer::Fixed { text },
                1 => RemarkAnswer::Explained { text },
                _ => RemarkAnswer::Declined { text },
            };
            Activity::AnsweredRemark { remark: keys.remove(0), answer }
        }
        _ => Activity::Agent { usage, tool_open_since: (b > 200).then_some(machine.now), said: None },
    }
}

fn effect_event(machine: &Machine, a: u8, b: u8) -> Event {
    let pending: Vec<EffectId> = machine.state.outbox.keys().copied().collect();
    let effect = match pending.len() {
        0 => EffectId(u64::from(a)),
        count => pending[usize::from(a) % count],
    };
    let action = machine.state.outbox.get(&effect).map(|entry| entry.effect.action.clone());
    let error = match b % 16 {
        0 => Some(EffectError::Transient { detail: "502".into(), retry_after: None }),
        1 => Some(EffectError::Permanent { detail: "403".into() }),
        2 => Some(EffectError::Refused { refusal: Refusal::KillSwitch { switch: SwitchSource::File } }),
        3 => Some(EffectError::HeadMoved { actual: commit("theirs") }),
        4 => Some(EffectError::Conflict { files: vec!["x".into()] }),
        5 => Some(EffectError::NotNow { because: "dirty".into() }),
        6 => Some(EffectError::MaybeDone { detail: "504".into() }),
        7 => Some(EffectError::Auth { detail: "401".into() }),
        8 => Some(EffectError::OtherBase { actual: "develop".into() }),
        _ => None,
    };
    if let Some(error) = error {
        return Event::EffectFailed { effect, error };
    }
    let result = match action {
        Some(Action::OpenPr { branch, head }) => EffectResult::Opened { pr: pr(u64::from(a) + 1, &branch, &head) },
        Some(Action::MergePr { .. }) => EffectResult::Merged { commit: Some(commit("merged")) },
        Some(Action::UpdateBranch { .. }) if b & 1 == 0 => {
            EffectResult::Updated { head: commit(&format!("up{b}")), same_diff: b & 2 == 0 }
        }
        Some(Action::MoveTicket { .. }) if b & 3 == 0 => EffectResult::FoundElsewhere { state: "Backlog".into() },
        Some(Action::MoveTicket { .. }) => EffectResult::Moved { version: (b & 1 == 0).then_some(machine.now) },
        Some(Action::WriteWorkpad { .. }) if b & 1 == 0 => EffectResult::CommentGone,
        Some(Action::RunGate { .. }) => EffectResult::Gated { results: Vec::new() },
        Some(Action::Comment { .. } | Action::WriteWorkpad { .. }) => {
            EffectResult::Commented { comment: CommentId::new("c") }
        }
        _ => EffectResult::Plain,
    };
    Event::EffectDone { effect, result }
}

fn run_of(machine: &Machine, a: u8) -> RunId {
    let runs: Vec<&RunId> = machine.state.runs.keys().collect();
    match runs.len() {
        0 => RunId::new("unknown"),
        count => runs[usize::from(a) % count].clone(),
    }
}

fn remark_checked(machine: &Machine, name: &str, b: u8) -> Event {
    let remarks = machine.state.jobs.get(&id(name)).map(|job| job.people.remarks.as_slice()).unwrap_or_default();
    let key = remarks.first().map(|remark| remark.key.clone());
    let found = [RemarkFound::There, RemarkFound::Gone, RemarkFound::NotVisible][usize::from(b >> 2) % 3];
    let (kind, id_of) = key.map_or((RemarkKind::Thread, CommentId::new("unknown")), |key| (key.kind, key.id));
    Event::RemarkChecked { ticket: id(name), kind, id: id_of, found }
}

fn command(a: u8, b: u8) -> OperatorCommand {
    let ticket = id(NAMES[usize::from(a) % 3]);
    match b % 9 {
        0 => OperatorCommand::PauseAll,
        1 => OperatorCommand::ResumeAll,
        2 => OperatorCommand::Pause { ticket },
        3 => OperatorCommand::Resume { ticket },
        4 => OperatorCommand::Stop { ticket },
        5 => OperatorCommand::Approve { ticket, head: (a & 8 != 0).then(|| commit("one")), overrule: Vec::new() },
        6 => OperatorCommand::Forget { ticket },
        7 => OperatorCommand::Reject { ticket, text: "no".into() },
        _ => OperatorCommand::Retry { ticket },
    }
}

/// Does what the choice means now. Repeats some events right away.
pub fn apply(machine: &mut Machine, (kind, a, b): Choice) {
    let basis = basis_of(machine, a);
    let name = NAMES[usize::from(a) % 3];
    let event = match kind % 20 {
        0 if machine.listed.is_some() => {
            Event::PolledUnchanged { base: Some(commit("base")), basis: machine.listed_basis }
        }
        0..=2 => Event::Polled { tickets: board(a & !7, 0), base: Some(commit("base")), basis },
        3 if a & 2 != 0 => Event::PolledChanges { tickets: board(a, b), base: None, basis },
        3 => Event::Polled { tickets: board(a, b), base: Some(commit(&format!("base{}", b & 1))), basis },
        4 => Event::TicketsRefreshed { found: looked_up(a, b), basis },
        5 => {
            let process = dirigent::domain::run::ProcessMark { pid: 1, started_ticks: 1 };
            let head = Some(commit("base"));
            Event::RunStarted { run: run_of(machine, a), process, worktree: "/w".into(), head }
        }
        6..=7 => {
            let run = run_of(machine, a);
            Event::RunProgress { activity: activity(machine, &run, b), run }
        }
        8..=9 => Event::RunFinished { run: run_of(machine, a), report: finished(machine, b) },
        10..=11 => Event::PrObserved { ticket: id(name), pr: shown_pr(machine, name, b), basis },
        12..=14 => effect_event(machine, a, b),
        15 => Event::Operator { command: command(a, b), by: "ann".into() },
        16 => match b % 4 {
            0 => Event::SwitchesChanged { file: a & 1 == 0 },
            1 if a & 1 == 0 => Event::WasAway { away: Duration::from_secs(u64::from(a) * 60) },
            1 => Event::PollFailed { error: "500".into() },
            2 if a & 1 == 0 => remark_checked(machine, name, b),
            2 => Event::HumanSaid { ticket: id(name), by: "ann".into(), text: "go".into(), urgent: true },
            3 if a & 1 == 0 => {
                let until = (b & 8 == 0).then(|| machine.now + Duration::from_secs(60));
                Event::LanePaused { lane: Lane::Forge, until, why: "401".into(), locked_out: b & 16 == 0 }
            }
            _ if b & 4 == 0 => {
                let floor = (b & 8 == 0).then_some(machine.now);
                let number = dirigent::domain::ids::PrNumber(u64::from(b >> 4));
                let remark = RemarkId { kind: RemarkKind::Verdict, id: CommentId::new("review-1") };
                let floor_of_pr = (b & 16 == 0).then_some(remark);
                Event::Hinted {
                    hints: vec![Hint::Ticket { id: id(name), floor }, Hint::PullRequest { number, floor: floor_of_pr }],
                }
            }
            _ => Event::Recovered { lost: Vec::new() },
        },
        17 => {
            match b % 4 {
                0 => machine.policy.rollout.mode = RolloutMode::Observe,
                1 => machine.policy.rollout.mode = RolloutMode::Mutate,
                2 => machine.policy.orchestration.required_label = (a & 1 == 0).then(|| "agent".into()),
                _ => {
                    machine.policy.rollout.mode = RolloutMode::Merge;
                    machine.policy.orchestration.required_label = None;
                    machine.policy.hash = format!("policy-{a}");
                }
            }
            Event::PolicyReloaded
        }
        18 => {
            let jump = i64::from(b) * i64::from(b) * 1000;
            let back = a.is_multiple_of(4);
            machine.now = Timestamp(if back { machine.now.0 - jump } else { machine.now.0 + jump });
            Event::TimerFired
        }
        _ => {
            if b.is_multiple_of(8) {
                machine.restart();
                return;
            }
            machine.pass(Duration::from_secs(u64::from(b)));
            Event::TimerFired
        }
    };
    machine.step(event.clone());
    if a.is_multiple_of(7) {
        machine.step(event);
    }
}

/// Whether the board says "nothing new" or the same list again must not matter.
fn unchanged_means_the_same_list(machine: &Machine) {
    let Some(tickets) =
        machine.listed.clone().filter(|_| machine.state.unsettled.is_empty() && machine.state.invisible.is_empty())
    else {
        return;
    };
    // A list that shows another column than the one that is known by now would not be repeated: the board has gone on.
    let is_known = |ticket: &Ticket| {
        machine.state.jobs.get(&ticket.id).is_none_or(|job| same_state(&job.ticket.state, &ticket.state))
    };
    if !tickets.iter().all(is_known) {
        return;
    }
    let basis = machine.listed_basis;
    let base = machine.state.base.clone();
    let (mut listed, mut unchanged) = (machine.clone(), machine.clone());
    listed.step(Event::Polled { tickets, base: base.clone(), basis });
    unchanged.step(Event::PolledUnchanged { base, basis });
    // Only a list can lack a comment or bring a blocker's old state back, and asks about it; whoever repeats an answer does not
    // ask again.
    let asks = |action: &Action| matches!(action, Action::CheckRemark { .. } | Action::RefreshTickets { .. });
    if listed.emitted_last(asks) {
        return;
    }
    assert_eq!(listed.last, unchanged.last);
    if listed.state != unchanged.state {
        let (left, right) = (format!("{:#?}", listed.state), format!("{:#?}", unchanged.state));
        let other: Vec<_> = left.lines().zip(right.lines()).filter(|(left, right)| left != right).take(10).collect();
        panic!("listed, and unchanged: {other:#?}");
    }
}

fn round_trip(state: &State) {
    for job in state.jobs.values() {
        let json = serde_json::to_string(job).unwrap();
        assert_eq!(serde_json::from_str::<dirigent::domain::job::Job>(&json).unwrap(), *job);
    }
    for run in state.runs.values() {
        let json = serde_json::to_string(run).unwrap();
        assert_eq!(serde_json::from_str::<dirigent::domain::run::LiveRun>(&json).unwrap(), *run);
    }
    for pending in state.outbox.values() {
        let json = serde_json::to_string(pending).unwrap();
        assert_eq!(serde_json::from_str::<dirigent::engine::state::Pending>(&json).unwrap(), *pending);
    }
    let json = serde_json::to_string(&state.meta).unwrap();
    assert_eq!(serde_json::from_str::<dirigent::engine::state::Meta>(&json).unwrap(), state.meta);
}

pub fn choices(length: usize) -> impl Strategy<Value = (u8, Vec<Choice>)> {
    (any::<u8>(), proptest::collection::vec(any::<Choice>(), 1..length))
}

pub fn started(start: u8) -> Machine {
    let mut machine = Machine::new(policy_of(start));
    machine.poll(NAMES.map(ticket).to_vec());
    machine
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_order_of_events_keeps_the_invariants((start, order) in choices(120)) {
        let mut machine = started(start);
        for choice in order {
            apply(&mut machine, choice);
            unchanged_means_the_same_list(&machine);
        }
        round_trip(&machine.state);
    }

    #[test]
    fn extreme_clocks_do_not_panic(times in proptest::collection::vec(any::<i64>(), 1..20)) {
        let mut machine = started(32);
        for (at, time) in times.into_iter().enumerate() {
            machine.now = Timestamp(time);
            machine.step(Event::TimerFired);
            apply(&mut machine, (at as u8 * 3, 1, at as u8));
        }
    }
}
