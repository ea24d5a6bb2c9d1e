//! What must hold after every step, whatever the order of events. Answers with sentences about what does not.

use std::collections::BTreeSet;

use dirigent::config::policy::Policy;
use dirigent::domain::ids::{EffectId, TicketId};
use dirigent::domain::job::{BlockCause, CheckWait, HumanWait, Job, Stage, Wait};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect};
use dirigent::engine::jobs::Jobs;
use dirigent::engine::permit::{EffectKind, Reach, permit};
use dirigent::engine::state::{Changes, Pending, PendingStatus, State};
use dirigent::engine::{circumstances, next_due, snapshot};

/// Everything that is wrong with the state and the effects of the step that led to it.
pub fn broken(state: &State, policy: &Policy, now: Timestamp, effects: &[Effect]) -> Vec<String> {
    let mut found = Vec::new();
    runs_and_jobs_agree(state, &mut found);
    slots_are_kept(state, policy, effects, &mut found);
    outbox_is_sound(state, &mut found);
    effects_are_written_down(state, effects, &mut found);
    effects_are_permitted(state, policy, effects, &mut found);
    indexes_say_what_the_jobs_say(state, &mut found);
    terminal_jobs_are_quiet(state, effects, &mut found);
    if state.recovered {
        for (id, job) in state.jobs.iter() {
            everyone_says_why(id, job, now, &mut found);
            what_is_waited_for_exists(state, policy, id, job, &mut found);
        }
    }
    let picture = snapshot(state, policy, now);
    if picture.jobs.len() != state.jobs.len() {
        found.push("the snapshot leaves jobs out".into());
    }
    found
}

/// The same, but only of what one step changed. Quick; what changed without being marked escapes it.
pub fn newly_broken(
    state: &State,
    policy: &Policy,
    now: Timestamp,
    effects: &[Effect],
    changes: &Changes,
) -> Vec<String> {
    let mut found = Vec::new();
    if !changes.runs.is_empty() || !changes.jobs.is_empty() {
        runs_and_jobs_agree(state, &mut found);
    }
    slots_are_kept(state, policy, effects, &mut found);
    for id in &changes.outbox {
        if let Some(pending) = state.outbox.get(id) {
            entry_is_sound(state, *id, pending, &mut found);
        }
    }
    effects_are_written_down(state, effects, &mut found);
    effects_are_permitted(state, policy, effects, &mut found);
    terminal_jobs_are_quiet(state, effects, &mut found);
    if state.recovered {
        for id in &changes.jobs {
            if let Some(job) = state.jobs.get(id) {
                everyone_says_why(id, job, now, &mut found);
                what_is_waited_for_exists(state, policy, id, job, &mut found);
            }
        }
        if !changes.outbox.is_empty() {
            for (id, job) in state.jobs.iter() {
                what_is_waited_for_exists(state, policy, id, job, &mut found);
            }
        }
    }
    found
}

fn indexes_say_what_the_jobs_say(state: &State, found: &mut Vec<String>) {
    let filed_anew: Jobs = state.jobs.values().cloned().collect();
    if filed_anew.index() != state.jobs.index() {
        found.push(format!("the index says {:?} and the jobs {:?}", state.jobs.index(), filed_anew.index()));
    }
}

fn runs_and_jobs_agree(state: &State, found: &mut Vec<String>) {
    let mut tickets = BTreeSet::new();
    for run in state.runs.values() {
        if !tickets.insert(&run.ticket) {
            found.push(format!("{} has two live runs", run.ticket));
        }
        let current = state.jobs.get(&run.ticket).and_then(|job| job.stage.run());
        if current != Some(&run.id) {
            found.push(format!("run {} is live, but its job {} is not working on it", run.id, run.ticket));
        }
    }
    if !state.recovered {
        return;
    }
    for (id, job) in state.jobs.iter() {
        if let Some(run) = job.stage.run()
            && !state.runs.contains(run)
        {
            found.push(format!("{id} is working on run {run}, which does not live"));
        }
    }
}

fn slots_are_kept(state: &State, policy: &Policy, effects: &[Effect], found: &mut Vec<String>) {
    let starts = effects.iter().filter(|effect| effect.action.kind() == EffectKind::StartRun).count();
    if starts > 0 && state.runs.len() > policy.agent.max_concurrent {
        found.push(format!("{} live runs, and {} are allowed", state.runs.len(), policy.agent.max_concurrent));
    }
    for effect in effects {
        let (Action::StartRun { .. }, Some(job)) =
            (&effect.action, effect.ticket.as_ref().and_then(|id| state.jobs.get(id)))
        else {
            continue;
        };
        let column = job.ticket.state.trim().to_lowercase();
        let in_column = state.runs.values().filter(|run| run.ticket_state.trim().to_lowercase() == column).count();
        if policy.agent.max_concurrent_by_state.get(&column).is_some_and(|limit| in_column > *limit) {
            found.push(format!("too many runs in state {column}"));
        }
    }
}

fn outbox_is_sound(state: &State, found: &mut Vec<String>) {
    for (id, pending) in state.outbox.iter() {
        entry_is_sound(state, *id, pending, found);
    }
}

fn entry_is_sound(state: &State, id: EffectId, pending: &Pending, found: &mut Vec<String>) {
    if pending.effect.id != id || id.0 >= state.meta.next_effect {
        found.push(format!("outbox entry {id:?} has a wrong number"));
    }
    if let Some(ticket) = &pending.effect.ticket
        && !state.jobs.contains(ticket)
    {
        found.push(format!("outbox entry {id:?} is about {ticket}, which nobody knows"));
    }
    if !pending.effect.action.is_durable() {
        found.push(format!("outbox entry {id:?} is not durable"));
    }
}

fn effects_are_written_down(state: &State, effects: &[Effect], found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for effect in effects {
        if !seen.insert(effect.id) {
            found.push(format!("effect {:?} is handed out twice in a step", effect.id));
        }
        let in_flight = state.outbox.get(&effect.id).is_some_and(|entry| entry.status == PendingStatus::InFlight);
        if effect.action.is_durable() && !in_flight {
            found.push(format!("{:?} is handed out but not written down", effect.action));
        }
    }
}

fn effects_are_permitted(state: &State, policy: &Policy, effects: &[Effect], found: &mut Vec<String>) {
    for effect in effects {
        let circumstances = circumstances(state, policy, effect.ticket.as_ref());
        if let Err(refusal) = permit(effect.action.kind(), &circumstances) {
            found.push(format!("{:?} is handed out although {refusal}", effect.action));
        }
    }
}

fn terminal_jobs_are_quiet(state: &State, effects: &[Effect], found: &mut Vec<String>) {
    for effect in effects {
        let Some(job) = effect.ticket.as_ref().and_then(|id| state.jobs.get(id)) else { continue };
        let kind = effect.action.kind();
        let closing = matches!(
            kind,
            EffectKind::Comment
                | EffectKind::MoveTicket
                | EffectKind::WriteWorkpad
                | EffectKind::WriteReceipt
                | EffectKind::CleanUp
                | EffectKind::CreateTicket
                | EffectKind::Acknowledge
                | EffectKind::AddLabels
        );
        let may_leave = matches!(kind.reach(), Reach::Harmless | Reach::TakesBack) || closing;
        if job.stage.phase().is_terminal() && !may_leave {
            found.push(format!("{} is {}, and yet: {:?}", job.ticket.key, job.stage.phase(), effect.action));
        }
        if matches!(job.stage, Stage::Released { .. }) && kind == EffectKind::MoveTicket {
            found.push(format!("{} was released, and yet: {:?}", job.ticket.key, effect.action));
        }
    }
}

fn everyone_says_why(id: &TicketId, job: &Job, now: Timestamp, found: &mut Vec<String>) {
    let reason = job.stage.reason(now);
    if reason.code.is_empty() || reason.sentence.trim().is_empty() || reason.next.trim().is_empty() {
        found.push(format!("{id} does not say why it is {}: {reason:?}", job.stage.phase()));
    }
}

fn what_is_waited_for_exists(state: &State, policy: &Policy, id: &TicketId, job: &Job, found: &mut Vec<String>) {
    let pending = |wanted: &dyn Fn(&Action) -> bool| {
        state.outbox.values().any(|entry| entry.effect.ticket.as_ref() == Some(id) && wanted(&entry.effect.action))
    };
    let sound = match &job.stage {
        Stage::Queued { wait: Wait::Retry { due, .. } | Wait::Continuation { due }, .. } => {
            next_due(state, policy).is_some_and(|at| at <= *due)
        }
        Stage::Queued { .. } | Stage::Working { .. } => true,
        Stage::WaitingForChecks { on, .. } => match on {
            CheckWait::Gates { head } => {
                pending(&|action| matches!(action, Action::RunGate { head: on, .. } if on == head))
            }
            CheckWait::Publishing { head } => pending(
                &|action| matches!(action, Action::PushBranch { head: on, .. } | Action::OpenPr { head: on, .. } if on == head),
            ),
            CheckWait::Forge { .. }
            | CheckWait::Mergeability { .. }
            | CheckWait::BranchUpdate { .. }
            | CheckWait::ForgeQueue { .. }
            | CheckWait::TicketClosed { .. } => job.delivery.pr.is_some(),
        },
        Stage::WaitingForHuman { on: HumanWait::Branch { .. } | HumanWait::Directory, .. } => true,
        Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. } => job.delivery.pr.is_some(),
        Stage::Blocked { cause: BlockCause::PrClosed { .. }, .. } => job.delivery.pr.is_some(),
        Stage::Blocked { .. } => true,
        Stage::Merging { head, .. } => {
            pending(&|action| matches!(action, Action::MergePr { head: on, .. } if on == head))
        }
        Stage::Done { .. } | Stage::Released { .. } => true,
    };
    if !sound {
        found.push(format!("{id} waits for something that will never come: {:?}", job.stage));
    }
}
