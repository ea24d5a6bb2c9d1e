//! The forge without a forge: a pull request is a branch of this repository and a record in the ledger; its checks are
//! the gate results recorded for its head; merging moves the base branch, and the user's tree with it.

mod combine;
mod merge;
mod store;
mod update_worktree;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use git2::{Oid, Repository};

pub use store::{Landing, PrBook, PrRecord, PrStoreError};

use super::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, MergeOrder, Merged, PrChange, PrLook, RemarkPresence, Updated,
};
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{Check, CheckStatus, Mergeability, NewPr, PrState, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;
use crate::workspace::git::Git;
use crate::workspace::repo::RepoPlace;
use crate::workspace::{self, WorkspaceError, commit_at};
use combine::{Combined, Wanted};

const KIND: &str = "local";

/// Cheap to clone.
#[derive(Clone)]
pub struct LocalForge {
    inner: Arc<Inner>,
}

struct Inner {
    place: RepoPlace,
    store: PrBook,
    git: Git,
    /// One landing at a time.
    landing: tokio::sync::Mutex<()>,
    /// The gates whose results count. Unset: all of them.
    counting: RwLock<Option<Vec<String>>>,
}

impl LocalForge {
    /// `repo` is any directory of the repository, `ledger` the SQLite file that also holds the records.
    pub fn open(repo: &Path, ledger: &Path, git_timeout: Duration) -> Result<Self, ForgeError> {
        let place = RepoPlace::find(repo).map_err(|error| ForgeError::Git(error.to_string()))?;
        let store = PrBook::open(ledger).map_err(|error| recorded(&error))?;
        let landing = tokio::sync::Mutex::new(());
        Ok(Self {
            inner: Arc::new(Inner { place, store, git: Git::new(git_timeout), landing, counting: RwLock::default() }),
        })
    }

    /// The results of gates that were taken out of the workflow count no longer.
    pub fn count_only(&self, gates: Vec<String>) {
        *self.inner.counting.write().unwrap_or_else(PoisonError::into_inner) = Some(gates);
    }

    /// The gate results of one head become its checks.
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

    /// What a gate printed is part of its result.
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

    async fn push_branch(&self, _permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        let (branch, head) = (branch.to_owned(), head.clone());
        self.run(move |inner| {
            let repo = inner.repo()?;
            inner.expect_head(&repo, &branch, &head)?;
            let known = inner.store.of_branch(&branch).map_err(|error| recorded(&error))?;
            if let Some(record) = known.filter(|record| !record.merged) {
                inner.store.see_head(record.number, &head, now()).map_err(|error| recorded(&error))?;
            }
            Ok(())
        })
        .await
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

    /// Settles a merge that happened without being recorded: ours before a crash, or a person's own.
    fn settle(&self, repo: &Repository, record: PrRecord) -> Result<PrRecord, ForgeError> {
        if record.merged {
            return Ok(record);
        }
        let Some(base) = head_of(repo, &record.base_branch) else { return Ok(record) };
        let landing = self.store.landing(&record.base_branch).map_err(|error| recorded(&error))?;
        if let Some(landing) = landing.filter(|landing| landing.number == record.number)
            && combine::is_in(repo, oid(&landing.new)?, base).map_err(|error| libgit(&error))?
        {
            self.store.merged(record.number, &landing.head, &landing.new).map_err(|error| recorded(&error))?;
            return self.record(record.number);
        }
        // The record's head was beyond the base when it was written.
        let seen = oid(&record.head)?;
        let contained = |commit| {
            combine::is_in(repo, commit, base).unwrap_or(false)
                || combine::is_in_otherwise(repo, commit, base).unwrap_or(false)
        };
        if contained(seen) && head_of(repo, &record.head_branch).is_none_or(contained) {
            self.store.merged(record.number, &record.head, &commit_id(base)).map_err(|error| recorded(&error))?;
            return self.record(record.number);
        }
        Ok(record)
    }

    fn look(&self, record: &PrRecord) -> Result<PullRequest, ForgeError> {
        let repo = self.repo()?;
        let mut record = self.settle(&repo, record.clone())?;
        let live = head_of(&repo, &record.head_branch);
        let base = head_of(&repo, &record.base_branch);
        if let Some(live) = live.filter(|live| !record.merged && live.to_string() != record.head.as_str()) {
            // A branch that was set back into the base is shown, but not remembered: it would look like a merged one.
            if base.is_none_or(|base| !combine::is_in(&repo, live, base).unwrap_or(true)) {
                self.store.see_head(record.number, &commit_id(live), now()).map_err(|error| recorded(&error))?;
                record = self.record(record.number)?;
            }
            record.head = commit_id(live);
        }
        let state = match (record.merged, live) {
            (true, _) => PrState::Merged { commit: record.merge_commit.clone() },
            (false, Some(_)) => PrState::Open,
            // Somebody deleted the branch: there is nothing left to merge.
            (false, None) => PrState::Closed,
        };
        let mergeability = match (&state, live, base) {
            (PrState::Open, Some(head), Some(base)) => {
                match combine::conflicts(&repo, base, head).map_err(|error| libgit(&error))? {
                    files if files.is_empty() => Mergeability::Clean,
                    files => Mergeability::Conflicting { files },
                }
            }
            (PrState::Open, _, None) => {
                Mergeability::Refused { because: format!("the base branch `{}` does not exist", record.base_branch) }
            }
            _ => Mergeability::Unknown,
        };
        let mut checks = self.store.checks(&record.head).map_err(|error| recorded(&error))?;
        let mut required: Vec<String> = checks.iter().map(|check| check.name.clone()).collect();
        if let Some(names) = &*self.counting.read().unwrap_or_else(PoisonError::into_inner) {
            checks.retain(|result| names.contains(&result.name));
            required.clone_from(names);
        }
        Ok(PullRequest {
            number: record.number,
            url: None,
            title: record.title,
            state,
            draft: record.draft,
            author: None,
            head_branch: record.head_branch,
            // One repository: what is shown is what git has.
            ref_head: Some(record.head.clone()),
            head: record.head,
            head_repo: None,
            base_branch: record.base_branch,
            base: base.map(commit_id),
            mergeability,
            required_checks: Some(required),
            checks: Some(checks.into_iter().map(check).collect()),
            reviews: Some(Vec::new()),
            threads: Some(Vec::new()),
            comments: Some(Vec::new()),
            labels: record.labels,
            in_queue: false,
            pushed_at: Some(record.pushed_at),
        })
    }

    fn open_pr(&self, new: &NewPr) -> Result<PullRequest, ForgeError> {
        let repo = self.repo()?;
        let known = self.store.of_branch(&new.head_branch).map_err(|error| recorded(&error))?;
        if let Some(record) = known {
            let record = self.settle(&repo, record)?;
            if !record.merged || record.head == new.head {
                return self.look(&record);
            }
        }
        let head = self.expect_head(&repo, &new.head_branch, &new.head)?;
        let base = self.base_head(&repo, &new.base_branch)?;
        if combine::is_in(&repo, head, base).map_err(|error| libgit(&error))? {
            let (branch, base) = (&new.head_branch, &new.base_branch);
            return Err(ForgeError::Refused(format!("`{branch}` has no commit that `{base}` does not have")));
        }
        failpoint!("pr.before_record");
        let number = self.store.add(new, now()).map_err(|error| recorded(&error))?;
        failpoint!("pr.recorded");
        self.look(&self.record(number)?)
    }

    /// A pull request is closed when its branch is gone: the branch comes back where it was.
    fn reopen(&self, number: PrNumber) -> Result<(), ForgeError> {
        let repo = self.repo()?;
        let record = self.settle(&repo, self.record(number)?)?;
        if record.merged {
            return Err(ForgeError::Refused(format!("pull request {number} is merged")));
        }
        if head_of(&repo, &record.head_branch).is_some() {
            return Ok(());
        }
        let name = workspace::repo::branch_ref(&record.head_branch).map_err(|e| ForgeError::Git(e.to_string()))?;
        let head = oid(&record.head)?;
        repo.find_commit(head).and_then(|_| repo.reference(&name, head, false, "dirigent: reopen")).map(|_| ()).map_err(
            |error| {
                let (branch, detail) = (&record.head_branch, error.message());
                ForgeError::Refused(format!("`{branch}` cannot be brought back at {}: {detail}", record.head))
            },
        )
    }

    fn update_branch(&self, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        let repo = self.repo()?;
        let record = self.settle(&repo, self.record(number)?)?;
        let unchanged = Updated { head: head.clone(), same_diff: true };
        if record.merged {
            return Ok(unchanged);
        }
        let branch = &record.head_branch;
        let tip = self.expect_head(&repo, branch, head)?;
        let base = self.base_head(&repo, &record.base_branch)?;
        if let Some(user) = self.place.user_of_branch(&repo, branch) {
            return Err(ForgeError::NotNow(format!("`{branch}` is checked out in {}", user.path.display())));
        }
        let message = format!("Merge branch '{}' into {branch}\n", record.base_branch);
        let wanted = Wanted { base, head: tip, message: &message };
        let commit = match combine::update(&repo, &wanted).map_err(|error| libgit(&error))? {
            Combined::Commit(commit) => commit,
            Combined::Nothing => return Ok(unchanged),
            Combined::Conflict(files) => return Err(ForgeError::Conflict { files }),
        };
        let name = workspace::repo::branch_ref(branch).map_err(|error| ForgeError::Git(error.to_string()))?;
        repo.reference_matching(&name, commit, true, tip, "dirigent: merge the base")
            .map_err(|error| libgit(&error))?;
        self.store.see_head(number, &commit_id(commit), now()).map_err(|error| recorded(&error))?;
        // A clean merge of the base leaves the change against it as it was.
        Ok(Updated { head: commit_id(commit), same_diff: true })
    }
}

fn check(result: GateResult) -> Check {
    Check {
        id: result.name.clone(),
        name: result.name,
        status: if result.passed { CheckStatus::Passed } else { CheckStatus::Failed },
        url: None,
        log_tail: (!result.output_tail.is_empty()).then_some(result.output_tail),
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

fn recorded(error: &PrStoreError) -> ForgeError {
    ForgeError::Git(error.to_string())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
