//! How the rest of the program reaches a running driver: messages go in, published snapshots come out.

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

/// One sentence about how the ticket or the runner stands now, or, as the error, why the command was not carried out.
pub type CommandAnswer = Result<String, String>;

/// A message to the driver.
#[derive(Debug)]
pub enum Message {
    Event(Event),
    /// The task of an effect is over. `event` is its result, if it has one.
    Performed {
        effect: EffectId,
        event: Option<Event>,
    },
    /// Another workflow is in force.
    Reload(Box<InForce>),
    /// The workflow file, as it is now, could not be put in force.
    ReloadFailed {
        error: String,
    },
    Command {
        command: Command,
        by: String,
        reply: oneshot::Sender<CommandAnswer>,
    },
    /// These objects may have changed and should be looked at.
    Hinted(Vec<Hint>),
    /// A poll is over; its events have been sent before this message.
    PollOver {
        /// The parts of the board that could not be read.
        left_out: Vec<String>,
        /// How much of the tracker's request quota is used, as a text.
        usage: Option<String>,
        /// How far the board has been read. `None` if the next poll has to list the whole board.
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
    /// Warnings about the workflow, shown in every snapshot until the next reload.
    pub warnings: Vec<String>,
    /// The policies in force, shown in the same way.
    pub policies: Vec<PolicyView>,
}

/// A command of a person to a running runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Operator(OperatorCommand),
    /// Approves the work. `anyway` overrules every remark that is open against it at that moment, but none that comes later; `overrule`
    /// lists single remarks to overrule.
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
    /// Publishes what is new, so that the next snapshot shows it.
    Look,
    Poll,
    Shutdown,
}

/// Something that happened between two snapshots and is in neither. A slow receiver misses some of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    RunOver {
        run: String,
        well: bool,
    },
    /// A worker wrote this comment on its ticket.
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
    /// The address of the HTTP API and the dashboard, once they are served.
    pub served_at: Arc<OnceLock<String>>,
    /// What is counted since the start.
    pub meters: Arc<Meters>,
    /// Whether webhooks keep the runner informed.
    pub deliveries: Arc<Deliveries>,
}

impl Handle {
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshots.borrow()
    }

    /// Tells the driver what may have changed. The driver has it looked at as soon as possible.
    pub async fn hint(&self, hints: Vec<Hint>) {
        let _ = self.inbox.send(Message::Hinted(hints)).await;
    }

    /// Sends a command and waits for the reply, which comes after the engine has taken the command in.
    pub async fn command(&self, command: Command, by: impl Into<String>) -> CommandAnswer {
        let (reply, answer) = oneshot::channel();
        let message = Message::Command { command, by: by.into(), reply };
        let gone = || "the runner is shutting down".to_owned();
        self.inbox.send(message).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
