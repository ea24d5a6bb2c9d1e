//! What a run costs, in one meaning for all agents: fresh input, cached input, output and reasoning are counted apart.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub fresh_input: u64,
    pub cached_input: u64,
    pub output: u64,
    /// Part of `output` where the agent says so; kept for display, not added to the total.
    pub reasoning: u64,
    /// Millionths of a US dollar.
    pub cost_microusd: u64,
    pub turns: u32,
}

impl Usage {
    /// What a token cap is compared with.
    pub fn tokens(&self) -> u64 {
        self.fresh_input.saturating_add(self.cached_input).saturating_add(self.output)
    }

    pub fn cost_usd(&self) -> f64 {
        self.cost_microusd as f64 / 1_000_000.0
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

/// The latest word of an agent about its limits, kept for people to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    pub description: String,
    pub reset_at: Option<super::time::Timestamp>,
}
