//! The board as a run sees it: reads one ticket at a time and writes nothing.

use std::sync::Arc;

use async_trait::async_trait;

use super::lanes::{CallQueue, Priority, READ_TICKET};
use crate::domain::ids::TicketId;
use crate::domain::ticket::Ticket;
use crate::tracker::{Found, Tracker};
use crate::worker::TicketSource;

pub struct TrackerTickets {
    tracker: Arc<dyn Tracker>,
    lane: Arc<CallQueue>,
}

impl TrackerTickets {
    pub fn new(tracker: Arc<dyn Tracker>, lane: Arc<CallQueue>) -> Self {
        Self { tracker, lane }
    }
}

#[async_trait]
impl TicketSource for TrackerTickets {
    async fn read(&self, id: &TicketId) -> Result<Option<Ticket>, String> {
        let asked = std::slice::from_ref(id);
        let reading = self.lane.call(Priority::Look, READ_TICKET, self.tracker.fetch_by_ids(asked));
        let found = reading.await.map_err(|error| error.to_string())?;
        match found.into_iter().find(|(seen, _)| seen == id) {
            Some((_, Found::Ticket(ticket))) => Ok(Some(ticket)),
            Some((_, Found::Unreadable(why))) => Err(why),
            Some((_, Found::NotVisible)) => Err("the tracker does not show the ticket just now".to_owned()),
            Some((_, Found::Gone(_))) | None => Ok(None),
        }
    }
}
