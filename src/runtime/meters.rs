//! What the runner counts about itself: how long its passes take, how runs ended, which writes were refused. Counting takes nanoseconds,
//! and readers do not hold it up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets, in seconds: from a short pass to a long run.
pub const BOUNDS: [f64; 14] =
    [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One bucket per bound, and one for everything above the last bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The values of a histogram at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// For each bound, the number of all values up to it.
    pub up_to: Vec<u64>,
    pub count: u64,
    pub sum: f64,
}

impl Histogram {
    pub fn observe(&self, span: Duration) {
        let seconds = span.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn read(&self) -> Distribution {
        let mut count = 0;
        let mut up_to: Vec<u64> = Vec::with_capacity(BOUNDS.len());
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if index < BOUNDS.len() {
                up_to.push(count);
            }
        }
        Distribution { up_to, count, sum: self.micros.load(Ordering::Relaxed) as f64 / 1_000_000.0 }
    }
}

/// One counter for each set of labels.
#[derive(Debug, Default)]
pub struct Counters(Mutex<BTreeMap<Vec<String>, u64>>);

impl Counters {
    pub fn add(&self, labels: &[&str]) {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(labels).or_default() += 1;
    }

    pub fn read(&self) -> Vec<(Vec<String>, u64)> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

/// Everything that is counted since the start.
#[derive(Debug, Default)]
pub struct Meters {
    /// One pass of the loop: step, ledger, effects, snapshot.
    pub pass: Histogram,
    /// Building and publishing a snapshot.
    pub publish: Histogram,
    /// Finished runs, by outcome, kind and agent.
    pub runs: Counters,
    /// Durations of runs, by kind and agent.
    pub run_seconds: Mutex<BTreeMap<[String; 2], std::sync::Arc<Histogram>>>,
    /// Refused permits, by effect and reason.
    pub refusals: Counters,
}

impl Meters {
    pub fn run_over(&self, outcome: &str, kind: &str, runtime: &str, took: Duration) {
        self.runs.add(&[outcome, kind, runtime]);
        let mut all = self.run_seconds.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry([kind.to_owned(), runtime.to_owned()]).or_default().observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_in_a_high_bucket_and_all_of_it_is_added_up() {
        let histogram = Histogram::default();
        for millis in [1, 1, 7, 2_000, 100_000_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let read = histogram.read();
        let at = |bound: f64| read.up_to[BOUNDS.iter().position(|known| (*known - bound).abs() < 1e-9).unwrap()];
        assert_eq!([at(0.000_5), at(0.001), at(0.01), at(1.0), at(10.0), at(86_400.0)], [0, 2, 3, 3, 4, 4]);
        assert_eq!(read.count, 5);
        assert!((read.sum - 100_002.009).abs() < 0.001, "{}", read.sum);
    }
}
