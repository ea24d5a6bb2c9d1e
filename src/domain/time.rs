//! Points in time as whole milliseconds since the Unix epoch. Tests can drive the engine through a year in a second.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wall-clock milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time passed since `earlier`; zero if the clock went backwards.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    pub fn saturating_add(self, span: Duration) -> Timestamp {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }
}

/// Formats a span for people: `42s`, `7m`, `3h`, `2d`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

const DAY: i64 = 86_400_000;

/// Where the days of the local clock begin and end. Without offsets, days are those of UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalDays {
    /// Pairs of a start time and the milliseconds by which the local clock is ahead of UTC from then on; oldest first.
    offsets: Vec<(Timestamp, i64)>,
}

impl LocalDays {
    /// `offsets` contains the offset that holds now and those of the next years.
    pub fn new(mut offsets: Vec<(Timestamp, i64)>) -> Self {
        offsets.sort_unstable();
        Self { offsets }
    }

    fn offset(&self, at: Timestamp) -> i64 {
        let holds = self.offsets.iter().rev().find(|(from, _)| *from <= at);
        holds.or_else(|| self.offsets.first()).map_or(0, |(_, offset)| *offset)
    }

    /// Returns the number of the local day.
    pub fn day(&self, at: Timestamp) -> i64 {
        at.0.saturating_add(self.offset(at)).div_euclid(DAY)
    }

    /// Returns when the day of this number is over.
    pub fn end_of(&self, day: i64) -> Timestamp {
        let midnight = day.saturating_add(1).saturating_mul(DAY);
        let utc = [(Timestamp(i64::MIN), 0)];
        let offsets = if self.offsets.is_empty() { utc.as_slice() } else { &self.offsets };
        // Midnight may come twice or be skipped when the clock changes. The first moment of another day counts.
        let moments = offsets.iter().flat_map(|(from, offset)| [Timestamp(midnight.saturating_sub(*offset)), *from]);
        moments.filter(|at| self.day(*at) > day).min().unwrap_or(Timestamp(midnight))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, span: Duration) -> Timestamp {
        self.saturating_add(span)
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Timestamp) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn days_are_those_of_the_local_clock() {
        let utc = LocalDays::default();
        assert_eq!((utc.day(Timestamp(DAY - 1)), utc.day(Timestamp(DAY))), (0, 1));
        assert_eq!(utc.end_of(0), Timestamp(DAY));
        let tokyo = LocalDays::new(vec![(Timestamp(0), 9 * HOUR)]);
        assert_eq!((tokyo.day(Timestamp(15 * HOUR - 1)), tokyo.day(Timestamp(15 * HOUR))), (0, 1));
        assert_eq!(tokyo.end_of(0), Timestamp(15 * HOUR));
        let west = LocalDays::new(vec![(Timestamp(0), -8 * HOUR)]);
        assert_eq!((west.day(Timestamp(8 * HOUR - 1)), west.day(Timestamp(8 * HOUR))), (-1, 0));
    }

    #[test]
    fn a_day_with_a_change_of_the_clock_has_another_length() {
        let start = 100 * DAY;
        let spring = LocalDays::new(vec![(Timestamp(0), HOUR), (Timestamp(start + HOUR), 2 * HOUR)]);
        assert_eq!(spring.end_of(100).0 - spring.end_of(99).0, 23 * HOUR);
        let autumn = LocalDays::new(vec![(Timestamp(0), 2 * HOUR), (Timestamp(start + HOUR), HOUR)]);
        assert_eq!(autumn.end_of(100).0 - autumn.end_of(99).0, 25 * HOUR);
        for days in [spring, autumn] {
            let end = days.end_of(100);
            assert_eq!((days.day(Timestamp(end.0 - 1)), days.day(end)), (100, 101));
        }
    }
}
