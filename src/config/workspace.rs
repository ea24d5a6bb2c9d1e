//! Section `workspace`: where runs work, and what happens to the files and changes that they leave behind.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;
use crate::domain::loopback::is_loopback_authority;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceSettings {
    /// `worktree`: a fresh git worktree per run. `directory`: one directory per ticket, filled by `hooks.after_create`.
    pub mode: WorkspaceMode,
    /// Why the mode is what it is, shown by `doctor`.
    #[serde(skip)]
    pub mode_reason: ModeReason,
    /// The folder in which workspaces are made. It must not lie inside the repository's work tree.
    #[schemars(with = "wire::PathText")]
    pub root: PathBuf,
    /// The repository that worktrees are made from: a path, or an address that is cloned. Default: the directory of the workflow file.
    #[schemars(with = "wire::PathText")]
    pub repo: PathBuf,
    /// The address in `workspace.repo`, if it is one. `repo` is then the path of Dirigent's own clone.
    #[serde(skip)]
    pub clone_of: Option<String>,
    /// The folder that holds `.dirigent/` and `.tickets/`: the repository, or the workflow file's folder where the repository is Dirigent's
    /// own clone.
    #[serde(skip)]
    pub home: PathBuf,
    /// The ref that new branches start from. Default: `pr.base_branch`.
    pub base: String,
    /// The beginning of branch names: a branch is this prefix, the ticket's key, a dash and a slug of the title.
    pub branch_prefix: String,
    /// `prefix`: branches are named with `branch_prefix`. `tracker`: a branch gets the name that the board proposes for the ticket, if this
    /// name is usable and contains the ticket's key.
    pub branch: BranchSource,
    /// Whether a workspace is kept after its run.
    pub keep: Keep,
    /// What happens to uncommitted changes of a run that succeeded.
    pub on_dirty: OnDirty,
    /// How commits of workers and merge commits are made. Default: as the user's git is configured.
    pub commit: CommitSettings,
}

/// How commits are made. For a key that is left out, the user's git configuration applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommitSettings {
    /// Author and committer of commits, as `Name <mail>`.
    pub author: Option<String>,
    /// Whether commits get a `Signed-off-by` line.
    pub signoff: bool,
    /// Whether commits are signed, with the key and the program that the user's git is configured with. Default: git's `commit.gpgSign`.
    pub sign: Option<bool>,
}

impl CommitSettings {
    /// Returns name and mail of `author`; `None` if it is not set or malformed.
    pub fn identity(&self) -> Option<(&str, &str)> {
        let (name, rest) = self.author.as_deref()?.split_once('<')?;
        let (name, mail) = (name.trim(), rest.trim_end().strip_suffix('>')?.trim());
        let plain = |text: &str| !text.is_empty() && !text.contains(['<', '>']) && !text.chars().any(char::is_control);
        (plain(name) && plain(mail)).then_some((name, mail))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    #[default]
    Worktree,
    Directory,
}

/// Where the name of a ticket's branch comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchSource {
    #[default]
    Prefix,
    Tracker,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModeReason {
    #[default]
    Default,
    Written,
    /// `hooks.after_create` clones a repository and `workspace.repo` is not set.
    HookClones,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    #[default]
    Never,
    OnFailure,
    Always,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDirty {
    #[default]
    Commit,
    Fail,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            mode: WorkspaceMode::default(),
            mode_reason: ModeReason::default(),
            root: PathBuf::new(),
            repo: PathBuf::new(),
            clone_of: None,
            home: PathBuf::new(),
            base: "main".to_owned(),
            branch_prefix: "dirigent/".to_owned(),
            branch: BranchSource::default(),
            keep: Keep::default(),
            on_dirty: OnDirty::default(),
            commit: CommitSettings::default(),
        }
    }
}

impl WorkspaceMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::Directory => "directory",
        }
    }
}

impl ModeReason {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Default => "the default",
            Self::Written => "workspace.mode says so",
            Self::HookClones => "hooks.after_create clones a repository and workspace.repo is not set",
        }
    }
}

impl WorkspaceSettings {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(why) = self.clone_of.as_deref().and_then(unfit_address) {
            problems.push(
                Problem::new("workspace.repo", format!("`workspace.repo` cannot be cloned: {why}"))
                    .with_help("write it as `https://host/owner/name.git` or `git@host:owner/name.git`"),
            );
        }
        if self.mode == WorkspaceMode::Worktree && inside(&self.root, &self.repo) {
            problems.push(
                Problem::new(
                    "workspace.root",
                    format!(
                        "`workspace.root` ({}) lies inside the repository ({})",
                        self.root.display(),
                        self.repo.display()
                    ),
                )
                .with_help("choose a directory outside the repository, or remove the key"),
            );
        }
        if let (Some(author), None) = (&self.commit.author, self.commit.identity()) {
            problems.push(
                Problem::new("workspace.commit.author", format!("`workspace.commit.author` is `{author}`"))
                    .with_help("write it as git does: `Ada Lovelace <ada@example.org>`"),
            );
        }
        if self.base.trim().is_empty() {
            problems.push(Problem::new("workspace.base", "`workspace.base` is empty"));
        }
        if let Some(why) = bad_branch_prefix(&self.branch_prefix) {
            problems.push(Problem::new(
                "workspace.branch_prefix",
                format!("`workspace.branch_prefix` `{}` cannot start a branch name: {why}", self.branch_prefix),
            ));
        }
        problems
    }
}

/// Whether the text is an address such as `https://...`, `ssh://...` or `git@host:path`, not a path.
pub fn is_url(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    text.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'))
}

/// Says why an address cannot be cloned; `None` if it can. A secret in the address is refused because it would end up in git's
/// configuration, which workers can read.
fn unfit_address(url: &str) -> Option<&'static str> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    match scheme {
        "https" | "http" if authority.contains('@') => Some("it holds a user name or a password"),
        "https" => None,
        "http" if is_loopback_authority(authority) => None,
        "http" => Some("it is not encrypted"),
        "ssh" if authority.split('@').next().is_some_and(|user| user.contains(':')) => Some("it holds a password"),
        "ssh" | "file" => None,
        _ => Some("this kind of address is not known"),
    }
}

fn inside(path: &Path, outer: &Path) -> bool {
    !outer.as_os_str().is_empty() && path.starts_with(outer)
}

fn bad_branch_prefix(prefix: &str) -> Option<&'static str> {
    if prefix.starts_with('/') || prefix.starts_with('-') || prefix.starts_with('.') {
        return Some("it must not start with `/`, `-` or `.`");
    }
    if prefix.contains("..") || prefix.contains("//") || prefix.contains("@{") || prefix.contains("/.") {
        return Some("git forbids `..`, `//`, `/.` and `@{`");
    }
    if prefix.chars().any(|c| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c)) {
        return Some("git forbids spaces and any of ~^:?*[\\");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_encryption_is_for_this_machine_only() {
        for fit in
            ["https://example.com/x.git", "http://localhost/x.git", "http://127.0.0.1:3000/x.git", "http://[::1]/x.git"]
        {
            assert_eq!(unfit_address(fit), None, "{fit}");
        }
        for unfit in
            ["http://localhost.example.com/x.git", "http://127.0.0.1.example.com/x.git", "http://example.com/x.git"]
        {
            assert_eq!(unfit_address(unfit), Some("it is not encrypted"), "{unfit}");
        }
    }
}
