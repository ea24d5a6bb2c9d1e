//! The gates under way, and what stops one early: a switch, a result that is no longer needed, or the shutdown of the runner.

use std::collections::HashMap;

use tokio::sync::watch;

use super::gatekeeper::Gatekeeper;
use crate::domain::ids::{CommitId, EffectId, TicketId};
use crate::domain::job::{CheckWait, Stage};
use crate::engine::permit::{EffectKind, Refusal};
use crate::engine::state::State;

/// Why a gate is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The permit is refused. The gate may run again when the reason is gone.
    Refused(Refusal),
    /// The job no longer waits for the result.
    Pointless,
    /// The runner shuts down. Its next start runs the gate again.
    ShuttingDown,
}

/// Holds `None` while the gate may go on, and the reason once it has to stop.
pub type HaltReceiver = watch::Receiver<Option<Halt>>;

/// Waits until the gate has to stop.
pub async fn halted(mut halt: HaltReceiver) {
    if halt.wait_for(Option::is_some).await.is_err() {
        // The watch is gone, so nothing can halt the gate any more.
        std::future::pending().await
    }
}

#[derive(Default)]
pub struct GateWatch {
    gates: HashMap<EffectId, UnderWay>,
}

struct UnderWay {
    ticket: TicketId,
    head: CommitId,
    halt: watch::Sender<Option<Halt>>,
}

impl GateWatch {
    pub fn begin(&mut self, effect: EffectId, ticket: TicketId, head: CommitId) -> HaltReceiver {
        let (halt, told) = watch::channel(None);
        self.gates.insert(effect, UnderWay { ticket, head, halt });
        told
    }

    pub fn end(&mut self, effect: EffectId) {
        self.gates.remove(&effect);
    }

    /// Halts every gate that may not go on in this state.
    pub fn look(&self, state: &State, gatekeeper: &Gatekeeper) {
        for gate in self.gates.values() {
            if let Some(why) = gate.why_halt(state, gatekeeper) {
                gate.halt.send_if_modified(|known| known.is_none() && known.replace(why).is_none());
            }
        }
    }
}

impl UnderWay {
    fn why_halt(&self, state: &State, gatekeeper: &Gatekeeper) -> Option<Halt> {
        let wanted = state.jobs.get(&self.ticket).is_some_and(|job| {
            let on = CheckWait::Gates { head: self.head.clone() };
            matches!(&job.stage, Stage::WaitingForChecks { on: waited, .. } if *waited == on)
        });
        if !wanted {
            return Some(Halt::Pointless);
        }
        if state.shutting_down {
            return Some(Halt::ShuttingDown);
        }
        gatekeeper.permit(EffectKind::RunGate, Some(&self.ticket)).err().map(Halt::Refused)
    }
}
