//! Errors of a workspace. Each message says what went wrong, where, and what to do about it.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::git::GitError;

#[derive(Debug, Error)]
pub enum WorkspaceError {
    #[error("{path} is not a git repository: {detail}; set workspace.repo to one, or run `git init` there")]
    NotARepository { path: PathBuf, detail: String },
    #[error("the repository {path} has no commit yet; make a first commit on `{base}`")]
    NoCommit { path: PathBuf, base: String },
    #[error(
        "the base branch `{base}` does not exist in {path}{}; create it, or set workspace.base or pr.base_branch",
        known(existing)
    )]
    NoBase { path: PathBuf, base: String, existing: Vec<String> },
    #[error("the base branch `{base}` is not in {path}, and {warning}")]
    BaseNotFetched { path: PathBuf, base: String, warning: String },
    #[error("workspace.root {root} is inside {inside}; choose a directory outside of the repository")]
    RootInRepository { root: PathBuf, inside: PathBuf },
    #[error("{path} is not a workspace under {root}: {because}; it was left alone")]
    Outside { path: PathBuf, root: PathBuf, because: String },
    #[error("`{branch}` is not a valid branch name")]
    BadBranch { branch: String },
    #[error(
        "branch `{branch}` is checked out in {path}; switch that tree to another branch (or `git worktree remove` it)"
    )]
    BranchInUse { branch: String, path: PathBuf },
    #[error("branch `{branch}` is at {actual}, not at {expected}; it was left alone")]
    BranchMoved { branch: String, expected: String, actual: String },
    #[error("{path} already exists and is not empty; remove it or choose another workspace.root")]
    Occupied { path: PathBuf },
    #[error("a {operation} is unfinished in {path}; the work there was not committed")]
    Unfinished { path: PathBuf, operation: &'static str },
    #[error("the work in {path} is on {found}, which does not contain branch `{branch}`")]
    StrayHead { path: PathBuf, branch: String, found: String },
    #[error("there is no salvage of run {run}")]
    NoSalvage { run: String },
    #[error("branch `{branch}` exists already; name another one")]
    BranchExists { branch: String },
    #[error("the salvage of run {run} conflicts with `{branch}` in {}", files.join(", "))]
    SalvageConflict { run: String, branch: String, files: Vec<String> },
    #[error("cannot {doing} {path}: {source}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot {doing} in {path}: {source}")]
    Libgit { doing: &'static str, path: PathBuf, source: git2::Error },
    #[error(
        "commits are to be signed, and git cannot sign without a person: {detail}\n  fix: load the key into its agent (and pass that on with worker.env_pass), use one without a passphrase, or set workspace.commit.sign: false"
    )]
    CannotSign { detail: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{url} cannot be used with a credential: {because}")]
    BadRemote { url: String, because: String },
    #[error("{0}")]
    Remote(#[from] super::remote::RemoteError),
    #[error("{doing} was interrupted")]
    Interrupted { doing: &'static str },
    #[error("hook `{hook}` {detail}")]
    Hook { hook: &'static str, detail: String },
}

fn known(existing: &[String]) -> String {
    if existing.is_empty() { String::new() } else { format!(" (there is {})", existing.join(", ")) }
}

impl WorkspaceError {
    pub(super) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    pub(super) fn libgit(doing: &'static str, path: &Path, source: git2::Error) -> Self {
        Self::Libgit { doing, path: path.to_owned(), source }
    }

    /// Whether a retry cannot help because a person has to change something first.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NotARepository { .. }
                | Self::NoCommit { .. }
                | Self::NoBase { .. }
                | Self::RootInRepository { .. }
                | Self::Outside { .. }
                | Self::BadBranch { .. }
                | Self::BranchInUse { .. }
                | Self::Occupied { .. }
                | Self::CannotSign { .. }
                | Self::BadRemote { .. }
        )
    }
}
