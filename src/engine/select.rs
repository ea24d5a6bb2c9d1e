//! Which tickets may be worked on, and in which order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::jobs::Jobs;
use crate::config::policy::{Order, Policy};
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::job::{Job, TicketFacts};
use crate::domain::run::StopReason;
use crate::domain::ticket::{Blocker, Dispatchable, same_state, state_in};
use crate::domain::time::Timestamp;

/// Every state in which a ticket is worked on, waited for, or asked back from.
pub fn states_of_interest(policy: &Policy) -> Vec<String> {
    let mut states: Vec<String> = Vec::new();
    let lists = [&policy.tracker.active_states, &policy.orchestration.rework_states, &policy.merge.approval_states];
    for state in lists.into_iter().flatten().chain(policy.orchestration.states.values()) {
        if !state_in(state, &states) && !is_terminal(state, policy) {
            states.push(state.clone());
        }
    }
    states
}

pub fn is_terminal(state: &str, policy: &Policy) -> bool {
    state_in(state, &policy.tracker.terminal_states)
}

/// A state in which a live run may go on: active ones, and the columns we move tickets to ourselves.
pub fn is_live(state: &str, policy: &Policy) -> bool {
    let ours = || policy.orchestration.states.values().any(|column| same_state(column, state));
    !is_terminal(state, policy)
        && (state_in(state, &policy.tracker.active_states)
            || state_in(state, &policy.orchestration.rework_states)
            || state_in(state, &policy.merge.approval_states)
            || ours())
}

/// Whether a run may go on with its ticket as it is read now.
pub fn may_go_on(ticket: &TicketFacts, policy: &Policy) -> bool {
    is_live(&ticket.state, policy) && lost_eligibility(ticket, policy).is_none()
}

/// Whether somebody moved a run's ticket on since the run began. A column that we move tickets to ourselves says nothing.
pub fn moved_on(state_at_start: &str, ticket: &TicketFacts, policy: &Policy) -> bool {
    let ours = || policy.orchestration.states.values().any(|column| same_state(column, &ticket.state));
    !may_go_on(ticket, policy) || (!same_state(state_at_start, &ticket.state) && !ours())
}

/// Whether a queued job's ticket is where work may start: an active state, or, once work has begun, any live one.
pub fn may_start(job: &Job, policy: &Policy) -> bool {
    let state = &job.ticket.state;
    is_active(state, policy) || (job.attempts > 0 && is_live(state, policy))
}

pub fn is_active(state: &str, policy: &Policy) -> bool {
    state_in(state, &policy.tracker.active_states) && !is_terminal(state, policy)
}

/// Labels that are demanded and not there. A blank one matches nothing, so it is always missing.
pub fn missing_labels(ticket: &TicketFacts, policy: &Policy) -> Vec<String> {
    policy
        .tracker
        .required_labels
        .iter()
        .chain(policy.orchestration.required_label.iter())
        .filter(|wanted| wanted.trim().is_empty() || !ticket.labels.contains(&wanted.trim().to_lowercase()))
        .cloned()
        .collect()
}

/// Why this ticket is none of ours, if it is none.
pub fn not_ours(ticket: &TicketFacts, policy: &Policy) -> Option<String> {
    if let Dispatchable::No(because) = &ticket.dispatchable {
        return Some(because.clone());
    }
    if policy.tracker.authors.is_empty() {
        return None;
    }
    let author = ticket.author.as_ref().map(|author| author.name.as_str());
    let allowed = author.is_some_and(|name| policy.tracker.authors.iter().any(|a| a.eq_ignore_ascii_case(name)));
    (!allowed).then(|| format!("its author {} is not in tracker.authors", author.unwrap_or("(unknown)")))
}

/// What takes a ticket out of our hands while it is being worked on.
pub fn lost_eligibility(ticket: &TicketFacts, policy: &Policy) -> Option<String> {
    if let Some(because) = not_ours(ticket, policy) {
        return Some(because);
    }
    let missing = missing_labels(ticket, policy);
    (!missing.is_empty()).then(|| format!("the label {} is gone", missing.join(", ")))
}

/// Blockers that are not finished. A failed or unknown one keeps blocking.
pub fn open_blockers(ticket: &TicketFacts, policy: &Policy) -> Vec<TicketKey> {
    ticket
        .blocked_by
        .iter()
        .filter(|blocker| is_open_blocker(blocker, policy))
        .map(|blocker| blocker.key.clone())
        .collect()
}

pub fn is_open_blocker(blocker: &Blocker, policy: &Policy) -> bool {
    blocker.failed || !blocker.state.as_deref().is_some_and(|state| is_terminal(state, policy))
}

/// Why a run that was decided on must not start after all, now that its ticket was read once more.
pub fn too_late(ticket: Option<&TicketFacts>, policy: &Policy) -> Option<StopReason> {
    let Some(ticket) = ticket else { return Some(StopReason::NotActive) };
    if is_terminal(&ticket.state, policy) {
        return Some(StopReason::TerminalState);
    }
    if !is_live(&ticket.state, policy) {
        return Some(StopReason::NotActive);
    }
    if let Some(because) = lost_eligibility(ticket, policy) {
        return Some(StopReason::NotEligible { because });
    }
    // A blocker that was opened again: the work stays queued behind it.
    (!open_blockers(ticket, policy).is_empty()).then_some(StopReason::BlockerOpened)
}

/// Priority 1..=4 first, then (with `critical_path`) the longest chain that waits for it, then oldest, then key.
pub type Rank = (i64, Reverse<u32>, Timestamp, TicketKey);

pub fn rank(job: &Job, chain: u32) -> Rank {
    let priority = job.ticket.priority.filter(|p| (1..=4).contains(p)).unwrap_or(5);
    let created = job.ticket.created_at.unwrap_or(Timestamp(i64::MAX));
    (priority, Reverse(chain), created, job.ticket.key.clone())
}

/// How many tickets wait for each ticket, one after the other, at the longest.
pub fn chains(jobs: &Jobs, policy: &Policy) -> BTreeMap<TicketId, u32> {
    if policy.agent.order != Order::CriticalPath {
        return BTreeMap::new();
    }
    let mut dependents: BTreeMap<&TicketId, Vec<&TicketId>> = BTreeMap::new();
    for (id, job) in jobs.iter().filter(|(_, job)| !job.stage.phase().is_terminal()) {
        for blocker in &job.ticket.blocked_by {
            dependents.entry(&blocker.id).or_default().push(id);
        }
    }
    let mut lengths: BTreeMap<&TicketId, u32> = BTreeMap::new();
    for id in jobs.keys() {
        longest(id, &dependents, &mut lengths);
    }
    lengths.into_iter().map(|(id, length)| (id.clone(), length)).collect()
}

/// Fills in the length of `start` and of everything that waits for it. Walks with a stack of its own: chains are long.
fn longest<'a>(
    start: &'a TicketId,
    dependents: &BTreeMap<&'a TicketId, Vec<&'a TicketId>>,
    lengths: &mut BTreeMap<&'a TicketId, u32>,
) {
    if lengths.contains_key(start) {
        return;
    }
    let waiting = |id: &TicketId| dependents.get(id).map(Vec::as_slice).unwrap_or_default();
    let mut open: BTreeSet<&TicketId> = BTreeSet::from([start]);
    let mut path: Vec<(&'a TicketId, usize)> = vec![(start, 0)];
    while let Some((id, next)) = path.last_mut() {
        if let Some(dependent) = waiting(id).get(*next) {
            *next += 1;
            // A cycle adds nothing: its tickets never become ready.
            if !lengths.contains_key(dependent) && open.insert(dependent) {
                path.push((dependent, 0));
            }
            continue;
        }
        let id = *id;
        let length =
            waiting(id).iter().filter_map(|dependent| lengths.get(dependent)).map(|n| n.saturating_add(1)).max();
        lengths.insert(id, length.unwrap_or(0));
        open.remove(id);
        path.pop();
    }
}

/// The tickets of dependency cycles, each with its path; found once for all jobs, iteratively.
pub fn cycles(jobs: &Jobs) -> BTreeMap<TicketId, Vec<TicketKey>> {
    let mut found = BTreeMap::new();
    let mut done: BTreeSet<&TicketId> = BTreeSet::new();
    for start in jobs.keys() {
        let mut path: Vec<(&TicketId, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&TicketId> = BTreeSet::from([start]);
        if done.contains(start) {
            continue;
        }
        while let Some((id, next)) = path.last_mut() {
            let blockers = jobs.get(id).map(|job| job.ticket.blocked_by.as_slice()).unwrap_or_default();
            let Some(blocker) = blockers.get(*next) else {
                done.insert(id);
                on_path.remove(*id);
                path.pop();
                continue;
            };
            *next += 1;
            let Some(blocker) = jobs.get(&blocker.id).map(|job| &job.ticket.id) else { continue };
            if on_path.contains(blocker) {
                let position = path.iter().position(|(id, _)| *id == blocker).unwrap_or(0);
                let members: Vec<&TicketId> = path[position..].iter().map(|(id, _)| *id).collect();
                let mut keys: Vec<TicketKey> =
                    members.iter().filter_map(|id| jobs.get(id)).map(|job| job.ticket.key.clone()).collect();
                keys.extend(keys.first().cloned());
                for member in members {
                    found.entry(member.clone()).or_insert_with(|| keys.clone());
                }
            } else if !done.contains(blocker) {
                on_path.insert(blocker);
                path.push((blocker, 0));
            }
        }
    }
    found
}
