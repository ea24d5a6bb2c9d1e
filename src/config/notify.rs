//! Section `observability.notify`: receivers of notifications about events that a person may want to know of at once.

use std::time::Duration;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

/// One receiver of notifications.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NotifySettings {
    /// The occasions that this receiver is notified of.
    pub when: Vec<Occasion>,
    pub to: NotifyReceiver,
    /// The address for `webhook` and `slack`. Anyone who knows it can post there, so it is usually written as `$NAME`.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub url: Option<SecretString>,
    /// The command for `command`: run by a shell, with the notification as JSON on its stdin and in `DIRIGENT_NOTIFICATION`.
    pub command: Option<String>,
    /// How long one delivery may take. Default: 10 seconds.
    #[serde(rename = "timeout_ms", with = "wire::optional_millis")]
    #[schemars(with = "Option<wire::PositiveMillis>")]
    pub timeout: Option<Duration>,
}

/// What people can be notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// A ticket is blocked, for another reason than a spent budget.
    Blocked,
    /// A ticket is merged.
    Done,
    /// An attempt failed and will be repeated.
    Failed,
    /// A budget is spent: that of a ticket, or that of the day.
    Budget,
    /// A run has been silent for too long.
    Stuck,
    /// A ticket waits for approval.
    Waiting,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyReceiver {
    /// A JSON object is posted to `url`.
    #[default]
    Webhook,
    /// A message is posted to an incoming webhook of Slack.
    Slack,
    Command,
}

impl Occasion {
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Budget => "budget",
            Self::Stuck => "stuck",
            Self::Waiting => "waiting",
        }
    }
}

impl NotifySettings {
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Checks the receiver. `path` is its place in the file, such as `observability.notify[0]`.
    pub fn check(&self, path: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.when.is_empty() {
            problems.push(
                Problem::new(format!("{path}.when"), format!("`{path}.when` is empty: nobody would be told anything"))
                    .with_help("name some of blocked, done, failed, budget, stuck, waiting"),
            );
        }
        let (wanted, other, is_there, other_is_there) = match self.to {
            NotifyReceiver::Webhook | NotifyReceiver::Slack => {
                ("url", "command", self.url.is_some(), self.command.is_some())
            }
            NotifyReceiver::Command => ("command", "url", self.command.is_some(), self.url.is_some()),
        };
        if !is_there {
            problems.push(
                Problem::new(path, format!("`{path}` has no `{wanted}`"))
                    .with_help(format!("say under `{path}` which `{wanted}` to use")),
            );
        }
        if other_is_there {
            problems.push(
                Problem::new(format!("{path}.{other}"), format!("`{path}.{other}` is not used by this receiver"))
                    .with_help(format!("remove it, or choose another `{path}.to`")),
            );
        }
        let is_web = |url: &SecretString| {
            let url = url.expose_secret();
            url.starts_with("https://") || url.starts_with("http://")
        };
        if self.url.as_ref().is_some_and(|url| !is_web(url)) {
            problems.push(
                Problem::new(format!("{path}.url"), format!("`{path}.url` is not an address of the web"))
                    .with_help("it begins with `https://`"),
            );
        }
        problems
    }
}
