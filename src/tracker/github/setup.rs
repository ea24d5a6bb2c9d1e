//! The checks of `doctor`: the token, the repository, the labels in the workflow file.

use http::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::GithubTracker;
use super::columns::Columns;
use super::wire::{NamedLabel, Permissions};
use crate::domain::permit::Permit;
use crate::domain::ticket::{normalise_labels, same_state};
use crate::github::{GithubError, Granted, Purpose, Unless, with_query};
use crate::tracker::TrackerError;

/// The setup of the board, as far as GitHub reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupReport {
    pub account: String,
    pub shared_account: bool,
    pub repository: String,
    pub role: &'static str,
    pub is_private: bool,
    /// Sentences about what will not work, each with a remedy.
    pub wrong: Vec<String>,
    /// Sentences about what is unknown or works only in part.
    pub doubts: Vec<String>,
}

/// Labels that are in the workflow file but not in the repository.
pub type LabelsMissing = Vec<String>;

#[derive(Deserialize)]
struct Repository {
    full_name: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default = "yes")]
    has_issues: bool,
    permissions: Option<Permissions>,
}

fn yes() -> bool {
    true
}

impl GithubTracker {
    pub async fn check_setup(&self) -> Result<SetupReport, TrackerError> {
        let account = self.ask_who_we_are().await?;
        let wanted = format!("{}/{}", self.board.owner, self.board.name);
        let answer = self.github.get_unless(Purpose::Look, &self.path(""), None).await;
        let answer = answer.map_err(|error| match error {
            GithubError::NotFound(_) => {
                let words = format!(
                    "{account} does not see {wanted}: either there is no such repository, or the token has no access to it"
                );
                TrackerError::Status { status: 404, detail: words }
            }
            other => other.into(),
        })?;
        let Unless::Fetched(fetched) = answer else {
            return Err(TrackerError::Response("unchanged, and nobody said since when".to_owned()));
        };
        let repository: Repository = fetched.read()?;
        let may = repository.permissions.clone().unwrap_or_default();
        let role = match may {
            _ if repository.permissions.is_none() => "unknown",
            Permissions { admin: true, .. } => "admin",
            Permissions { maintain: true, .. } => "maintain",
            Permissions { push: true, .. } => "write",
            Permissions { triage: true, .. } => "triage",
            _ => "read",
        };
        let mut wrong = Vec::new();
        if !repository.full_name.eq_ignore_ascii_case(&wanted) {
            wrong.push(format!("{wanted} is called {} now: change `tracker.provider.repo`", repository.full_name));
        }
        if repository.archived {
            wrong.push(format!("{wanted} is archived: nothing can be written there"));
        }
        if !repository.has_issues {
            wrong.push(format!("{wanted} has no issues: turn them on in its settings"));
        }
        if matches!(role, "read" | "triage") {
            wrong.push(format!(
                "{account} may only {role} in {wanted}, and is not told whose words count: give it the role Write, or the token `Issues: read and write` and `Contents: read and write`"
            ));
        }
        wrong.extend(self.scopes_missing(fetched.scopes.as_deref(), repository.private));
        let permissions = self.github.permissions().await?;
        wrong.extend(permissions.as_ref().map(|may| self.permissions_missing(may)).unwrap_or_default());
        let mut doubts = Vec::new();
        match &fetched.scopes {
            Some(scopes) if !scopes.iter().any(|scope| scope == "workflow") => doubts.push(
                "the token lacks the scope `workflow`: a branch that changes something under .github/workflows cannot be pushed"
                    .to_owned(),
            ),
            None if permissions.is_none() => doubts.push(
                "GitHub does not tell what this token may write: what it lacks is named by the first refusal".to_owned(),
            ),
            _ => {}
        }
        self.list_one_issue().await?;
        if let Columns::Project(_) = &self.board.columns
            && let Err(error) = self.columns_now().await
        {
            wrong.push(error.to_string());
        }
        let shared_account = self.board.shared_account;
        let is_private = repository.private;
        Ok(SetupReport { account, shared_account, repository: repository.full_name, role, is_private, wrong, doubts })
    }

    /// Returns sentences about the scopes that a classic token lacks. Other tokens do not report theirs.
    fn scopes_missing(&self, scopes: Option<&[String]>, is_private: bool) -> Vec<String> {
        let Some(scopes) = scopes else { return Vec::new() };
        let has = |wanted: &[&str]| wanted.iter().any(|one| scopes.iter().any(|scope| scope == one));
        let mut missing = Vec::new();
        if !has(&["repo"]) && (is_private || !has(&["public_repo"])) {
            missing.push("the token lacks the scope `repo`: without it nothing can be written".to_owned());
        }
        if matches!(self.board.columns, Columns::Project(_)) && !has(&["project"]) {
            missing.push("the token lacks the scope `project`: without it no column can be moved".to_owned());
        }
        missing
    }

    /// Returns sentences about the permissions that an app's installation lacks for the board.
    fn permissions_missing(&self, may: &Granted) -> Vec<String> {
        let lacks = |name: &str| {
            format!(
                "the App lacks the permission `{name}`: grant it in the App's settings, and accept it where it is installed"
            )
        };
        let mut missing = Vec::new();
        if !may.may_write("issues") {
            missing.push(lacks("Issues: read and write"));
        }
        let project = matches!(self.board.columns, Columns::Project(_));
        if project && !may.may_write("organization_projects") && !may.may_write("repository_projects") {
            missing.push(lacks("Projects: read and write"));
        }
        missing
    }

    /// Lists one issue, because every poll begins with a listing.
    async fn list_one_issue(&self) -> Result<(), GithubError> {
        let path = with_query(&self.path("/issues"), &[("per_page", "1"), ("state", "all")]);
        match self.github.get_unless(Purpose::Look, &path, None).await? {
            Unless::Fetched(fetched) => fetched.read::<Vec<IgnoredAny>>().map(|_| ()),
            Unless::Unchanged { .. } => Ok(()),
        }
    }

    /// Returns the labels that are in the workflow file but not in the repository. Without them no ticket is found, or states
    /// cannot be set.
    pub async fn labels_missing(&self) -> Result<LabelsMissing, TrackerError> {
        let path = with_query(&self.path("/labels"), &[("per_page", "100")]);
        let there: Vec<NamedLabel> = self.github.list(Purpose::Look, &path).await?;
        let is_missing = |label: &&String| !there.iter().any(|known| same_state(&known.name, label));
        let named = self.labels_named();
        Ok(named.iter().filter(is_missing).cloned().collect())
    }

    fn labels_named(&self) -> Vec<String> {
        let states = match &self.board.columns {
            Columns::Labels(known) => known.iter().map(|one| one.label.clone()).collect(),
            Columns::OpenClosed | Columns::Project(_) => Vec::new(),
        };
        let done = &self.board.done;
        let all = self.board.required_labels.iter().chain(&states).chain(&done.add_labels).chain(&done.remove_labels);
        let mut named: Vec<String> = Vec::new();
        for label in all.map(|label| label.trim()).filter(|label| !label.is_empty()) {
            if !normalise_labels(&named).contains(&label.to_lowercase()) {
                named.push(label.to_owned());
            }
        }
        named
    }

    /// Creates a label. A label that exists already is a success.
    pub async fn create_label(&self, _: &Permit, label: &str) -> Result<(), TrackerError> {
        let body = json!({"name": label, "color": "5319e7", "description": "For Dirigent"});
        match self.github.write::<IgnoredAny>(Purpose::Write, Method::POST, &self.path("/labels"), Some(&body)).await {
            Ok(_) => Ok(()),
            Err(GithubError::Refused(refusal)) if refusal.fields.iter().any(|fault| fault.code == "already_exists") => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
