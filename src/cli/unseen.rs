//! Tickets on the board that no runner has seen yet. A board of ticket files is read by the command itself, so that people can look at a
//! new ticket and pause it before its first run. Other boards are left to the runner.

use crate::config::policy::Policy;
use crate::config::tracker::TrackerKind;
use crate::domain::basis::Basis;
use crate::domain::ids::TicketId;
use crate::engine::event::Event;
use crate::engine::select;
use crate::engine::state::State;
use crate::engine::step;
use crate::ledger::LedgerReader;
use crate::runtime::{self, assembly};
use crate::workflow::Loaded;

use super::Failure;
use super::block_on;

/// Adds the new tickets to the state, as the next poll of a runner would. Does nothing if the board cannot be read; that is reported
/// elsewhere.
pub fn take_in(state: &mut State, policy: &Policy, loaded: &Loaded, ledger: &dyn LedgerReader) {
    if loaded.settings.tracker.kind != TrackerKind::Tk {
        return;
    }
    let Ok(tracker) = assembly::tracker(&loaded.settings) else { return };
    let states = select::states_of_interest(policy);
    let reading = || block_on(async { tracker.fetch_by_states(&states).await.map_err(Failure::plain) });
    // The caller may be inside an async runtime, in which no other can be started, so another thread is used.
    let read = std::thread::scope(|scope| scope.spawn(reading).join());
    let Ok(Ok(mut tickets)) = read else { return };
    tickets.retain(|ticket| !state.jobs.contains(&ticket.id));
    let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id.clone()).collect();
    // Archived tickets are left out: only a runner brings them back with their past.
    let Ok(archived) = ledger.jobs(&ids) else { return };
    tickets.retain(|ticket| archived.iter().all(|job| job.ticket.id != ticket.id));
    if tickets.is_empty() {
        return;
    }
    let now = runtime::now();
    let basis = Basis { asked_at: now, after: state.moment() };
    // The effects are dropped: nothing may start before recovery. The runner that takes the tickets in will have the same effects.
    drop(step(state, policy, now, Event::PolledChanges { tickets, base: None, basis }));
}
