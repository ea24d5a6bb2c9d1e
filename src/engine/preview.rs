//! What would be done next if `rollout.mode` were `mutate`. Decided on a copy of the state, by the same rules as always.

use super::effect::{Action, Effect};
use super::event::Event;
use super::permit::Reach;
use super::state::State;
use super::step::step;
use super::view;
use crate::config::policy::{Policy, RolloutMode};
use crate::domain::ids::TicketId;
use crate::domain::reason::Reason;
use crate::domain::time::Timestamp;

pub struct Preview {
    state: State,
    policy: Policy,
    now: Timestamp,
    effects: Vec<Effect>,
}

/// Makes a preview of `state` as the ledger has it. What the last runner knew about the board counts as known.
pub fn preview(state: &State, policy: &Policy, now: Timestamp) -> Preview {
    let mut state = state.clone();
    let mut policy = policy.clone();
    policy.rollout.mode = RolloutMode::Mutate;
    state.recovered = true;
    state.unseen.clear();
    state.half_read.clear();
    state.tracker.last_ok.get_or_insert(now);
    state.tracker.last_error = None;
    let effects = step(&mut state, &policy, now, Event::PolicyReloaded);
    Preview { state, policy, now, effects }
}

impl Preview {
    /// Returns what would be done for this ticket, in order.
    pub fn of<'a>(&'a self, ticket: &'a TicketId) -> impl Iterator<Item = &'a Action> {
        let of_ticket = move |effect: &&Effect| effect.ticket.as_ref() == Some(ticket);
        let actions = self.effects.iter().filter(of_ticket).map(|effect| &effect.action);
        actions.filter(|action| action.kind().reach() != Reach::Harmless)
    }

    /// Returns why the ticket would then be where it is.
    pub fn reason(&self, ticket: &TicketId) -> Option<Reason> {
        self.state.jobs.get(ticket).map(|job| view::reason(&self.state, &self.policy, job, self.now))
    }
}
