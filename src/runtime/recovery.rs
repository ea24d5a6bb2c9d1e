//! Settles what an earlier life left: its processes end, its work is saved, its worktrees go.

use super::host::RunHost;
use crate::domain::run::Life;
use crate::engine::event::{Event, LostRun};
use crate::engine::state::State;
use crate::worker::{ReclaimOrder, Reclaimed};

/// Reclaims every run that the ledger holds as live. What comes back has to be the first event of the new life.
pub async fn recover(state: &State, host: &dyn RunHost) -> Event {
    let mut lost = Vec::new();
    for run in state.runs.values() {
        let (process, worktree) = match &run.life {
            Life::Spawning => (None, None),
            Life::Running { process, worktree, .. } => (Some(*process), Some(worktree.clone())),
        };
        let order =
            ReclaimOrder { run: run.id.clone(), key: run.key.clone(), branch: run.branch.clone(), process, worktree };
        failpoint!("recovery.before_reclaim");
        let reclaimed = host.reclaim(order).await;
        failpoint!("recovery.reclaimed");
        tracing::info!(run_id = %run.id, salvaged = reclaimed.salvage.is_some(), "a run of an earlier life is over");
        let Reclaimed { salvage, head, spent, .. } = reclaimed;
        lost.push(LostRun { run: run.id.clone(), salvage, head, spent });
    }
    Event::Recovered { lost }
}
