//! One run from worktree to outcome. This room orders the steps; the adapters carry them out.
//!
//! However a run ends, its process tree is gone afterwards and its work is safe: committed, salvaged (uncommitted work saved under a git
//! ref), or kept in a worktree that the report mentions.

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
    /// The ticket, read again right before the start.
    pub ticket: Ticket,
    pub work: Work,
    /// 1 for the first run of the job.
    pub attempt: u32,
    pub branch: String,
    pub base_branch: String,
    /// The conversation to resume, if the agent can.
    pub resume: Option<SessionId>,
    /// Which agent does the run.
    pub route: Route,
    /// Trusted people's messages that the first prompt must contain.
    pub undelivered: Vec<HumanMessage>,
    pub previous: Option<PreviousRun>,
    /// The policy by which the run judges whether the ticket is still to be worked on.
    pub policy: Arc<Policy>,
    pub rework_cycles: u32,
    /// What reviews have said so far.
    pub reviews: Reviews,
    /// The commit that the pull request would be merged into, where it is known.
    pub base: Option<CommitId>,
    /// What the ticket's budget has left, in millionths of a US dollar; `None` without such a cap.
    pub cost_left: Option<u64>,
    /// Access to the service that the ticket lives in, for this run alone.
    pub service: Option<Arc<dyn ServiceAccess>>,
}

impl RunOrder {
    /// Returns the commit to review. `None` if this is no review. What a reviewing run writes is thrown away.
    pub fn reviewed_head(&self) -> Option<&CommitId> {
        match &self.work {
            Work::Review { head } => Some(head),
            Work::Implement | Work::Rework { .. } => None,
        }
    }
}

/// What a fresh conversation is told about the previous run.
#[derive(Debug, Clone)]
pub struct PreviousRun {
    pub summary: Option<String>,
    pub failure: Option<RunFailure>,
    pub head: Option<CommitId>,
    /// The git ref under which its uncommitted work was saved.
    pub salvage: Option<String>,
}

/// A message to a running worker.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    Stop(StopReason),
    Steer(HumanMessage),
    /// The budget is nearly spent: commit, write down what is left, and end the turn.
    WrapUp,
    /// The agent has been silent for a while: remind it.
    Nudge,
    /// The pool of credentials is out of quota: stop at the end of the turn.
    StopAfterTurn,
}

/// A message from a running worker.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// The agent's process runs. `base` and `head` are `None` in a directory without a repository.
    Started {
        process: ProcessMark,
        worktree: PathBuf,
        head: Option<CommitId>,
    },
    Activity(Activity),
}

/// Reads the run's ticket again: between two turns, and when the worker looks it up. It cannot write.
#[async_trait]
pub trait TicketSource: Send + Sync {
    /// Reads the ticket as it is now. `None` if it is gone; the error is one sentence.
    async fn read(&self, id: &TicketId) -> Result<Option<Ticket>, String>;
}

/// What one run may request of the service that its ticket lives in. An implementation is bound to the run's own ticket and pull request.
#[async_trait]
pub trait ServiceAccess: std::fmt::Debug + Send + Sync {
    /// Returns the tool that offers the service's own API to the agent. `None` if the service has none.
    fn api_tool(&self) -> Option<ApiTool>;

    /// Returns the files on the service's own hosts that a text refers to.
    fn attachments(&self, text: &str) -> Vec<Attachment>;

    /// Fetches one of these files, of at most `longest` bytes. The error is one sentence.
    async fn fetch(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, String>;

    /// Sends a request to the API, within `allowed`. The error is a sentence for the agent.
    async fn ask(&self, allowed: AgentTool, request: &serde_json::Value) -> Result<ApiOutcome, String>;
}

/// The result of a request to the service's own API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiOutcome {
    pub answer: ApiAnswer,
    /// What it wrote, or may have written, in words. `None` for reads.
    pub wrote: Option<String>,
    /// What the request declares about the work, for example by moving the ticket.
    pub declared: Option<Declared>,
}

/// The kind of workspace that runs work in.
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
    /// Limits how many worktrees are made at the same time: see [`preparation_lane`].
    pub preparing: Arc<Semaphore>,
    /// The user's environment as a login shell has it (see `launcher::login`), before the allow-list.
    pub environment: Arc<BTreeMap<String, String>>,
    pub secrets: Arc<Secrets>,
    /// The runner's state; each run has a directory in it.
    pub state_dir: PathBuf,
    /// The directory that holds `tk`: see `launcher::environment::install_tools`.
    pub tools: PathBuf,
    /// The directory of the desks' sockets: see [`desk::socket_directory`].
    pub sockets: PathBuf,
}

/// Returns the limit of worktrees that are made at the same time: twice the cores, because half of the work is done by the disk.
pub fn preparation_lane() -> Arc<Semaphore> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new(2 * cores))
}

/// Returns the directory that keeps a run's prompt, transcript and artifacts.
pub fn run_directory(state_dir: &Path, run: &RunId) -> PathBuf {
    state_dir.join("runs").join(run.as_str())
}

/// Returns the file that holds what the run has spent up to the last moment.
pub fn spent_path(state_dir: &Path, run: &RunId) -> PathBuf {
    run_directory(state_dir, run).join("spent.json")
}

pub fn transcript_path(state_dir: &Path, run: &RunId) -> PathBuf {
    run_directory(state_dir, run).join("transcript.log")
}
