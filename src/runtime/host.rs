//! The trait behind which runs and gates happen. `assembly/host.rs` implements it for the workflow in force; tests implement it with
//! made-up workers.

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::gate_watch::HaltReceiver;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, RunId, TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::run::RunReport;
use crate::worker::{Inbox, ReclaimOrder, Reclaimed, RunOrder, WorkerEvent};

/// Does the long work of the runner. A method may take any time; the caller sets the deadline.
#[async_trait]
pub trait RunHost: Send + Sync {
    /// Does one run from worktree to outcome. `heard` already holds the messages that were sent before the run listens. The run cleans up
    /// after its own panics; where even that fails, the caller uses `reclaim`.
    async fn run(&self, permit: Permit, order: RunOrder, heard: Inbox, events: mpsc::Sender<WorkerEvent>) -> RunReport;

    /// Stops what is left of a run that is no longer watched, and saves its work.
    async fn reclaim(&self, order: ReclaimOrder) -> Reclaimed;

    /// Runs `gates.task` on exactly this commit and records the results in the local forge, if there is one. Stops early when `halt` says
    /// so. An error means that the gates could not be run, and says nothing about the work.
    async fn gate(&self, permit: Permit, order: GateOrder, halt: HaltReceiver) -> Result<Vec<GateResult>, String>;

    /// Returns the commit of the base branch as known in this clone. `None` if it is not known.
    async fn base_commit(&self) -> Option<CommitId>;

    /// Signs a receipt with the user's key, if git has one, and keeps it with its run. A receipt that is already kept is not signed again.
    async fn keep_receipt(&self, permit: Permit, order: ReceiptOrder) -> Result<KeptReceipt, String>;

    /// Removes the directory that a finished ticket kept across runs. Returns why it stays, or `None` if it is gone.
    async fn clean_up(&self, permit: Permit, id: TicketId, key: TicketKey) -> Result<Option<String>, String>;
}

/// A commit to run the gates on.
#[derive(Debug, Clone)]
pub struct GateOrder {
    pub ticket: TicketId,
    pub key: TicketKey,
    /// The run that made the head. `None` if no run did.
    pub made_by: Option<RunId>,
    pub branch: String,
    pub base_branch: String,
    pub head: CommitId,
}

/// A receipt to be signed and kept.
#[derive(Debug, Clone)]
pub struct ReceiptOrder {
    pub run: Option<RunId>,
    pub payload: String,
}

#[derive(Debug, Clone)]
pub struct KeptReceipt {
    pub payload: String,
    pub signature: Option<String>,
    /// Why there is no signature although git has a key.
    pub unsigned: Option<String>,
}
