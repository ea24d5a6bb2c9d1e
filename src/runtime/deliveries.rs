//! Whether webhook deliveries keep the runner informed. While they do, the board is polled less often; when they stop, the usual period
//! applies again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The factor by which deliveries lengthen the polling period.
const STRETCH: u32 = 10;
const LONGEST: Duration = Duration::from_secs(300);

/// What a delivery is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverySource {
    Board,
    Forge,
}

/// When the last deliveries arrived, per source.
#[derive(Debug, Default)]
pub struct Deliveries {
    last: Mutex<[Option<Instant>; 2]>,
    /// Whether deliveries about the forge are needed too. A poll also looks at pull requests, so without news of those the period stays as
    /// it is.
    about_forge_too: bool,
}

impl Deliveries {
    pub fn new(about_forge_too: bool) -> Self {
        Self { last: Mutex::default(), about_forge_too }
    }

    pub fn arrived(&self, source: DeliverySource) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last[source as usize] = Some(Instant::now());
    }

    /// Returns how long to wait until the next poll.
    pub fn period(&self, usual: Duration) -> Duration {
        let slow = usual.saturating_mul(STRETCH).min(LONGEST).max(usual);
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Silence for two slow periods may mean a quiet board or a dead webhook. The usual period is safe for both.
        let is_told = |source: DeliverySource| last[source as usize].is_some_and(|at| at.elapsed() < 2 * slow);
        let all = is_told(DeliverySource::Board) && (!self.about_forge_too || is_told(DeliverySource::Forge));
        if all { slow } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn polling_is_slow_while_deliveries_arrive_and_usual_when_they_stop() {
        let usual = Duration::from_secs(30);
        let told = Deliveries::new(false);
        assert_eq!(told.period(usual), usual);
        told.arrived(DeliverySource::Forge);
        assert_eq!(told.period(usual), usual, "that says nothing about the board");
        told.arrived(DeliverySource::Board);
        assert_eq!(told.period(usual), Duration::from_secs(300));
        assert_eq!(told.period(Duration::from_secs(3600)), Duration::from_secs(3600), "never faster than asked for");
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(told.period(usual), Duration::from_secs(300));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(told.period(usual), usual);

        let both = Deliveries::new(true);
        both.arrived(DeliverySource::Board);
        assert_eq!(both.period(usual), usual, "nobody tells of pull requests");
        both.arrived(DeliverySource::Forge);
        assert_eq!(both.period(usual), Duration::from_secs(300));
    }
}
