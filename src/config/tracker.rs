//! Section `tracker`: where tickets come from, which ones are worked on, and whose comments are trusted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;
use crate::domain::comment::TrustLevel;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrackerSettings {
    /// Which tracker holds the tickets. Required.
    pub kind: TrackerKind,
    /// The settings of the chosen tracker; each kind has its own keys.
    pub provider: Provider,
    /// Labels that a ticket must all have. A blank one matches nothing.
    pub required_labels: Vec<String>,
    /// States in which a ticket is worked on. Default: the tracker's own.
    pub active_states: Vec<String>,
    /// States in which a ticket is finished. Default: the tracker's own.
    pub terminal_states: Vec<String>,
    /// If not empty, only tickets by these accounts are eligible.
    pub authors: Vec<String>,
    /// Trust levels of people whose comments may trigger, steer, approve and unblock.
    #[schemars(schema_with = "trust_levels")]
    pub trusted: Vec<TrustLevel>,
    /// Accounts that are trusted whatever their permission is.
    pub trusted_accounts: Vec<String>,
    /// The name by which people address Dirigent in comments: `@name ...` and `/name ...`.
    pub mention: String,
    /// Comments that consist of one of these only acknowledge something: they ask for nothing.
    pub acknowledgements: Vec<String>,
    /// What happens to text of untrusted people when a prompt is made.
    pub untrusted_text: UntrustedText,
    /// What happens to the labels of a ticket whose work is done.
    pub on_done: OnDone,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OnDone {
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackerKind {
    #[default]
    Tk,
    Github,
    Linear,
    /// Keeps its tickets in memory; for tests.
    Memory,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UntrustedText {
    #[default]
    Omit,
    Fence,
}

/// The keys of all trackers; [`TrackerKind::provider_keys`] lists those of each kind.
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
    /// github: the id of the app's installation.
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
    /// github, linear: only tickets of this assignee (`me`, a login or an id).
    pub assignee: Option<String>,
    /// linear: whether a missing label may be created. Default: no.
    pub create_labels: Option<bool>,
    /// github: only issues of this milestone, by its title.
    pub milestone: Option<String>,
    /// github: the label that stands for each state, by state.
    pub state_labels: BTreeMap<String, String>,
    /// github: the project whose status column is the ticket's state.
    pub project: Option<ProjectBoard>,
    /// github, linear: what a worker may do through the tracker's API. Default: `read`; for linear `write` in a file without
    /// `orchestration.states` and `pr`, whose prompt moves the ticket itself.
    pub agent_tool: AgentTool,
    /// github, linear: whether a person uses Dirigent's account as well. Default: an app's account is its own, any other is shared.
    pub account: Option<AccountUse>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectBoard {
    /// The organisation or person that the project belongs to. Default: the repository's owner.
    pub owner: Option<String>,
    #[schemars(range(min = 1))]
    pub number: u64,
    pub status_field: String,
}

impl Default for ProjectBoard {
    fn default() -> Self {
        Self { owner: None, number: 0, status_field: "Status".to_owned() }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentTool {
    Off,
    #[default]
    Read,
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountUse {
    /// Only Dirigent writes with this account.
    Own,
    /// The account's owner writes with it, too.
    Shared,
}

impl Provider {
    /// Whether the token is written as `gh`, which means the login of GitHub's own command `gh`.
    pub fn asks_gh(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.expose_secret().trim() == "gh")
    }

    /// Returns the token if it is written in the file; `None` for `gh`.
    pub fn written_token(&self) -> Option<&SecretString> {
        self.token.as_ref().filter(|_| !self.asks_gh())
    }

    pub fn is_shared_account(&self) -> bool {
        self.account.unwrap_or(if self.app_id.is_some() { AccountUse::Own } else { AccountUse::Shared })
            == AccountUse::Shared
    }

    fn check_github(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(repo) = &self.repo
            && split_slug(repo).is_none()
        {
            let message = format!("`tracker.provider.repo` `{repo}` is not a repository");
            problems.push(Problem::new("tracker.provider.repo", message).with_help("write it as `owner/name`"));
        }
        let app = [
            ("app_id", self.app_id.is_some()),
            ("private_key", self.private_key.is_some()),
            ("installation_id", self.installation_id.is_some()),
        ];
        let missing: Vec<&str> = app.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
        if !missing.is_empty() && missing.len() < app.len() {
            let message = format!("a GitHub App needs `tracker.provider.{}` as well", missing.join("` and `"));
            problems.push(
                Problem::new("tracker.provider", message)
                    .with_help("the App's own page names the App id; the page of its installation ends in its number"),
            );
        }
        if self.project.is_some() && !self.state_labels.is_empty() {
            let message = "both `tracker.provider.project` and `tracker.provider.state_labels` name the states";
            problems.push(Problem::new("tracker.provider.project", message).with_help("keep one of them"));
        }
        if self.project.as_ref().is_some_and(|project| project.number == 0) {
            let message = "`tracker.provider.project.number` is missing";
            problems.push(
                Problem::new("tracker.provider.project", message)
                    .with_help("it is the last part of the project's address"),
            );
        }
        for (state, label) in &self.state_labels {
            if label.trim().is_empty() {
                let message = format!("state `{state}` has no label");
                problems.push(Problem::new("tracker.provider.state_labels", message));
            }
        }
        problems
    }
}

/// Splits `owner/name`; `None` if the text is not of this form.
pub fn split_slug(slug: &str) -> Option<(&str, &str)> {
    let (owner, name) = slug.trim().split_once('/')?;
    let is_name = |part: &str| {
        !part.trim_matches('.').is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    (is_name(owner) && is_name(name)).then_some((owner, name))
}

/// Returns the `owner/name` of a remote's address; `None` if it has none.
pub fn slug_of_remote(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => url.split_once(':')?.1,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    split_slug(path).map(|(owner, name)| format!("{owner}/{name}"))
}

/// Comments that people write only to say that they have seen something.
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
            on_done: OnDone::default(),
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

    /// Returns the state that a ticket is moved to when its work is merged.
    pub fn completion_state(self) -> &'static str {
        match self {
            Self::Tk | Self::Github | Self::Memory => "closed",
            Self::Linear => "Done",
        }
    }

    /// Whether people have accounts in this tracker, so that a mention notifies them.
    pub fn has_accounts(self) -> bool {
        matches!(self, Self::Github | Self::Linear)
    }

    /// Whether a ticket has a place for links besides comments. GitHub needs none: it shows pull requests that mention the issue.
    pub fn keeps_links(self) -> bool {
        matches!(self, Self::Linear)
    }

    /// Returns the keys under `tracker.provider` that this kind knows.
    pub fn provider_keys(self) -> &'static [&'static str] {
        match self {
            Self::Tk => &["dir"],
            Self::Github => &[
                "repo",
                "token",
                "api_url",
                "app_id",
                "private_key",
                "installation_id",
                "assignee",
                "milestone",
                "state_labels",
                "project",
                "agent_tool",
                "account",
            ],
            Self::Linear => &[
                "api_key",
                "endpoint",
                "team_key",
                "project_slug",
                "assignee",
                "create_labels",
                "agent_tool",
                "account",
            ],
            Self::Memory => &[],
        }
    }
}

impl Provider {
    /// Checks the keys of Linear. A team or a project is required: without one, every ticket that the API key can see would count.
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
            TrackerKind::Github => self.provider.check_github(),
            TrackerKind::Linear => self.provider.check_linear(),
            TrackerKind::Tk | TrackerKind::Memory => Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_names_the_repository() {
        for url in [
            "https://github.com/acme/widgets.git",
            "git@github.com:acme/widgets.git",
            "ssh://git@github.com:22/acme/widgets",
            "https://u:p@git.example.com/acme/widgets/",
        ] {
            assert_eq!(slug_of_remote(url).as_deref(), Some("acme/widgets"), "{url}");
        }
        for url in ["/srv/git/widgets", "https://github.com/acme", "git@github.com:a/b/c", "git@github.com:../b"] {
            assert_eq!(slug_of_remote(url), None, "{url}");
        }
    }
}
