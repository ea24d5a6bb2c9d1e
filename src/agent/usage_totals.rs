//! Adds up an agent's events between two reports, so that a flood of events costs only a few small reports.

use std::collections::BTreeMap;

use crate::domain::run::Activity;
use crate::domain::time::Timestamp;
use crate::domain::usage::{PriceTable, Usage};

/// The most open tool calls that are tracked.
const OPEN_TOOLS: usize = 1024;
const SAID_LIMIT: usize = 500;
/// Smaller usage can wait for the next report.
const TOKENS_WORTH_TELLING: u64 = 500;
const COST_WORTH_TELLING: u64 = 10_000;

#[derive(Debug, Default)]
pub struct UsageTotals {
    news: bool,
    usage: Usage,
    open_tools: BTreeMap<String, OpenTool>,
    said: Option<String>,
    model: Option<String>,
    prices: PriceTable,
    /// Whether the agent reported a cost itself; from then on no cost is computed.
    names_cost: bool,
    /// The model and the tool as last reported.
    told: (Option<String>, Option<String>),
}

#[derive(Debug)]
struct OpenTool {
    since: Timestamp,
    name: String,
}

impl UsageTotals {
    /// Computes cost by these prices as long as the agent reports none.
    pub fn price_by(&mut self, prices: PriceTable, model: Option<String>) {
        self.prices = prices;
        self.model = self.model.take().or(model);
    }

    pub fn works_with(&mut self, model: &str) {
        self.news = true;
        self.model = Some(shortened(model));
    }

    pub fn alive(&mut self) {
        self.news = true;
    }

    pub fn said(&mut self, text: &str) {
        self.news = true;
        let text = text.trim();
        if !text.is_empty() {
            self.said = Some(shortened(text));
        }
    }

    /// Adds usage. Returns it with its cost.
    pub fn used(&mut self, mut usage: Usage) -> Usage {
        self.news = true;
        self.names_cost |= usage.cost_microusd > 0;
        if !self.names_cost
            && let Some(prices) = self.prices.of(self.model.as_deref())
        {
            usage.cost_microusd = prices.cost_microusd(&usage);
        }
        self.usage += usage;
        usage
    }

    /// Whether the unreported usage is large enough to be reported at once.
    pub fn is_worth_telling(&self) -> bool {
        self.usage.tokens() >= TOKENS_WORTH_TELLING || self.usage.cost_microusd >= COST_WORTH_TELLING
    }

    pub fn tool_started(&mut self, id: &str, name: &str, at: Timestamp) {
        self.news = true;
        if self.open_tools.len() < OPEN_TOOLS {
            let tool = || OpenTool { since: at, name: shortened(name) };
            self.open_tools.entry(id.to_owned()).or_insert_with(tool);
        }
    }

    pub fn tool_finished(&mut self, id: &str) {
        self.news = true;
        self.open_tools.remove(id);
    }

    /// Closes all tool calls that the agent left open at the end of a turn.
    pub fn turn_ended(&mut self) {
        self.news = true;
        self.open_tools.clear();
    }

    /// Returns what happened since the last report; empty if the agent was silent.
    pub fn report(&mut self) -> Vec<Activity> {
        if !std::mem::take(&mut self.news) {
            return Vec::new();
        }
        let oldest = self.open_tools.values().min_by_key(|tool| tool.since);
        let (since, tool) = oldest.map(|tool| (tool.since, tool.name.clone())).unzip();
        let mut news = Vec::new();
        let doing = (self.model.clone(), tool);
        if doing != self.told {
            self.told.clone_from(&doing);
            news.push(Activity::Doing { model: doing.0, tool: doing.1 });
        }
        let usage = std::mem::take(&mut self.usage);
        news.push(Activity::Agent { usage, tool_open_since: since, said: self.said.take() });
        news
    }

    /// Returns the usage that no report has contained.
    pub fn unreported(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}

/// Truncates a text that is shown to people.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SAID_LIMIT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::usage::TokenPrices;

    fn open_since(usage_totals: &mut UsageTotals) -> Option<Timestamp> {
        match usage_totals.report().pop() {
            Some(Activity::Agent { tool_open_since, .. }) => tool_open_since,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_million_events_are_one_report() {
        let mut usage_totals = UsageTotals::default();
        for _ in 0..1_000_000 {
            usage_totals.said("working");
            usage_totals.used(Usage { output: 2, ..Usage::default() });
        }
        let usage = Usage { output: 2_000_000, ..Usage::default() };
        let report = Activity::Agent { usage, tool_open_since: None, said: Some("working".into()) };
        assert_eq!(usage_totals.report(), [report]);
        assert_eq!(usage_totals.report(), [], "silence is no report");
    }

    #[test]
    fn the_oldest_open_call_counts() {
        let mut usage_totals = UsageTotals::default();
        usage_totals.tool_started("b", "edit", Timestamp(20));
        usage_totals.tool_started("a", "shell", Timestamp(10));
        usage_totals.tool_started("a", "shell", Timestamp(30));
        assert_eq!(open_since(&mut usage_totals), Some(Timestamp(10)));
        usage_totals.tool_finished("a");
        assert_eq!(open_since(&mut usage_totals), Some(Timestamp(20)));
        usage_totals.turn_ended();
        assert_eq!(open_since(&mut usage_totals), None);
    }

    #[test]
    fn model_and_tool_are_told_when_they_change() {
        let mut usage_totals = UsageTotals::default();
        usage_totals.works_with("large");
        usage_totals.tool_started("a", "shell make", Timestamp(10));
        let (model, tool) = (Some("large".to_owned()), Some("shell make".to_owned()));
        assert_eq!(usage_totals.report()[0], Activity::Doing { model: model.clone(), tool });
        usage_totals.alive();
        assert_eq!(usage_totals.report().len(), 1, "nothing changed");
        usage_totals.tool_finished("a");
        assert_eq!(usage_totals.report()[0], Activity::Doing { model, tool: None });
    }

    #[test]
    fn cost_is_computed_only_while_the_agent_names_none() {
        let prices = TokenPrices { output: 2_000_000, ..TokenPrices::default() };
        let mut usage_totals = UsageTotals::default();
        usage_totals.price_by(PriceTable([("m".to_owned(), prices)].into()), Some("m".into()));
        usage_totals.used(Usage { output: 3, ..Usage::default() });
        assert_eq!(usage_totals.unreported().cost_microusd, 6);
        usage_totals.used(Usage { output: 3, cost_microusd: 50, ..Usage::default() });
        usage_totals.used(Usage { output: 3, ..Usage::default() });
        assert_eq!(usage_totals.unreported().cost_microusd, 50);
    }
}
