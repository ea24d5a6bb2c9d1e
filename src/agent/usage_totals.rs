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
pub struct UsageTotals {
    news: bool,
    usage: Usage,
    open_tools: BTreeMap<String, Timestamp>,
    said: Option<String>,
}

impl UsageTotals {
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
        let mut usage_totals = UsageTotals::default();
        for _ in 0..1_000_000 {
            usage_totals.said("working");
            usage_totals.used(Usage { output: 2, ..Usage::default() });
        }
        let usage = Usage { output: 2_000_000, ..Usage::default() };
        assert_eq!(
            usage_totals.report(),
            Some(Activity::Agent { usage, tool_open_since: None, said: Some("working".into()) })
        );
        assert_eq!(usage_totals.report(), None, "silence is no report");
    }

    #[test]
    fn the_oldest_open_call_counts() {
        let mut usage_totals = UsageTotals::default();
        usage_totals.tool_started("b", Timestamp(20));
        usage_totals.tool_started("a", Timestamp(10));
        usage_totals.tool_started("a", Timestamp(30));
        assert!(matches!(usage_totals.report(), Some(Activity::Agent { tool_open_since: Some(Timestamp(10)), .. })));
        usage_totals.tool_finished("a");
        assert!(matches!(usage_totals.report(), Some(Activity::Agent { tool_open_since: Some(Timestamp(20)), .. })));
        usage_totals.turn_ended();
        assert!(matches!(usage_totals.report(), Some(Activity::Agent { tool_open_since: None, .. })));
    }
}
