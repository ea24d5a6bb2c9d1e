//! Settles what an earlier life left: its processes end, its work is saved, its worktrees go.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::host::RunHost;
use crate::domain::run::{Life, LiveRun};
use crate::engine::event::{Event, LostRun};
use crate::engine::state::State;
use crate::worker::{ReclaimOrder, Reclaimed};

/// Most of a reclaim is waiting for git and for processes to end: nobody is to wait for the one before.
const AT_ONCE: usize = 6;

/// Reclaims every run that the ledger holds as live. What comes back has to be the first event of the new life.
pub async fn recover(state: &State, host: Arc<dyn RunHost>) -> Event {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut reclaiming = JoinSet::new();
    for run in state.runs.values() {
        let (order, host, places) = (order_for(run), host.clone(), places.clone());
        reclaiming.spawn(async move {
            let _place = places.acquire_owned().await;
            reclaim(order, host.as_ref()).await
        });
    }
    let mut lost = Vec::new();
    while let Some(reclaimed) = reclaiming.join_next().await {
        match reclaimed {
            Ok(run) => lost.push(run),
            // Without the past there is no new life.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    lost.sort_by(|one, other| one.run.cmp(&other.run));
    Event::Recovered { lost }
}

fn order_for(run: &LiveRun) -> ReclaimOrder {
    let (process, worktree) = match &run.life {
        Life::Spawning => (None, None),
        Life::Running { process, worktree, .. } => (Some(*process), Some(worktree.clone())),
    };
    ReclaimOrder { run: run.id.clone(), key: run.key.clone(), branch: run.branch.clone(), process, worktree }
}

async fn reclaim(order: ReclaimOrder, host: &dyn RunHost) -> LostRun {
    let run = order.run.clone();
    failpoint!("recovery.before_reclaim");
    let reclaimed = host.reclaim(order).await;
    failpoint!("recovery.reclaimed");
    tracing::info!(run_id = %run, salvaged = reclaimed.salvage.is_some(), "a run of an earlier life is over");
    let Reclaimed { salvage, head, spent, .. } = reclaimed;
    LostRun { run, salvage, head, spent }
}
