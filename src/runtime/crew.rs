//! Who does the long work: a run, a burial, a gate. Functions, so that a test can put its own people in.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;
use crate::domain::run::{ProcessMark, RunReport, Salvage};
use crate::worker::{Control, RunOrder, WorkerEvent};

pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

type RunFn =
    dyn Fn(Permit, RunOrder, mpsc::Receiver<Control>, mpsc::Sender<WorkerEvent>) -> Task<RunReport> + Send + Sync;
type BuryFn = dyn Fn(BurialOrder) -> Task<Buried> + Send + Sync;
type GateFn = dyn Fn(Permit, GateOrder, Task<()>) -> Task<Result<Vec<GateResult>, String>> + Send + Sync;
type BaseFn = dyn Fn() -> Task<Option<CommitId>> + Send + Sync;
type CleanFn = dyn Fn(Permit, TicketKey) -> Task<Result<(), String>> + Send + Sync;

#[derive(Clone)]
pub struct Crew {
    /// One run from worktree to outcome. Never panics past its own cleaning; if it does, `bury` follows.
    pub run: Arc<RunFn>,
    /// Ends what is left of a run that nobody watches any more, and saves its work.
    pub bury: Arc<BuryFn>,
    /// Runs `gates.task` on exactly this commit, and tells the local forge, whose checks they are. It stops
    /// when the last argument resolves.
    pub gate: Arc<GateFn>,
    /// The base branch's commit, as far as it is known here.
    pub base: Arc<BaseFn>,
    /// Removes what a ticket keeps across runs, when it is over.
    pub clean: Arc<CleanFn>,
}

/// A run to be buried.
#[derive(Debug, Clone)]
pub struct BurialOrder {
    pub run: RunId,
    pub key: TicketKey,
    pub branch: String,
    pub process: Option<ProcessMark>,
    pub worktree: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub struct Buried {
    pub salvage: Option<Salvage>,
    pub head: Option<CommitId>,
}

#[derive(Debug, Clone)]
pub struct GateOrder {
    pub key: TicketKey,
    pub branch: String,
    pub head: CommitId,
}
