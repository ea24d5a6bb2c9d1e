//! Decides when a live agent's activity is reported: spending at once, because of the budget, the rest twice a second.

use std::time::Duration;

use tokio::time::Instant;

/// How often activity is reported.
const EVERY: Duration = Duration::from_millis(500);
/// The least time between two reports of spending, so that many of them cause at most twenty reports a second.
const SPENDING_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Reports {
    last: Option<Instant>,
    due: Instant,
}

impl Reports {
    pub fn from(now: Instant) -> Self {
        Self { last: None, due: now + EVERY }
    }

    pub fn due(&self) -> Instant {
        self.due
    }

    /// Takes in that something was spent: the next report is due now, or as soon as the limit allows.
    pub fn spent(&mut self, now: Instant) {
        let soonest = self.last.map_or(now, |last| (last + SPENDING_EVERY).max(now));
        self.due = self.due.min(soonest);
    }

    pub fn made(&mut self, now: Instant) {
        self.last = Some(now);
        self.due = now + EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_is_reported_at_once_and_a_flood_of_it_twenty_times_a_second() {
        let start = Instant::now();
        let mut reports = Reports::from(start);
        assert_eq!(reports.due(), start + EVERY);
        reports.spent(start);
        assert_eq!(reports.due(), start, "the first word of spending waits for nothing");
        let mut made = 0;
        for millisecond in 0..1000 {
            let now = start + Duration::from_millis(millisecond);
            reports.spent(now);
            if reports.due() <= now {
                reports.made(now);
                made += 1;
            }
        }
        assert_eq!(made, 20);
    }

    #[test]
    fn without_spending_a_report_is_due_twice_a_second() {
        let start = Instant::now();
        let mut reports = Reports::from(start);
        reports.made(start + Duration::from_millis(100));
        assert_eq!(reports.due(), start + Duration::from_millis(600));
    }
}
