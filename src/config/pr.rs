//! Section `pr`: which forge gets the branch, and how a pull request is made.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::policy::{ClosedPrPolicy, ForgeKind, ReviewComment};
use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrSettings {
    /// The forge. Default: derived from the repository's remote.
    pub forge: Option<ForgeKind>,
    pub auto_create: bool,
    pub base_branch: String,
    /// The repository on the forge, as `owner/name`. Default: derived from the remote.
    pub repo_slug: Option<String>,
    /// Access to the forge. Default: the tracker's, else `$GITHUB_TOKEN` or `$GH_TOKEN`.
    pub provider: ForgeProvider,
    /// A template for the title; it can use `ticket` (key, title, url) and `summary`. Default: the ticket's key and title.
    pub title: Option<String>,
    /// Review conversations that a run has answered: `answered` resolves them, `never` leaves that to the people in them.
    pub resolve_threads: ResolveThreads,
    /// Whether to use an open pull request that the branch already has.
    pub reuse_branch_pr: bool,
    /// What to do when a person has closed the pull request.
    pub closed_pr_policy: ClosedPrPolicy,
    /// Whether the ticket gets a link to the pull request.
    pub attach_to_tracker: bool,
    /// Labels that the pull request gets.
    pub required_labels: Vec<String>,
    /// Whether pull requests are opened as drafts. `until_green`: opened as a draft, and marked as ready for review when its checks pass.
    pub draft: DraftMode,
    /// Whether the result of the gates is published as a commit status.
    pub publish_gates: bool,
    pub reviewers: Vec<String>,
    /// How the pull request shows the findings of Dirigent's own review: not at all, in one comment per review, or in one comment that is
    /// kept up to date.
    pub review_comment_mode: ReviewComment,
    /// The first line of that review comment, by which it is found again.
    pub review_comment_marker: String,
}

/// How Dirigent authenticates at the forge.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForgeProvider {
    /// An access token.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub token: Option<SecretString>,
    /// Another API address, such as `https://github.example.com/api/v3`.
    pub api_url: Option<String>,
    /// The id of a GitHub App, with `private_key` and `installation_id`.
    pub app_id: Option<u64>,
    /// The app's private key.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub private_key: Option<SecretString>,
    /// The id of the app's installation.
    pub installation_id: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DraftMode {
    #[default]
    #[serde(rename = "false")]
    Never,
    #[serde(rename = "true")]
    Always,
    UntilGreen,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResolveThreads {
    #[default]
    Never,
    Answered,
}

impl Default for PrSettings {
    fn default() -> Self {
        Self {
            forge: None,
            auto_create: true,
            base_branch: "main".to_owned(),
            repo_slug: None,
            provider: ForgeProvider::default(),
            title: None,
            resolve_threads: ResolveThreads::default(),
            reuse_branch_pr: true,
            closed_pr_policy: ClosedPrPolicy::Stop,
            attach_to_tracker: true,
            required_labels: Vec::new(),
            draft: DraftMode::default(),
            publish_gates: false,
            reviewers: Vec::new(),
            review_comment_mode: ReviewComment::default(),
            review_comment_marker: "<!-- dirigent-review -->".to_owned(),
        }
    }
}

impl PrSettings {
    /// Returns the forge that the workflow file names, else the one that the remote's address suggests.
    pub fn resolve_forge(&self, remote_url: Option<&str>) -> ForgeKind {
        self.forge.unwrap_or(match remote_url {
            _ if self.repo_slug.is_some() => ForgeKind::Github,
            Some(url) if is_github(url) || host(url).eq_ignore_ascii_case(host(&self.git_address())) => {
                ForgeKind::Github
            }
            _ => ForgeKind::Local,
        })
    }

    /// Returns `owner/name` on the forge: from the workflow file, else from the remote's address. `None` if neither has one.
    pub fn slug(&self, remote_url: Option<&str>) -> Option<String> {
        self.repo_slug.clone().or_else(|| slug_of(remote_url?))
    }

    /// Returns the address under which git finds the forge's repositories: `https://github.com`, or that of the Enterprise server.
    pub fn git_address(&self) -> String {
        let api = self.provider.api_url.as_deref().unwrap_or("https://api.github.com").trim().trim_end_matches('/');
        let api = api.strip_suffix("/api/v3").unwrap_or(api);
        match api.split_once("://api.") {
            Some((scheme, rest)) => format!("{scheme}://{rest}"),
            None => api.to_owned(),
        }
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
    host(url).eq_ignore_ascii_case("github.com") || host(url).eq_ignore_ascii_case("ssh.github.com")
}

/// Returns the host of `https://host/...`, `ssh://git@host:22/...` or `git@host:...`; empty for an absolute path.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// Returns the last two parts of the address's path as `owner/name`.
fn slug_of(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => url.split_once(':')?.1,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let (owner, name) = path.rsplit_once('/')?;
    let owner = owner.rsplit('/').next()?;
    (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_names_the_repository_and_the_api_its_git() {
        let mut pr = PrSettings::default();
        for url in [
            "https://github.com/a/b.git",
            "git@github.com:a/b.git",
            "ssh://git@github.com:22/a/b",
            "https://u@github.com/a/b/",
        ] {
            assert_eq!(pr.slug(Some(url)).as_deref(), Some("a/b"), "{url}");
        }
        assert_eq!(pr.slug(Some("/srv/git/x")), None);
        assert_eq!(pr.git_address(), "https://github.com");
        pr.provider.api_url = Some("https://git.example.com/api/v3/".to_owned());
        assert_eq!(pr.git_address(), "https://git.example.com");
        assert_eq!(pr.resolve_forge(Some("git@git.example.com:a/b")), ForgeKind::Github);
        assert_eq!(pr.resolve_forge(Some("git@elsewhere.example.com:a/b")), ForgeKind::Local);
        pr.repo_slug = Some("a/b".to_owned());
        assert_eq!(pr.resolve_forge(None), ForgeKind::Github);
    }

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
