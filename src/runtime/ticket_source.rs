//! The board as a run sees it: one ticket at a time, to be read and never to be written.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::ids::TicketId;
use crate::domain::ticket::Ticket;
use crate::tracker::Tracker;
use crate::worker::TicketSource;

pub struct TrackerTickets {
    tracker: Arc<dyn Tracker>,
}

impl TrackerTickets {
    pub fn new(tracker: Arc<dyn Tracker>) -> Self {
        Self { tracker }
    }
}

#[async_trait]
impl TicketSource for TrackerTickets {
    async fn read(&self, id: &TicketId) -> Result<Option<Ticket>, String> {
        let asked = std::slice::from_ref(id);
        let tickets = self.tracker.fetch_by_ids(asked).await.map_err(|error| error.to_string())?;
        Ok(tickets.into_iter().find(|ticket| ticket.id == *id))
    }
}
