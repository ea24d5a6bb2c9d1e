//! The last things that an agent said and did, for a ticket's page.

use serde::Serialize;

use super::words::{cut, day_and_time};
use crate::domain::time::Timestamp;
use crate::http::logs::TranscriptLine;

/// Limit of one line, in characters.
const LONGEST: usize = 600;

#[derive(Debug, Clone, Serialize)]
pub struct PeekView {
    pub time: String,
    pub at: String,
    pub kind: String,
    pub text: String,
}

impl PeekView {
    pub fn of(line: &TranscriptLine) -> Self {
        let at = line.at.parse::<jiff::Timestamp>().map(|at| at.as_millisecond()).unwrap_or_default();
        // An unknown time is left empty instead of being shown as 1970.
        let time = if at == 0 { String::new() } else { day_and_time(Timestamp(at)).1 };
        Self { time, at: line.at.clone(), kind: line.kind.clone(), text: cut(line.text.trim_end(), LONGEST) }
    }
}
