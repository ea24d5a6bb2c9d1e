//! Tells the author of a note what effect the note has on a ticket that a runner works on.

use crate::cli::context::Context;
use crate::cli::snapshot_source::{self, Behind};
use crate::config::policy::OnComment;
use crate::domain::instruction;
use crate::domain::phase::Phase;
use crate::engine::provenance::{is_acknowledgement, is_addressed};
use crate::runtime::assembly;

/// Returns a message about the effect of the note. `None` if no runner has ever seen the ticket, or the note has no special effect.
pub fn what_comes_of_it(id: &str, text: &str) -> Option<String> {
    let context = Context::new(None, &[]).ok()?;
    if !context.workflow_path(None).is_file() {
        return None;
    }
    let loaded = context.load(None).ok()?;
    let place = context.place(&loaded);
    if !place.ledger.is_file() {
        return None;
    }
    let seen = snapshot_source::written(&loaded, &place, Behind::Nobody).ok()?;
    let job = seen.snapshot.jobs.iter().find(|job| job.id == id)?;
    let name = &loaded.settings.tracker.mention;
    let told: Vec<String> =
        instruction::read(text, name).instructions.iter().map(|one| format!("`/{name} {}`", one.verb())).collect();
    if !told.is_empty() {
        return Some(format!("the runner reads {} and answers on the ticket", told.join(", ")));
    }
    let policy = assembly::policy_here(&loaded.settings, &loaded.hash, false);
    let waits = matches!(job.phase, Phase::WaitingForHuman | Phase::WaitingForChecks | Phase::ReadyToMerge);
    match job.phase {
        _ if waits && is_addressed(text, &policy) => {
            Some(format!("{id} is {}: it is addressed to the agent, and starts a rework", job.phase))
        }
        _ if waits && is_acknowledgement(text, &policy) => {
            Some(format!("{id} is {}: it says that you have seen it, and changes nothing", job.phase))
        }
        _ if waits && policy.orchestration.on_comment == OnComment::Rework => {
            Some(format!("{id} is {}: it starts a rework (orchestration.on_comment)", job.phase))
        }
        Phase::WaitingForHuman | Phase::WaitingForChecks | Phase::ReadyToMerge => Some(format!(
            "{id} is {}: nothing is merged over this note; `dirigent approve {id} --anyway` overrules it, `dirigent reject {id} WHY` asks for changes",
            job.phase
        )),
        Phase::Implementing | Phase::Rework | Phase::Reviewing => {
            Some(format!("{id} is {}: the run that is at it is told", job.phase))
        }
        Phase::Blocked => Some(format!("{id} is {}: the next run reads this note", job.phase)),
        Phase::Queued | Phase::Merging | Phase::Done | Phase::Released => None,
    }
}
