//! A forge in memory that behaves as a real one, and misbehaves as told: for tests of everything that talks to a forge.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, MergeOrder, Merged, PrChange, PrLook, RemarkPresence, Updated,
};
use crate::domain::comment::{Author, Comment};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{MergeMethod, Mergeability, NewPr, PrState, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::ticket::normalise_labels;

/// What goes wrong with a coming call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Fails(ForgeError),
    /// The write takes effect, its answer does not arrive.
    FailsAfterWriting(ForgeError),
    Late(Duration),
    /// A read is answered with the forge as [`MemoryForge::freeze`] saw it.
    Stale,
    Fine,
}

#[derive(Debug, Default)]
struct Store {
    prs: BTreeMap<PrNumber, PullRequest>,
    frozen: BTreeMap<PrNumber, PullRequest>,
    branches: BTreeMap<String, CommitId>,
    merges: Vec<(PrNumber, CommitId, MergeMethod)>,
    faults: VecDeque<Fault>,
    made: u64,
    statuses: Vec<CommitStatus>,
    requested: Vec<(PrNumber, String)>,
    reruns: Vec<String>,
    logs: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub struct MemoryForge {
    store: Mutex<Store>,
}

impl MemoryForge {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets CI, a reviewer or anybody else change a pull request: checks, reviews, threads, labels, state.
    pub fn edit(&self, number: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        if let Some(pr) = self.store().prs.get_mut(&number) {
            change(pr);
        }
    }

    /// Somebody pushes to a branch.
    pub fn push(&self, branch: &str, head: &CommitId) {
        self.store().set_head(branch, head);
    }

    pub fn branch(&self, name: &str) -> Option<CommitId> {
        self.store().branches.get(name).cloned()
    }

    /// Every merge that was really done, oldest first.
    pub fn merges(&self) -> Vec<(PrNumber, CommitId, MergeMethod)> {
        self.store().merges.clone()
    }

    /// Remembers the forge as it is now, for stale answers.
    pub fn freeze(&self) {
        let mut store = self.store();
        store.frozen = store.prs.clone();
    }

    /// One fault for each of the coming calls, in order.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.store().faults.extend(faults);
    }

    async fn next_fault(&self) -> Result<Fault, ForgeError> {
        let fault = self.store().faults.pop_front().unwrap_or(Fault::Fine);
        match fault {
            Fault::Fails(error) => Err(error),
            Fault::Late(span) => {
                tokio::time::sleep(span).await;
                Ok(Fault::Fine)
            }
            other => Ok(other),
        }
    }

    async fn read<T>(&self, look: impl FnOnce(&BTreeMap<PrNumber, PullRequest>) -> T) -> Result<T, ForgeError> {
        let fault = self.next_fault().await?;
        let store = self.store();
        Ok(look(if fault == Fault::Stale { &store.frozen } else { &store.prs }))
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

impl Store {
    /// New commits have no checks yet, and the forge has to work out whether they can be merged.
    fn set_head(&mut self, branch: &str, head: &CommitId) {
        self.branches.insert(branch.to_owned(), head.clone());
        for pr in self.prs.values_mut().filter(|pr| pr.head_branch == branch && pr.state == PrState::Open) {
            if pr.head != *head {
                pr.head = head.clone();
                pr.checks = Some(Vec::new());
                pr.ref_head = Some(head.clone());
                pr.mergeability = Mergeability::Unknown;
            }
        }
    }

    fn find(&mut self, number: PrNumber) -> Result<&mut PullRequest, ForgeError> {
        self.prs.get_mut(&number).ok_or(ForgeError::NotFound(number))
    }
}

fn mark(key: &str) -> String {
    format!("<!-- dirigent:{key} -->")
}

fn marked(key: &str, body: &str) -> String {
    format!("{body}\n{}", mark(key))
}

fn ours(id: CommentId, body: String) -> Comment {
    Comment { id, author: Author::ourselves(), body, created_at: None, updated_at: None }
}

fn has_remark(pr: &PullRequest, kind: RemarkKind, id: &CommentId) -> bool {
    match kind {
        RemarkKind::Verdict => pr.reviews.iter().flatten().any(|review| review.id == *id),
        RemarkKind::Thread => pr.threads.iter().flatten().any(|thread| thread.id == *id),
        RemarkKind::PrComment => pr.comments.iter().flatten().any(|comment| comment.id == *id),
        RemarkKind::TicketComment | RemarkKind::Message => false,
    }
}

fn expect_head(pr: &PullRequest, expected: &CommitId) -> Result<(), ForgeError> {
    if pr.head == *expected {
        return Ok(());
    }
    Err(ForgeError::HeadMoved { expected: expected.clone(), actual: pr.head.clone() })
}

#[async_trait]
impl Forge for MemoryForge {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> ForgeCapabilities {
        ForgeCapabilities { conversations: true, statuses: true, merge_queue: false, reruns: true }
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        self.read(|prs| {
            let mine = || prs.values().filter(|pr| pr.head_branch == branch);
            mine().find(|pr| pr.state == PrState::Open).or_else(|| mine().next_back()).cloned()
        })
        .await
    }

    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        let mut looks = Vec::with_capacity(numbers.len());
        for number in numbers {
            let found = self.read(|prs| prs.get(number).cloned()).await;
            let truth = self.store().branches.clone();
            let look = found.and_then(|pr| pr.ok_or(ForgeError::NotFound(*number))).map(|mut pr| {
                // A replica may show an old head; git itself does not.
                pr.ref_head = truth.get(&pr.head_branch).cloned();
                PrLook { asked_at: None, pr }
            });
            looks.push((*number, look));
        }
        looks
    }

    async fn check_log(&self, check: &str) -> Result<String, ForgeError> {
        self.read(|_| ()).await?;
        Ok(self.store().logs.get(check).cloned().unwrap_or_default())
    }

    async fn find_remark(
        &self,
        number: PrNumber,
        kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError> {
        let there = self.read(|prs| prs.get(&number).is_some_and(|pr| has_remark(pr, kind, id))).await?;
        Ok(if there { RemarkPresence::There } else { RemarkPresence::Gone })
    }

    async fn push_branch(&self, _: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| {
            store.set_head(branch, head);
            Ok(())
        })
        .await
    }

    async fn open_pr(&self, _: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        self.write(|store| {
            let open = store.prs.values().find(|pr| pr.head_branch == new.head_branch && pr.state == PrState::Open);
            if let Some(open) = open {
                return Ok(open.clone());
            }
            store.made += 1;
            let number = PrNumber(store.made);
            let pr = PullRequest {
                number,
                url: Some(format!("memory://pull/{}", number.0)),
                title: new.title.clone(),
                state: PrState::Open,
                draft: new.draft,
                author: Some(Author::ourselves()),
                head_repo: None,
                ref_head: store.branches.get(&new.head_branch).cloned().or_else(|| Some(new.head.clone())),
                in_queue: false,
                required_checks: Some(Vec::new()),
                head_branch: new.head_branch.clone(),
                head: store.branches.get(&new.head_branch).cloned().unwrap_or_else(|| new.head.clone()),
                base_branch: new.base_branch.clone(),
                base: store.branches.get(&new.base_branch).cloned(),
                mergeability: Mergeability::Unknown,
                checks: Some(Vec::new()),
                reviews: Some(Vec::new()),
                threads: Some(Vec::new()),
                comments: Some(Vec::new()),
                labels: new.labels.clone(),
                pushed_at: None,
            };
            store.prs.insert(number, pr.clone());
            Ok(pr)
        })
        .await
    }

    async fn reopen(&self, _: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            match pr.state {
                PrState::Merged { .. } => Err(ForgeError::Refused("it is merged".into())),
                PrState::Open | PrState::Closed => {
                    pr.state = PrState::Open;
                    Ok(())
                }
            }
        })
        .await
    }

    async fn merge(&self, _: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError> {
        let (number, head, method) = (order.number, &order.expected_head, order.method);
        self.write(|store| {
            let pr = store.find(number)?;
            match &pr.state {
                PrState::Merged { commit } => return Ok(Merged::Done { commit: commit.clone() }),
                PrState::Closed => return Err(ForgeError::Refused("it is closed".into())),
                PrState::Open => {}
            }
            expect_head(pr, head)?;
            if pr.base_branch != order.expected_base {
                let (expected, actual) = (order.expected_base.clone(), pr.base_branch.clone());
                return Err(ForgeError::OtherBase { expected, actual });
            }
            match &pr.mergeability {
                Mergeability::Conflicting { files } => return Err(ForgeError::Conflict { files: files.clone() }),
                Mergeability::Refused { because } => return Err(ForgeError::NotNow(because.clone())),
                Mergeability::Unknown | Mergeability::Clean | Mergeability::Behind => {}
            }
            pr.state = PrState::Merged { commit: Some(head.clone()) };
            let base = pr.base_branch.clone();
            store.branches.insert(base, head.clone());
            store.merges.push((number, head.clone(), method));
            Ok(Merged::Done { commit: Some(head.clone()) })
        })
        .await
    }

    async fn dequeue(&self, _: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.write(|store| {
            store.find(number)?.in_queue = false;
            Ok(())
        })
        .await
    }

    async fn update_pr(&self, _: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            if let Some(title) = &change.title {
                pr.title.clone_from(title);
            }
            pr.draft = change.draft.unwrap_or(pr.draft);
            pr.labels = normalise_labels(pr.labels.iter().chain(&change.add_labels));
            Ok(())
        })
        .await
    }

    async fn upsert_comment(
        &self,
        _: &Permit,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.write(|store| {
            let text = marked(key, body);
            store.made += 1;
            let made = CommentId::new(format!("comment-{}", store.made));
            let comments = store.find(number)?.comments.get_or_insert_default();
            if let Some(known) = comments.iter_mut().find(|comment| comment.body.contains(&mark(key))) {
                known.body = text;
                return Ok(known.id.clone());
            }
            comments.push(ours(made.clone(), text));
            Ok(made)
        })
        .await
    }

    async fn reply_in_thread(
        &self,
        _: &Permit,
        number: PrNumber,
        thread: &CommentId,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.write(|store| {
            store.made += 1;
            let made = CommentId::new(format!("reply-{}", store.made));
            let threads = store.find(number)?.threads.get_or_insert_default();
            let Some(thread) = threads.iter_mut().find(|known| known.id == *thread) else {
                return Err(ForgeError::Refused("there is no such conversation".into()));
            };
            if let Some(known) = thread.comments.iter().find(|comment| comment.body.contains(&mark(key))) {
                return Ok(known.id.clone());
            }
            thread.comments.push(ours(made.clone(), marked(key, body)));
            Ok(made)
        })
        .await
    }

    async fn resolve_thread(&self, _: &Permit, number: PrNumber, thread: &CommentId) -> Result<(), ForgeError> {
        self.write(|store| {
            let threads = store.find(number)?.threads.get_or_insert_default();
            for known in threads.iter_mut().filter(|known| known.id == *thread) {
                known.resolved = true;
            }
            Ok(())
        })
        .await
    }

    async fn request_review(&self, _: &Permit, number: PrNumber, reviewer: &str) -> Result<(), ForgeError> {
        self.write(|store| {
            store.find(number)?;
            let wanted = (number, reviewer.to_owned());
            if !store.requested.contains(&wanted) {
                store.requested.push(wanted);
            }
            Ok(())
        })
        .await
    }

    async fn publish_status(&self, _: &Permit, status: &CommitStatus) -> Result<(), ForgeError> {
        self.write(|store| {
            store.statuses.retain(|known| known.commit != status.commit || known.name != status.name);
            store.statuses.push(status.clone());
            Ok(())
        })
        .await
    }

    async fn rerun_check(&self, _: &Permit, check: &str) -> Result<(), ForgeError> {
        self.write(|store| {
            store.reruns.push(check.to_owned());
            Ok(())
        })
        .await
    }

    async fn update_branch(&self, _: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            expect_head(pr, head)?;
            let branch = pr.head_branch.clone();
            let updated = CommitId::new(format!("updated-{head}"));
            store.set_head(&branch, &updated);
            Ok(Updated { head: updated, same_diff: true })
        })
        .await
    }

    async fn delete_branch(&self, _: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| {
            if store.branches.get(branch) == Some(head) {
                store.branches.remove(branch);
            }
            Ok(())
        })
        .await
    }
}
