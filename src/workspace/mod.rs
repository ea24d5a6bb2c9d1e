//! Everything under the workspace root: worktrees, branches, and salvage (uncommitted work that is saved before a tree is removed).
//!
//! A run gets either a fresh worktree on its job's branch ([`Workspaces`]), or its ticket's lasting directory ([`directory::Directories`]).
//! Nothing outside the root is ever removed, and no work that git does not hold safely.

pub mod base;
mod by_hand;
mod changes;
pub mod collect;
pub mod command;
pub mod commits;
mod detached;
pub mod directory;
pub mod error;
pub mod exclude;
mod filters;
pub mod git;
pub mod hooks;
mod join;
mod locks;
pub mod notes;
mod own_clone;
mod patch;
pub mod path;
mod prepare;
mod record;
pub mod remote;
mod remove;
pub mod repo;
mod restore;
mod salvage;
mod scratch;
pub mod signing;
mod stale_branches;
mod uncommitted;
mod unsaved;
mod work_status;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use git2::Oid;

pub use base::BaseSide;
pub use by_hand::DiffStyle;
pub use changes::Change;
pub use collect::{GcAction, GcItem, Listed};
pub use error::WorkspaceError;
pub use join::{Joined, join, join_moved};
pub use own_clone::NewClone;
pub use patch::{Patch, PatchedFile};
pub use remove::Removal;
pub use restore::{RestoreTo, SalvageEntry, conflicting_files};
pub use stale_branches::StaleBranch;
pub use work_status::{CommittedRest, WorkStatus};

use self::commits::Commits;
use crate::config::workspace::WorkspaceSettings;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;
use base::Fetcher;
use filters::Filters;
use git::Git;
use repo::RepoPlace;

/// Where worktrees are made, and from which repository and base.
#[derive(Debug, Clone)]
pub struct WorkspaceConfig {
    /// Any directory of the repository. A bare repository or a linked worktree is fine, too.
    pub repo: PathBuf,
    /// The directory that holds the worktrees. Must not be inside the repository.
    pub root: PathBuf,
    pub branch_prefix: String,
    pub base: String,
    pub base_side: BaseSide,
    /// Size limit of a file in bytes. Larger files are left out of a salvage, and the salvage lists them.
    pub salvage_limit: u64,
    /// Limit for each call of the user's git.
    pub git_timeout: Duration,
    /// Author, sign-off and signing of the runner's own commits.
    pub commits: Commits,
    /// The forge's repository, reached with a credential of the runner. `None`: the user's remotes are used as they are configured.
    pub remote: Option<remote::Remote>,
}

impl WorkspaceConfig {
    pub const SALVAGE_LIMIT: u64 = 50 * 1024 * 1024;
    pub const GIT_TIMEOUT: Duration = Duration::from_secs(300);

    pub fn new(repo: impl Into<PathBuf>, root: impl Into<PathBuf>, base: impl Into<String>) -> Self {
        Self {
            repo: repo.into(),
            root: root.into(),
            branch_prefix: "dirigent/".to_owned(),
            base: base.into(),
            base_side: BaseSide::default(),
            salvage_limit: Self::SALVAGE_LIMIT,
            git_timeout: Self::GIT_TIMEOUT,
            commits: Commits::default(),
            remote: None,
        }
    }
}

impl From<&WorkspaceSettings> for WorkspaceConfig {
    fn from(settings: &WorkspaceSettings) -> Self {
        let config = Self::new(&settings.repo, &settings.root, &settings.base);
        Self { branch_prefix: settings.branch_prefix.clone(), commits: Commits::new(&settings.commit), ..config }
    }
}

/// A run's worktree on its job's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    pub run: RunId,
    pub key: TicketKey,
    pub branch: String,
    /// The commit the branch is compared with.
    pub base: CommitId,
    /// The branch's head when the tree was made.
    pub head_before: CommitId,
    /// A problem that did not stop the preparation, for example that the base could not be fetched.
    pub warning: Option<String>,
}

/// The worktrees of one repository under one root. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Workspaces {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: RepoPlace,
    root: PathBuf,
    config: WorkspaceConfig,
    git: Git,
    fetcher: Fetcher,
    filters: Filters,
    /// Serialises changes of branches and worktree entries. Writing files into a worktree needs no lock.
    admin: Mutex<()>,
}

impl Workspaces {
    /// Checks the repository, the root and the base. Creates the root if it does not exist.
    pub fn open(config: WorkspaceConfig) -> Result<Self, WorkspaceError> {
        let place = RepoPlace::find(&config.repo)?;
        let planned = path::planned(&config.root);
        refuse_inside(&place, &planned)?;
        let root = path::open_root(&config.root)?;
        refuse_inside(&place, &root)?;
        let repo = place.open()?;
        base::resolve(&repo, &place, &config.base, config.base_side)?;
        remove::empty_trash(&root);
        scratch::sweep(&root);
        let git = Git::new(config.git_timeout);
        let filters = Filters::read(&repo, git.clone());
        let fetcher = Fetcher::default();
        let shared = Shared { place, root, config, git, fetcher, filters, admin: Mutex::new(()) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes a test signature if commits are to be signed. Fails if git cannot sign without a person.
    pub async fn try_signing(&self) -> Result<(), WorkspaceError> {
        self.blocking("trying to sign", |shared| shared.config.commits.try_signing(&shared.place, &shared.root)).await
    }

    /// Returns the canonical root.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// Returns the repository's common git directory.
    pub fn git_dir(&self) -> &Path {
        &self.shared.place.git_dir
    }

    /// Returns the base's current commit, without using the network.
    pub async fn base_commit(&self, base: &str) -> Result<CommitId, WorkspaceError> {
        let base = base.to_owned();
        self.blocking("looking up the base", move |shared| {
            let repo = shared.place.open()?;
            base::resolve(&repo, &shared.place, &base, shared.config.base_side).map(commit_id)
        })
        .await
    }

    /// Whether the base commit contains something at this path.
    pub async fn base_has(&self, base: &str, path: &str) -> Result<bool, WorkspaceError> {
        let (base, path) = (base.to_owned(), PathBuf::from(path.trim_start_matches("./")));
        self.blocking("looking into the base", move |shared| {
            let repo = shared.place.open()?;
            let commit = base::resolve(&repo, &shared.place, &base, shared.config.base_side)?;
            let tree = repo
                .find_commit(commit)
                .and_then(|commit| commit.tree())
                .map_err(|source| WorkspaceError::libgit("read the base", &shared.place.git_dir, source))?;
            Ok(tree.get_path(&path).is_ok())
        })
        .await
    }

    /// Returns the commit of a local branch. `None` if the branch does not exist.
    pub async fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError> {
        let name = repo::branch_ref(branch)?;
        self.blocking("looking up the branch", move |shared| Ok(commit_at(&shared.place.open()?, &name).map(commit_id)))
            .await
    }

    /// Whether the repository contains a commit.
    pub async fn has_commit(&self, commit: &CommitId) -> bool {
        let commit = commit.clone();
        let found = self.blocking("looking for a commit", move |shared| {
            let repo = shared.place.open()?;
            Ok(oid(&commit).is_ok_and(|commit| repo.find_commit(commit).is_ok()))
        });
        found.await.unwrap_or(false)
    }

    /// Deletes a local branch that is still at `expected` and checked out nowhere. Succeeds if the branch does not exist.
    pub async fn delete_branch(
        &self,
        _permit: &Permit,
        branch: &str,
        expected: &CommitId,
    ) -> Result<(), WorkspaceError> {
        let (branch, expected) = (branch.to_owned(), expected.clone());
        self.blocking("deleting the branch", move |shared| delete_branch(&shared.place, &branch, &expected)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Shared) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let shared = Arc::clone(&self.shared);
        match tokio::task::spawn_blocking(move || work(&shared)).await {
            Ok(result) => result,
            Err(_) => Err(WorkspaceError::Interrupted { doing }),
        }
    }
}

fn refuse_inside(place: &RepoPlace, root: &Path) -> Result<(), WorkspaceError> {
    for inside in place.work_tree.iter().chain([&place.git_dir]) {
        if path::is_within(root, inside) {
            return Err(WorkspaceError::RootInRepository { root: root.to_owned(), inside: inside.clone() });
        }
    }
    Ok(())
}

/// Deletes a branch if it is still at `expected`. The local forge uses it, too: its branches are those of this repository.
pub fn delete_branch(place: &RepoPlace, branch: &str, expected: &CommitId) -> Result<(), WorkspaceError> {
    let name = repo::branch_ref(branch)?;
    let repo = place.open()?;
    let Some(actual) = commit_at(&repo, &name) else { return Ok(()) };
    locks::release_stale(&place.git_dir, &name)?;
    if actual.to_string() != expected.as_str() {
        return Err(WorkspaceError::BranchMoved {
            branch: branch.to_owned(),
            expected: expected.short().to_owned(),
            actual: commit_id(actual).short().to_owned(),
        });
    }
    if let Some(user) = place.user_of_branch(&repo, branch) {
        return Err(WorkspaceError::BranchInUse { branch: branch.to_owned(), path: user.path });
    }
    let failed = |source| WorkspaceError::libgit("delete the branch", &place.git_dir, source);
    let mut found = repo.find_branch(branch, git2::BranchType::Local).map_err(failed)?;
    found.delete().map_err(failed)
}

/// Returns the commit that a full ref name points to.
pub fn commit_at(repo: &git2::Repository, name: &str) -> Option<Oid> {
    repo.find_reference(name).ok()?.peel_to_commit().ok().map(|commit| commit.id())
}

fn commit_id(oid: Oid) -> CommitId {
    CommitId::new(oid.to_string())
}

fn oid(commit: &CommitId) -> Result<Oid, git2::Error> {
    Oid::from_str(commit.as_str())
}
