//! The trait `Forge` on top of the store in memory.

use async_trait::async_trait;

use super::MemoryForge;
use super::store::has_remark;
use crate::domain::comment::{Acknowledgement, Author, Comment};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::permit::Permit;
use crate::domain::pr::{CheckStatus, Mergeability, NewPr, PrState, PullRequest, ReviewThread};
use crate::domain::remark::RemarkKind;
use crate::domain::statement::note_with;
use crate::domain::ticket::normalise_labels;
use crate::forge::markers::{mark, our_body, with_our_body};
use crate::forge::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, LineNote, MergeOrder, Merged, PrChange, PrLook, Pushed,
    RemarkPresence, Updated,
};

fn written(id: CommentId, author: Author, key: &str, body: &str) -> Comment {
    Comment { id, author, body: format!("{body}\n{}", mark(key)), created_at: None, updated_at: None }
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
        ForgeCapabilities { conversations: true, reactions: true, statuses: true, merge_queue: false, reruns: true }
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        self.read(|replica| {
            let mine = || replica.prs().filter(|pr| pr.head_branch == branch);
            let found = mine().find(|pr| pr.state == PrState::Open).or_else(|| mine().next_back());
            found.map(|pr| replica.complete(pr.clone()))
        })
        .await
    }

    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        let mut looks = Vec::with_capacity(numbers.len());
        for number in numbers {
            let look = self.read(|mut replica| {
                let asked_at = replica.store.clock;
                replica.look(*number).map(|pr| PrLook { asked_at, pr })
            });
            looks.push((*number, look.await.flatten()));
        }
        looks
    }

    async fn check_log(&self, check: &str) -> Result<String, ForgeError> {
        self.read(|replica| replica.store.logs.get(check).cloned().unwrap_or_default()).await
    }

    async fn find_remark(
        &self,
        number: PrNumber,
        kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError> {
        self.read(|replica| {
            let there = replica.prs().any(|pr| pr.number == number && has_remark(pr, kind, id));
            match there {
                true => RemarkPresence::There,
                false if replica.store.deleted.contains(id) => RemarkPresence::Gone,
                false => RemarkPresence::NotVisible,
            }
        })
        .await
    }

    async fn push_branch(
        &self,
        _: &Permit,
        branch: &str,
        head: &CommitId,
        _: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError> {
        self.write(|store| {
            store.set_head(branch, head);
            Ok(Pushed::AsAsked)
        })
        .await
    }

    async fn open_pr(&self, _: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        self.write(|store| {
            let open = store.newest().find(|pr| pr.head_branch == new.head_branch && pr.state == PrState::Open);
            let number = match open {
                Some(open) => open.number,
                None => {
                    let number = store.open(new);
                    store.bodies.insert(number, our_body(&new.body));
                    number
                }
            };
            let mut pr = store.find(number)?.clone();
            pr.ref_head = store.branches.get(&new.head_branch).cloned();
            Ok(pr)
        })
        .await
    }

    async fn reopen(&self, _: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.write(|store| {
            if matches!(store.find(number)?.state, PrState::Merged { .. }) {
                return Err(ForgeError::Refused(format!("pull request {number} is merged")));
            }
            store.change(number, |pr| pr.state = PrState::Open);
            Ok(())
        })
        .await
    }

    async fn merge(&self, _: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError> {
        let (number, head) = (order.number, &order.expected_head);
        self.write(|store| {
            let pr = store.find(number)?;
            match &pr.state {
                PrState::Merged { commit } => return Ok(Merged::Done { commit: commit.clone() }),
                PrState::Closed => return Err(ForgeError::Refused(format!("pull request {number} is closed"))),
                PrState::Open => {}
            }
            expect_head(pr, head)?;
            let base = pr.base_branch.clone();
            if base != order.expected_base {
                return Err(ForgeError::OtherBase { expected: order.expected_base.clone(), actual: base });
            }
            match &pr.mergeability {
                Mergeability::Conflicting { files } => return Err(ForgeError::Conflict { files: files.clone() }),
                Mergeability::Refused { because } => return Err(ForgeError::NotNow(because.clone())),
                Mergeability::Unknown | Mergeability::Clean | Mergeability::Behind => {}
            }
            let commit = CommitId::new(format!("merge-of-{head}"));
            store.change(number, |pr| pr.state = PrState::Merged { commit: Some(commit.clone()) });
            store.set_head(&base, &commit);
            store.merges.push((number, head.clone(), order.method));
            Ok(Merged::Done { commit: Some(commit) })
        })
        .await
    }

    async fn dequeue(&self, _: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.write(|store| {
            store.find(number)?;
            store.change(number, |pr| pr.in_queue = false);
            Ok(())
        })
        .await
    }

    async fn update_branch(&self, _: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?.clone();
            match &pr.state {
                PrState::Merged { .. } => return Ok(Updated { head: head.clone(), same_diff: true }),
                PrState::Closed => return Err(ForgeError::Refused(format!("pull request {number} is closed"))),
                PrState::Open => {}
            }
            expect_head(&pr, head)?;
            if let Mergeability::Conflicting { files } = &pr.mergeability {
                return Err(ForgeError::Conflict { files: files.clone() });
            }
            Ok(match store.update(&pr) {
                Some(updated) => Updated { head: updated, same_diff: !store.absorbed.remove(&number) },
                None => Updated { head: head.clone(), same_diff: true },
            })
        })
        .await
    }

    async fn update_pr(&self, _: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError> {
        self.write(|store| {
            store.find(number)?;
            if let Some(text) = &change.body {
                let body = store.bodies.entry(number).or_default();
                *body = with_our_body(body, text);
            }
            store.change(number, |pr| {
                if let Some(title) = &change.title {
                    pr.title.clone_from(title);
                }
                pr.draft = change.draft.unwrap_or(pr.draft);
                pr.labels = normalise_labels(pr.labels.iter().chain(&change.add_labels));
            });
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
            let known = store.find(number)?.comments.iter().flatten().find(|known| known.body.contains(&mark(key)));
            let id = match known.map(|known| known.id.clone()) {
                Some(id) => id,
                None => store.fresh_id("comment"),
            };
            let comment = written(id.clone(), store.ourselves(), key, body);
            store.change(number, |pr| {
                let comments = pr.comments.get_or_insert_default();
                match comments.iter_mut().find(|known| known.id == id) {
                    Some(known) => *known = comment,
                    None => comments.push(comment),
                }
            });
            Ok(id)
        })
        .await
    }

    async fn react(
        &self,
        _: &Permit,
        number: PrNumber,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), ForgeError> {
        self.write(|store| {
            if !has_remark(store.find(number)?, RemarkKind::PrComment, comment) {
                return Err(ForgeError::Refused(format!("comment {comment} is not there to react to")));
            }
            let known = (comment.clone(), reaction);
            if !store.reactions.contains(&known) {
                store.reactions.push(known);
            }
            Ok(())
        })
        .await
    }

    async fn begin_threads(
        &self,
        _: &Permit,
        number: PrNumber,
        head: &CommitId,
        notes: &[LineNote],
    ) -> Result<usize, ForgeError> {
        self.write(|store| {
            let pr = store.find(number)?;
            if pr.head != *head {
                return Ok(0);
            }
            let said: Vec<&str> =
                pr.threads.iter().flatten().flat_map(|thread| &thread.comments).map(|one| one.body.as_str()).collect();
            let new: Vec<&LineNote> =
                notes.iter().filter(|note| !said.iter().any(|body| body.contains(&mark(&note.key)))).collect();
            for note in &new {
                let thread = ReviewThread {
                    id: store.fresh_id("thread"),
                    resolved: false,
                    review: None,
                    path: Some(note.path.clone()),
                    line: Some(note.line),
                    comments: vec![written(store.fresh_id("note"), store.ourselves(), &note.key, &note.body)],
                };
                store.change(number, |pr| pr.threads.get_or_insert_default().push(thread));
            }
            Ok(new.len())
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
            let threads = store.find(number)?.threads.iter().flatten();
            let Some(found) = threads.into_iter().find(|known| known.id == *thread) else { return no_thread(thread) };
            if let Some(known) = found.comments.iter().find(|known| known.body.contains(&mark(key))) {
                return Ok(known.id.clone());
            }
            let id = store.fresh_id("reply");
            let reply = written(id.clone(), store.ourselves(), key, body);
            store.change(number, |pr| {
                for known in pr.threads.iter_mut().flatten().filter(|known| known.id == *thread) {
                    known.comments.push(reply.clone());
                }
            });
            Ok(id)
        })
        .await
    }

    async fn resolve_thread(&self, _: &Permit, number: PrNumber, thread: &CommentId) -> Result<(), ForgeError> {
        self.write(|store| {
            if !has_remark(store.find(number)?, RemarkKind::Thread, thread) {
                return no_thread(thread);
            }
            store.change(number, |pr| {
                for known in pr.threads.iter_mut().flatten().filter(|known| known.id == *thread) {
                    known.resolved = true;
                }
            });
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
            let of = store.newest().find(|pr| pr.checks.iter().flatten().any(|known| known.id == check));
            let Some(number) = of.map(|pr| pr.number) else {
                return Err(ForgeError::Refused(format!("there is no check {check}")));
            };
            store.change(number, |pr| {
                for known in pr.checks.iter_mut().flatten().filter(|known| known.id == check) {
                    known.status = CheckStatus::Pending;
                }
            });
            Ok(())
        })
        .await
    }

    async fn keep_receipt(
        &self,
        _: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError> {
        self.write(|store| {
            let note = store.notes.get(commit).map(String::as_str);
            if let Some(text) = note_with(note, payload, signature) {
                store.notes.insert(commit.clone(), text);
            }
            Ok(())
        })
        .await
    }

    async fn delete_branch(&self, _: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.write(|store| match store.branches.get(branch) {
            Some(actual) if actual != head => {
                Err(ForgeError::HeadMoved { expected: head.clone(), actual: actual.clone() })
            }
            _ => {
                store.branches.remove(branch);
                Ok(())
            }
        })
        .await
    }
}

fn no_thread<T>(thread: &CommentId) -> Result<T, ForgeError> {
    Err(ForgeError::Refused(format!("there is no conversation {thread}")))
}
