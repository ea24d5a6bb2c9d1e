//! Archiving: jobs that are over leave the state and come back with the event that concerns them. The ledger keeps their records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Event, Lookup};
use super::select;
use super::state::State;
use super::step::Step;
use crate::domain::ids::TicketId;
use crate::domain::job::{Job, Stage};
use crate::domain::ticket::state_in;

/// How often the engine looks through the jobs that are over.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Step<'_> {
    /// Archives jobs that have been over for `policy.archive_after`, have nothing left to write and whose ticket is off the board's list.
    pub fn archive_what_is_over(&mut self) {
        let last = self.state.archived_at;
        if last <= self.now && self.now.since(last) < LOOK_EVERY {
            return;
        }
        self.state.archived_at = self.now;
        let (now, rest) = (self.now, self.policy.archive_after);
        let over: Vec<TicketId> = self
            .state
            .jobs
            .index()
            .over
            .iter()
            .take_while(|(since, _)| now.since(*since) >= rest)
            .map(|(_, id)| id.clone())
            .collect();
        if over.is_empty() {
            return;
        }
        let listed = select::states_of_interest(self.policy);
        let at_work: BTreeSet<TicketId> = self.state.runs.values().map(|run| run.ticket.clone()).collect();
        for id in over {
            if !at_work.contains(&id) && self.may_be_archived(&id, &listed) {
                self.archive(&id);
            }
        }
    }

    fn may_be_archived(&self, id: &TicketId, listed: &[String]) -> bool {
        let state = &*self.state;
        let Some(job) = state.jobs.get(id) else { return false };
        let is_over = matches!(job.stage, Stage::Done { ticket_closed: true, .. } | Stage::Released { .. });
        // A ticket that the board still lists would come back with every list.
        let is_listed = state_in(&job.ticket.state, listed) && !state.off_list.contains(id);
        let is_doubtful = state.unsettled.contains_key(id) || state.look_again.get(id).is_some();
        let has_to_write = state.outbox.of_ticket(id).next().is_some() || state.workpads.get(id).is_some();
        let has_directory = job.directory.is_some();
        is_over && !is_listed && !is_doubtful && !has_to_write && !has_directory
    }

    fn archive(&mut self, id: &TicketId) {
        let state = &mut *self.state;
        let Some(job) = state.jobs.remove(id) else { return };
        for ids in [&mut state.unseen, &mut state.off_list, &mut state.invisible, &mut state.switched] {
            ids.remove(id);
        }
        state.half_read.remove(id);
        state.looked.remove(id);
        state.changes.archived.insert(id.clone(), Arc::unwrap_or_clone(job));
    }

    /// Takes back the ledger's records of the tickets that the next event is about. What they say about the board is outdated, so nothing
    /// is started because of them.
    pub fn recalled(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            let id = job.ticket.id.clone();
            if !self.state.jobs.contains(&id) {
                self.state.jobs.recall(job);
                self.state.unseen.insert(id.clone());
                self.state.off_list.insert(id);
            }
        }
    }
}

/// Returns the tickets of an event that have no job. Before the driver feeds such an event to the engine, it looks these up among the
/// archived jobs and hands in what it finds with [`Event::Recalled`]. Otherwise a ticket that comes back would begin a second life without
/// its past.
pub fn unknown_tickets(state: &State, event: &Event) -> Vec<TicketId> {
    let unknown = |id: &&TicketId| !state.jobs.contains(id);
    match event {
        Event::Polled { tickets, .. } | Event::PolledChanges { tickets, .. } => {
            tickets.iter().map(|ticket| &ticket.id).filter(unknown).cloned().collect()
        }
        Event::TicketsRefreshed { found, .. } => found
            .iter()
            .filter(|(_, lookup)| matches!(lookup, Lookup::Found { .. }))
            .map(|(id, _)| id)
            .filter(unknown)
            .cloned()
            .collect(),
        Event::HumanSaid { ticket, .. } => [ticket].into_iter().filter(unknown).cloned().collect(),
        Event::Operator { command, .. } => command.ticket().into_iter().filter(unknown).cloned().collect(),
        _ => Vec::new(),
    }
}
