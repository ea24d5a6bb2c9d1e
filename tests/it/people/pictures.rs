//! Pictures of boards that never were, for views that are drawn without a runner.

use dirigent::domain::phase::Phase;
use dirigent::domain::run::RunKind;
use dirigent::domain::snapshot::{Counts, JobView, RunView, Snapshot};
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;

/// The same words wherever the test runs.
pub fn at(time: Timestamp) -> String {
    format!("second {}", time.0 / 1000)
}

pub fn job(key: &str, phase: Phase, title: &str) -> JobView {
    JobView {
        id: format!("id-{key}"),
        key: key.into(),
        title: title.into(),
        state: "open".into(),
        url: None,
        labels: Vec::new(),
        priority: None,
        blocked_by: Vec::new(),
        phase,
        reason: "x".into(),
        sentence: format!("{key} is where it is"),
        next: "nothing".into(),
        detail: None,
        since: Timestamp(0),
        branch: format!("dirigent/{key}"),
        head: None,
        pr: None,
        attempts: 1,
        failures: 0,
        rework_cycles: 0,
        spent: Usage::default(),
        run: None,
        retry_at: None,
        verification: None,
        approved_head: None,
        budget: Vec::new(),
        base: None,
        merged_commit: None,
        merged_by_us: None,
        conditions: Vec::new(),
        remarks: Vec::new(),
        review: None,
    }
}

pub fn picture() -> Snapshot {
    let mut working = job("t-2", Phase::Implementing, "Paint the \u{1b}[2Jdoor");
    working.run = Some(RunView {
        runtime: "exec".into(),
        id: "01KA9ZJ3S2V6B8Q4TTK1MYNZ7E".into(),
        kind: RunKind::Implement,
        attempt: 1,
        started_at: Timestamp(0),
        last_event_at: Timestamp(0),
        turn_count: 1,
        session: None,
        pid: Some(7),
        usage: Usage::default(),
        said: Some("mixing the paint".into()),
        model: None,
        tool: None,
        quiet_since: None,
        stalls_at: None,
        stopping: None,
    });
    Snapshot {
        at: Timestamp(90_000),
        rollout: "merge".into(),
        counts: Counts { running: 1, blocked: 1, done: 1, ..Counts::default() },
        jobs: vec![
            job("t-1", Phase::Done, "Write the greeting"),
            working,
            job("t-3", Phase::Blocked, "Count to three"),
            job("t-4", Phase::Released, "Given back"),
        ],
        ..Snapshot::default()
    }
}
