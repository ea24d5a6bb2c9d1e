//! Every stage with every reason it can hold, against everything that can happen: nothing panics, the invariants hold,
//! every stage has an exit, and what people are told to do does something.

use std::collections::BTreeMap;
use std::time::Duration;

use dirigent::config::policy::RolloutMode;
use dirigent::domain::basis::Moment;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::fingerprint::Fingerprint;
use dirigent::domain::ids::{EffectId, PoolName, PrNumber, RunId, SessionId};
use dirigent::domain::job::{
    BlockCause, CheckWait, DoneHow, HumanWait, MergeHold, ReleaseReason, ReworkCause, ReworkTrigger, Stage,
    SwitchSource, Turn, Wait, Work,
};
use dirigent::domain::lane::Lane;
use dirigent::domain::pr::{CheckStatus, MergeMethod, Mergeability, PrState, PullRequest, Verdict};
use dirigent::domain::run::{Activity, Declared, Life, LiveRun, Progress, RunOutcome, RunReport, StopReason};
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::{Action, Effect};
use dirigent::engine::event::{EffectError, EffectResult, Event, Lookup, OperatorCommand};
use dirigent::engine::permit::Refusal;
use dirigent::engine::state::{Pending, PendingStatus};

use super::fixtures::{
    SWITCH_LABEL, at_head, check, comment, comment_key, commit, done_report, exit, failed, id, in_state, labelled,
    policy, report, review, thread, ticket, turn_error,
};
use super::machine::Machine;

fn works() -> Vec<Work> {
    let cause = |trigger| ReworkCause { trigger, summary: "why".into(), evidence: Vec::new() };
    vec![
        Work::Implement,
        Work::Review { head: commit("one") },
        Work::Rework { cause: cause(ReworkTrigger::CheckFailed) },
        Work::Rework { cause: cause(ReworkTrigger::Landing) },
    ]
}

fn waits(machine: &Machine) -> Vec<Wait> {
    let soon = machine.now + Duration::from_secs(5);
    let mut all = vec![
        Wait::Ready,
        Wait::Blockers { keys: vec!["x".into()] },
        Wait::Cycle { keys: vec!["a".into(), "b".into(), "a".into()] },
        Wait::Retry { attempt: 2, due: soon, error: exit() },
        Wait::Continuation { due: soon },
        Wait::Labels { missing: vec!["agent".into()] },
        Wait::NotOurs { because: "a draft".into() },
    ];
    all.extend(SOURCES.map(|source| Wait::KillSwitch { source }));
    all
}

const SOURCES: [SwitchSource; 5] = [
    SwitchSource::File,
    SwitchSource::TicketLabel,
    SwitchSource::PrLabel,
    SwitchSource::PauseAll,
    SwitchSource::PauseTicket,
];

fn stops() -> Vec<Option<StopReason>> {
    vec![
        None,
        Some(StopReason::TerminalState),
        Some(StopReason::NotActive),
        Some(StopReason::NotEligible { because: "label".into() }),
        Some(StopReason::KillSwitch),
        Some(StopReason::ObserveMode),
        Some(StopReason::Operator),
        Some(StopReason::GivenBack),
        Some(StopReason::Budget { what: "tokens".into(), figure: "1".into(), cap: "1".into() }),
        Some(StopReason::FreshStart),
        Some(StopReason::Shutdown),
        Some(StopReason::Quota),
        Some(StopReason::DailyBudget),
        Some(StopReason::NotVisible),
        Some(StopReason::BlockerOpened),
        Some(StopReason::Superseded),
        Some(StopReason::Limit { failure: RunFailure::Stalled { silent_ms: 1, limit_ms: 1 } }),
    ]
}

fn blocks() -> Vec<BlockCause> {
    vec![
        BlockCause::RetriesExhausted { attempts: 6, last: exit() },
        BlockCause::Permanent { failure: turn_error(TurnError::Auth) },
        BlockCause::Permanent { failure: RunFailure::Prompt { detail: "x".into() } },
        BlockCause::NoNewEvidence {
            fingerprint: Box::new(Fingerprint { head: "old".into(), ..Fingerprint::default() }),
        },
        BlockCause::LostAgain { times: 10 },
        BlockCause::ReworkLimitExceeded { limit: 3, trigger: ReworkTrigger::CheckFailed },
        BlockCause::BudgetExceeded { what: "tokens".into(), figure: "9".into(), cap: "9".into() },
        BlockCause::WorkerAsked { question: "which?".into() },
        BlockCause::PrClosed { number: PrNumber(1) },
        BlockCause::StoppedByOperator,
        BlockCause::SetAside,
        BlockCause::ReworkLimitExceeded { limit: 3, trigger: ReworkTrigger::GateFailed },
        BlockCause::MergeRefused { because: "protected".into() },
        BlockCause::EffectRefused { effect: "push_branch".into(), because: "no access".into() },
        BlockCause::ReviewUnreadable { head: commit("one"), because: "it has no heading".into() },
        BlockCause::NoEnd { runs: 21 },
    ]
}

fn stages(machine: &Machine) -> Vec<Stage> {
    let (since, head) = (machine.now, commit("one"));
    let mut all = Vec::new();
    for work in works() {
        for wait in waits(machine) {
            all.push(Stage::Queued { work: work.clone(), wait, since });
        }
        for stopping in stops() {
            all.push(Stage::Working { work: work.clone(), run: RunId::new("live"), stopping, since });
        }
    }
    for on in [
        CheckWait::Gates { head: head.clone() },
        CheckWait::Publishing { head: head.clone() },
        CheckWait::Forge { head: head.clone() },
        CheckWait::Mergeability { head: head.clone() },
        CheckWait::BranchUpdate { head: head.clone() },
        CheckWait::ForgeQueue { head: head.clone() },
        CheckWait::TicketClosed { state: "Done".into() },
    ] {
        all.push(Stage::WaitingForChecks { on, since });
    }
    for on in [
        HumanWait::Approval { head: head.clone() },
        HumanWait::Branch { branch: "b".into() },
        HumanWait::Directory,
        HumanWait::NoChecks { head: head.clone() },
        HumanWait::Draft,
        HumanWait::ReviewLimit { head: head.clone(), limit: 2 },
        HumanWait::Remarks { head: head.clone(), by: vec!["ann".into()] },
        HumanWait::Rule { head: head.clone(), because: "two reviews are required".into() },
        HumanWait::OtherBase { head: head.clone(), base: "develop".into() },
        HumanWait::MergeStuck { head: head.clone(), because: "502".into() },
    ] {
        all.push(Stage::WaitingForHuman { on, since });
    }
    for cause in blocks() {
        all.push(Stage::Blocked { cause, resume: Work::Implement, since });
    }
    let held = MergeHold::Forge { because: "dirty".into(), retry_at: since + Duration::from_secs(5) };
    let turn = Turn { moment: Moment(1), since };
    for (hold, turn) in [(MergeHold::Queue, None), (MergeHold::Queue, Some(turn)), (held, None)] {
        all.push(Stage::ReadyToMerge { head: head.clone(), hold, turn, since });
    }
    for withdrawn in [false, true] {
        all.push(Stage::Merging { head: head.clone(), withdrawn, since });
    }
    for ticket_closed in [false, true] {
        all.push(Stage::Done { how: DoneHow::Merged { commit: None, by_us: true }, ticket_closed, since });
    }
    for why in [
        ReleaseReason::TicketClosed { state: "Done".into() },
        ReleaseReason::NotActive { state: "Backlog".into() },
        ReleaseReason::NotEligible { because: "label".into() },
        ReleaseReason::GivenBack,
        ReleaseReason::Gone,
    ] {
        all.push(Stage::Released { why, since });
    }
    all
}

/// A machine whose one job stands at `stage`, with the records that belong to it.
fn at(stage: Stage) -> Machine {
    let mut machine = Machine::with_pr(policy());
    let now = machine.now;
    let mut add = |action: Action| {
        let effect = EffectId(machine.state.meta.next_effect);
        machine.state.meta.next_effect += 1;
        let effect = Effect { id: effect, ticket: Some(id("a")), decided_at: now, action };
        let pending = Pending { effect, attempts: 0, status: PendingStatus::InFlight };
        machine.state.outbox.insert(pending);
    };
    let (head, branch) = (commit("one"), "dirigent/a-do-a".to_owned());
    match &stage {
        Stage::WaitingForChecks { on: CheckWait::Gates { .. }, .. } => add(Action::RunGate { branch, head }),
        Stage::WaitingForChecks { on: CheckWait::Publishing { .. }, .. } => add(Action::PushBranch { branch, head }),
        Stage::WaitingForChecks { on: CheckWait::BranchUpdate { .. }, .. } => {
            add(Action::UpdateBranch { number: PrNumber(1), head });
        }
        Stage::Merging { .. } => {
            let (number, base_branch) = (PrNumber(1), "main".into());
            add(Action::MergePr { number, head, base_branch, method: MergeMethod::Squash });
        }
        Stage::Working { work, run, .. } => {
            let live = LiveRun {
                id: run.clone(),
                ticket: id("a"),
                key: "a".into(),
                kind: work.kind(),
                attempt: 2,
                pool: PoolName::new("default"),
                runtime: "codex".into(),
                branch,
                ticket_state: "Todo".into(),
                started_at: now,
                progress: Progress::at_start(now),
                life: Life::Spawning,
                head_before: None,
            };
            machine.state.runs.insert(live);
        }
        _ => {}
    }
    machine.state.jobs.edit(&id("a"), |job| {
        if matches!(stage, Stage::Blocked { cause: BlockCause::PrClosed { .. }, .. }) {
            job.delivery.pr.as_mut().unwrap().state = PrState::Closed;
        }
        if matches!(stage, Stage::Released { why: ReleaseReason::TicketClosed { .. }, .. }) {
            job.ticket.state = "Done".into();
        }
        job.stage = stage;
    });
    machine.kept = machine.state.clone();
    machine
}

fn pull_requests(machine: &Machine) -> Vec<PullRequest> {
    let good = machine.good_pr("a");
    let shown = |change: &dyn Fn(&mut PullRequest)| {
        let mut pr = good.clone();
        change(&mut pr);
        pr
    };
    vec![
        good.clone(),
        shown(&|pr| pr.checks = Some(vec![check("build", CheckStatus::Pending)])),
        shown(&|pr| pr.checks = Some(vec![check("build", CheckStatus::Failed)])),
        shown(&|pr| pr.checks = Some(Vec::new())),
        shown(&|pr| pr.mergeability = Mergeability::Unknown),
        shown(&|pr| pr.mergeability = Mergeability::Behind),
        shown(&|pr| pr.mergeability = Mergeability::Conflicting { files: vec!["x".into()] }),
        shown(&|pr| pr.mergeability = Mergeability::Refused { because: "rule".into() }),
        shown(&|pr| pr.state = PrState::Closed),
        shown(&|pr| pr.state = PrState::Merged { commit: None }),
        shown(&|pr| pr.draft = true),
        at_head(good.clone(), "theirs"),
        shown(&|pr| pr.head = commit("older")),
        shown(&|pr| pr.base_branch = "develop".into()),
        shown(&|pr| pr.ref_head = None),
        shown(&|pr| pr.reviews = None),
        shown(&|pr| pr.labels = vec![SWITCH_LABEL.into()]),
        shown(&|pr| pr.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::ChangesRequested, &pr.head)])),
        shown(&|pr| pr.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::Approved, &pr.head)])),
        shown(&|pr| pr.threads = Some(vec![thread(1, false)])),
        shown(&|pr| pr.number = PrNumber(99)),
    ]
}

fn run_events(run: RunId) -> Vec<Event> {
    let process = dirigent::domain::run::ProcessMark { pid: 1, started_ticks: 1 };
    let mut all =
        vec![Event::RunStarted { run: run.clone(), process, worktree: "/w".into(), head: Some(commit("one")) }];
    let killed = |reason| report(RunOutcome::Killed { reason });
    let mut reports = vec![
        done_report(&commit("two")),
        report(RunOutcome::Done),
        RunReport { declared: Some(Declared::Blocked { reason: "?".into() }), ..report(RunOutcome::Done) },
        RunReport { commits_ahead: 0, ..done_report(&commit("base")) },
        RunReport { declared: None, ..done_report(&commit("two")) },
    ];
    reports.extend(stops().into_iter().flatten().map(killed));
    for failure in [
        exit(),
        RunFailure::Lost,
        RunFailure::NoProgress,
        RunFailure::Dirty,
        RunFailure::Tracker { detail: "500".into() },
        RunFailure::InputRequired { question: "?".into() },
        RunFailure::Prompt { detail: "x".into() },
        turn_error(TurnError::RateLimit),
        turn_error(TurnError::Auth),
        turn_error(TurnError::Context),
    ] {
        reports.push(failed(failure));
    }
    all.extend(reports.into_iter().map(|report| Event::RunFinished { run: run.clone(), report }));
    let usage = Usage { output: 10, turns: 1, ..Usage::default() };
    for activity in [
        Activity::Agent { usage, tool_open_since: None, said: Some("hi".into()) },
        Activity::SessionKnown { session: SessionId::new("s") },
        Activity::TurnEnded { turns: 1 },
        Activity::Committed { head: commit("two") },
        Activity::Commented { text: "hello".into() },
        Activity::Delivered { remarks: vec![comment_key(&comment(1, TrustLevel::Member, "hm"))] },
        Activity::Asked { question: "?".into() },
    ] {
        all.push(Event::RunProgress { run: run.clone(), activity });
    }
    all
}

fn events(machine: &Machine) -> Vec<Event> {
    let a = id("a");
    let basis = machine.basis();
    let looked_up = |lookup| Event::TicketsRefreshed { found: vec![(id("a"), lookup)], basis };
    let refreshed = |ticket| looked_up(Lookup::Found { ticket });
    let mut asked_for = ticket("a");
    asked_for.comments = Some(vec![comment(1, TrustLevel::Member, "@dirigent please")]);
    let mut all = vec![
        Event::Recovered { lost: Vec::new() },
        Event::Polled { tickets: vec![ticket("a")], base: Some(commit("newer")), basis },
        Event::Polled { tickets: Vec::new(), base: None, basis },
        Event::PolledChanges { tickets: vec![in_state("a", "In Progress")], base: None, basis },
        Event::PollFailed { error: "500".into() },
        looked_up(Lookup::Gone { because: "deleted".into() }),
        looked_up(Lookup::NotVisible),
        looked_up(Lookup::Unreadable { because: "no state".into() }),
        refreshed(asked_for),
        refreshed(labelled("a", &[SWITCH_LABEL])),
        Event::SwitchesChanged { file: true },
        Event::SwitchesChanged { file: false },
        Event::PolicyReloaded,
        Event::TimerFired,
        Event::Shutdown,
        Event::HumanSaid { ticket: a.clone(), by: "ann".into(), text: "go".into(), urgent: false },
        Event::PrLookFailed { ticket: a.clone(), number: PrNumber(1), error: "502".into() },
        Event::LanePaused { lane: Lane::Forge, until: None, why: "401".into(), locked_out: true },
        Event::LaneWorks { lane: Lane::Forge },
        Event::WasAway { away: Duration::from_secs(3600) },
    ];
    all.extend(
        ["Done", "Cancelled", "Backlog", "In Progress", "Rework", "Approved"].map(|s| refreshed(in_state("a", s))),
    );
    all.extend(commands().into_iter().map(|command| Event::Operator { command, by: "ann".into() }));
    all.extend(pull_requests(machine).into_iter().map(|pr| Event::PrObserved { ticket: a.clone(), pr, basis }));
    all.extend(run_events(RunId::new("live")));
    all.extend(run_events(RunId::new("over")));
    let mut effects: Vec<EffectId> = machine.state.outbox.keys().copied().collect();
    effects.push(EffectId(9999));
    for effect in effects {
        let action = machine.state.outbox.get(&effect).map(|entry| &entry.effect.action);
        let result = match action {
            Some(Action::MergePr { .. }) => EffectResult::Merged { commit: None },
            Some(Action::RunGate { .. }) => EffectResult::Gated { results: Vec::new() },
            Some(Action::UpdateBranch { .. }) => EffectResult::Updated { head: commit("updated"), same_diff: true },
            _ => EffectResult::Plain,
        };
        all.push(Event::EffectDone { effect, result });
        for error in [
            EffectError::Transient { detail: "502".into(), retry_after: Some(Duration::from_secs(1)) },
            EffectError::Permanent { detail: "403".into() },
            EffectError::Refused { refusal: Refusal::KillSwitch { switch: SwitchSource::File } },
            EffectError::Refused { refusal: Refusal::NotOwned },
            EffectError::HeadMoved { actual: commit("theirs") },
            EffectError::Conflict { files: vec!["x".into()] },
            EffectError::NotNow { because: "dirty".into() },
            EffectError::MaybeDone { detail: "504".into() },
            EffectError::Auth { detail: "401".into() },
            EffectError::OtherBase { actual: "develop".into() },
        ] {
            all.push(Event::EffectFailed { effect, error });
        }
    }
    all
}

fn commands() -> Vec<OperatorCommand> {
    let ticket = id("a");
    vec![
        OperatorCommand::PauseAll,
        OperatorCommand::ResumeAll,
        OperatorCommand::Pause { ticket: ticket.clone() },
        OperatorCommand::Resume { ticket: ticket.clone() },
        OperatorCommand::Stop { ticket: ticket.clone() },
        OperatorCommand::Retry { ticket: ticket.clone() },
        OperatorCommand::Approve { ticket: ticket.clone(), head: None, overrule: Vec::new() },
        OperatorCommand::Reject { ticket: ticket.clone(), text: "no".into() },
        OperatorCommand::Forget { ticket },
    ]
}

#[test]
fn every_stage_against_every_event_holds_and_every_stage_has_an_exit() {
    let mut pairs = 0;
    for stage in stages(&Machine::new(policy())) {
        let start = at(stage.clone());
        let mut exits = 0;
        for event in events(&start) {
            for later in [Duration::ZERO, Duration::from_secs(86_400)] {
                let mut machine = start.clone();
                machine.pass(later);
                machine.step(event.clone());
                pairs += 1;
                if machine.job("a").stage.phase() != stage.phase() || machine.job("a").stage != stage {
                    exits += 1;
                }
                // Whatever happened, the next look at the board must hold too.
                machine.poll(vec![ticket("a")]);
            }
        }
        assert!(exits > 0, "no exit from {stage:?}");
    }
    assert!(pairs > 10_000, "{pairs} pairs");
}

/// The words of a reason's `next` that name something a person can do, and the deed itself.
fn deeds() -> BTreeMap<&'static str, fn(&mut Machine)> {
    fn retry(machine: &mut Machine) {
        machine.operator(OperatorCommand::Retry { ticket: id("a") });
    }
    fn approve(machine: &mut Machine) {
        machine.approve("a");
        machine.observe("a", PullRequest { checks: Some(Vec::new()), ..machine.good_pr("a") });
    }
    fn say(machine: &mut Machine) {
        let mut shown = ticket("a");
        shown.comments = Some(vec![comment(1, TrustLevel::Member, "the blue one")]);
        machine.poll(vec![shown]);
    }
    fn close(machine: &mut Machine) {
        machine.refresh(in_state("a", "Done"));
    }
    fn merge(machine: &mut Machine) {
        machine.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..machine.good_pr("a") });
    }
    fn reload(machine: &mut Machine) {
        machine.policy.hash = "policy-2".into();
        machine.step(Event::PolicyReloaded);
    }
    fn look(machine: &mut Machine) {
        machine.observe("a", machine.good_pr("a"));
    }
    fn wait(machine: &mut Machine) {
        machine.pass(Duration::from_secs(86_400));
        machine.poll(vec![ticket("a")]);
    }
    fn activate(machine: &mut Machine) {
        machine.poll(vec![in_state("a", "In Progress")]);
    }
    BTreeMap::from([
        ("dirigent retry", retry as fn(&mut Machine)),
        ("dirigent approve", approve),
        ("in a comment on the ticket", say),
        ("comment on the ticket", say),
        ("close the ticket", close),
        ("merge it", merge),
        ("raise the budget", reload),
        ("it is read again at once", reload),
        ("reopen it", look),
        ("mark it ready", look),
        ("approve the pull request", |machine| {
            let mut pr = machine.good_pr("a");
            pr.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::Approved, &pr.head)]);
            machine.observe("a", pr);
        }),
        ("move the ticket to an active state", activate),
        ("reopen the ticket", activate),
        ("it is tried again", wait),
        ("nothing: CI moves it on", look),
        ("nothing: the forge works it out", look),
        ("nothing: the new head is checked next", look),
    ])
}

#[test]
fn what_people_are_told_to_do_moves_the_job() {
    let mut tried = 0;
    for stage in stages(&Machine::new(policy())) {
        if matches!(stage, Stage::Done { .. } | Stage::Working { .. } | Stage::Queued { .. }) {
            continue;
        }
        let mut start = at(stage.clone());
        start.policy.merge.require_human_approval = matches!(stage, Stage::WaitingForHuman { .. });
        let next = stage.reason(start.now).next;
        for (words, deed) in deeds() {
            if !next.contains(words) {
                continue;
            }
            let mut machine = start.clone();
            deed(&mut machine);
            assert_ne!(machine.job("a").stage, stage, "`{next}`: {words} did nothing");
            tried += 1;
        }
    }
    assert!(tried >= 30, "{tried} deeds");
}

#[test]
fn every_blocked_or_waiting_stage_names_a_deed_that_exists() {
    for stage in stages(&Machine::new(policy())) {
        if !matches!(stage, Stage::Blocked { .. } | Stage::WaitingForHuman { .. }) {
            continue;
        }
        let next = stage.reason(super::machine::START).next;
        assert!(deeds().keys().any(|words| next.contains(words)), "nobody performs `{next}` of {stage:?}");
    }
}

#[test]
fn queued_jobs_start_when_what_they_wait_for_comes() {
    for stage in stages(&Machine::new(policy())) {
        let Stage::Queued { .. } = stage else { continue };
        let mut machine = at(stage.clone());
        machine.policy.rollout.mode = RolloutMode::Merge;
        machine.pass(Duration::from_secs(10));
        machine.poll(vec![ticket("a")]);
        assert!(machine.job("a").stage.run().is_some(), "nothing is in the way of {stage:?}");
    }
}
