//! `pr`: which forge takes the branch, and how a pull request is made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{ClosedPrPolicy, ForgeKind};
use super::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrSettings {
    /// Default: by the repository's remote.
    pub forge: Option<ForgeKind>,
    pub auto_create: bool,
    pub base_branch: String,
    /// `owner/name` on the forge. Default: by the remote.
    pub repo_slug: Option<String>,
    /// Use an open pull request that the branch already has.
    pub reuse_branch_pr: bool,
    /// What to do when a person closed the pull request.
    pub closed_pr_policy: ClosedPrPolicy,
    /// Link the pull request on the ticket.
    pub attach_to_tracker: bool,
    /// Labels that the pull request gets.
    pub required_labels: Vec<String>,
    pub draft: bool,
    pub reviewers: Vec<String>,
    pub review_comment_mode: ReviewCommentMode,
    pub review_comment_marker: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewCommentMode {
    Off,
    Create,
    #[default]
    Upsert,
}

impl Default for PrSettings {
    fn default() -> Self {
        Self {
            forge: None,
            auto_create: true,
            base_branch: "main".to_owned(),
            repo_slug: None,
            reuse_branch_pr: true,
            closed_pr_policy: ClosedPrPolicy::NewBranch,
            attach_to_tracker: true,
            required_labels: Vec::new(),
            draft: false,
            reviewers: Vec::new(),
            review_comment_mode: ReviewCommentMode::default(),
            review_comment_marker: "<!-- dirigent-review -->".to_owned(),
        }
    }
}

impl PrSettings {
    /// What the file says, else what the remote's address suggests.
    pub fn resolve_forge(&self, remote_url: Option<&str>) -> ForgeKind {
        self.forge.unwrap_or(match remote_url {
            Some(url) if is_github(url) => ForgeKind::Github,
            _ => ForgeKind::Local,
        })
    }

    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.base_branch.trim().is_empty() {
            problems.push(Problem::new("pr.base_branch", "`pr.base_branch` is empty"));
        }
        if let Some(slug) = &self.repo_slug {
            let parts: Vec<&str> = slug.split('/').collect();
            if parts.len() != 2 || parts.iter().any(|part| part.trim().is_empty()) {
                problems.push(
                    Problem::new("pr.repo_slug", format!("`pr.repo_slug` `{slug}` is not a repository"))
                        .with_help("write it as `owner/name`"),
                );
            }
        }
        problems
    }
}

fn is_github(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    host.eq_ignore_ascii_case("github.com") || host.eq_ignore_ascii_case("ssh.github.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_suggests_a_forge() {
        let pr = PrSettings::default();
        for url in [
            "https://github.com/a/b.git",
            "git@github.com:a/b.git",
            "ssh://git@github.com:22/a/b",
            "https://u@GitHub.com/a/b",
        ] {
            assert_eq!(pr.resolve_forge(Some(url)), ForgeKind::Github, "{url}");
        }
        for url in ["https://example.com/github.com/b.git", "/srv/git/github.com", "git@gitlab.com:github.com/b"] {
            assert_eq!(pr.resolve_forge(Some(url)), ForgeKind::Local, "{url}");
        }
        assert_eq!(pr.resolve_forge(None), ForgeKind::Local);
        let written = PrSettings { forge: Some(ForgeKind::None), ..pr };
        assert_eq!(written.resolve_forge(Some("https://github.com/a/b")), ForgeKind::None);
    }
}
