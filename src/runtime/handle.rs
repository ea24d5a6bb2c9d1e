//! How the rest of the program reaches a running driver: messages in, published snapshots out.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::{broadcast, mpsc, oneshot};

use super::deliveries::Deliveries;
use super::lanes::GateLimits;
use super::meters::Meters;
use super::pictures::Snapshots;
use crate::config::policy::Policy;
use crate::domain::basis::BoardMark;
use crate::domain::hint::Hint;
use crate::domain::ids::{CommitId, EffectId, TicketId};
use crate::domain::snapshot::{PolicyView, Snapshot};
use crate::domain::time::Timestamp;
use crate::engine::event::{Event, OperatorCommand};
use crate::workflow::Texts;

/// One sentence about how it stands now, or why it was not done.
pub type CommandAnswer = Result<String, String>;

/// What the driver's inbox takes.
#[derive(Debug)]
pub enum Message {
    Event(Event),
    /// An effect's task is over. `event` is its result, where it has one.
    Performed {
        effect: EffectId,
        event: Option<Event>,
    },
    /// Another workflow is in force.
    Reload(Box<InForce>),
    /// The workflow file as it is now is not in force, or is again.
    ReloadFailed {
        error: Option<String>,
    },
    Command {
        command: Command,
        by: String,
        reply: oneshot::Sender<CommandAnswer>,
    },
    /// These may have changed.
    Hinted(Vec<Hint>),
    /// A complete poll of the board has been sent.
    PollOver {
        /// What of the board could not be read.
        left_out: Vec<String>,
        /// What was asked of it so far.
        usage: Option<String>,
        /// How far the board is read now; `None` where only all of it tells.
        mark: Option<BoardMark>,
    },
}

/// What the driver needs of the workflow in force.
#[derive(Debug)]
pub struct InForce {
    pub policy: Arc<Policy>,
    pub kill_file: PathBuf,
    pub texts: Arc<Texts>,
    pub gates: GateLimits,
    /// Said with every picture until the next change.
    pub warnings: Vec<String>,
    /// Likewise.
    pub policies: Vec<PolicyView>,
}

/// What a person can ask of a running instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Operator(OperatorCommand),
    /// `anyway` overrules every remark that stands against it at that moment, and nothing that comes later; `overrule` those
    /// that it names.
    Approve {
        ticket: TicketId,
        head: Option<CommitId>,
        anyway: bool,
        overrule: Vec<String>,
    },
    Message {
        ticket: TicketId,
        text: String,
        urgent: bool,
    },
    /// Publish what is new, so that the next look at the snapshot sees it.
    Look,
    Poll,
    Shutdown,
}

/// What happened between two pictures and is in neither. Whoever is slow misses some of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    RunOver {
        run: String,
        well: bool,
    },
    /// A worker put this on its ticket.
    WorkerSaid {
        key: String,
        attempt: u32,
        text: String,
        at: Timestamp,
    },
}

#[derive(Debug, Clone)]
pub struct Handle {
    pub inbox: mpsc::Sender<Message>,
    pub snapshots: Snapshots,
    pub news: broadcast::Sender<News>,
    /// Where the API and the dashboard are, once they are served.
    pub served_at: Arc<OnceLock<String>>,
    /// What is counted since the start.
    pub meters: Arc<Meters>,
    /// Whether webhooks keep us told.
    pub deliveries: Arc<Deliveries>,
}

impl Handle {
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshots.borrow()
    }

    /// Tells what may have changed. It is looked at as soon as there is time.
    pub async fn hint(&self, hints: Vec<Hint>) {
        let _ = self.inbox.send(Message::Hinted(hints)).await;
    }

    /// Sends a command and waits until the engine has taken it in.
    pub async fn command(&self, command: Command, by: impl Into<String>) -> CommandAnswer {
        let (reply, answer) = oneshot::channel();
        let message = Message::Command { command, by: by.into(), reply };
        let gone = || "the runner is shutting down".to_owned();
        self.inbox.send(message).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
