//! One run from worktree to outcome. Orders the steps; the adapters take them.
//!
//! Whatever happens in between, a run ends with its process tree gone and its work safe: committed, salvaged, or kept in
//! a worktree that the report names.

mod attachments;
pub mod attempt;
mod conversation;
pub mod desk;
mod desk_counter;
pub mod desk_protocol;
pub mod desk_tools;
mod guidance;
mod inbox;
mod interference;
mod launch;
mod leave;
mod prompt;
mod questions;
pub mod receipts;
mod reclaim;
mod reports;
pub mod reviewer;
mod route;
mod ticket_text;
mod wrap_up;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::config::Settings;
use crate::config::policy::Policy;
use crate::config::tracker::AgentTool;
use crate::domain::ids::TicketId;
use crate::domain::service::{ApiAnswer, ApiTool, Attachment};
use crate::launcher::Launcher;
use crate::launcher::environment::Secrets;
use crate::workflow::Prompts;
use crate::workspace::Workspaces;
use crate::workspace::directory::Directories;

pub use inbox::Inbox;
pub use reclaim::{ReclaimOrder, Reclaimed};

use crate::domain::failure::RunFailure;
use crate::domain::ids::{CommitId, RunId, SessionId};
use crate::domain::job::{HumanMessage, Reviews, Work};
use crate::domain::route::Route;
use crate::domain::run::{Activity, Declared, ProcessMark, StopReason};
use crate::domain::ticket::Ticket;

/// Everything a run needs to know about its job.
#[derive(Debug, Clone)]
pub struct RunOrder {
    pub run: RunId,
    /// Read again right before the start.
    pub ticket: Ticket,
    pub work: Work,
    /// 1 for the first run of the job.
    pub attempt: u32,
    pub branch: String,
    pub base_branch: String,
    /// The conversation to go on with, where the agent can.
    pub resume: Option<SessionId>,
    /// Which agent does it.
    pub route: Route,
    /// Trusted words that the prompt must carry.
    pub undelivered: Vec<HumanMessage>,
    pub previous: Option<PreviousRun>,
    /// By which the engine judges whether the ticket is still to be worked on.
    pub policy: Arc<Policy>,
    pub rework_cycles: u32,
    /// What reviews have said so far.
    pub reviews: Reviews,
    /// The commit that the pull request would be merged into, where it is known.
    pub base: Option<CommitId>,
    /// What the ticket's budget has left, in millionths of a US dollar; `None` without such a cap.
    pub cost_left: Option<u64>,
    /// The service that the ticket lives in, for this run alone.
    pub service: Option<Arc<dyn ServiceAccess>>,
}

impl RunOrder {
    /// The head that is only to be read; nothing that the run writes survives it.
    pub fn reviewed_head(&self) -> Option<&CommitId> {
        match &self.work {
            Work::Review { head } => Some(head),
            Work::Implement | Work::Rework { .. } => None,
        }
    }
}

/// What a fresh conversation is told about the one before.
#[derive(Debug, Clone)]
pub struct PreviousRun {
    pub summary: Option<String>,
    pub failure: Option<RunFailure>,
    pub head: Option<CommitId>,
    /// Where its uncommitted work was saved.
    pub salvage: Option<String>,
}

/// What a running worker is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    Stop(StopReason),
    Steer(HumanMessage),
    /// The budget is nearly spent: commit, write the hand-off, end.
    WrapUp,
    /// It has been silent: is it still there?
    Nudge,
    /// The pool is out of quota: end at the next turn's end.
    StopAfterTurn,
}

/// What a running worker tells.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// A directory without a repository in it has neither base nor head.
    Started {
        process: ProcessMark,
        worktree: PathBuf,
        base: Option<CommitId>,
        head: Option<CommitId>,
    },
    Activity(Activity),
}

/// Reads the run's ticket again: between two turns, and when the worker looks it up. Nothing can be written through it.
#[async_trait]
pub trait TicketSource: Send + Sync {
    /// `None` is a ticket that is gone; the error is a sentence.
    async fn read(&self, id: &TicketId) -> Result<Option<Ticket>, String>;
}

/// What one run may ask of the service that its ticket lives in. Whoever makes it binds it to the run's own ticket and pull request.
#[async_trait]
pub trait ServiceAccess: std::fmt::Debug + Send + Sync {
    /// How the service's own API is offered to the agent; `None` where there is none.
    fn api_tool(&self) -> Option<ApiTool>;

    /// The files on the service's own hosts that a text refers to.
    fn attachments(&self, text: &str) -> Vec<Attachment>;

    /// One of these; the error is a sentence.
    async fn fetch(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, String>;

    /// Sends a request within `allowed`. The error is a sentence for the agent.
    async fn ask(&self, allowed: AgentTool, request: &serde_json::Value) -> Result<ApiOutcome, String>;
}

/// What came of a request to the service's own API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiOutcome {
    pub answer: ApiAnswer,
    /// What it wrote, or may have written.
    pub wrote: Option<String>,
    /// What it says about the work.
    pub declared: Option<Declared>,
}

/// Where runs work.
#[derive(Debug, Clone)]
pub enum Workplace {
    Worktrees(Workspaces),
    Directories(Directories),
}

/// Everything that runs share. Cheap to clone; a reload makes a new one with other settings.
#[derive(Clone)]
pub struct Worker {
    pub settings: Arc<Settings>,
    pub workplace: Workplace,
    pub launcher: Arc<dyn Launcher>,
    pub prompts: Prompts,
    pub tickets: Arc<dyn TicketSource>,
    /// The lane of worktrees that are being made: see [`preparation_lane`].
    pub preparing: Arc<Semaphore>,
    /// The user's environment as a login shell has it (see `launcher::login`), before the allow-list.
    pub environment: Arc<BTreeMap<String, String>>,
    pub secrets: Arc<Secrets>,
    /// The runner's state; each run has a directory in it.
    pub state_dir: PathBuf,
    /// Holds `tk`: see `launcher::environment::install_tools`.
    pub tools: PathBuf,
    /// See [`desk::socket_directory`].
    pub sockets: PathBuf,
}

/// Worktrees that are made at the same time: twice the cores, because half of the work is the disk's.
pub fn preparation_lane() -> Arc<Semaphore> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new(2 * cores))
}

/// The directory that keeps a run's prompt, transcript and artifacts.
pub fn run_directory(state_dir: &Path, run: &RunId) -> PathBuf {
    state_dir.join("runs").join(run.as_str())
}

/// What the run has spent, up to the last moment.
pub fn spent_path(state_dir: &Path, run: &RunId) -> PathBuf {
    run_directory(state_dir, run).join("spent.json")
}

pub fn transcript_path(state_dir: &Path, run: &RunId) -> PathBuf {
    run_directory(state_dir, run).join("transcript.log")
}
