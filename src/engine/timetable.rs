//! A timetable: one due time per key, with the earliest quickly found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::domain::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable<K: Ord> {
    times: BTreeMap<K, Timestamp>,
    order: BTreeSet<(Timestamp, K)>,
}

impl<K: Ord> Default for Timetable<K> {
    fn default() -> Self {
        Self { times: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Timetable<K> {
    pub fn get(&self, key: &K) -> Option<Timestamp> {
        self.times.get(key).copied()
    }

    /// Sets the time of a key, or removes it with `None`.
    pub fn set(&mut self, key: &K, at: Option<Timestamp>) {
        let known = self.get(key);
        if known == at {
            return;
        }
        if let Some(known) = known {
            self.times.remove(key);
            self.order.remove(&(known, key.clone()));
        }
        if let Some(at) = at {
            self.times.insert(key.clone(), at);
            self.order.insert((at, key.clone()));
        }
    }

    pub fn remove(&mut self, key: &K) {
        self.set(key, None);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn first(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Returns all keys whose time has come, earliest first.
    pub fn due(&self, now: Timestamp) -> Vec<K> {
        self.order.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key.clone()).collect()
    }

    /// Returns all keys that are due later than `latest`. Such a time was set before the clock was put back.
    pub fn beyond(&self, latest: Timestamp) -> Vec<K> {
        let from = self.order.iter().rev().take_while(|(at, _)| *at > latest);
        from.map(|(_, key)| key.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

/// Returns the key of a set that comes after `last`, for callers that change the set while walking through it.
pub fn next_after<K: Ord + Clone>(set: &BTreeSet<K>, last: Option<&K>) -> Option<K> {
    let from = last.map_or(Bound::Unbounded, Bound::Excluded);
    set.range((from, Bound::Unbounded)).next().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_has_one_time_and_the_earliest_is_first() {
        let mut table = Timetable::default();
        table.set(&"a", Some(Timestamp(5)));
        table.set(&"b", Some(Timestamp(3)));
        table.set(&"a", Some(Timestamp(2)));
        assert_eq!((table.first(), table.len()), (Some(Timestamp(2)), 2));
        assert_eq!(table.due(Timestamp(2)), ["a"]);
        assert_eq!(table.beyond(Timestamp(2)), ["b"]);
        table.remove(&"a");
        assert_eq!(table.first(), Some(Timestamp(3)));
        table.remove(&"b");
        assert!(table.is_empty());
    }
}
