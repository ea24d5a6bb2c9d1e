//! The host that follows the workflow in force: a reload gives it another worker, and runs under way keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::super::gate_watch::{HaltReceiver, halted};
use super::super::host::{GateOrder, KeptReceipt, ReceiptOrder, RunHost};
use crate::config::merge::MergeStrategy;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::run::RunReport;
use crate::forge::local::LocalForge;
use crate::gates::Gates;
use crate::worker::{Inbox, ReclaimOrder, Reclaimed, RunOrder, Worker, WorkerEvent, Workplace};
use crate::workspace::directory::DirectoryRemoval;

pub struct WorkflowHost {
    worker: RwLock<Arc<Worker>>,
    /// Where there is one, its checks are our gates' results.
    local_forge: Option<Arc<LocalForge>>,
}

impl WorkflowHost {
    pub fn new(worker: Worker, local_forge: Option<Arc<LocalForge>>) -> Self {
        let host = Self { worker: RwLock::new(Arc::new(worker)), local_forge };
        host.count_gates();
        host
    }

    /// The worker of the newest settings.
    pub fn worker(&self) -> Arc<Worker> {
        self.worker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another workflow is in force.
    pub fn replace(&self, worker: Worker) {
        *self.worker.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(worker);
        self.count_gates();
    }

    pub fn gates(&self) -> Result<Gates, String> {
        let worker = self.worker();
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

    /// The results of gates that were taken out of the workflow count no longer.
    fn count_gates(&self) {
        if let Some(forge) = &self.local_forge {
            let worker = self.worker();
            let settings = &worker.settings;
            forge.count_only(settings.gates.task_names());
            forge.want_base(settings.merge.strategy == MergeStrategy::Queue && !settings.gates.task.is_empty());
        }
    }
}

#[async_trait]
impl RunHost for WorkflowHost {
    async fn run(&self, permit: Permit, order: RunOrder, heard: Inbox, events: mpsc::Sender<WorkerEvent>) -> RunReport {
        self.worker().run(permit, order, heard, events).await
    }

    async fn reclaim(&self, order: ReclaimOrder) -> Reclaimed {
        let reclaimed = self.worker().reclaim(&order).await;
        if let Some(trouble) = &reclaimed.trouble {
            tracing::warn!(run_id = %order.run, trouble, "something of an earlier run stays");
        }
        reclaimed
    }

    async fn gate(&self, permit: Permit, order: GateOrder, halt: HaltReceiver) -> Result<Vec<GateResult>, String> {
        let results = self
            .gates()?
            .run_task(&permit, &order.key, &order.branch, &order.head, halted(halt))
            .await
            .map_err(|error| error.to_string())?;
        if let Some(forge) = &self.local_forge {
            forge.record_checks(&order.head, results.clone()).await.map_err(|error| error.to_string())?;
        }
        Ok(results)
    }

    async fn base_commit(&self) -> Option<CommitId> {
        let worker = self.worker();
        let Workplace::Worktrees(workspaces) = &worker.workplace else { return None };
        workspaces.base_commit(&worker.settings.workspace.base).await.ok()
    }

    async fn keep_receipt(&self, _permit: Permit, order: ReceiptOrder) -> Result<KeptReceipt, String> {
        let ReceiptOrder { run, payload } = order;
        let kept = self.worker().keep_receipt(run.as_ref(), &payload).await;
        let (signature, unsigned) = match kept.map_err(|error| format!("the receipt cannot be kept: {error}"))? {
            Ok(signature) => (signature, None),
            Err(why) => (None, Some(why)),
        };
        Ok(KeptReceipt { payload, signature, unsigned })
    }

    async fn clean_up(&self, permit: Permit, id: TicketId, key: TicketKey) -> Result<Option<String>, String> {
        match self.worker().leave(&permit, &id, &key).await {
            Ok(DirectoryRemoval::Removed | DirectoryRemoval::Absent) => Ok(None),
            Ok(DirectoryRemoval::Kept { because }) => {
                tracing::warn!(issue_id = %id, issue_identifier = %key, because, "the ticket's directory is kept");
                Ok(Some(because))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
