//! One lane per adapter: a bounded number of calls at a time, the important ones first, each with a deadline. A call that hangs in one lane
//! delays no other lane, and its own lane only until its deadline.
//!
//! Stopping a run uses no lane, so it never waits for one.

mod deadlines;
mod health;
mod meaning;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

pub use deadlines::{CLEAN_UP, LAND, LOOK, POLL, PUSH, READ_TICKET, RECLAIM, WRITE, gates_deadline};
pub use health::LaneNews;
pub use meaning::{AdapterError, Meaning};
pub use queue::{CallError, CallQueue, LaneFailure, Slot, unwinding};

use crate::config::gates::GatesSettings;
use crate::domain::lane::Lane;
use crate::domain::snapshot::LaneView;

/// The number of simultaneous calls to the board.
const TRACKER_CALLS: usize = 8;
/// The number of simultaneous calls to the forge.
const FORGE_CALLS: usize = 8;
/// The number of simultaneous pushes and looks at the repository. (Worktrees are made in a lane of the worker's.)
const WORKSPACE_CALLS: usize = 4;

/// The order in which calls leave a full lane, most important first. Stops are not among them because they use no lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Merges and what prepares them.
    Land,
    Write,
    Start,
    Look,
}

/// The settings of the workflow that the lanes depend on. A reload may change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    pub at_once: usize,
    /// For all gates of one head together.
    pub deadline: Duration,
}

impl GateLimits {
    pub fn of(settings: &GatesSettings) -> Self {
        Self { at_once: settings.max_concurrent, deadline: gates_deadline(settings) }
    }
}

impl Default for GateLimits {
    fn default() -> Self {
        Self::of(&GatesSettings::default())
    }
}

/// The lanes of one runner process.
#[derive(Debug)]
pub struct Lanes {
    pub tracker: Arc<CallQueue>,
    pub forge: Arc<CallQueue>,
    pub gates: Arc<CallQueue>,
    pub workspace: Arc<CallQueue>,
}

impl Lanes {
    /// Makes the lanes, and returns the receiver of what they report about their health.
    pub fn new(gates: GateLimits) -> (Self, mpsc::UnboundedReceiver<LaneNews>) {
        let (sender, news) = mpsc::unbounded_channel();
        let queue = |lane, limit| Arc::new(CallQueue::new(lane, limit, sender.clone()));
        let lanes = Self {
            tracker: queue(Lane::Tracker, TRACKER_CALLS),
            forge: queue(Lane::Forge, FORGE_CALLS),
            gates: queue(Lane::Gates, gates.at_once),
            workspace: queue(Lane::Workspace, WORKSPACE_CALLS),
        };
        (lanes, news)
    }

    pub fn of(&self, lane: Lane) -> &Arc<CallQueue> {
        match lane {
            Lane::Tracker => &self.tracker,
            Lane::Forge => &self.forge,
            Lane::Gates => &self.gates,
            Lane::Workspace => &self.workspace,
        }
    }

    pub fn view(&self) -> Vec<LaneView> {
        Lane::ALL.into_iter().map(|lane| self.of(lane).view()).collect()
    }
}
