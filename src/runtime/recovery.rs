//! Settles what an earlier life left: its processes end, its work is saved, its worktrees go.

use super::crew::{BurialOrder, Crew};
use crate::domain::run::Life;
use crate::engine::event::{Event, LostRun};
use crate::engine::state::State;

/// Buries every run that the ledger holds as live. What comes back has to be the first event of the new life.
pub async fn recover(state: &State, crew: &Crew) -> Event {
    let burials = state.runs.values().map(|run| {
        let (process, worktree) = match &run.life {
            Life::Spawning => (None, None),
            Life::Running { process, worktree, .. } => (Some(*process), Some(worktree.clone())),
        };
        let order =
            BurialOrder { run: run.id.clone(), key: run.key.clone(), branch: run.branch.clone(), process, worktree };
        let task = (crew.bury)(order);
        async move { (run.id.clone(), task.await) }
    });
    let mut lost = Vec::new();
    for burial in burials {
        failpoint!("recovery.before_burial");
        let (run, buried) = burial.await;
        failpoint!("recovery.buried");
        tracing::info!(%run, salvaged = buried.salvage.is_some(), "a run of an earlier life is over");
        lost.push(LostRun { run, salvage: buried.salvage, head: buried.head });
    }
    Event::Recovered { lost }
}
