//! What a Claude session costs. A `result` reports the turn's own usage and the totals of the whole session (`modelUsage`,
//! `total_cost_usd`), which survive `--resume`; inside a turn each request reports its input. All three are combined here, so that nothing
//! is counted twice and a budget can stop a running turn.

use std::collections::VecDeque;

use serde_json::Value;

use crate::agent::Reaction;
use crate::agent::conversation::{Meter, count, microusd, minus, text};
use crate::domain::usage::Usage;

/// How many ids of counted requests are remembered; a turn repeats one id for each part of a response.
const REMEMBERED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Spending {
    meter: Meter,
    /// What the session had spent before this process; unknown until the first `result` of a resumed one.
    before: Option<Usage>,
    /// What was counted when the running turn began.
    at_turn: Usage,
    requests: VecDeque<String>,
    /// The input of all requests of this process: never more than what the next `result` reports.
    asked: Usage,
}

impl Spending {
    pub fn new(resumed: bool) -> Self {
        Self { before: (!resumed).then(Usage::default), ..Self::default() }
    }

    pub fn turn(&mut self) {
        self.at_turn = self.meter.mark();
    }

    /// Counts the input of one request as soon as it is known. Its output is only a start value here.
    pub fn request(&mut self, message: &Value, out: &mut Reaction) {
        let id = text(message, "/id");
        if id.is_empty() || self.requests.iter().any(|seen| seen == id) {
            return;
        }
        if self.requests.len() == REMEMBERED {
            self.requests.pop_front();
        }
        self.requests.push_back(id.to_owned());
        let mut usage = per_turn(&message["usage"]);
        usage.output = 0;
        self.asked += usage;
        self.meter.total(self.asked, out);
    }

    pub fn result(&mut self, result: &Value, out: &mut Reaction) {
        let turn = per_turn(&result["usage"]);
        let session = session_total(result);
        let Some(session) = session else {
            let mut until_now = self.at_turn;
            until_now += turn;
            return self.meter.total(until_now, out);
        };
        let before = *self.before.get_or_insert_with(|| {
            let share = if session.tokens() == 0 { 0.0 } else { turn.tokens() as f64 / session.tokens() as f64 };
            let cost = (session.cost_microusd as f64 * share.min(1.0)) as u64;
            minus(session, Usage { cost_microusd: cost, ..turn })
        });
        self.meter.total(minus(session, before), out);
    }
}

fn per_turn(usage: &Value) -> Usage {
    Usage {
        fresh_input: count(usage, "input_tokens").saturating_add(count(usage, "cache_creation_input_tokens")),
        cached_input: count(usage, "cache_read_input_tokens"),
        output: count(usage, "output_tokens"),
        reasoning: usage.get("output_tokens_details").map_or(0, |details| count(details, "thinking_tokens")),
        ..Usage::default()
    }
}

fn session_total(result: &Value) -> Option<Usage> {
    let models = result["modelUsage"].as_object().filter(|models| !models.is_empty())?;
    let mut total = Usage { cost_microusd: microusd(result.get("total_cost_usd")), ..Usage::default() };
    for model in models.values() {
        total += Usage {
            fresh_input: count(model, "inputTokens").saturating_add(count(model, "cacheCreationInputTokens")),
            cached_input: count(model, "cacheReadInputTokens"),
            output: count(model, "outputTokens"),
            reasoning: count(model, "thinkingTokens"),
            ..Usage::default()
        };
    }
    Some(total)
}
