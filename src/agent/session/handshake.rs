//! How long an agent may take until it is ready, and the sentence when it takes longer.

use std::time::Duration;

use tokio::time::Instant;

/// How long the agent may take until it is ready.
#[derive(Debug, Clone, Copy)]
pub struct HandshakeLimits {
    /// From the launch.
    pub start: Duration,
    /// Between two of its words, once it has begun to speak. Zero is off.
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

    /// What is said about it once the deadline has passed.
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
