//! The channels to running workers. Messages to a run whose worker does not listen yet are kept for it in order.

use std::collections::HashMap;

use tokio::sync::mpsc;

use crate::domain::ids::RunId;
use crate::worker::{Control, Inbox};

/// The number of messages that are kept for a run, which is more than any run gets. Messages beyond that are dropped. Unused places take no
/// memory.
const ROOM: usize = 1 << 16;

#[derive(Default)]
pub struct Controls {
    lines: HashMap<RunId, mpsc::Sender<Control>>,
}

impl Controls {
    /// Opens the channel to a run that begins, and returns its receiving end.
    pub fn begin(&mut self, run: &RunId) -> Inbox {
        let (sender, heard) = mpsc::channel(ROOM);
        self.lines.insert(run.clone(), sender);
        Inbox::new(heard)
    }

    pub fn end(&mut self, run: &RunId) {
        self.lines.remove(run);
    }

    /// Sends a message to a run, without waiting. Does nothing if the run is over.
    pub fn tell(&self, run: &RunId, control: Control) {
        let Some(line) = self.lines.get(run) else { return };
        if let Err(mpsc::error::TrySendError::Full(control)) = line.try_send(control) {
            tracing::error!(run_id = %run, ?control, "the worker does not listen, and this is one word too many for it");
        }
    }
}
