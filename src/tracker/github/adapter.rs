//! Implements `Tracker` by calling the modules of this adapter.

use async_trait::async_trait;

use super::GithubTracker;
use crate::domain::comment::{Comment, TrustLevel};
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::service::Attachment;
use crate::domain::ticket::{NewTicket, Ticket};
use crate::domain::time::Timestamp;
use crate::tracker::{
    Account, Acknowledgement, AgentApi, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move, Tracker,
    TrackerError, Written,
};

#[async_trait]
impl Tracker for GithubTracker {
    fn kind(&self) -> &'static str {
        "github"
    }

    /// No links: GitHub links a pull request to its issue by itself and has no other link, and a comment would be noise.
    fn capabilities(&self) -> Capabilities {
        Capabilities { labels: true, reactions: true, links: false }
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        let login = self.ask_who_we_are().await?;
        Ok(Account { login, shared_with_person: self.board.shared_account })
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        Ok(self.ask_permission(login).await?)
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        self.tickets_in(states).await
    }

    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        self.poll_board(states, since).await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        self.find(ids).await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        self.all_comments(id, Self::number(id)?, since).await
    }

    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError> {
        self.look_for_comment(id, comment).await
    }

    async fn comment(
        &self,
        _: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.write_comment(id, key, body, decided_at).await
    }

    async fn edit_comment(
        &self,
        _: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.change_comment(id, comment, body).await
    }

    async fn move_ticket(
        &self,
        _: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.move_issue(id, state, expected_from).await
    }

    async fn label(&self, _: &Permit, id: &TicketId, add: &[String], remove: &[String]) -> Result<(), TrackerError> {
        let number = Self::number(id)?;
        let _writing = self.writing.lock().await;
        let issue = self.issue_now(id, number).await?;
        self.change_labels(id, &issue, add, remove).await
    }

    async fn react(
        &self,
        _: &Permit,
        _: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        self.acknowledge(comment, reaction).await
    }

    async fn attach_link(&self, _: &Permit, _: &TicketId, _: &str, _: &str) -> Result<(), TrackerError> {
        let words = "GitHub links a pull request to its issue by itself, and has no other links";
        Err(TrackerError::Refused(words.to_owned()))
    }

    async fn create_ticket(&self, _: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.create(new, key).await
    }

    fn left_out(&self) -> Vec<String> {
        let left_out = self.left_out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        left_out.values().cloned().collect()
    }

    fn usage(&self) -> Option<String> {
        let spent = self.github.spent();
        let left = |of: &str, left: Option<(u64, u64)>| {
            left.map(|(left, limit)| format!(", {left} of {limit} {of} requests left this hour")).unwrap_or_default()
        };
        let (rest, graphql) = (left("REST", spent.rest_left), left("GraphQL", spent.graphql_left));
        let (asked, unchanged, writes) = (spent.requests, spent.unchanged, spent.writes);
        Some(format!("{asked} requests, {unchanged} of them unchanged and {writes} writes{rest}{graphql}"))
    }

    fn attachments(&self, text: &str) -> Vec<Attachment> {
        self.attachments_in(text)
    }

    async fn fetch_attachment(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        self.fetch(attachment, longest).await
    }

    fn agent_api(&self) -> Option<&dyn AgentApi> {
        Some(self)
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        let report = self.check_setup().await?;
        if report.wrong.is_empty() {
            let whose =
                if report.shared_account { "an account that a person uses too" } else { "an account of its own" };
            let (account, repository, role) = (&report.account, &report.repository, report.role);
            return Ok(format!("the issues of {repository}, as {account} ({role}, {whose})"));
        }
        Err(TrackerError::Refused(report.wrong.join("; ")))
    }
}
