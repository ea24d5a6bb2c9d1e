//! Settles what an earlier process of the runner left: stops its runs' processes, saves their work and removes their worktrees.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::host::RunHost;
use crate::domain::run::{Life, LiveRun};
use crate::engine::event::{Event, LostRun};
use crate::engine::state::State;
use crate::worker::{ReclaimOrder, Reclaimed};

/// How many runs are reclaimed at the same time. Most of the time of one is waiting for git and for processes to exit.
const AT_ONCE: usize = 6;

/// Reclaims every run that the ledger holds as live. The returned event has to be the first one of the new driver.
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
            // The runner must not start without having settled the past.
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
