//! A board and a forge in memory behind a line on which calls can be made to hang, panic, wait or fail, by what is called.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dirigent::domain::comment::{Comment, TrustLevel};
use dirigent::domain::ids::{CommentId, CommitId, PrNumber, TicketId};
use dirigent::domain::permit::Permit;
use dirigent::domain::pr::{Mergeability, NewPr, PullRequest};
use dirigent::domain::remark::RemarkKind;
use dirigent::domain::ticket::{NewTicket, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::forge::memory::MemoryForge;
use dirigent::forge::{
    CommitStatus, Forge, ForgeCapabilities, ForgeError, LineNote, MergeOrder, Merged, PrChange, PrLook, Pushed,
    RemarkPresence, Updated,
};
use dirigent::tracker::memory::MemoryTracker;
use dirigent::tracker::{
    Account, Acknowledgement, Capabilities, CommentFound, Edited, Found, Move, Tracker, TrackerError, Written,
};
use tokio::sync::Notify;

/// What a call meets on its way.
#[derive(Debug, Clone)]
pub enum Trouble<E> {
    Hangs,
    Panics,
    /// Goes on when it is told to.
    Waits(Arc<Notify>),
    Fails(E),
}

/// What happens to which calls, and which calls there were.
#[derive(Debug)]
pub struct Line<E> {
    rules: Mutex<Vec<(&'static str, String, Trouble<E>)>>,
    calls: Mutex<Vec<(&'static str, String)>>,
}

impl<E> Default for Line<E> {
    fn default() -> Self {
        Self { rules: Mutex::default(), calls: Mutex::default() }
    }
}

impl<E: Clone> Line<E> {
    /// From now on, for calls of this name about this subject. An empty name or subject is any.
    pub fn trouble(&self, call: &'static str, subject: &str, trouble: Trouble<E>) {
        self.rules.lock().unwrap().push((call, subject.to_owned(), trouble));
    }

    pub fn mend(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// How often this was called about this subject.
    pub fn count(&self, call: &str, subject: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(name, about)| *name == call && (subject.is_empty() || about == subject)).count()
    }

    /// The names of all calls so far; they are forgotten.
    pub fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap()).into_iter().map(|(name, _)| name).collect()
    }

    async fn pass(&self, call: &'static str, subject: impl ToString) -> Result<(), E> {
        let subject = subject.to_string();
        self.calls.lock().unwrap().push((call, subject.clone()));
        let met = {
            let rules = self.rules.lock().unwrap();
            let met = rules
                .iter()
                .find(|(name, about, _)| (name.is_empty() || *name == call) && (about.is_empty() || *about == subject));
            met.map(|(_, _, trouble)| trouble.clone())
        };
        match met {
            None => Ok(()),
            Some(Trouble::Hangs) => std::future::pending().await,
            Some(Trouble::Panics) => panic!("{call} of {subject} panics on purpose"),
            Some(Trouble::Waits(go_on)) => {
                go_on.notified().await;
                Ok(())
            }
            Some(Trouble::Fails(error)) => Err(error),
        }
    }
}

/// A board far away: it does not tell of its changes by itself.
#[derive(Debug)]
pub struct TroubledTracker {
    pub board: MemoryTracker,
    pub line: Line<TrackerError>,
}

impl TroubledTracker {
    pub fn new(tickets: impl IntoIterator<Item = Ticket>) -> Self {
        Self { board: MemoryTracker::new(tickets), line: Line::default() }
    }
}

#[async_trait]
impl Tracker for TroubledTracker {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        self.board.capabilities()
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        self.line.pass("whoami", "").await?;
        self.board.whoami().await
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        self.line.pass("permission", login).await?;
        self.board.permission(login).await
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        self.line.pass("list", "").await?;
        self.board.fetch_by_states(states).await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        let subject: Vec<&str> = ids.iter().map(TicketId::as_str).collect();
        self.line.pass("by id", subject.join(" ")).await?;
        self.board.fetch_by_ids(ids).await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        self.line.pass("comments", id).await?;
        self.board.comments(id, since).await
    }

    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError> {
        self.line.pass("find comment", id).await?;
        self.board.find_comment(id, comment).await
    }

    async fn comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.line.pass("comment", id).await?;
        self.board.comment(permit, id, key, body, decided_at).await
    }

    async fn edit_comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.line.pass("edit", id).await?;
        self.board.edit_comment(permit, id, comment, body).await
    }

    async fn move_ticket(
        &self,
        permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.line.pass("move", id).await?;
        self.board.move_ticket(permit, id, state, expected_from).await
    }

    async fn label(
        &self,
        permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError> {
        self.line.pass("label", id).await?;
        self.board.label(permit, id, add, remove).await
    }

    async fn react(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        self.line.pass("react", id).await?;
        self.board.react(permit, id, comment, reaction).await
    }

    async fn attach_link(&self, permit: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        self.line.pass("link", id).await?;
        self.board.attach_link(permit, id, url, title).await
    }

    async fn create_ticket(&self, permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.line.pass("create", key).await?;
        self.board.create_ticket(permit, new, key).await
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.line.pass("probe", "").await?;
        self.board.probe().await
    }
}

/// A forge that works out at once whether something can be merged.
#[derive(Debug, Default)]
pub struct TroubledForge {
    pub forge: MemoryForge,
    pub line: Line<ForgeError>,
}

#[async_trait]
impl Forge for TroubledForge {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> ForgeCapabilities {
        self.forge.capabilities()
    }

    async fn find_pr(&self, branch: &str) -> Result<Option<PullRequest>, ForgeError> {
        self.line.pass("find", branch).await?;
        self.forge.find_pr(branch).await
    }

    async fn inspect_many(&self, numbers: &[PrNumber]) -> Vec<(PrNumber, Result<PrLook, ForgeError>)> {
        for number in numbers {
            if let Err(error) = self.line.pass("inspect", number.0).await {
                return numbers.iter().map(|number| (*number, Err(error.clone()))).collect();
            }
        }
        self.forge.inspect_many(numbers).await
    }

    async fn check_log(&self, check: &str) -> Result<String, ForgeError> {
        self.line.pass("check log", check).await?;
        self.forge.check_log(check).await
    }

    async fn find_remark(
        &self,
        number: PrNumber,
        kind: RemarkKind,
        id: &CommentId,
    ) -> Result<RemarkPresence, ForgeError> {
        self.line.pass("find remark", number.0).await?;
        self.forge.find_remark(number, kind, id).await
    }

    async fn push_branch(
        &self,
        permit: &Permit,
        branch: &str,
        head: &CommitId,
        pushed: Option<&CommitId>,
    ) -> Result<Pushed, ForgeError> {
        self.line.pass("push", branch).await?;
        self.forge.push_branch(permit, branch, head, pushed).await
    }

    async fn open_pr(&self, permit: &Permit, new: &NewPr) -> Result<PullRequest, ForgeError> {
        self.line.pass("open", &new.head_branch).await?;
        let opened = self.forge.open_pr(permit, new).await?;
        self.forge.edit(opened.number, |pr| pr.mergeability = Mergeability::Clean);
        Ok(opened)
    }

    async fn reopen(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.line.pass("reopen", number.0).await?;
        self.forge.reopen(permit, number).await
    }

    async fn merge(&self, permit: &Permit, order: &MergeOrder) -> Result<Merged, ForgeError> {
        self.line.pass("merge", order.number.0).await?;
        self.forge.merge(permit, order).await
    }

    async fn dequeue(&self, permit: &Permit, number: PrNumber) -> Result<(), ForgeError> {
        self.line.pass("dequeue", number.0).await?;
        self.forge.dequeue(permit, number).await
    }

    async fn update_branch(&self, permit: &Permit, number: PrNumber, head: &CommitId) -> Result<Updated, ForgeError> {
        self.line.pass("update", number.0).await?;
        self.forge.update_branch(permit, number, head).await
    }

    async fn update_pr(&self, permit: &Permit, number: PrNumber, change: &PrChange) -> Result<(), ForgeError> {
        self.line.pass("change", number.0).await?;
        self.forge.update_pr(permit, number, change).await
    }

    async fn upsert_comment(
        &self,
        permit: &Permit,
        number: PrNumber,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.line.pass("comment", number.0).await?;
        self.forge.upsert_comment(permit, number, key, body).await
    }

    async fn react(
        &self,
        permit: &Permit,
        number: PrNumber,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), ForgeError> {
        self.line.pass("react", number.0).await?;
        self.forge.react(permit, number, comment, reaction).await
    }

    async fn begin_threads(
        &self,
        permit: &Permit,
        number: PrNumber,
        head: &CommitId,
        notes: &[LineNote],
    ) -> Result<usize, ForgeError> {
        self.line.pass("begin threads", number.0).await?;
        self.forge.begin_threads(permit, number, head, notes).await
    }

    async fn reply_in_thread(
        &self,
        permit: &Permit,
        number: PrNumber,
        thread: &CommentId,
        key: &str,
        body: &str,
    ) -> Result<CommentId, ForgeError> {
        self.line.pass("reply", number.0).await?;
        self.forge.reply_in_thread(permit, number, thread, key, body).await
    }

    async fn resolve_thread(&self, permit: &Permit, number: PrNumber, thread: &CommentId) -> Result<(), ForgeError> {
        self.line.pass("resolve", number.0).await?;
        self.forge.resolve_thread(permit, number, thread).await
    }

    async fn request_review(&self, permit: &Permit, number: PrNumber, reviewer: &str) -> Result<(), ForgeError> {
        self.line.pass("request review", number.0).await?;
        self.forge.request_review(permit, number, reviewer).await
    }

    async fn publish_status(&self, permit: &Permit, status: &CommitStatus) -> Result<(), ForgeError> {
        self.line.pass("status", &status.commit).await?;
        self.forge.publish_status(permit, status).await
    }

    async fn rerun_check(&self, permit: &Permit, check: &str) -> Result<(), ForgeError> {
        self.line.pass("rerun", check).await?;
        self.forge.rerun_check(permit, check).await
    }

    async fn keep_receipt(
        &self,
        permit: &Permit,
        commit: &CommitId,
        payload: &str,
        signature: Option<&str>,
    ) -> Result<(), ForgeError> {
        self.line.pass("receipt", commit).await?;
        self.forge.keep_receipt(permit, commit, payload, signature).await
    }

    async fn delete_branch(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<(), ForgeError> {
        self.line.pass("delete", branch).await?;
        self.forge.delete_branch(permit, branch, head).await
    }
}
