//! How long an agent may take until it is ready, and the message if it takes longer.

use std::time::Duration;

use tokio::time::Instant;

/// How long the agent may take until it is ready.
#[derive(Debug, Clone, Copy)]
pub struct HandshakeLimits {
    /// The limit from the launch on.
    pub start: Duration,
    /// The limit between two outputs, once there was one. Zero turns it off.
    pub response: Duration,
}

#[derive(Debug)]
pub(super) struct Handshake {
    limits: HandshakeLimits,
    launched: Instant,
    last_word: Option<Instant>,
}

impl Handshake {
    pub fn begun(limits: HandshakeLimits) -> Self {
        Self { limits, launched: Instant::now(), last_word: None }
    }

    pub fn spoke(&mut self) {
        self.last_word = Some(Instant::now());
    }

    pub fn deadline(&self) -> Instant {
        let start = self.launched + self.limits.start;
        match self.last_word {
            Some(word) if self.limits.response > Duration::ZERO => start.min(word + self.limits.response),
            _ => start,
        }
    }

    /// Returns the message for when the deadline has passed.
    pub fn overdue(&self) -> String {
        let start = self.limits.start.as_millis();
        match self.last_word {
            Some(_) if self.limits.response > Duration::ZERO => {
                format!("no word for {} ms (or not ready after {start} ms)", self.limits.response.as_millis())
            }
            _ => format!("not ready after {start} ms"),
        }
    }
}
