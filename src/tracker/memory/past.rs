//! A ticket with its past: what a replica shows depends on how much of it has reached it.

use crate::domain::ticket::Ticket;

/// The ticket after each of its changes; `None` where it was deleted.
#[derive(Debug, Default)]
pub(super) struct Past {
    versions: Vec<Option<Ticket>>,
    /// So many of them have reached every replica.
    everywhere: usize,
    /// Every replica is at least so many behind.
    behind: usize,
}

/// What a replica knows of one ticket.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<'a> {
    Ticket(&'a Ticket),
    Deleted,
    /// It does not know yet that there is one.
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

    /// How many versions a replica has that is so many behind.
    pub fn reached(&self, behind: usize) -> usize {
        self.versions.len().saturating_sub(behind.max(self.behind)).max(self.everywhere)
    }

    /// The ticket as it was after so many changes.
    pub fn at(&self, reached: usize) -> Known<'_> {
        match reached.checked_sub(1).and_then(|last| self.versions.get(last)) {
            Some(Some(ticket)) => Known::Ticket(ticket),
            Some(None) => Known::Deleted,
            None => Known::Nothing,
        }
    }
}
