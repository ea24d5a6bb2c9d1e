//! Implements `Tracker` by calling the modules of this adapter.

use async_trait::async_trait;

use super::LinearTracker;
use super::people::who_we_are;
use crate::domain::comment::{Comment, TrustLevel};
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::service::Attachment;
use crate::domain::ticket::{NewTicket, Ticket};
use crate::domain::time::Timestamp;
use crate::tracker::{
    Account, Acknowledgement, AgentApi, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move, Tracker,
    TrackerError, Written, addresses,
};

#[async_trait]
impl Tracker for LinearTracker {
    fn kind(&self) -> &'static str {
        "linear"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { labels: true, reactions: true, links: true }
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        let us = who_we_are(&self.client).await?;
        let shared_with_person = self.people.is_shared(&us);
        Ok(Account { login: us.name, shared_with_person })
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        self.people.standing(&self.client, login).await
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let listing = self.list(states).await?;
        self.tickets(&listing.nodes).await
    }

    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        self.tick(states, since).await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.by_ids(ids).await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        self.read_comments(id, since).await
    }

    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError> {
        self.look_for_comment(id, comment).await
    }

    async fn comment(
        &self,
        _permit: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.write_comment(id, key, body, decided_at).await
    }

    async fn edit_comment(
        &self,
        _permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.reword_comment(id, comment, body).await
    }

    async fn move_ticket(
        &self,
        _permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.shift(id, state, expected_from).await
    }

    async fn label(
        &self,
        _permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError> {
        self.relabel(id, add, remove).await
    }

    async fn react(
        &self,
        _permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        self.acknowledge(id, comment, reaction).await
    }

    async fn attach_link(&self, _permit: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        self.attach(id, url, title).await
    }

    async fn create_ticket(&self, _permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.create(new, key).await
    }

    fn left_out(&self) -> Vec<String> {
        self.left_out.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn usage(&self) -> Option<String> {
        let budget = self.client.budget();
        budget.is_known().then(|| budget.to_string())
    }

    fn agent_api(&self) -> Option<&dyn AgentApi> {
        Some(self)
    }

    fn attachments(&self, text: &str) -> Vec<Attachment> {
        addresses::attachments_in(text, |url| self.file_name(url))
    }

    async fn fetch_attachment(&self, attachment: &Attachment, longest: usize) -> Result<Vec<u8>, TrackerError> {
        self.fetch(attachment, longest).await
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.survey().await
    }
}
