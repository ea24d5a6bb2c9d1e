//! A ticket with its past: a replica shows as much of it as has reached the replica.

use crate::domain::ticket::Ticket;

/// The ticket after each of its changes; `None` where it was deleted.
#[derive(Debug, Default)]
pub(super) struct Past {
    versions: Vec<Option<Ticket>>,
    /// The number of versions that have reached every replica.
    everywhere: usize,
    /// The least number of versions that every replica is behind.
    behind: usize,
}

/// What a replica knows about one ticket.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<'a> {
    Ticket(&'a Ticket),
    Deleted,
    /// The replica does not know yet that the ticket exists.
    Nothing,
}

impl Past {
    pub fn push(&mut self, version: Option<Ticket>) {
        self.versions.push(version);
    }

    pub fn newest(&self) -> Option<&Ticket> {
        self.versions.last().and_then(Option::as_ref)
    }

    pub fn lag(&mut self, behind: usize) {
        self.behind = behind;
    }

    pub fn catch_up(&mut self) {
        self.everywhere = self.versions.len();
    }

    /// Returns the number of versions that have reached a replica that is `behind` versions behind.
    pub fn reached(&self, behind: usize) -> usize {
        self.versions.len().saturating_sub(behind.max(self.behind)).max(self.everywhere)
    }

    /// Returns the ticket as it was after `reached` changes.
    pub fn at(&self, reached: usize) -> Known<'_> {
        match reached.checked_sub(1).and_then(|last| self.versions.get(last)) {
            Some(Some(ticket)) => Known::Ticket(ticket),
            Some(None) => Known::Deleted,
            None => Known::Nothing,
        }
    }
}
