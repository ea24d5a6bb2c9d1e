//! Resolves the commit that new branches start from. It is found locally, or fetched first with the user's own git.

use std::path::Path;
use std::time::Instant;

use git2::{Oid, Repository};
use tokio::sync::Mutex;

use super::error::WorkspaceError;
use super::git::{Git, GitError};
use super::remote::Remote;
use super::repo::RepoPlace;

/// The usual name of a remote.
pub const DEFAULT_REMOTE: &str = "origin";

/// Which side of a base branch counts if it exists both locally and at its remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BaseSide {
    /// The remote's branch, which is fetched first: pull requests are merged there.
    #[default]
    Remote,
    /// The local branch: merges happen in this repository.
    Local,
}

/// A base branch at a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub remote: String,
    /// The branch's name at the remote.
    pub branch: String,
}

impl Upstream {
    pub fn tracking_ref(&self) -> String {
        format!("refs/remotes/{}/{}", self.remote, self.branch)
    }
}

impl Upstream {
    /// Returns the base on the forge, no matter how the local remotes are called.
    pub fn on_forge(base: &str) -> Self {
        let branch = base.strip_prefix("origin/").unwrap_or(base);
        Self { remote: DEFAULT_REMOTE.to_owned(), branch: branch.to_owned() }
    }
}

/// Returns where `base` can be fetched from. `None` if no remote fits.
pub fn upstream(repo: &Repository, base: &str) -> Option<Upstream> {
    let remotes: Vec<String> = repo
        .remotes()
        .map(|names| names.iter().filter_map(|name| name.ok().flatten().map(str::to_owned)).collect())
        .unwrap_or_default();
    let known = |name: &str| remotes.iter().any(|remote| remote == name);
    if let Some((remote, branch)) = base.split_once('/')
        && known(remote)
        && repo.find_reference(&format!("refs/heads/{base}")).is_err()
    {
        return Some(Upstream { remote: remote.to_owned(), branch: branch.to_owned() });
    }
    let config = repo.config().ok()?;
    let configured = config.get_string(&format!("branch.{base}.remote")).ok().filter(|name| known(name));
    let merge = config.get_string(&format!("branch.{base}.merge")).ok();
    let remote = configured.or_else(|| known(DEFAULT_REMOTE).then(|| DEFAULT_REMOTE.to_owned())).or_else(|| {
        match remotes.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    })?;
    let branch = merge.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)).unwrap_or(base.to_owned());
    Some(Upstream { remote, branch })
}

/// Resolves `base` to a commit without using the network.
pub fn resolve(repo: &Repository, place: &RepoPlace, base: &str, side: BaseSide) -> Result<Oid, WorkspaceError> {
    let commit_of =
        |name: &str| repo.find_reference(name).ok().and_then(|found| found.peel_to_commit().ok()).map(|c| c.id());
    let local = commit_of(&format!("refs/heads/{base}"));
    let remote = || upstream(repo, base).and_then(|upstream| commit_of(&upstream.tracking_ref()));
    let found = match side {
        BaseSide::Local => local.or_else(remote),
        BaseSide::Remote => remote().or(local),
    };
    let found = found.or_else(|| {
        let object = repo.revparse_single(base).ok()?;
        object.peel_to_commit().ok().map(|commit| commit.id())
    });
    found.ok_or_else(|| no_base(repo, place.cwd(), base))
}

fn no_base(repo: &Repository, path: &Path, base: &str) -> WorkspaceError {
    let existing: Vec<String> = repo
        .branches(None)
        .map(|all| {
            all.flatten()
                .filter_map(|(branch, _)| branch.name().ok().flatten().map(|name| format!("`{name}`")))
                .take(5)
                .collect()
        })
        .unwrap_or_default();
    if existing.is_empty() && repo.head().is_err() {
        return WorkspaceError::NoCommit { path: path.to_owned(), base: base.to_owned() };
    }
    WorkspaceError::NoBase { path: path.to_owned(), base: base.to_owned(), existing }
}

/// Fetches branches. Callers that come at the same time share one fetch.
#[derive(Debug, Default)]
pub struct Fetcher {
    last: Mutex<Option<Fetch>>,
}

#[derive(Debug)]
struct Fetch {
    started: Instant,
    refspecs: Vec<String>,
    warning: Option<String>,
}

impl Fetcher {
    /// Fetches the base and `branch` from the forge with the runner's credential. If somebody deleted the branch there, what was fetched of
    /// it before is forgotten. Returns what went wrong, or `None`.
    pub async fn fetch_from_forge(&self, remote: &Remote, upstream: &Upstream, branch: &str) -> Option<String> {
        let fetched = remote.fetch(&[&upstream.branch, branch]).await.and_then(|heads| {
            let is_there = branch == upstream.branch || heads.iter().any(|(found, _)| found == branch);
            if is_there { Ok(()) } else { remote.forget_head(branch) }
        });
        fetched.err().map(|error| format!("`{}` could not be fetched from {}: {error}", upstream.branch, remote.url()))
    }

    /// Fetches `upstream` and every branch under `prefix`. Returns what went wrong, or `None`.
    pub async fn fetch(&self, git: &Git, place: &RepoPlace, upstream: &Upstream, prefix: &str) -> Option<String> {
        let asked = Instant::now();
        let remote = &upstream.remote;
        let mut refspecs = vec![format!("+refs/heads/{}:{}", upstream.branch, upstream.tracking_ref())];
        if !prefix.is_empty() {
            refspecs.push(format!("+refs/heads/{prefix}*:refs/remotes/{remote}/{prefix}*"));
        }
        let mut last = self.last.lock().await;
        if let Some(fetch) = last.as_ref()
            && fetch.started >= asked
            && fetch.refspecs == refspecs
        {
            return fetch.warning.clone();
        }
        let started = Instant::now();
        let warning = run_fetch(git, place, remote, &refspecs)
            .await
            .err()
            .map(|error| format!("`{}` could not be fetched from `{remote}`: {error}", upstream.branch));
        *last = Some(Fetch { started, refspecs, warning: warning.clone() });
        warning
    }
}

async fn run_fetch(git: &Git, place: &RepoPlace, remote: &str, refspecs: &[String]) -> Result<(), GitError> {
    let fixed = [
        "fetch",
        "--quiet",
        "--prune",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        "--",
    ];
    let args = fixed.into_iter().chain([remote]).chain(refspecs.iter().map(String::as_str));
    git.run(place.cwd(), args).await.map(|_| ())
}
