//! After any switch no write of any kind leaves: every kind of effect is left pending by an earlier life, and the real driver meets it
//! with the switch on, with the board up and down. Without a switch each of them leaves, so that the walk can fail.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dirigent::domain::basis::WriteStatus;
use dirigent::domain::comment::Acknowledgement;
use dirigent::domain::evidence::{GateResult, Receipt, Verification};
use dirigent::domain::ids::{CommentId, CommitId, EffectId, RunId};
use dirigent::domain::job::{
    BranchName, CheckWait, ChecksSummary, ColumnWrite, DoneHow, HumanWait, Job, Pause, PrFacts, Stage as JobStage,
    SwitchSource, TicketFacts, Wait, Work,
};
use dirigent::domain::pr::{Mergeability, NewPr, PrState};
use dirigent::domain::ticket::NewTicket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Said, ToldIn};
use dirigent::engine::permit::{EffectKind, Reach};
use dirigent::engine::state::{Pending, PendingStatus, State};
use dirigent::forge::Forge;
use dirigent::tracker::TrackerError;

use crate::support::allowed;
use crate::support::driven::{Driven, Play, Stage, ticket};
use crate::support::troubled::Trouble;

/// Calls of board and forge that change something.
const WRITES: [&str; 21] = [
    "comment",
    "edit",
    "move",
    "label",
    "react",
    "link",
    "create",
    "push",
    "open",
    "reopen",
    "merge",
    "dequeue",
    "update",
    "change",
    "begin threads",
    "reply",
    "resolve",
    "request review",
    "status",
    "rerun",
    "delete",
];

/// What an earlier life left of one kind: where the job stands, what is pending, and the call that it comes to.
struct Left {
    stage: JobStage,
    pending: Option<Action>,
    call: &'static str,
}

fn checks(on: CheckWait) -> JobStage {
    JobStage::WaitingForChecks { on, since: Timestamp(0) }
}

/// `None` for what changes nothing outside, and for words to a live run, which a switch stops.
fn left(kind: EffectKind, job: &Job) -> Option<Left> {
    let (branch, head) = (job.delivery.branch.name.clone(), job.delivery.head.clone().unwrap());
    let number = job.delivery.pr.as_ref().unwrap().number;
    let waits = || JobStage::WaitingForHuman { on: HumanWait::Approval { head: head.clone() }, since: Timestamp(0) };
    let commit = CommitId::new("c".repeat(40));
    let done = || JobStage::Done {
        how: DoneHow::Merged { commit: Some(commit.clone()), by_us: true },
        ticket_closed: false,
        since: Timestamp(0),
    };
    let told = || ToldIn { comment: CommentId::new("comment-1"), pr: None };
    let said = Said::BranchReady { branch: branch.clone(), head: None };
    let (stage, pending, call) = match kind {
        EffectKind::StopRun | EffectKind::RefreshTickets | EffectKind::InspectPr | EffectKind::CheckRemark => {
            assert_eq!(kind.reach(), Reach::Harmless, "{}", kind.name());
            return None;
        }
        // The one write that leaves under a switch: it takes back what would be merged without us.
        EffectKind::Dequeue => {
            assert_eq!(kind.reach(), Reach::TakesBack);
            return None;
        }
        // A notification is no call of board or forge; `people::notify` shows that a switch holds it.
        EffectKind::Steer | EffectKind::Notify => return None,
        EffectKind::StartRun => {
            (JobStage::Queued { work: Work::Implement, wait: Wait::Ready, since: Timestamp(0) }, None, "run")
        }
        EffectKind::WriteWorkpad => (waits(), Some(Action::WriteWorkpad { shows: "{}".into() }), "comment"),
        EffectKind::Comment => (waits(), Some(Action::Comment { key: "gave-up".into(), said }), "comment"),
        EffectKind::MoveTicket => {
            (waits(), Some(Action::MoveTicket { from: vec!["open".into()], state: "in_progress".into() }), "move")
        }
        EffectKind::AddLabels => {
            (waits(), Some(Action::AddLabels { labels: vec!["agent".into()], told: told() }), "label")
        }
        EffectKind::Acknowledge => {
            let (how, key) = (Acknowledgement::Seen, "reply".to_owned());
            (waits(), Some(Action::Acknowledge { told: told(), how, aloud: false, key, said }), "react")
        }
        EffectKind::AttachLink => {
            let (url, title) = ("https://forge.example/pull/1".to_owned(), "One".to_owned());
            (waits(), Some(Action::AttachLink { url, title }), "link")
        }
        EffectKind::CreateTicket => {
            let new = NewTicket {
                title: "More".into(),
                description: String::new(),
                labels: Vec::new(),
                priority: None,
                parent: None,
                blocked_by: Vec::new(),
            };
            (waits(), Some(Action::CreateTicket { key: "more".into(), new }), "create")
        }
        EffectKind::PushBranch => {
            let on = CheckWait::Publishing { head: head.clone() };
            (checks(on), Some(Action::PushBranch { branch, head: head.clone() }), "push")
        }
        EffectKind::OpenPr => {
            let on = CheckWait::Publishing { head: head.clone() };
            (checks(on), Some(Action::OpenPr { branch, head: head.clone() }), "open")
        }
        EffectKind::ReopenPr => (waits(), Some(Action::ReopenPr { number }), "reopen"),
        // Decided anew by whoever looks at the pull request.
        EffectKind::MergePr => (checks(CheckWait::Forge { head: head.clone() }), None, "merge"),
        EffectKind::UpdateBranch => {
            let on = CheckWait::BranchUpdate { head: head.clone() };
            (checks(on), Some(Action::UpdateBranch { number, head: head.clone() }), "update")
        }
        EffectKind::UpdatePr => (waits(), Some(Action::UpdatePr { number, ready: true }), "change"),
        EffectKind::PublishGates => (waits(), Some(Action::PublishGates { head: head.clone() }), "status"),
        EffectKind::RerunChecks => {
            (waits(), Some(Action::RerunChecks { number, checks: vec!["check-1".into()] }), "rerun")
        }
        EffectKind::AnswerThread => {
            let (thread, key) = (CommentId::new("thread-1"), "answer".to_owned());
            (waits(), Some(Action::AnswerThread { number, thread, key, said, resolve: true }), "reply")
        }
        EffectKind::ReviewComment => (waits(), Some(Action::ReviewComment { number, key: "review".into() }), "comment"),
        EffectKind::RequestReview => {
            (waits(), Some(Action::RequestReview { number, reviewer: "ann".into() }), "request review")
        }
        EffectKind::RunGate => {
            let on = CheckWait::Gates { head: head.clone() };
            (checks(on), Some(Action::RunGate { branch, head: head.clone() }), "gate")
        }
        EffectKind::WriteReceipt => (done(), Some(Action::WriteReceipt { commit: commit.clone() }), "receipt"),
        EffectKind::CleanUp => (done(), Some(Action::CleanUp { branch, merged_head: Some(head.clone()) }), "delete"),
    };
    Some(Left { stage, pending, call })
}

/// A switch, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pulled {
    Nothing,
    By(SwitchSource),
}

const SWITCHES: [SwitchSource; 5] = [
    SwitchSource::File,
    SwitchSource::TicketLabel,
    SwitchSource::PrLabel,
    SwitchSource::PauseAll,
    SwitchSource::PauseTicket,
];

/// One job for every kind of effect that changes something, each with a pull request of its own.
async fn scene(pulled: Pulled) -> (Stage, Vec<(EffectKind, &'static str)>) {
    let mut stage = Stage::new(&[], Play::UntilStopped);
    stage.policy.agent.max_concurrent = 50;
    let label = stage.policy.rollout.kill_switch_label.clone().unwrap();
    let mut state = State::default();
    let pause = || Pause { since: Timestamp(0), by: "ann".into() };
    let mut expected = Vec::new();
    let mut jobs = Vec::new();
    for (number, kind) in EffectKind::ALL.into_iter().enumerate() {
        let name = format!("k-{}", kind.name());
        let mut ticket = ticket(&name);
        if pulled == Pulled::By(SwitchSource::TicketLabel) {
            ticket.labels = vec![label.clone()];
        }
        let branch = format!("dirigent/{name}");
        let head = CommitId::new(format!("{:0>40}", number + 1));
        let mut job =
            Job::new(TicketFacts::of(&ticket), BranchName { name: branch.clone(), generation: 0 }, Timestamp(0));
        stage.forge.forge.push(&branch, &head);
        let new = NewPr {
            title: name.clone(),
            body: String::new(),
            head_branch: branch.clone(),
            head: head.clone(),
            base_branch: stage.policy.pr.base_branch.clone(),
            draft: false,
            labels: Vec::new(),
            reviewers: Vec::new(),
        };
        let opened = stage.forge.open_pr(&allowed(EffectKind::OpenPr), &new).await.unwrap();
        let labels = if pulled == Pulled::By(SwitchSource::PrLabel) { vec![label.clone()] } else { Vec::new() };
        stage.forge.forge.edit(opened.number, |pr| pr.labels = labels.clone());
        job.attempts = 1;
        job.delivery.made_by = Some(RunId::new("01J00000000000000000000000"));
        job.delivery.head = Some(head.clone());
        job.delivery.pushed_head = Some(head.clone());
        job.delivery.remote_head = Some(head.clone());
        job.delivery.pr = Some(Box::new(PrFacts {
            number: opened.number,
            url: None,
            state: PrState::Open,
            head: head.clone(),
            base: None,
            base_branch: stage.policy.pr.base_branch.clone(),
            labels,
            mergeability: Mergeability::Unknown,
            checks: ChecksSummary::NoneYet,
            known_checks: Vec::new(),
            head_since: Timestamp(0),
            head_shown: None,
            seen_unapproved: false,
            conditions: Vec::new(),
            write: None,
        }));
        let gate = GateResult {
            name: "check".into(),
            command: "true".into(),
            passed: true,
            exit_code: Some(0),
            timed_out: false,
            output_tail: String::new(),
            duration_ms: 1,
        };
        job.evidence.receipt = Some(Receipt {
            verification: Verification::Verified,
            head: Some(head.clone()),
            base: None,
            commits: 1,
            facts: Vec::new(),
            gates: vec![gate],
        });
        if kind == EffectKind::MoveTicket {
            job.column = Some(Box::new(ColumnWrite {
                from: vec!["open".into()],
                to: "in_progress".into(),
                status: WriteStatus::Sent,
                earlier: None,
            }));
        }
        if pulled == Pulled::By(SwitchSource::PauseTicket) {
            job.people.pause = Some(pause());
        }
        let Some(Left { stage: at, pending, call }) = left(kind, &job) else { continue };
        if matches!(kind, EffectKind::StartRun | EffectKind::PushBranch | EffectKind::OpenPr) {
            // There is no pull request to be labelled.
            if pulled == Pulled::By(SwitchSource::PrLabel) {
                continue;
            }
            job.delivery.pr = None;
        }
        job.stage = at;
        if let Some(action) = pending {
            let id = EffectId(number as u64 + 1);
            let effect = Effect { id, ticket: Some(ticket.id.clone()), decided_at: Timestamp(0), action };
            state.outbox.insert(Pending { effect, attempts: 0, status: PendingStatus::InFlight });
        }
        stage.board.board.put(ticket);
        jobs.push(job);
        expected.push((kind, call));
    }
    state.jobs = jobs.into_iter().collect();
    state.meta.next_effect = 1000;
    if pulled == Pulled::By(SwitchSource::PauseAll) {
        state.meta.pause_all = Some(pause());
    }
    stage.forge.line.take();
    stage.past = Some(state);
    (stage, expected)
}

/// The names of everything that left, and whether runs and gates began.
fn calls(driven: &Driven) -> BTreeSet<&'static str> {
    let stage = &driven.stage;
    let mut all: BTreeSet<_> = stage.board.line.take().into_iter().chain(stage.forge.line.take()).collect();
    if stage.host.runs.load(Ordering::SeqCst) > 0 {
        all.insert("run");
    }
    if stage.host.most_at_gates.load(Ordering::SeqCst) > 0 {
        all.insert("gate");
    }
    all
}

#[tokio::test(start_paused = true)]
async fn without_a_switch_every_kind_leaves() {
    let (stage, expected) = scene(Pulled::Nothing).await;
    let driven = stage.start().await;
    let mut left = BTreeSet::new();
    driven
        .until("every kind has left", |driven| {
            left.extend(calls(driven));
            let missing: Vec<_> = expected.iter().filter(|(_, call)| !left.contains(call)).collect();
            missing.is_empty()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn after_any_switch_no_write_of_any_kind_leaves() {
    for board_is_up in [true, false] {
        for switch in SWITCHES {
            let (stage, _) = scene(Pulled::By(switch)).await;
            if !board_is_up {
                stage.board.line.trouble("", "", Trouble::Fails(TrackerError::Request("it is down".into())));
            }
            let (ready, _handle) = stage.assemble().await;
            if switch == SwitchSource::File {
                std::fs::write(ready.kill_file(), "").unwrap();
            }
            let driven = ready.start();
            tokio::time::sleep(Duration::from_secs(600)).await;
            let left = calls(&driven);
            assert!(left.contains("list"), "{switch:?}: the board was never asked: {left:?}");
            let writes = WRITES.iter().chain(&["run", "gate", "receipt"]).filter(|write| left.contains(*write));
            let writes: Vec<_> = writes.collect();
            assert!(writes.is_empty(), "{switch:?}, the board is up: {board_is_up}: {writes:?} left");
        }
    }
}
