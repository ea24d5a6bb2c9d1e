//! What a run costs, counted the same way for all agents: fresh input, cached input, output and reasoning separately.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub fresh_input: u64,
    pub cached_input: u64,
    pub output: u64,
    /// Part of `output`, where the agent reports it. Kept for display and not added to the total.
    pub reasoning: u64,
    /// Millionths of a US dollar.
    pub cost_microusd: u64,
    pub turns: u32,
}

impl Usage {
    /// Returns the number of tokens that a token cap is compared with.
    pub fn tokens(&self) -> u64 {
        self.fresh_input.saturating_add(self.cached_input).saturating_add(self.output)
    }

    /// Returns what this count has beyond an earlier one. The turns are zero: they are counted elsewhere.
    pub fn beyond(&self, earlier: &Usage) -> Usage {
        Usage {
            fresh_input: self.fresh_input.saturating_sub(earlier.fresh_input),
            cached_input: self.cached_input.saturating_sub(earlier.cached_input),
            output: self.output.saturating_sub(earlier.output),
            reasoning: self.reasoning.saturating_sub(earlier.reasoning),
            cost_microusd: self.cost_microusd.saturating_sub(earlier.cost_microusd),
            turns: 0,
        }
    }

    pub fn cost_usd(&self) -> f64 {
        self.cost_microusd as f64 / 1_000_000.0
    }
}

/// The prices of a model, in millionths of a US dollar for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenPrices {
    pub fresh_input: u64,
    pub cached_input: u64,
    pub output: u64,
}

impl TokenPrices {
    /// Returns the cost, rounded up, so that a cap is reached a little early rather than late.
    pub fn cost_microusd(&self, usage: &Usage) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = part(usage.fresh_input, self.fresh_input)
            + part(usage.cached_input, self.cached_input)
            + part(usage.output, self.output);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// The workflow's prices, for agents that do not report their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceTable(pub std::collections::BTreeMap<String, TokenPrices>);

impl PriceTable {
    /// Returns the prices of this model. For an unknown model, each kind of token has the highest price in the table, so that an unknown
    /// name cannot bypass a cap. `None` if the table is empty.
    pub fn of(&self, model: Option<&str>) -> Option<TokenPrices> {
        if let Some(named) = model.and_then(|model| self.0.get(model)) {
            return Some(*named);
        }
        self.0.values().copied().reduce(|one, other| TokenPrices {
            fresh_input: one.fresh_input.max(other.fresh_input),
            cached_input: one.cached_input.max(other.cached_input),
            output: one.output.max(other.output),
        })
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.fresh_input = self.fresh_input.saturating_add(more.fresh_input);
        self.cached_input = self.cached_input.saturating_add(more.cached_input);
        self.output = self.output.saturating_add(more.output);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
        self.cost_microusd = self.cost_microusd.saturating_add(more.cost_microusd);
        self.turns = self.turns.saturating_add(more.turns);
    }
}

/// An agent's latest report about its usage limits, kept for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    pub description: String,
    pub reset_at: Option<super::time::Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_counted_by_kind_and_an_unknown_model_is_the_dearest() {
        let small = TokenPrices { fresh_input: 1_000_000, cached_input: 100_000, output: 9_000_000 };
        let large = TokenPrices { fresh_input: 3_000_000, cached_input: 300_000, output: 8_000_000 };
        let table = PriceTable([("small".to_owned(), small), ("large".to_owned(), large)].into());
        let usage = Usage { fresh_input: 10, cached_input: 10, output: 1, reasoning: 1, ..Usage::default() };
        assert_eq!(table.of(Some("small")).unwrap().cost_microusd(&usage), 10 + 1 + 9);
        assert_eq!(table.of(Some("large")).unwrap().cost_microusd(&usage), 30 + 3 + 8);
        for unknown in [None, Some("other")] {
            assert_eq!(table.of(unknown).unwrap().cost_microusd(&usage), 30 + 3 + 9);
        }
        assert_eq!(PriceTable::default().of(Some("small")), None);
        let little = Usage { cached_input: 1, ..Usage::default() };
        assert_eq!(small.cost_microusd(&little), 1, "a part counts as a whole");
        let most = Usage { output: u64::MAX, ..Usage::default() };
        assert_eq!(small.cost_microusd(&most), u64::MAX);
    }
}
