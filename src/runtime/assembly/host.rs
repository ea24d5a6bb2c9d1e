//! The host of runs and gates that follows the workflow in force: a reload replaces its worker; runs under way keep the worker that they
//! started with.

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
use crate::gates::hook::{self, CONTRACT_VERSION, HookCall, HookContext, HookTask, HookTeam};
use crate::worker::{Inbox, ReclaimOrder, Reclaimed, RunOrder, Worker, WorkerEvent, Workplace};
use crate::workspace::directory::DirectoryRemoval;

pub struct WorkflowHost {
    worker: RwLock<Arc<Worker>>,
    /// The forge in the local repository, if that is the forge in use. Its checks are the results of the gates.
    local_forge: Option<Arc<LocalForge>>,
}

impl WorkflowHost {
    pub fn new(worker: Worker, local_forge: Option<Arc<LocalForge>>) -> Self {
        let host = Self { worker: RwLock::new(Arc::new(worker)), local_forge };
        host.count_gates();
        host
    }

    /// Returns the worker made from the newest settings.
    pub fn worker(&self) -> Arc<Worker> {
        self.worker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the worker, because another workflow is in force.
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
            hook: None,
        })
    }

    /// Returns the call of the repository's gate script (`gates.hook`) for this head. `None` if no script is configured.
    async fn hook(&self, order: &GateOrder) -> Option<HookCall> {
        let worker = self.worker();
        let script = worker.settings.gates.hook.clone()?;
        let (now, member) = (super::super::now(), order.made_by.as_ref().map(ToString::to_string));
        let read = worker.tickets.read(&order.ticket).await;
        if let Err(error) = &read {
            tracing::warn!(issue_identifier = %order.key, error, "a hook is told nothing of its ticket: it cannot be read");
        }
        let about = [
            ("ticketId", order.ticket.to_string()),
            ("branch", order.branch.clone()),
            ("base", order.base_branch.clone()),
            ("head", order.head.to_string()),
        ];
        let metadata = about.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let home = &worker.settings.workspace.home;
        let id = home.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let context = HookContext {
            version: CONTRACT_VERSION,
            event: "task_completed",
            team: HookTeam {
                task_list_id: id.clone(),
                id,
                dir: home.join(".dirigent").display().to_string(),
                style: "normal",
            },
            task: read.ok().flatten().map(|ticket| HookTask::completed(&ticket, member.clone(), metadata, now)),
            member,
            timestamp: Some(hook::written(now)),
        };
        Some(HookCall { script, context, logs: worker.state_dir.join("hook-logs") })
    }

    /// Tells the local forge which gates count from now on, so that results of gates removed from the workflow do not.
    fn count_gates(&self) {
        if let Some(forge) = &self.local_forge {
            let worker = self.worker();
            let settings = &worker.settings;
            forge.count_only(settings.gates.task_names());
            forge.want_base(settings.merge.strategy == MergeStrategy::Queue && settings.gates.judges_tasks());
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
        let mut gates = self.gates()?;
        gates.hook = self.hook(&order).await;
        // The commit may be missing here: a person may have pushed it, or the forge may have made it from the branch and its base.
        if !gates.workspaces.has_commit(&order.head).await {
            gates.workspaces.fetch_branch(&order.branch, &order.base_branch).await;
        }
        let results = gates
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
