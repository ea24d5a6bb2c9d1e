//! The worker of the newest settings, as the runtime calls it: for runs, burials, gates and cleaning.

use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::ids::CommitId;
use crate::forge::local::LocalForge;
use crate::gates::Gates;
use crate::runtime::{Buried, Crew};
use crate::worker::{LostRun, Worker, Workplace};

/// The worker of the newest settings.
pub type Current = Arc<RwLock<Arc<Worker>>>;

pub fn current(worker: &Current) -> Arc<Worker> {
    worker.read().unwrap_or_else(PoisonError::into_inner).clone()
}

pub fn crew(worker: &Current, local_forge: Option<Arc<LocalForge>>) -> Crew {
    let (for_runs, for_burials, for_gates, for_base, for_cleaning) =
        (worker.clone(), worker.clone(), worker.clone(), worker.clone(), worker.clone());
    Crew {
        run: Arc::new(move |permit, order, control, events| {
            let worker = current(&for_runs);
            Box::pin(async move { worker.run(permit, order, control, events).await })
        }),
        bury: Arc::new(move |order| {
            let worker = current(&for_burials);
            Box::pin(async move {
                let lost = LostRun {
                    run: order.run,
                    key: order.key,
                    branch: order.branch,
                    process: order.process,
                    worktree: order.worktree,
                };
                let buried = worker.bury(&lost).await;
                if let Some(trouble) = &buried.trouble {
                    tracing::warn!(run = %lost.run, trouble, "something of an earlier run stays");
                }
                Buried { salvage: buried.salvage, head: buried.head }
            })
        }),
        gate: Arc::new(move |permit, order, stopped| {
            let worker = current(&for_gates);
            let local_forge = local_forge.clone();
            Box::pin(async move {
                let gates = gates_of(&worker)?;
                let results = gates
                    .run_task(&permit, &order.key, &order.branch, &order.head, stopped)
                    .await
                    .map_err(|error| error.to_string())?;
                if let Some(forge) = local_forge {
                    forge.record_checks(&order.head, results.clone()).await.map_err(|error| error.to_string())?;
                }
                Ok(results)
            })
        }),
        base: Arc::new(move || {
            let worker = current(&for_base);
            Box::pin(async move { base_commit(&worker).await })
        }),
        clean: Arc::new(move |permit, key| {
            let worker = current(&for_cleaning);
            Box::pin(async move {
                let Workplace::Directories(directories) = &worker.workplace else { return Ok(()) };
                directories.remove(&permit, &key).await.map(|_| ()).map_err(|error| error.to_string())
            })
        }),
    }
}

pub fn gates_of(worker: &Worker) -> Result<Gates, String> {
    let Workplace::Worktrees(workspaces) = &worker.workplace else {
        return Err("gates.task needs workspace.mode: worktree".into());
    };
    Ok(Gates {
        settings: worker.settings.gates.clone(),
        workspaces: workspaces.clone(),
        launcher: worker.launcher.clone(),
        environment: worker.environment(worker.settings.worker.runtime, None),
    })
}

async fn base_commit(worker: &Worker) -> Option<CommitId> {
    let Workplace::Worktrees(workspaces) = &worker.workplace else { return None };
    workspaces.base_commit(&worker.settings.workspace.base).await.ok()
}
