//! The lines to running workers. What is said to a run before its worker listens is kept for it, in its order.

use std::collections::HashMap;

use tokio::sync::mpsc;

use crate::domain::ids::RunId;
use crate::worker::{Control, Inbox};

/// More than anybody says to one run: what does not fit would have to be dropped. It costs nothing until it is used.
const ROOM: usize = 1 << 16;

#[derive(Default)]
pub struct Controls {
    lines: HashMap<RunId, mpsc::Sender<Control>>,
}

impl Controls {
    /// A run begins; what is said to it from now on arrives there.
    pub fn begin(&mut self, run: &RunId) -> Inbox {
        let (sender, heard) = mpsc::channel(ROOM);
        self.lines.insert(run.clone(), sender);
        Inbox::new(heard)
    }

    pub fn end(&mut self, run: &RunId) {
        self.lines.remove(run);
    }

    /// Never waits. A run that is over hears nothing any more.
    pub fn tell(&self, run: &RunId, control: Control) {
        let Some(line) = self.lines.get(run) else { return };
        if let Err(mpsc::error::TrySendError::Full(control)) = line.try_send(control) {
            tracing::error!(run_id = %run, ?control, "the worker does not listen, and this is one word too many for it");
        }
    }
}
