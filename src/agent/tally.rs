//! What an agent's chatter adds up to between two reports, so that a flood of events costs a few small ones.

use std::collections::BTreeMap;

use crate::domain::run::Activity;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// More calls than this are never open at once in earnest.
const OPEN_TOOLS: usize = 1024;
const SAID_LIMIT: usize = 500;
/// Less than this can wait for the next report.
const TOKENS_WORTH_TELLING: u64 = 500;
const COST_WORTH_TELLING: u64 = 10_000;

#[derive(Debug, Default)]
pub struct Tally {
    news: bool,
    usage: Usage,
    open_tools: BTreeMap<String, Timestamp>,
    said: Option<String>,
}

impl Tally {
    pub fn alive(&mut self) {
        self.news = true;
    }

    pub fn said(&mut self, text: &str) {
        self.news = true;
        let text = text.trim();
        if !text.is_empty() {
            let end = text.char_indices().nth(SAID_LIMIT).map_or(text.len(), |(at, _)| at);
            self.said = Some(text.get(..end).unwrap_or(text).to_owned());
        }
    }

    pub fn used(&mut self, usage: Usage) {
        self.news = true;
        self.usage += usage;
    }

    /// Whether the usage that no report has carried is more than small change.
    pub fn is_worth_telling(&self) -> bool {
        self.usage.tokens() >= TOKENS_WORTH_TELLING || self.usage.cost_microusd >= COST_WORTH_TELLING
    }

    pub fn tool_started(&mut self, id: &str, at: Timestamp) {
        self.news = true;
        if self.open_tools.len() < OPEN_TOOLS {
            self.open_tools.entry(id.to_owned()).or_insert(at);
        }
    }

    pub fn tool_finished(&mut self, id: &str) {
        self.news = true;
        self.open_tools.remove(id);
    }

    /// A turn's end closes whatever the agent forgot to close.
    pub fn turn_ended(&mut self) {
        self.news = true;
        self.open_tools.clear();
    }

    /// The report since the last one; `None` when the agent was silent.
    pub fn report(&mut self) -> Option<Activity> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        Some(Activity::Agent {
            usage: std::mem::take(&mut self.usage),
            tool_open_since: self.open_tools.values().min().copied(),
            said: self.said.take(),
        })
    }

    /// Usage that no report has carried.
    pub fn unreported(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_events_are_one_report() {
        let mut tally = Tally::default();
        for _ in 0..1_000_000 {
            tally.said("working");
            tally.used(Usage { output: 2, ..Usage::default() });
        }
        let usage = Usage { output: 2_000_000, ..Usage::default() };
        assert_eq!(
            tally.report(),
            Some(Activity::Agent { usage, tool_open_since: None, said: Some("working".into()) })
        );
        assert_eq!(tally.report(), None, "silence is no report");
    }

    #[test]
    fn the_oldest_open_call_counts() {
        let mut tally = Tally::default();
        tally.tool_started("b", Timestamp(20));
        tally.tool_started("a", Timestamp(10));
        tally.tool_started("a", Timestamp(30));
        assert!(matches!(tally.report(), Some(Activity::Agent { tool_open_since: Some(Timestamp(10)), .. })));
        tally.tool_finished("a");
        assert!(matches!(tally.report(), Some(Activity::Agent { tool_open_since: Some(Timestamp(20)), .. })));
        tally.turn_ended();
        assert!(matches!(tally.report(), Some(Activity::Agent { tool_open_since: None, .. })));
    }
}
