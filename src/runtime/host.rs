//! Where runs and gates happen, as the loop sees it. One implementation follows the workflow in force (`assembly/host.rs`);
//! tests have others, whose workers are made up.

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::gate_watch::HaltReceiver;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, RunId, TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::run::RunReport;
use crate::worker::{Inbox, ReclaimOrder, Reclaimed, RunOrder, WorkerEvent};

/// Does the long work. Every method may take its time; whoever calls it sets the deadline.
#[async_trait]
pub trait RunHost: Send + Sync {
    /// One run from worktree to outcome. What was said to the run before it listens is in `heard` already. It cleans up after its own panics; where even that fails, `reclaim` follows.
    async fn run(&self, permit: Permit, order: RunOrder, heard: Inbox, events: mpsc::Sender<WorkerEvent>) -> RunReport;

    /// Ends what is left of a run that nobody watches any more, and saves its work.
    async fn reclaim(&self, order: ReclaimOrder) -> Reclaimed;

    /// Runs `gates.task` on exactly this commit, and tells the local forge, whose checks they are. It stops when `halt`
    /// says so. The error is a sentence about us, not about the work.
    async fn gate(&self, permit: Permit, order: GateOrder, halt: HaltReceiver) -> Result<Vec<GateResult>, String>;

    /// The base branch's commit, as far as it is known here.
    async fn base_commit(&self) -> Option<CommitId>;

    /// Signs a receipt with the user's key, where git has one, and keeps it with its run. One that was kept before is not signed again.
    async fn keep_receipt(&self, permit: Permit, order: ReceiptOrder) -> Result<KeptReceipt, String>;

    /// Removes what a ticket keeps across runs, when it is over. The answer is why something stays.
    async fn clean_up(&self, permit: Permit, id: TicketId, key: TicketKey) -> Result<Option<String>, String>;
}

/// A commit to be checked.
#[derive(Debug, Clone)]
pub struct GateOrder {
    pub ticket: TicketId,
    pub key: TicketKey,
    /// The run that made the head, if one did.
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
    /// Why there is none, although git has a key.
    pub unsigned: Option<String>,
}
