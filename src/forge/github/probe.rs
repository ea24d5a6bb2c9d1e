//! Finds out for `doctor` what the runner's account may do in the repository.

use serde::Deserialize;

use super::GithubForge;
use crate::forge::ForgeError;
use crate::github::{GithubError, Purpose};

/// The result of a probe: a summary line, and the permissions or settings that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub words: String,
    pub missing: Vec<Missing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub what: String,
    pub fix: &'static str,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
    default_branch: String,
    #[serde(default)]
    archived: bool,
    permissions: Option<Permissions>,
}

#[derive(Deserialize)]
struct Permissions {
    #[serde(default)]
    push: bool,
}

impl GithubForge {
    pub async fn probe(&self, base: &str) -> Result<Probe, ForgeError> {
        let inner = &self.inner;
        let found = inner.github.get::<Repository>(Purpose::Look, &inner.path("")).await;
        let repository = found.map_err(|error| match error {
            GithubError::NotFound(_) => inner.not_shown(),
            error => error.into(),
        })?;
        let mut missing = Vec::new();
        let mut lacks = |what: String, fix: &'static str| missing.push(Missing { what, fix });
        if repository.archived {
            lacks(format!("{} is archived: nothing can be pushed", repository.full_name), "unarchive it on GitHub");
        }
        if !repository.permissions.is_none_or(|permissions| permissions.push) {
            lacks(
                format!("our account may not push to {}", repository.full_name),
                "give it write access (classic token: `repo`; fine-grained and Apps: Contents and Pull requests: read and write)",
            );
        }
        if let Some(may) = inner.github.permissions().await? {
            let wanted = [
                (may.may_write("contents"), "Contents: read and write", "branches cannot be pushed"),
                (may.may_write("pull_requests"), "Pull requests: read and write", "no pull request can be opened"),
                (
                    may.may_read("checks"),
                    "Checks: read",
                    "checks of other Apps stay unknown, and nothing unknown is merged",
                ),
                (may.may_read("statuses"), "Commit statuses: read", "commit statuses stay unknown"),
                (may.may_read("actions"), "Actions: read", "a rework gets no log of a failed job"),
            ];
            for (_, name, without) in wanted.into_iter().filter(|(there, ..)| !there) {
                lacks(
                    format!("the App lacks the permission `{name}`: {without}"),
                    "grant it in the App's settings, and accept it where it is installed",
                );
            }
        }
        if repository.default_branch != base {
            lacks(
                format!("pull requests go to `{base}`, and the default branch is `{}`", repository.default_branch),
                "set pr.base_branch if that is not meant",
            );
        }
        let Some(head) = inner.remote.head(base).await? else {
            return Err(ForgeError::Refused(format!("the branch `{base}` does not exist on GitHub")));
        };
        if inner.demands(base).await.checks.is_none() {
            lacks(
                format!("the rules of `{base}` cannot be read: every check counts as required"),
                "let the token read the repository's administration or metadata",
            );
        }
        let checks = inner.path(&format!("/commits/{head}/check-runs?per_page=1"));
        if let Err(GithubError::Refused(_) | GithubError::NotFound(_)) =
            inner.github.get::<serde_json::Value>(Purpose::Look, &checks).await
        {
            lacks(
                "check runs cannot be read with this token: checks come from statuses and Actions alone, and what stays unknown is never merged"
                    .to_owned(),
                "use a classic token or a GitHub App, or name the required checks in a rule of the branch",
            );
        }
        let words = format!("github: {}, base {base} at {}", repository.full_name, head.short());
        Ok(Probe { words, missing })
    }
}
