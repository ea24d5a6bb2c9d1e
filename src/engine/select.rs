//! Which tickets may be worked on, and in which order.

use std::cmp::Reverse;

use super::provenance::is_trusted;
use crate::config::policy::Policy;
use crate::domain::comment::Author;
use crate::domain::ids::TicketKey;
use crate::domain::job::{Job, TicketFacts};
use crate::domain::run::StopReason;
use crate::domain::ticket::{Blocker, Dispatchable, same_state, state_in};
use crate::domain::time::Timestamp;

/// Returns every state in which a ticket is worked on, waited for, or sent back to work, except terminal ones.
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

/// Whether a live run may continue in this state: active, rework and approval states, and the columns to which the runner moves tickets.
pub fn is_live(state: &str, policy: &Policy) -> bool {
    let ours = || policy.orchestration.states.values().any(|column| same_state(column, state));
    !is_terminal(state, policy)
        && (state_in(state, &policy.tracker.active_states)
            || state_in(state, &policy.orchestration.rework_states)
            || state_in(state, &policy.merge.approval_states)
            || ours())
}

/// Whether a run may continue with its ticket as it is read now.
pub fn may_go_on(ticket: &TicketFacts, policy: &Policy) -> bool {
    is_live(&ticket.state, policy) && lost_eligibility(ticket, policy).is_none()
}

/// Whether a run's ticket was moved on since the run began. A move to a column that the runner itself uses does not count.
pub fn moved_on(state_at_start: &str, ticket: &TicketFacts, policy: &Policy) -> bool {
    let ours = || policy.orchestration.states.values().any(|column| same_state(column, &ticket.state));
    !may_go_on(ticket, policy) || (!same_state(state_at_start, &ticket.state) && !ours())
}

/// Whether a queued job's ticket is where work may start: in an active state or, once work has begun, in any live one.
pub fn may_start(job: &Job, policy: &Policy) -> bool {
    let state = &job.ticket.state;
    is_active(state, policy) || (job.attempts > 0 && is_live(state, policy))
}

pub fn is_active(state: &str, policy: &Policy) -> bool {
    state_in(state, &policy.tracker.active_states) && !is_terminal(state, policy)
}

/// Returns the labels that let a ticket be worked on.
fn labels_that_let_in(policy: &Policy) -> Vec<String> {
    policy.tracker.required_labels.iter().chain(policy.orchestration.required_label.iter()).cloned().collect()
}

/// Returns the labels that are required and missing. A blank one matches nothing, so it is always missing.
pub fn missing_labels(ticket: &TicketFacts, policy: &Policy) -> Vec<String> {
    let is_missing =
        |wanted: &String| wanted.trim().is_empty() || !ticket.labels.contains(&wanted.trim().to_lowercase());
    labels_that_let_in(policy).into_iter().filter(is_missing).collect()
}

/// Whether this author's acts let a ticket be worked on. The runner's own account counts, because it follows a person's word.
fn counts(who: &Author, policy: &Policy) -> bool {
    who.ourselves || is_trusted(who, policy)
}

/// Returns whose act let the ticket in, in words, if that author does not count. Where the tracker does not report who did what, everybody
/// who can write there counts.
pub fn not_let_in(ticket: &TicketFacts, policy: &Policy) -> Option<String> {
    let labels = labels_that_let_in(policy);
    let (who, _, what) = ticket.history.let_in(&labels).find(|(who, ..)| !counts(who, policy))?;
    Some(format!(
        "{what} by {}, whose words do not count here (`tracker.trusted`); somebody whose do has to take it off and put it on again",
        who.name
    ))
}

/// Returns a reason if a person who does not count changed the text after the ticket was let in, so that nobody who counts has seen it.
pub fn reworded(ticket: &TicketFacts, policy: &Policy) -> Option<String> {
    let change = ticket.history.reworded_since(&labels_that_let_in(policy), |who| counts(who, policy))?;
    Some(format!(
        "{} changed its text after it was let in, and is nobody whose words count here; read it, and put the label on again",
        change.by.name
    ))
}

/// Returns why this ticket is not the runner's, if it is not.
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

/// Returns what takes a ticket away from the runner while it is being worked on, if anything does.
pub fn lost_eligibility(ticket: &TicketFacts, policy: &Policy) -> Option<String> {
    if let Some(because) = not_ours(ticket, policy) {
        return Some(because);
    }
    let missing = missing_labels(ticket, policy);
    if !missing.is_empty() {
        return Some(format!("the label {} is gone", missing.join(", ")));
    }
    not_let_in(ticket, policy)
}

/// Returns the blockers that are not finished. A failed or unknown one keeps blocking.
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

/// Returns why a run that was decided on must not start after all, now that its ticket was read once more.
pub fn too_late(ticket: Option<&TicketFacts>, policy: &Policy) -> Option<StopReason> {
    let Some(ticket) = ticket else { return Some(StopReason::NotActive) };
    if is_terminal(&ticket.state, policy) {
        return Some(StopReason::TerminalState);
    }
    if !is_live(&ticket.state, policy) {
        return Some(StopReason::NotActive);
    }
    if let Some(because) = lost_eligibility(ticket, policy).or_else(|| reworded(ticket, policy)) {
        return Some(StopReason::NotEligible { because });
    }
    // A blocker that was opened again: the work stays queued behind it.
    (!open_blockers(ticket, policy).is_empty()).then_some(StopReason::BlockerOpened)
}

/// The order of jobs in line: priority 1..=4, then (with `critical_path`) the longest chain that waits for the ticket, then the oldest,
/// then the key.
pub type Rank = (i64, Reverse<u32>, Timestamp, TicketKey);

pub fn rank(job: &Job, chain: u32) -> Rank {
    let priority = job.ticket.priority.filter(|p| (1..=4).contains(p)).unwrap_or(5);
    let created = job.ticket.created_at.unwrap_or(Timestamp(i64::MAX));
    (priority, Reverse(chain), created, job.ticket.key.clone())
}
