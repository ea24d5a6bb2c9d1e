//! A forge in memory for tests. It behaves like a real one, and fails or lags as a test tells it to.
//!
//! Writes are decided on the current state, and the head of a branch (`ref_head`) never lags. Everything else about a pull request is read
//! from replicas, which may lag: see [`MemoryForge::replicas`].

mod adapter;
mod store;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{CommitStatus, ForgeError};
use crate::domain::comment::{Acknowledgement, Author, Comment};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::pr::{Check, CheckStatus, MergeMethod, PullRequest};
use crate::domain::time::Timestamp;
use store::{Replica, Store};

/// What goes wrong with one of the next calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing and returns this error.
    Fails(ForgeError),
    /// The write takes effect, and the call returns this error.
    FailsAfterWriting(ForgeError),
    Late(Duration),
    Fine,
}

impl Fault {
    /// A lost response. `done` tells whether the write took effect before.
    pub fn lost(done: bool) -> Self {
        let error = ForgeError::MaybeDone("the connection was closed before the answer came".to_owned());
        if done { Self::FailsAfterWriting(error) } else { Self::Fails(error) }
    }
}

/// A part of a look that can be withheld, as if it could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookPart {
    RefHead,
    Checks,
    RequiredChecks,
    Reviews,
    Threads,
    Comments,
}

impl LookPart {
    pub const ALL: [Self; 6] =
        [Self::RefHead, Self::Checks, Self::RequiredChecks, Self::Reviews, Self::Threads, Self::Comments];

    fn take_from(self, pr: &mut PullRequest) {
        match self {
            Self::RefHead => pr.ref_head = None,
            Self::Checks => pr.checks = None,
            Self::RequiredChecks => pr.required_checks = None,
            Self::Reviews => pr.reviews = None,
            Self::Threads => pr.threads = None,
            Self::Comments => pr.comments = None,
        }
    }
}

#[derive(Debug, Default)]
pub struct MemoryForge {
    store: Mutex<Store>,
}

/// Actions of people and CI, and access to the state for assertions.
impl MemoryForge {
    /// Changes a pull request: reviews, threads, labels, mergeability, state, base branch.
    pub fn edit(&self, number: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        self.store().change(number, change);
    }

    /// Changes the text of a pull request.
    pub fn edit_body(&self, number: PrNumber, change: impl FnOnce(&mut String)) {
        change(self.store().bodies.entry(number).or_default());
    }

    /// Pushes to a branch, as a person would.
    pub fn push(&self, branch: &str, head: &CommitId) {
        self.store().set_head(branch, head);
    }

    pub fn say(&self, number: PrNumber, author: Author, body: &str) -> CommentId {
        let mut store = self.store();
        let id = store.fresh_id("comment");
        let comment = Comment { id: id.clone(), author, body: body.to_owned(), created_at: None, updated_at: None };
        store.change(number, |pr| pr.comments.get_or_insert_default().push(comment));
        id
    }

    /// Reports a check on the pull request's head, as CI would.
    pub fn report(&self, number: PrNumber, name: &str, status: CheckStatus, log: &str) {
        let id = format!("{number}/{name}");
        let mut store = self.store();
        store.logs.insert(id.clone(), log.to_owned());
        store.change(number, |pr| {
            let checks = pr.checks.get_or_insert_default();
            checks.retain(|check| check.id != id);
            checks.push(Check { id, name: name.to_owned(), status, url: None, log_tail: None });
        });
    }

    /// Deletes a review, a conversation or a comment.
    pub fn delete_remark(&self, number: PrNumber, id: &CommentId) {
        let mut store = self.store();
        store.deleted.insert(id.clone());
        store.change(number, |pr| {
            pr.reviews.iter_mut().for_each(|all| all.retain(|review| review.id != *id));
            pr.threads.iter_mut().for_each(|all| all.retain(|thread| thread.id != *id));
            pr.comments.iter_mut().for_each(|all| all.retain(|comment| comment.id != *id));
        });
    }

    /// Makes the next update of this branch change the diff, as if the base had taken in a part of the change in another way.
    pub fn absorb(&self, number: PrNumber) {
        self.store().absorbed.insert(number);
    }

    pub fn branch(&self, name: &str) -> Option<CommitId> {
        self.store().branches.get(name).cloned()
    }

    /// Returns the current pull request, no matter what the replicas show.
    pub fn pr(&self, number: PrNumber) -> Option<PullRequest> {
        self.store().find(number).ok().cloned()
    }

    pub fn body(&self, number: PrNumber) -> String {
        self.store().bodies.get(&number).cloned().unwrap_or_default()
    }

    /// Returns every merge that was really done, oldest first.
    pub fn merges(&self) -> Vec<(PrNumber, CommitId, MergeMethod)> {
        self.store().merges.clone()
    }

    pub fn note(&self, commit: &CommitId) -> Option<String> {
        self.store().notes.get(commit).cloned()
    }

    pub fn statuses(&self) -> Vec<CommitStatus> {
        self.store().statuses.clone()
    }

    pub fn reactions(&self) -> Vec<(CommentId, Acknowledgement)> {
        self.store().reactions.clone()
    }

    pub fn requested_reviewers(&self, number: PrNumber) -> Vec<String> {
        let store = self.store();
        store.requested.iter().filter(|(of, _)| *of == number).map(|(_, reviewer)| reviewer.clone()).collect()
    }
}

/// How the forge behaves: accounts, clock, faults and lag.
impl MemoryForge {
    /// Makes the runner write with a person's own account.
    pub fn share_account(&self, person: Author) {
        self.store().shared = Some(person);
    }

    /// Sets the server's clock, which each look reports from now on.
    pub fn set_clock(&self, at: Timestamp) {
        self.store().clock = Some(at);
    }

    /// Adds faults for the coming calls, one for each call, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.store().faults.extend(faults);
    }

    /// Makes every call do nothing and return this error, for example a 401. `None` ends the outage.
    pub fn outage(&self, error: Option<ForgeError>) {
        self.store().outage = error;
    }

    /// Sets the replicas that readings come from in turn, each by how many changes of every pull request it lags. `[0]` does not lag.
    pub fn replicas(&self, behind: &[usize]) {
        self.store().replicas = behind.to_vec();
    }

    /// Makes every replica lag by at least this many changes of one pull request.
    pub fn lag(&self, number: PrNumber, behind: usize) {
        self.store().lag(number, behind);
    }

    /// Lets every replica see what was done until now. Later changes lag again.
    pub fn catch_up(&self) {
        self.store().catch_up();
    }

    /// Leaves these parts out of looks at one pull request.
    pub fn withhold(&self, number: PrNumber, parts: &[LookPart]) {
        self.store().withheld.insert(number, parts.to_vec());
    }
}

impl MemoryForge {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next_fault(&self) -> Result<Fault, ForgeError> {
        let fault = {
            let mut store = self.store();
            if let Some(error) = &store.outage {
                return Err(error.clone());
            }
            store.faults.pop_front().unwrap_or(Fault::Fine)
        };
        match fault {
            Fault::Fails(error) => Err(error),
            Fault::Late(span) => {
                tokio::time::sleep(span).await;
                Ok(Fault::Fine)
            }
            other => Ok(other),
        }
    }

    /// Serves one request from the next replica.
    async fn read<T>(&self, look: impl FnOnce(Replica<'_>) -> T) -> Result<T, ForgeError> {
        self.next_fault().await?;
        let mut store = self.store();
        Ok(look(store.next_replica()))
    }

    async fn write<T>(&self, change: impl FnOnce(&mut Store) -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        let fault = self.next_fault().await?;
        let done = change(&mut self.store());
        match fault {
            Fault::FailsAfterWriting(error) => Err(error),
            _ => done,
        }
    }
}
