//! Keeps the newest lines of the log in memory, for the live table.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::domain::time::Timestamp;
use crate::runtime;

const KEPT: usize = 200;
/// How long a warning is shown. Older ones are only in the log file.
const WARNS_FOR: Duration = Duration::from_secs(600);
const WARNINGS: usize = 3;

#[derive(Debug, Clone, Default)]
pub struct RecentLines {
    lines: Arc<Mutex<VecDeque<RecentLine>>>,
}

#[derive(Debug)]
struct RecentLine {
    at: Timestamp,
    warns: bool,
    text: String,
}

impl RecentLines {
    pub fn all(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| line.text.clone()).collect()
    }

    /// Returns the newest warnings and errors, at most three, the newest last.
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let new = lines.iter().filter(|line| line.warns && now.since(line.at) < WARNS_FOR);
        let mut texts: Vec<String> = new.map(|line| line.text.clone()).collect();
        texts.drain(..texts.len().saturating_sub(WARNINGS));
        texts
    }

    fn add(&self, warns: bool, text: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(RecentLine { at: runtime::now(), warns, text: text.trim_end().to_owned() });
    }
}

/// Writer for one log line.
pub struct NextLine<'a> {
    lines: &'a RecentLines,
    warns: bool,
}

impl Write for NextLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.add(self.warns, &String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RecentLines {
    type Writer = NextLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        NextLine { lines: self, warns: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Self::Writer {
        NextLine { lines: self, warns: *about.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_stay_and_old_warnings_are_no_news() {
        let lines = RecentLines::default();
        (0..KEPT + 5).for_each(|number| lines.add(number % 100 == 0, &format!("line {number}\n")));
        let all = lines.all();
        assert_eq!((all.len(), all[0].as_str()), (KEPT, "line 5"));
        let now = runtime::now();
        assert_eq!(lines.warnings(now), ["line 100", "line 200"]);
        (0..4).for_each(|number| lines.add(true, &format!("worse {number}")));
        assert_eq!(lines.warnings(now), ["worse 1", "worse 2", "worse 3"]);
        assert!(lines.warnings(Timestamp(now.0 + 700_000)).is_empty());
    }
}
