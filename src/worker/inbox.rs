//! The words to a running worker, in their order; a stop can be looked for before the rest is.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::Control;
use crate::domain::run::StopReason;

/// The words to a running worker. A runner that is gone means stop.
pub struct Inbox {
    control: mpsc::Receiver<Control>,
    early: VecDeque<Control>,
    closed: bool,
}

impl Inbox {
    pub fn new(control: mpsc::Receiver<Control>) -> Self {
        Self { control, early: VecDeque::new(), closed: false }
    }

    /// Whether a stop was asked for; other words are kept for later.
    pub fn stop_asked(&mut self) -> Option<StopReason> {
        loop {
            match self.control.try_recv() {
                Ok(Control::Stop(reason)) => return Some(reason),
                Ok(other) => self.early.push_back(other),
                Err(_) => return None,
            }
        }
    }

    /// Waits for a stop alone.
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
