//! The exit code of a `run` that stopped by itself, for scripts.

use crate::domain::job::SwitchSource;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::runtime::RunnerFolder;
use crate::workflow::Loaded;

use super::Failure;
use super::failure::{ONLY_OBSERVED, OUT_OF_TIME, RunEnd, SOME_BLOCKED, SWITCHED_OFF};
use super::output;
use super::run::Ended;
use super::snapshot_source::{self, Behind};

/// Reasons for which a queued ticket counts as blocked or failed.
const NOT_WELL: [&str; 5] = ["retry", "dependency_cycle", "quota", "daily_budget", "preflight"];

pub fn told(loaded: &Loaded, place: &RunnerFolder, ended: Ended) -> Result<(), Failure> {
    let seen = snapshot_source::written(loaded, place, Behind::Nobody)?;
    match judged(&seen.snapshot, ended) {
        Some(end) => Err(Failure::Ended(end)),
        None => Ok(()),
    }
}

/// Returns what the exit code has to report. `None` if every ticket got as far as it can get without a person.
fn judged(picture: &Snapshot, ended: Ended) -> Option<RunEnd> {
    let unfinished = picture.jobs.iter().filter(|job| !job.phase.is_terminal()).count();
    let left = output::count(unfinished, "ticket is not finished", "tickets are not finished");
    if ended == Ended::OutOfTime {
        return Some(RunEnd { code: OUT_OF_TIME, text: format!("the time of --timeout is over; {left}") });
    }
    let stops_all = |source: SwitchSource| matches!(source, SwitchSource::File | SwitchSource::PauseAll);
    if let Some(switch) = picture.switches.iter().find(|switch| stops_all(switch.source)) {
        let text = format!("everything is stopped ({}: {}); {left}", switch.source.name(), switch.subject);
        return Some(RunEnd { code: SWITCHED_OFF, text });
    }
    let would_start = picture.jobs.iter().filter(|job| job.phase == Phase::Queued && job.reason == "observe").count();
    if would_start > 0 {
        let who = output::count(would_start, "ticket would start", "tickets would start");
        let text =
            format!("rollout.mode is observe: nothing was started; {who}\n  fix: set rollout.mode to mutate or merge");
        return Some(RunEnd { code: ONLY_OBSERVED, text });
    }
    let unwell: Vec<&JobView> = picture.jobs.iter().filter(|job| is_unwell(job)).collect();
    let first = unwell.first()?;
    let count = output::count(unwell.len(), "ticket is blocked or failed", "tickets are blocked or failed");
    let text = format!("{count}\n  fix: see what it needs: `dirigent explain {}`", first.key);
    Some(RunEnd { code: SOME_BLOCKED, text })
}

fn is_unwell(job: &JobView) -> bool {
    match job.phase {
        Phase::Blocked => true,
        Phase::Queued => NOT_WELL.contains(&job.reason.as_str()),
        _ => false,
    }
}
