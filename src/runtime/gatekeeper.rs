//! Gives or refuses the permit at the moment of use: applies the engine's rule to the newest circumstances and to the kill-switch file
//! itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::meters::Meters;
use crate::config::policy::{Policy, RolloutMode};
use crate::domain::ids::TicketId;
use crate::domain::job::SwitchSource;
use crate::domain::permit::Permit;
use crate::engine::circumstances;
use crate::engine::permit::{Circumstances, EffectKind, Refusal, permit};
use crate::engine::state::State;
use crate::github::PermitGrounds;

/// Holds the circumstances of all tickets. The driver keeps it up to date; every task that writes asks it for a permit.
#[derive(Debug)]
pub struct Gatekeeper {
    known: RwLock<Known>,
    meters: Arc<Meters>,
}

#[derive(Debug)]
struct Known {
    kill_file: PathBuf,
    general: Circumstances,
    tickets: HashMap<TicketId, Circumstances>,
}

/// The permission that one write needs, so that it can be checked again while the write waits for its turn.
pub struct Ground {
    pub gatekeeper: Arc<Gatekeeper>,
    pub kind: EffectKind,
    pub ticket: TicketId,
}

impl PermitGrounds for Ground {
    fn holds(&self) -> bool {
        self.gatekeeper.permit(self.kind, Some(&self.ticket)).is_ok()
    }
}

impl Gatekeeper {
    /// Makes a gatekeeper that refuses everything until [`Self::refresh`] is called.
    pub fn new(kill_file: &Path) -> Self {
        let general =
            Circumstances { switch: None, rollout: RolloutMode::Observe, preflight_missing: true, owned: true };
        let known = Known { kill_file: kill_file.to_owned(), general, tickets: HashMap::new() };
        Self { known: RwLock::new(known), meters: Arc::default() }
    }

    pub fn permit(&self, kind: EffectKind, ticket: Option<&TicketId>) -> Result<Permit, Refusal> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut now = match ticket {
            None => known.general.clone(),
            // Of a ticket without a job, say one whose job was archived, neither the switches nor the owner is known.
            Some(id) => {
                known.tickets.get(id).cloned().unwrap_or(Circumstances { owned: false, ..known.general.clone() })
            }
        };
        // A kill-switch file that cannot be looked at counts as present: stopping must not depend on a healthy disk.
        if known.kill_file.try_exists().unwrap_or(true) {
            now.switch = Some(SwitchSource::File);
        }
        permit(kind, &now).inspect_err(|refusal| self.meters.refusals.add(&[kind.name(), refusal.code()]))
    }

    /// Returns the runner's meters. The gatekeeper counts refusals there.
    pub fn meters(&self) -> Arc<Meters> {
        self.meters.clone()
    }

    /// Takes in what changed about these tickets.
    pub fn update<'a>(&self, state: &State, policy: &Policy, changed: impl IntoIterator<Item = &'a TicketId>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for id in changed {
            if state.jobs.contains(id) {
                known.tickets.insert(id.clone(), circumstances(state, policy, Some(id)));
            } else {
                known.tickets.remove(id);
            }
        }
        known.general = circumstances(state, policy, None);
    }

    /// Takes in everything anew: a global switch, a new policy, a new path of the kill-switch file. A permit asked meanwhile is decided by
    /// the old circumstances or by the new ones, never by a mixture without its ticket.
    pub fn refresh(&self, state: &State, policy: &Policy, kill_file: Option<&Path>) {
        let general = circumstances(state, policy, None);
        let tickets = state.jobs.keys().map(|id| (id.clone(), circumstances(state, policy, Some(id)))).collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let kill_file = kill_file.unwrap_or(&known.kill_file).to_owned();
        *known = Known { kill_file, general, tickets };
    }
}
