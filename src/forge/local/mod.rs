//! The local forge, for a repository without a remote one: a pull request is a branch of this repository and a record in the ledger file.
//! Its checks are the gate results recorded for its head. Merging moves the base branch, and the user's work tree with it.

mod comparisons;
mod look;
mod merge;
mod request;
mod store;
mod update_worktree;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use git2::{Oid, Repository};

use comparisons::Comparisons;
pub use store::{Landing, PrBook, PrRecord, PrStoreError};

use super::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, LineNote, MergeOrder, Merged, PrChange, PrLook, Pushed,
    RemarkPresence, Updated, combine,
};
use crate::domain::comment::Acknowledgement;
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{NewPr, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;
use crate::workspace::commits::Commits;
use crate::workspace::git::Git;
use crate::workspace::repo::RepoPlace;
use crate::workspace::{self, Joined, WorkspaceError, commit_at, notes};

const KIND: &str = "local";

/// The local adapter of the forge. Cheap to clone.
#[derive(Clone)]
pub struct LocalForge {
    inner: Arc<Inner>,
}

struct Inner {
    place: RepoPlace,
    store: PrBook,
    git: Git,
    /// Serialises merges.
    landing: tokio::sync::Mutex<()>,
    /// Held from looking for a pull request of a branch until one is recorded.
    opening: Mutex<()>,
    /// The names of the gates whose results count. `None`: all of them.
    counting: RwLock<Option<Vec<String>>>,
    /// Whether a branch must contain its base before it is merged, so that the gates have seen the merged result.
    wants_base: AtomicBool,
    commits: RwLock<Commits>,
    comparisons: Comparisons,
}

impl Inner {
    fn commits(&self) -> Commits {
        self.commits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LocalForge {
    /// Opens the forge. `repo` is any directory of the repository, `ledger` the SQLite file that also holds the records of pull requests.
    pub fn open(repo: &Path, ledger: &Path, git_timeout: Duration) -> Result<Self, ForgeError> {
        let place = RepoPlace::find(repo).map_err(|error| ForgeError::Git(error.to_string()))?;
        let store = PrBook::open(ledger).map_err(|error| recorded(&error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                place,
                store,
                git: Git::new(git_timeout),
                landing: tokio::sync::Mutex::default(),
                opening: Mutex::default(),
                counting: RwLock::default(),
                wants_base: AtomicBool::new(false),
                commits: RwLock::default(),
                comparisons: Comparisons::default(),
            }),
        })
    }

    /// Limits the checks to these gates. Results of gates that were removed from the workflow file no longer count.
    pub fn count_only(&self, gates: Vec<String>) {
        *self.inner.counting.write().unwrap_or_else(PoisonError::into_inner) = Some(gates);
    }

    /// Sets whether a branch must contain its base before it is merged. It is needed where gates judge the branch and merges go one by one.
    pub fn want_base(&self, wants: bool) {
        self.inner.wants_base.store(wants, Ordering::Relaxed);
    }

    /// Sets the author and the signing of merge commits from now on.
    pub fn commit_as(&self, commits: Commits) {
        *self.inner.commits.write().unwrap_or_else(PoisonError::into_inner) = commits;
    }

    /// Stores the gate results of one head as its checks.
    pub async fn record_checks(&self, head: &CommitId, results: Vec<GateResult>) -> Result<(), ForgeError> {
        let head = head.clone();
        self.run(move |inner| inner.store.record_checks(&head, &results).map_err(|error| recorded(&error))).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, ForgeError> + Send + 'static,
    ) -> Result<T, ForgeError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || work(&inner)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ForgeError> + Send + 'static,
) -> Result<T, ForgeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(ForgeError::Git("the work was interrupted".to_owned())),
    }
}

#[async_trait]
impl Forge for LocalForge {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> ForgeCapabilities {
        ForgeCapabilities::default()
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        let branch = branch.to_owned();
        self.run(move |inner| {
            let found = inner.store.of_branch(&branch).map_err(|error| recorded(&error))?;
            found.map(|record| inner.look(&record)).transpose()
        })
        .await
    }

    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        let mut looks = Vec::with_capacity(numbers.len());
        for number in numbers.iter().copied() {
            let look = self.run(move |inner| inner.look(&inner.record(number)?)).await;
            looks.push((number, look.map(|pr| PrLook { asked_at: None, pr })));
        }
        looks
    }

    /// Always empty: the output of a gate is part of its result.
    async fn check_log(&self, _check: &str) -> Result<String, ForgeError> {
        Ok(String::new())
    }

    async fn find_remark(
        &self,
        _number: PrNumber,
        _kind: RemarkKind,
        _id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError> {
        Ok(RemarkPresence::Gone)
    }

    /// Joins the branch with `head`. Branch and forge are the same repository here, so a person may have moved the branch in between.
    async fn push_branch(
        &self,
        _permit: &Permit,
        branch: &str,
        head: &CommitId,
        _pushed: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError> {
        let (branch, head) = (branch.to_owned(), head.clone());
        self.run(move |inner| inner.push(&branch, &head)).await
    }

    async fn open_pr(&self, _permit: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        let new = new.clone();
        self.run(move |inner| inner.open_pr(&new)).await
    }

    async fn reopen(&self, _permit: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.run(move |inner| inner.reopen(number)).await
    }

    async fn merge(&self, _permit: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError> {
        merge::merge(&self.inner, order).await
    }

    async fn dequeue(&self, _permit: &Permit, _number: PrNumber) -> Result<(), ForgeError> {
        Ok(())
    }

    async fn update_pr(&self, _permit: &Permit, _number: PrNumber, _change: &PrChange) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "pull request pages to edit"))
    }

    async fn upsert_comment(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        _key: &str,
        _body: &str,
    ) -> Result<CommentId, ForgeError> {
        Err(ForgeError::unsupported(KIND, "comments on pull requests"))
    }

    async fn react(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        _comment: &CommentId,
        _reaction: Acknowledgement,
    ) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "reactions"))
    }

    async fn begin_threads(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        _head: &CommitId,
        _notes: &[LineNote],
    ) -> Result<usize, ForgeError> {
        Err(ForgeError::unsupported(KIND, "conversations"))
    }

    async fn reply_in_thread(
        &self,
        _permit: &Permit,
        _number: PrNumber,
        _thread: &CommentId,
        _key: &str,
        _body: &str,
    ) -> Result<CommentId, ForgeError> {
        Err(ForgeError::unsupported(KIND, "conversations"))
    }

    async fn resolve_thread(&self, _permit: &Permit, _number: PrNumber, _thread: &CommentId) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "conversations"))
    }

    async fn request_review(&self, _permit: &Permit, _number: PrNumber, _reviewer: &str) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "reviewers"))
    }

    async fn publish_status(&self, _permit: &Permit, _status: &CommitStatus) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "commit statuses"))
    }

    async fn rerun_check(&self, _permit: &Permit, _check: &str) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported(KIND, "checks that could run again"))
    }

    async fn update_branch(&self, _permit: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        let head = head.clone();
        self.run(move |inner| inner.update_branch(number, &head)).await
    }

    async fn keep_receipt(
        &self,
        _permit: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError> {
        let (commit, payload, signature) = (commit.clone(), payload.to_owned(), signature.map(str::to_owned));
        self.run(move |inner| {
            let written = notes::add_receipt(&inner.place, &inner.commits(), &commit, &payload, signature.as_deref());
            written.map_err(|error| git_error(&error))
        })
        .await
    }

    async fn delete_branch(&self, _permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        let (branch, head) = (branch.to_owned(), head.clone());
        self.run(move |inner| {
            workspace::delete_branch(&inner.place, &branch, &head).map_err(|error| match error {
                WorkspaceError::BranchInUse { .. } => ForgeError::NotNow(error.to_string()),
                WorkspaceError::BranchMoved { .. } => match inner.repo().map(|repo| head_of(&repo, &branch)) {
                    Ok(Some(actual)) => ForgeError::HeadMoved { expected: head.clone(), actual: commit_id(actual) },
                    _ => ForgeError::Git(error.to_string()),
                },
                error => ForgeError::Git(error.to_string()),
            })
        })
        .await
    }
}

impl Inner {
    fn push(&self, branch: &str, head: &CommitId) -> Result<Pushed, ForgeError> {
        let repo = self.repo()?;
        let theirs = match self.expect_head(&repo, branch, head) {
            Ok(_) => None,
            Err(ForgeError::HeadMoved { actual, .. }) => Some(actual),
            Err(error) => return Err(error),
        };
        let pushed = match theirs {
            None => Pushed::AsAsked,
            Some(theirs) => Pushed::Joined { head: self.join(&repo, branch, head, &theirs)? },
        };
        let at = match &pushed {
            Pushed::AsAsked => head,
            Pushed::Joined { head } => head,
        };
        let known = self.store.of_branch(branch).map_err(|error| recorded(&error))?;
        if let Some(record) = known.filter(|record| !record.merged) {
            self.store.see_head(record.number, at, now()).map_err(|error| recorded(&error))?;
        }
        Ok(pushed)
    }

    /// Joins the run's commits with a branch that a person moved elsewhere.
    fn join(
        &self,
        repo: &Repository,
        branch: &str,
        ours: &CommitId,
        theirs: &CommitId,
    ) -> Result<CommitId, ForgeError> {
        // The branch was set back to an ancestor of the run's head. A person wanted that, so the run's commits are not put back.
        if combine::is_in(repo, oid(theirs)?, oid(ours)?).map_err(|error| libgit(&error))? {
            return Err(ForgeError::HeadMoved { expected: ours.clone(), actual: theirs.clone() });
        }
        let joined = workspace::join_moved(&self.place, &self.commits(), branch, ours, theirs);
        match joined.map_err(|error| git_error(&error))? {
            Joined::Ours => Ok(ours.clone()),
            Joined::Theirs => Ok(theirs.clone()),
            Joined::Both(head) => Ok(head),
            Joined::Conflict { files, kept } => Err(ForgeError::Apart { files, kept }),
        }
    }

    fn repo(&self) -> Result<Repository, ForgeError> {
        self.place.open().map_err(|error| ForgeError::Git(error.to_string()))
    }

    fn record(&self, number: PrNumber) -> Result<PrRecord, ForgeError> {
        self.store.get(number).map_err(|error| recorded(&error))?.ok_or(ForgeError::NotFound(number))
    }

    fn base_head(&self, repo: &Repository, base: &str) -> Result<Oid, ForgeError> {
        head_of(repo, base).ok_or_else(|| {
            let path = self.place.cwd().display();
            ForgeError::Refused(format!("the base branch `{base}` does not exist in {path}; create it"))
        })
    }

    fn expect_head(&self, repo: &Repository, branch: &str, expected: &CommitId) -> Result<Oid, ForgeError> {
        match head_of(repo, branch) {
            Some(actual) if actual.to_string() == expected.as_str() => Ok(actual),
            Some(actual) => Err(ForgeError::HeadMoved { expected: expected.clone(), actual: commit_id(actual) }),
            None => Err(ForgeError::Refused(format!("the branch `{branch}` does not exist any more"))),
        }
    }
}

fn head_of(repo: &Repository, branch: &str) -> Option<Oid> {
    commit_at(repo, &format!("refs/heads/{branch}"))
}

fn commit_id(oid: Oid) -> CommitId {
    CommitId::new(oid.to_string())
}

fn oid(commit: &CommitId) -> Result<Oid, ForgeError> {
    Oid::from_str(commit.as_str()).map_err(|_| ForgeError::Git(format!("`{commit}` is not a commit id")))
}

fn libgit(error: &git2::Error) -> ForgeError {
    ForgeError::Git(error.message().to_owned())
}

fn git_error(error: &WorkspaceError) -> ForgeError {
    match error {
        WorkspaceError::BranchInUse { .. } | WorkspaceError::BranchMoved { .. } => {
            ForgeError::NotNow(error.to_string())
        }
        error => ForgeError::Git(error.to_string()),
    }
}

fn recorded(error: &PrStoreError) -> ForgeError {
    ForgeError::Git(error.to_string())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
