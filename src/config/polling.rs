//! Section `polling`: how often the tracker is read, and webhooks.

use std::time::Duration;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

/// The fewest characters of a webhook secret. A shorter one could be guessed.
const SHORTEST_SECRET: usize = 16;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PollingSettings {
    /// The time from the start of one poll to the start of the next.
    #[serde(rename = "interval_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub interval: Duration,
    /// Webhooks: a delivery makes the runner read the ticket or pull request that changed.
    pub webhook: Option<WebhookSettings>,
}

/// Who may deliver webhooks to `/webhooks/github` and `/webhooks/linear` of the server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookSettings {
    pub github: WebhookSender,
    pub linear: WebhookSender,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookSender {
    /// The secret that deliveries are signed with. Without a secret no delivery is accepted.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub secret: Option<SecretString>,
}

impl PollingSettings {
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let senders = self.webhook.iter().flat_map(|webhook| [&webhook.github, &webhook.linear]);
        senders.filter_map(|sender| sender.secret.as_ref())
    }

    pub fn check(&self) -> Vec<Problem> {
        let Some(webhook) = &self.webhook else { return Vec::new() };
        if self.secrets().next().is_none() {
            let message = "`polling.webhook` names no secret, so no delivery could be told from a forged one";
            let help = "write `polling.webhook.github.secret: $NAME`, or `linear` in its place";
            return vec![Problem::new("polling.webhook", message).with_help(help)];
        }
        let senders = [("github", &webhook.github), ("linear", &webhook.linear)];
        let is_short = |sender: &WebhookSender| {
            sender.secret.as_ref().is_some_and(|secret| secret.expose_secret().trim().len() < SHORTEST_SECRET)
        };
        let short = senders.into_iter().filter(|(_, sender)| is_short(sender)).map(|(name, _)| {
            let key = format!("polling.webhook.{name}.secret");
            let message = format!("`{key}` has fewer than {SHORTEST_SECRET} characters and could be guessed");
            Problem::new(key, message)
                .with_help("make one with `openssl rand -hex 32`, and enter it at the sender, too")
        });
        short.collect()
    }
}

impl Default for PollingSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), webhook: None }
    }
}
