//! `polling`: how often the tracker is asked.

use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::wire;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PollingSettings {
    /// A period, not a pause after the work.
    #[serde(rename = "interval_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub interval: Duration,
    /// Deliveries that trigger a targeted refresh.
    pub webhook: Option<Webhook>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Webhook {
    /// The secret that deliveries are signed with.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub secret: Option<SecretString>,
}

impl Default for PollingSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), webhook: None }
    }
}
