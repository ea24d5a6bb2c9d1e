//! `tracker`: where tickets come from, which ones count, and whose words count.

use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;
use crate::domain::comment::TrustLevel;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrackerSettings {
    /// Which tracker holds the tickets. Required.
    pub kind: TrackerKind,
    /// What the chosen tracker needs; each kind knows its own keys.
    pub provider: Provider,
    /// Labels a ticket must all carry. A blank one matches nothing.
    pub required_labels: Vec<String>,
    /// States in which a ticket is worked on. Default: the tracker's own.
    pub active_states: Vec<String>,
    /// States in which a ticket is finished. Default: the tracker's own.
    pub terminal_states: Vec<String>,
    /// If not empty, only tickets by these accounts are eligible.
    pub authors: Vec<String>,
    /// Whose words trigger, steer, approve and un-block.
    #[schemars(schema_with = "trust_levels")]
    pub trusted: Vec<TrustLevel>,
    /// Accounts whose words count whatever their permission.
    pub trusted_accounts: Vec<String>,
    /// The name that people address it by: `@name ...` and `/name ...`.
    pub mention: String,
    /// Comments that only say one of these are not remarks.
    pub acknowledgements: Vec<String>,
    /// What happens to text by anybody else when a prompt is made.
    pub untrusted_text: UntrustedText,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackerKind {
    #[default]
    Tk,
    Github,
    Linear,
    /// Lives in memory; for tests.
    Memory,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UntrustedText {
    #[default]
    Omit,
    Fence,
}

/// The keys of all trackers; [`TrackerKind::provider_keys`] says whose each is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Provider {
    /// tk: the directory of the ticket files. Default: `.tickets` in the repository.
    #[schemars(with = "Option<wire::PathText>")]
    pub dir: Option<PathBuf>,
    /// github: `owner/name`.
    pub repo: Option<String>,
    /// github: an access token.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub token: Option<SecretString>,
    /// github: another API address.
    pub api_url: Option<String>,
    /// github: the id of an app, with `private_key` and `installation_id`.
    pub app_id: Option<u64>,
    /// github: the app's private key.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub private_key: Option<SecretString>,
    /// github: the app's installation.
    pub installation_id: Option<u64>,
    /// linear: an API key.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub api_key: Option<SecretString>,
    /// linear: another API address.
    pub endpoint: Option<String>,
    /// linear: the team's key.
    pub team_key: Option<String>,
    /// linear: the project's slug id.
    pub project_slug: Option<String>,
    /// linear: only tickets of this assignee (`me` or an id).
    pub assignee: Option<String>,
    /// linear: whether a label that is not there may be made. Default: no.
    pub create_labels: Option<bool>,
}

/// What people write to say that they have seen something.
const ACKNOWLEDGEMENTS: &[&str] =
    &["lgtm", "thanks", "thank you", "thx", "ok", "okay", "nice", "great", "cool", "+1", "👍", "🎉", "❤️", "🚀"];

impl Default for TrackerSettings {
    fn default() -> Self {
        let kind = TrackerKind::default();
        Self {
            kind,
            provider: Provider::default(),
            required_labels: Vec::new(),
            active_states: owned(kind.active_states()),
            terminal_states: owned(kind.terminal_states()),
            authors: Vec::new(),
            trusted: vec![TrustLevel::Admin, TrustLevel::Maintain, TrustLevel::Write, TrustLevel::Member],
            trusted_accounts: Vec::new(),
            mention: "dirigent".to_owned(),
            acknowledgements: owned(ACKNOWLEDGEMENTS),
            untrusted_text: UntrustedText::default(),
        }
    }
}

impl TrackerKind {
    pub const ALL: [TrackerKind; 4] = [Self::Tk, Self::Github, Self::Linear, Self::Memory];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Tk => "tk",
            Self::Github => "github",
            Self::Linear => "linear",
            Self::Memory => "memory",
        }
    }

    pub fn active_states(self) -> &'static [&'static str] {
        match self {
            Self::Tk | Self::Memory => &["open", "in_progress"],
            Self::Github => &["open"],
            Self::Linear => &["Todo", "In Progress"],
        }
    }

    pub fn terminal_states(self) -> &'static [&'static str] {
        match self {
            Self::Tk | Self::Github | Self::Memory => &["closed"],
            Self::Linear => &["Done", "Closed", "Cancelled", "Canceled", "Duplicate"],
        }
    }

    /// The state of a ticket whose work is merged.
    pub fn completion_state(self) -> &'static str {
        match self {
            Self::Tk | Self::Github | Self::Memory => "closed",
            Self::Linear => "Done",
        }
    }

    /// The keys under `tracker.provider` that this kind knows.
    pub fn provider_keys(self) -> &'static [&'static str] {
        match self {
            Self::Tk => &["dir"],
            Self::Github => &["repo", "token", "api_url", "app_id", "private_key", "installation_id"],
            Self::Linear => &["api_key", "endpoint", "team_key", "project_slug", "assignee", "create_labels"],
            Self::Memory => &[],
        }
    }
}

impl Provider {
    /// Without a scope every ticket that the key can see would be ours.
    fn check_linear(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.team_key.is_none() && self.project_slug.is_none() {
            let message =
                "the linear tracker needs `tracker.provider.team_key`, `tracker.provider.project_slug`, or both";
            problems.push(
                Problem::new("tracker.provider", message)
                    .with_help("the team's key is the `ENG` of ENG-123; a project's slug ends its address"),
            );
        }
        for (name, value) in
            [("team_key", &self.team_key), ("project_slug", &self.project_slug), ("assignee", &self.assignee)]
        {
            let path = format!("tracker.provider.{name}");
            let unset = value.as_deref().filter(|value| value.trim().is_empty() || value.trim().starts_with('$'));
            if let Some(value) = unset {
                let message = format!("`{path}` is `{value}`, which says nothing");
                let help = "set the variable, or remove the key: without it more tickets count, not fewer";
                problems.push(Problem::new(path, message).with_help(help));
            }
        }
        problems
    }
}

impl TrackerSettings {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = match self.kind {
            TrackerKind::Linear => self.provider.check_linear(),
            TrackerKind::Tk | TrackerKind::Github | TrackerKind::Memory => Vec::new(),
        };
        for (path, states) in
            [("tracker.active_states", &self.active_states), ("tracker.terminal_states", &self.terminal_states)]
        {
            if states.iter().all(|state| state.trim().is_empty()) {
                problems.push(
                    Problem::new(path, format!("`{path}` names no state"))
                        .with_help("list at least one, or remove the key to get the tracker's own"),
                );
            }
        }
        for state in &self.active_states {
            if crate::domain::ticket::state_in(state, &self.terminal_states) {
                let message =
                    format!("state `{state}` is both in tracker.active_states and in tracker.terminal_states");
                problems.push(
                    Problem::new("tracker.active_states", message)
                        .depending_on("tracker.terminal_states")
                        .depending_on("tracker.kind"),
                );
            }
        }
        problems
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn trust_levels(_: &mut SchemaGenerator) -> Schema {
    wire::list_of(&["admin", "maintain", "write", "triage", "member"])
}
