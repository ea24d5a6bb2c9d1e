//! The lines of jobs that could start now, one per pool and column, each in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::ids::{PoolName, TicketId};
use crate::engine::select::Rank;

/// Identifies a line: its jobs need an agent with these credentials and a slot for this column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartLine {
    pub pool: PoolName,
    /// The column, trimmed and in lower case.
    pub state: Arc<str>,
}

/// A job's place in a line.
#[derive(Debug, Clone)]
pub struct PlaceInLine {
    line: Arc<StartLine>,
    rank: Rank,
}

#[derive(Debug, Clone, Default)]
pub struct StartLines {
    lines: BTreeMap<Arc<StartLine>, BTreeSet<(Rank, TicketId)>>,
}

impl StartLines {
    pub fn enter(&mut self, line: StartLine, rank: Rank, id: &TicketId) -> PlaceInLine {
        let line = self.lines.get_key_value(&line).map_or_else(|| Arc::new(line), |(known, _)| Arc::clone(known));
        self.lines.entry(Arc::clone(&line)).or_default().insert((rank.clone(), id.clone()));
        PlaceInLine { line, rank }
    }

    pub fn leave(&mut self, place: PlaceInLine, id: &TicketId) {
        let Some(waiting) = self.lines.get_mut(&place.line) else { return };
        waiting.remove(&(place.rank, id.clone()));
        if waiting.is_empty() {
            self.lines.remove(&place.line);
        }
    }

    /// Returns the job that comes first among all lines that are open.
    pub fn first(&self, mut open: impl FnMut(&StartLine) -> bool) -> Option<&TicketId> {
        let heads = self.lines.iter().filter(|(line, _)| open(line)).filter_map(|(_, waiting)| waiting.first());
        heads.min().map(|(_, id)| id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &StartLine> {
        self.lines.keys().map(AsRef::as_ref)
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn the_first_of_the_open_lines_goes_first() {
        let mut lines = StartLines::default();
        let line = |pool: &str| StartLine { pool: PoolName::new(pool), state: "todo".into() };
        let rank = |priority: i64, key: &str| (priority, Reverse(0), Timestamp(0), key.into());
        let (a, b) = (TicketId::new("a"), TicketId::new("b"));
        let place = lines.enter(line("one"), rank(1, "a"), &a);
        lines.enter(line("two"), rank(2, "b"), &b);
        assert_eq!(lines.first(|_| true), Some(&a));
        assert_eq!(lines.first(|line| line.pool.as_str() != "one"), Some(&b));
        lines.leave(place, &a);
        assert_eq!(lines.first(|_| true), Some(&b));
        assert_eq!(lines.iter().count(), 1, "an empty line is gone");
    }
}
