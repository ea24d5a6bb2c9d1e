//! Section `ledger`: how long the ledger keeps what happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LedgerSettings {
    /// Notes and finished runs older than this many days are dropped. Salvaged work, receipts and totals stay.
    #[schemars(range(min = 1))]
    pub keep_days: u32,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self { keep_days: 180 }
    }
}
