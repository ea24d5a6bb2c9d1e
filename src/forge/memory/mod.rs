//! A forge in memory that behaves as a real one, and misbehaves as told: for tests of everything that talks to a forge.
//!
//! Writes are decided on the forge as it is, and the head of a branch is never shown late (`ref_head`). Everything else about
//! a pull request comes from replicas, which may lag: see [`MemoryForge::replicas`].

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

/// What goes wrong with a coming call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and this is the answer.
    Fails(ForgeError),
    /// The write takes effect, and this is the answer.
    FailsAfterWriting(ForgeError),
    Late(Duration),
    Fine,
}

impl Fault {
    /// The answer is lost, and so is the request unless it was `done`.
    pub fn lost(done: bool) -> Self {
        let error = ForgeError::MaybeDone("the connection was closed before the answer came".to_owned());
        if done { Self::FailsAfterWriting(error) } else { Self::Fails(error) }
    }
}

/// A part of a look that may not have been read to its end.
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

/// What people and their machines do, and what there is to see.
impl MemoryForge {
    /// Changes a pull request: reviews, threads, labels, mergeability, state, base branch.
    pub fn edit(&self, number: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        self.store().change(number, change);
    }

    /// Changes the text of a pull request.
    pub fn edit_body(&self, number: PrNumber, change: impl FnOnce(&mut String)) {
        change(self.store().bodies.entry(number).or_default());
    }

    /// Somebody pushes to a branch.
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

    /// CI reports on the pull request's head.
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

    /// Takes a review, a thread or a comment away.
    pub fn delete_remark(&self, number: PrNumber, id: &CommentId) {
        let mut store = self.store();
        store.deleted.insert(id.clone());
        store.change(number, |pr| {
            pr.reviews.iter_mut().for_each(|all| all.retain(|review| review.id != *id));
            pr.threads.iter_mut().for_each(|all| all.retain(|thread| thread.id != *id));
            pr.comments.iter_mut().for_each(|all| all.retain(|comment| comment.id != *id));
        });
    }

    /// The base takes in a part of the change by another way: what an update leaves is another change.
    pub fn absorb(&self, number: PrNumber) {
        self.store().absorbed.insert(number);
    }

    pub fn branch(&self, name: &str) -> Option<CommitId> {
        self.store().branches.get(name).cloned()
    }

    /// The pull request as it is, whatever the replicas show.
    pub fn pr(&self, number: PrNumber) -> Option<PullRequest> {
        self.store().find(number).ok().cloned()
    }

    pub fn body(&self, number: PrNumber) -> String {
        self.store().bodies.get(&number).cloned().unwrap_or_default()
    }

    /// Every merge that was really done, oldest first.
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

/// How the forge is, for good or bad.
impl MemoryForge {
    /// Lets us write with a person's own account.
    pub fn share_account(&self, person: Author) {
        self.store().shared = Some(person);
    }

    /// Sets the server's clock, which is told with each look from now on.
    pub fn set_clock(&self, at: Timestamp) {
        self.store().clock = Some(at);
    }

    /// One fault for each of the coming calls, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.store().faults.extend(faults);
    }

    /// Until it ends, nothing is done and this is the answer to every call: a 401, say.
    pub fn outage(&self, error: Option<ForgeError>) {
        self.store().outage = error;
    }

    /// Readings come from these replicas in turn, each so many changes of every pull request behind. `[0]` does not lag.
    pub fn replicas(&self, behind: &[usize]) {
        self.store().replicas = behind.to_vec();
    }

    /// Every replica is at least so many changes of this pull request behind.
    pub fn lag(&self, number: PrNumber, behind: usize) {
        self.store().lag(number, behind);
    }

    /// Lets every replica see what was done until now. What comes after lags again.
    pub fn catch_up(&self) {
        self.store().catch_up();
    }

    /// Looks at this pull request come without these parts.
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

    /// One request, answered by one replica.
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
