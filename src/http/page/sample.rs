//! Sample pictures for the tests of the pages.

use crate::domain::condition::{Condition, ConditionName, ConditionStatus};
use crate::domain::phase::Phase;
use crate::domain::run::RunKind;
use crate::domain::snapshot::{
    BlockerView, CapView, Counts, JobView, PolicyView, PrView, RunView, Snapshot, TrackerView, WorkflowView,
};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// The current time in the tests.
pub const NOW: Timestamp = Timestamp(1_763_495_249_000);

pub fn job(key: &str, phase: Phase, title: &str) -> JobView {
    JobView {
        id: format!("id-{key}"),
        key: key.to_owned(),
        title: title.to_owned(),
        state: "open".to_owned(),
        url: None,
        labels: Vec::new(),
        priority: None,
        blocked_by: Vec::new(),
        phase,
        reason: "x".to_owned(),
        sentence: format!("{key} is where it is"),
        next: "nothing: it goes on".to_owned(),
        detail: None,
        since: Timestamp(NOW.0 - 180_000),
        branch: format!("dirigent/{key}"),
        head: None,
        pr: None,
        attempts: 1,
        failures: 0,
        rework_cycles: 0,
        spent: Usage::default(),
        budget: Vec::new(),
        run: None,
        retry_at: None,
        verification: None,
        approved_head: None,
        conditions: Vec::new(),
        remarks: Vec::new(),
        review: None,
        base: None,
        merged_commit: None,
        merged_by_us: None,
    }
}

pub fn working(key: &str) -> JobView {
    let run = RunView {
        id: "01KA9ZJ3S2V6B8Q4TTK1MYNZ7E".to_owned(),
        kind: RunKind::Implement,
        runtime: "codex".to_owned(),
        attempt: 1,
        started_at: Timestamp(NOW.0 - 180_000),
        last_event_at: Timestamp(NOW.0 - 4_000),
        turn_count: 3,
        session: None,
        pid: Some(7),
        usage: Usage { output: 12_345, cost_microusd: 45_000, ..Usage::default() },
        said: Some("I look at the tests first.".to_owned()),
        model: Some("large".to_owned()),
        tool: Some("shell: cargo test".to_owned()),
        quiet_since: None,
        stalls_at: Some(Timestamp(NOW.0 + 240_000)),
        stopping: None,
    };
    JobView { run: Some(run), ..job(key, Phase::Implementing, "Work under way") }
}

/// Returns a ticket with a head and an open pull request that lacks an approval.
pub fn finished(key: &str, phase: Phase) -> JobView {
    let condition = |name, status, detail: Option<&str>| Condition {
        name,
        status,
        since: Timestamp(NOW.0 - 60_000),
        detail: detail.map(str::to_owned),
    };
    JobView {
        head: Some("0a73732755ca1111111111111111111111111111".to_owned()),
        pr: Some(PrView { number: 7, url: None, state: "open".to_owned(), checks: "passed".to_owned() }),
        conditions: vec![
            condition(ConditionName::Checks, ConditionStatus::Pass, None),
            condition(ConditionName::Approval, ConditionStatus::Pending, Some("nobody has approved this head")),
        ],
        ..job(key, phase, "Finished work")
    }
}

/// Returns a picture with one ticket of every kind.
pub fn picture() -> Snapshot {
    let waits = JobView {
        blocked_by: vec![BlockerView { key: "T-1".to_owned(), state: Some("open".to_owned()), is_over: false }],
        ..job("T-2", Phase::Queued, "Waits for another")
    };
    let mut jobs = vec![working("T-1"), waits];
    let kinds = [
        ("T-3", Phase::WaitingForHuman, "approval"),
        ("T-4", Phase::ReadyToMerge, "merge_queue"),
        ("T-5", Phase::Blocked, "worker_asked"),
        ("T-6", Phase::Done, "merged"),
    ];
    jobs.extend(kinds.map(|(key, phase, reason)| JobView { reason: reason.to_owned(), ..finished(key, phase) }));
    Snapshot {
        at: NOW,
        rollout: "merge".to_owned(),
        jobs,
        counts: Counts { running: 1, queued: 1, waiting: 2, blocked: 1, done: 1, ..Counts::default() },
        slots: 3,
        tracker: TrackerView { last_ok: Some(Timestamp(NOW.0 - 9_000)), ..TrackerView::default() },
        workflow: WorkflowView {
            hash: "c0ffee".to_owned(),
            policies: vec![PolicyView { name: "hooks".to_owned(), value: "none".to_owned() }],
            warnings: vec!["line 3: `server.cors` does nothing".to_owned()],
            reload_error: None,
        },
        totals: crate::domain::snapshot::Totals {
            daily_budget: vec![CapView {
                what: "cost in USD".to_owned(),
                spent: "3.4000".to_owned(),
                cap: "10.0000".to_owned(),
            }],
            ..crate::domain::snapshot::Totals::default()
        },
        ..Snapshot::default()
    }
}

/// Returns a board that is as large and as wordy as can be expected.
pub fn many(tickets: usize) -> Snapshot {
    let phases = [
        Phase::Queued,
        Phase::Queued,
        Phase::Implementing,
        Phase::Reviewing,
        Phase::WaitingForChecks,
        Phase::WaitingForHuman,
        Phase::ReadyToMerge,
        Phase::Blocked,
        Phase::Done,
        Phase::Done,
    ];
    let words =
        "words of a reviewer stand against merging it, and they go on for quite a while, as words do; ".repeat(3);
    let jobs = (0..tickets).map(|number| {
        let (key, phase) = (format!("PROJECT-{number}"), phases[number % phases.len()]);
        let mut job = if phase == Phase::Implementing { working(&key) } else { finished(&key, phase) };
        job.phase = phase;
        job.title =
            format!("{number}: a title that is about as long as titles of tickets tend to become in a large team");
        (job.sentence, job.next) = (words.clone(), words.clone());
        job.labels = vec!["backend".to_owned(), "customer-request".to_owned()];
        job.detail = Some(words.clone());
        if number % 3 == 0 && number > 10 {
            let key = format!("PROJECT-{}", number - 10);
            job.blocked_by = vec![BlockerView { key, state: Some("open".to_owned()), is_over: false }];
        }
        if let Some(run) = &mut job.run {
            run.said = Some(words.clone());
            run.tool = Some(words.clone());
        }
        job
    });
    Snapshot { jobs: jobs.collect(), ..picture() }
}
