//! Tickets that are on the board and that no runner has seen yet. A board of files is read at once, so that people can look at
//! such a ticket, and pause it before its first run; another board is left to the runner.

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

/// Takes them into the state, as the next poll of a runner would. A board that cannot be read has its own sentence elsewhere.
pub fn take_in(state: &mut State, policy: &Policy, loaded: &Loaded, ledger: &dyn LedgerReader) {
    if loaded.settings.tracker.kind != TrackerKind::Tk {
        return;
    }
    let Ok(tracker) = assembly::tracker(&loaded.settings) else { return };
    let states = select::states_of_interest(policy);
    let reading = || block_on(async { tracker.fetch_by_states(&states).await.map_err(Failure::plain) });
    // Whoever calls may be inside of a runtime, in which no other can be started.
    let read = std::thread::scope(|scope| scope.spawn(reading).join());
    let Ok(Ok(mut tickets)) = read else { return };
    tickets.retain(|ticket| !state.jobs.contains(&ticket.id));
    let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id.clone()).collect();
    // What is archived has a past, which only a runner brings back.
    let Ok(archived) = ledger.jobs(&ids) else { return };
    tickets.retain(|ticket| archived.iter().all(|job| job.ticket.id != ticket.id));
    if tickets.is_empty() {
        return;
    }
    let now = runtime::now();
    let basis = Basis { asked_at: now, after: state.moment() };
    // Nothing starts: the past of this state is not settled. What would be said is said by the runner that takes it in.
    drop(step(state, policy, now, Event::PolledChanges { tickets, base: None, basis }));
}
