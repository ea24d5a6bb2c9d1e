//! The state as views see it.

use std::time::Duration;

use super::budget;
use super::hindrance::{self, today};
use super::limits;
use super::picture::JobShot;
use super::remarks;
use super::select;
use super::state::State;
use crate::config::policy::Policy;
use crate::domain::finding::ReviewFinding;
use crate::domain::job::{DoneHow, Hindrance, Job, Stage, SwitchSource, Wait};
use crate::domain::phase::Phase;
use crate::domain::reason::Reason;
use crate::domain::run::{Life, LiveRun};
use crate::domain::snapshot::{
    BlockerView, CapView, Counts, FindingView, JobView, PoolView, PrView, RemarkView, ReviewView, RunView, Snapshot,
    SwitchView, Totals, TrackerView, WorkflowView,
};
use crate::domain::ticket::Blocker;
use crate::domain::time::Timestamp;

/// Returns the snapshot of everything except the jobs.
pub fn general(state: &State, policy: &Policy, now: Timestamp) -> Snapshot {
    let label = policy.rollout.kill_switch_label.as_deref();
    Snapshot {
        at: now,
        rollout: policy.rollout.mode.name().to_owned(),
        switches: switches(state, label),
        counts: counts(state),
        slots: policy.agent.max_concurrent,
        totals: Totals {
            usage: state.meta.total,
            today: today(state, policy, now).usage,
            daily_budget: daily_budget(state, policy, now),
            day_ends_at: policy.budget.days.end_of(policy.budget.days.day(now).max(state.meta.daily.day)),
            seconds_running: seconds_running(state, now),
        },
        pools: state
            .meta
            .pools
            .iter()
            .map(|(name, pool)| PoolView {
                pool: name.to_string(),
                paused_until: pool.paused_until.filter(|until| *until > now),
                rate_limit: pool.rate_limit.as_ref().map(|limit| limit.description.clone()),
            })
            .collect(),
        tracker: TrackerView {
            last_ok: state.tracker.last_ok,
            last_error: state.tracker.last_error.clone(),
            left_out: Vec::new(),
            usage: None,
        },
        workflow: WorkflowView { hash: policy.hash.clone(), ..WorkflowView::default() },
        ledger_error: None,
        lanes: Vec::new(),
        pending_effects: state.outbox.len(),
        served_at: None,
        jobs: Vec::new(),
    }
}

fn live_time<'a>(runs: impl Iterator<Item = &'a LiveRun>, now: Timestamp) -> Duration {
    runs.fold(Duration::ZERO, |sum, run| sum.saturating_add(now.since(run.started_at)))
}

fn daily_budget(state: &State, policy: &Policy, now: Timestamp) -> Vec<CapView> {
    let today = today(state, policy, now);
    let ran = Duration::from_millis(today.run_ms).saturating_add(live_time(state.runs.values(), now));
    budget::shown(&policy.budget.daily, &today.usage, ran)
}

fn budget_of(job: &Job, live: Option<&LiveRun>, policy: &Policy, now: Timestamp) -> Vec<CapView> {
    let ran = Duration::from_millis(job.spending.run_ms_since_reset).saturating_add(live_time(live.into_iter(), now));
    budget::shown(&policy.budget.ticket, &job.spending.since_reset, ran)
}

fn seconds_running(state: &State, now: Timestamp) -> u64 {
    let live: u64 = state.runs.values().map(|run| now.since(run.started_at).as_secs()).sum();
    state.meta.total_run_ms / 1000 + live
}

fn switches(state: &State, label: Option<&str>) -> Vec<SwitchView> {
    let mut all = Vec::new();
    if let Some(since) = state.switch_file {
        all.push(SwitchView { source: SwitchSource::File, subject: "everything".into(), since });
    }
    if let Some(pause) = &state.meta.pause_all {
        all.push(SwitchView { source: SwitchSource::PauseAll, subject: "everything".into(), since: pause.since });
    }
    // Before the first settling, all jobs have to be looked through.
    let settled = state.settled_under.is_some();
    let unsettled = state.jobs.values().filter(|job| !settled && !job.stage.phase().is_terminal());
    for job in state.switched.iter().filter_map(|id| state.jobs.get(id)).chain(unsettled) {
        if let Some(source) = super::state::job_switch(job, label) {
            let since = job.people.pause.as_ref().map_or(job.updated_at, |pause| pause.since);
            all.push(SwitchView { source, subject: job.ticket.key.to_string(), since });
        }
    }
    all
}

fn counts(state: &State) -> Counts {
    let index = state.jobs.index();
    let waiting = [Phase::WaitingForChecks, Phase::WaitingForHuman, Phase::ReadyToMerge, Phase::Merging];
    Counts {
        running: state.runs.len(),
        retrying: index.retrying(),
        queued: index.count(Phase::Queued) - index.retrying(),
        waiting: waiting.into_iter().map(|phase| index.count(phase)).sum(),
        blocked: index.count(Phase::Blocked),
        done: index.count(Phase::Done),
        released: index.count(Phase::Released),
    }
}

/// Returns why a job is where it is, whether or not that is its own doing.
pub fn reason(state: &State, policy: &Policy, job: &Job, now: Timestamp) -> Reason {
    reason_given(job, hindrance::of_job(state, policy, job, now).as_ref(), policy, now)
}

fn reason_given(job: &Job, hindrance: Option<&Hindrance>, policy: &Policy, now: Timestamp) -> Reason {
    let reason = match hindrance {
        Some(hindrance) => job.hindered_reason(hindrance, now),
        None => job.own_reason(now),
    };
    job.in_comments_too(reason, &policy.tracker.mention)
}

pub fn job_view(shot: &JobShot, policy: &Policy, now: Timestamp) -> JobView {
    let job = &*shot.job;
    let reason = reason_given(job, shot.hindrance.as_deref(), policy, now);
    JobView {
        id: job.ticket.id.to_string(),
        key: job.ticket.key.to_string(),
        title: job.ticket.title.clone(),
        state: job.ticket.state.clone(),
        url: job.ticket.url.clone(),
        labels: job.ticket.labels.clone(),
        priority: job.ticket.priority,
        blocked_by: job.ticket.blocked_by.iter().map(|blocker| blocker_view(policy, blocker)).collect(),
        phase: job.stage.phase(),
        reason: reason.code.to_owned(),
        sentence: reason.sentence,
        next: reason.next,
        detail: reason.detail,
        since: job.stage.since(),
        branch: job.delivery.branch.name.clone(),
        head: job.delivery.head.as_ref().map(ToString::to_string),
        pr: job.delivery.pr.as_ref().map(|pr| PrView {
            number: pr.number.0,
            url: pr.url.clone(),
            state: match pr.state {
                crate::domain::pr::PrState::Open => "open",
                crate::domain::pr::PrState::Closed => "closed",
                crate::domain::pr::PrState::Merged { .. } => "merged",
            }
            .to_owned(),
            checks: pr.checks.name().to_owned(),
        }),
        attempts: job.attempts,
        failures: job.failures,
        rework_cycles: job.rework_cycles,
        spent: job.spending.total,
        budget: budget_of(job, shot.run.as_deref(), policy, now),
        run: shot.run.as_deref().map(|run| {
            let quiet_since = limits::quiet_since(run, &policy.agent, now);
            RunView { quiet_since, stalls_at: limits::stalls_at(run, &policy.agent), ..run_view(job, run) }
        }),
        retry_at: match &job.stage {
            Stage::Queued { wait: Wait::Retry { due, .. } | Wait::Continuation { due }, .. } => Some(*due),
            _ => None,
        },
        conditions: shot.conditions.clone(),
        remarks: job
            .people
            .holding()
            .map(|remark| RemarkView { name: remark.key.versioned(), sentence: remarks::clipped(&remark.sentence()) })
            .collect(),
        review: policy.review.enabled.then(|| review_view(policy, job)),
        approved_head: job.people.approved_head().map(ToString::to_string),
        merged_by_us: match &job.stage {
            Stage::Done { how: DoneHow::Merged { by_us, .. }, .. } => Some(*by_us),
            _ => None,
        },
        merged_commit: match &job.stage {
            Stage::Done { how: DoneHow::Merged { commit, .. }, .. } => commit.as_ref().map(ToString::to_string),
            _ => None,
        },
        verification: job.evidence.receipt.as_ref().map(|receipt| format!("{:?}", receipt.verification).to_lowercase()),
    }
}

fn blocker_view(policy: &Policy, blocker: &Blocker) -> BlockerView {
    BlockerView {
        key: blocker.key.to_string(),
        state: blocker.state.clone(),
        is_over: !select::is_open_blocker(blocker, policy),
    }
}

fn review_view(policy: &Policy, job: &Job) -> ReviewView {
    let reviews = &job.delivery.reviews;
    let shown = |finding: &ReviewFinding| FindingView { finding: finding.clone(), answer: job.answer_to(finding) };
    ReviewView {
        passes: reviews.passes,
        max_passes: policy.review.max_passes,
        head: reviews.head.as_ref().map(ToString::to_string),
        findings: reviews.findings.iter().map(shown).collect(),
    }
}

fn run_view(job: &Job, run: &LiveRun) -> RunView {
    let (pid, session) = match &run.life {
        Life::Spawning => (None, None),
        Life::Running { process, session, .. } => (Some(process.pid), session.as_ref().map(ToString::to_string)),
    };
    RunView {
        id: run.id.to_string(),
        kind: run.kind,
        runtime: run.runtime.clone(),
        attempt: run.attempt,
        started_at: run.started_at,
        last_event_at: run.progress.last_event_at,
        turn_count: run.progress.turns,
        session,
        pid,
        usage: run.progress.usage,
        said: run.progress.said.clone(),
        model: run.progress.model.clone(),
        tool: run.progress.tool.clone(),
        quiet_since: None,
        stalls_at: None,
        stopping: match &job.stage {
            Stage::Working { stopping: Some(reason), .. } => Some(reason.code().to_owned()),
            _ => None,
        },
    }
}
