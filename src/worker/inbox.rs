//! The messages to a running worker, in their order. A stop can be taken out before the rest.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::Control;
use crate::domain::run::StopReason;

/// The messages to a running worker. If the runner is gone, that counts as a stop.
pub struct Inbox {
    control: mpsc::Receiver<Control>,
    early: VecDeque<Control>,
    closed: bool,
}

impl Inbox {
    pub fn new(control: mpsc::Receiver<Control>) -> Self {
        Self { control, early: VecDeque::new(), closed: false }
    }

    /// Returns the reason of a stop that has arrived, if one has. Other messages are kept for later.
    pub fn stop_asked(&mut self) -> Option<StopReason> {
        loop {
            match self.control.try_recv() {
                Ok(Control::Stop(reason)) => return Some(reason),
                Ok(other) => self.early.push_back(other),
                Err(_) => return None,
            }
        }
    }

    /// Waits for a stop. Other messages are kept for later.
    pub async fn stopped(&mut self) -> StopReason {
        loop {
            match self.control.recv().await {
                Some(Control::Stop(reason)) => return reason,
                Some(other) => self.early.push_back(other),
                None => return StopReason::Shutdown,
            }
        }
    }

    pub async fn next(&mut self) -> Control {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        if self.closed {
            return std::future::pending().await;
        }
        match self.control.recv().await {
            Some(control) => control,
            None => {
                self.closed = true;
                Control::Stop(StopReason::Shutdown)
            }
        }
    }
}
