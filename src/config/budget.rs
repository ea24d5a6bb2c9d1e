//! Section `budget`: caps on turns, tokens, money and time, per ticket and per day.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::Caps;
use super::wire;
use crate::domain::usage::{PriceTable, TokenPrices};

/// Caps on what a ticket may cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetSettings {
    #[serde(flatten)]
    pub caps: CapSettings,
    /// What each cap above applies to.
    pub per: BudgetScope,
    /// Caps on all tickets together, for one day of this machine's clock.
    pub daily: CapSettings,
    /// Prices by model name, used where the agent does not report its cost. A model that is not listed is charged at the highest price
    /// listed.
    pub prices: BTreeMap<String, Price>,
}

/// Caps. A key that is left out sets no cap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapSettings {
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    #[schemars(range(min = 0.000001))]
    pub max_cost_usd: Option<f64>,
    #[serde(rename = "max_run_ms", with = "wire::optional_millis")]
    #[schemars(with = "Option<wire::PositiveMillis>")]
    pub max_run: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    #[default]
    Ticket,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Price {
    #[schemars(range(min = 0.0))]
    pub input: f64,
    #[schemars(range(min = 0.0))]
    pub cached_input: f64,
    #[schemars(range(min = 0.0))]
    pub output: f64,
}

impl BudgetSettings {
    pub fn price_table(&self) -> PriceTable {
        let micro = |usd: f64| (usd * 1_000_000.0).ceil() as u64;
        let prices = self.prices.iter().map(|(model, price)| {
            let (fresh_input, cached_input) = (micro(price.input), micro(price.cached_input));
            (model.clone(), TokenPrices { fresh_input, cached_input, output: micro(price.output) })
        });
        PriceTable(prices.collect())
    }
}

impl CapSettings {
    pub fn caps(&self) -> Caps {
        Caps {
            max_turns: self.max_turns,
            max_tokens: self.max_tokens,
            max_cost_microusd: self.max_cost_usd.map(|usd| (usd * 1_000_000.0).round() as u64),
            max_run: self.max_run,
        }
    }
}
