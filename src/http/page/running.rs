//! The runs that are live now.

use serde::Serialize;

use super::words::{AgeView, clip, money, segment, sentence, tokens};
use crate::domain::snapshot::{JobView, RunView, Snapshot};
use crate::domain::time::Timestamp;
use crate::domain::words::short_run;

/// How many runs are shown in full on the first page.
const SHOWN: usize = 10;

#[derive(Debug, Clone, Serialize)]
pub struct RunningView {
    pub runs: Vec<WorkerCard>,
    pub rest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorkerCard {
    pub key: String,
    pub path: String,
    pub title: String,
    pub phase: &'static str,
    pub kind: &'static str,
    pub attempt: u32,
    pub run: String,
    pub in_phase: AgeView,
    pub heard: AgeView,
    /// Whether the run has been silent for longer than it should be.
    pub quiet: bool,
    /// Time until the run is stopped as stalled, if it stays silent.
    pub stalls: Option<AgeView>,
    pub stopping: Option<String>,
    pub said: Option<String>,
    pub tool: Option<String>,
    pub model: String,
    pub turns: u32,
    pub tokens: String,
    pub cost: String,
}

pub fn running(picture: &Snapshot) -> RunningView {
    let mut live: Vec<(&JobView, &RunView)> =
        picture.jobs.iter().filter_map(|job| Some((job, job.run.as_ref()?))).collect();
    // Silent runs come first, because a person looks for these.
    live.sort_by_key(|(job, run)| (run.quiet_since.is_none(), run.started_at, job.key.as_str()));
    RunningView {
        rest: live.len().saturating_sub(SHOWN),
        runs: live.into_iter().take(SHOWN).map(|(job, run)| worker(job, run, picture.at)).collect(),
    }
}

pub fn worker(job: &JobView, run: &RunView, now: Timestamp) -> WorkerCard {
    WorkerCard {
        key: job.key.clone(),
        path: segment(&job.key),
        title: clip(&job.title, 90),
        phase: job.phase.name(),
        kind: run.kind.name(),
        attempt: run.attempt,
        run: short_run(&run.id).to_owned(),
        in_phase: AgeView::of(job.since, now),
        heard: AgeView::of(run.last_event_at, now),
        quiet: run.quiet_since.is_some(),
        stalls: run.stalls_at.map(|at| AgeView::until(at, now)),
        stopping: run.stopping.clone(),
        said: run.said.as_deref().map(|said| sentence(said, 200)).filter(|said| !said.is_empty()),
        tool: run.tool.as_deref().map(|tool| clip(tool, 120)),
        model: run.model.as_deref().map(|model| clip(model, 40)).unwrap_or_default(),
        turns: run.turn_count,
        tokens: tokens(run.usage.tokens()),
        cost: money(run.usage.cost_microusd),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn who_is_silent_comes_first() {
        let mut picture = sample::picture();
        picture.jobs = vec![sample::working("T-1"), sample::working("T-2")];
        picture.jobs[1].run.as_mut().unwrap().quiet_since = Some(Timestamp(5));
        let running = running(&picture);
        assert_eq!(running.runs.iter().map(|run| run.key.as_str()).collect::<Vec<_>>(), ["T-2", "T-1"]);
        assert!(running.runs[0].quiet && !running.runs[1].quiet);
    }
}
