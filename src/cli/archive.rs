//! Archived tickets: finished ones that the runner's snapshot no longer shows. Their records are still in the ledger.

use crate::domain::job::Job;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::engine;
use crate::engine::state::State;
use crate::runtime::{self, assembly};
use crate::workflow::Loaded;

use super::Failure;
use super::snapshot_source::{self, SnapshotSource};
use crate::runtime::RunnerFolder;

/// Finds a ticket by its name (key, id or a part): first in the snapshot, then among the archived tickets.
pub fn job(seen: &SnapshotSource, loaded: &Loaded, place: &RunnerFolder, name: &str) -> Result<JobView, Failure> {
    let missing = match snapshot_source::job(&seen.snapshot, name) {
        Err(Failure::NotFound(missing)) => missing,
        found => return found.cloned(),
    };
    let found = place.read_ledger()?.archived_named(name.trim())?;
    match found.as_slice() {
        [_] => views(loaded, found).pop().ok_or(Failure::NotFound(missing)),
        [] => Err(Failure::NotFound(missing)),
        many => {
            let keys: Vec<&str> = many.iter().map(|job| job.ticket.key.as_str()).collect();
            Err(Failure::NotFound(format!("`{name}` could be {}; name one", keys.join(", "))))
        }
    }
}

/// Adds every archived ticket to the snapshot.
pub fn add_all(snapshot: &mut Snapshot, loaded: &Loaded, place: &RunnerFolder) -> Result<(), Failure> {
    let archived = views(loaded, place.read_ledger()?.archived(usize::MAX)?);
    // A ticket that was reopened a moment ago may be in both.
    let known: std::collections::BTreeSet<String> = snapshot.jobs.iter().map(|job| job.id.clone()).collect();
    snapshot.jobs.extend(archived.into_iter().filter(|job| !known.contains(&job.id)));
    Ok(())
}

fn views(loaded: &Loaded, jobs: Vec<Job>) -> Vec<JobView> {
    let state = State { jobs: jobs.into_iter().collect(), ..State::default() };
    engine::snapshot(&state, &assembly::policy_here(&loaded.settings, &loaded.hash, false), runtime::now()).jobs
}
