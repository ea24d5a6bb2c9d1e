//! Whose move of a ticket a reading shows: the runner's own, a machine's, or a person's; and what a person's move approves.

use std::time::Duration;

use super::effect::{Action, Said};
use super::phases::Observation;
use super::provenance::{is_listed_bot, is_trusted};
use super::remarks;
use super::select;
use super::state::{Pending, SETTLE};
use super::step::Step;
use crate::config::policy::Policy;
use crate::domain::basis::{Basis, WriteStatus};
use crate::domain::comment::TrustLevel;
use crate::domain::hash::stable_hash;
use crate::domain::ids::TicketId;
use crate::domain::job::{HumanWait, Job, Stage, TicketFacts};
use crate::domain::pr::PrState;
use crate::domain::ticket::{StateChange, same_state, state_in};
use crate::domain::time::Timestamp;

/// How far two clocks may differ unnoticed.
const CLOCKS_APART: Duration = Duration::from_secs(10);

impl Step<'_> {
    /// Handles a move of the ticket into an approval state. It approves the head that was visible before the move, and no other.
    pub(super) fn approved_by_state(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        // A closed pull request cannot be merged, so the move is not about its head, least of all when it reopens the ticket.
        let Some(pr) = job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open) else { return };
        // The board's clock and the runner's differ. A move dated in the runner's future shows that they are far apart, so its date is not
        // used. Any other date is better evidence than having seen the ticket elsewhere, which a lagging replica may have shown.
        let dated =
            job.ticket.state_changed.as_ref().map(|change| change.at).filter(|at| *at <= self.now + CLOCKS_APART);
        let came_after = match (pr.head_shown, dated) {
            (Some(shown), Some(at)) => at > shown.asked_at,
            _ => pr.seen_unapproved,
        };
        let by = job.ticket.state_changed.as_ref().and_then(|change| change.by.as_ref());
        let by = by.map_or_else(|| format!("a move to `{}`", job.ticket.state), |author| author.name.clone());
        if came_after {
            let head = pr.head.clone();
            self.decide(id, Observation::TicketApproved { head, by });
        } else {
            let text = format!(
                "the move to `{}` was made before {} was there, so it does not approve it",
                job.ticket.state,
                pr.head.short()
            );
            self.note(Some(id), "approval_of_another_head", text);
        }
    }

    /// Tells people that a move has no effect because of who made it, if it would have had one by somebody whose words count. Told once for
    /// each head and person.
    pub(super) fn move_does_not_count(&mut self, id: &TicketId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let change = job.ticket.state_changed.as_ref();
        let Some(by) = change.and_then(|change| change.by.as_ref()) else { return };
        let by = remarks::first_line(&by.name).to_owned();
        let state = &job.ticket.state;
        let has_pr = job.delivery.pr.as_ref().is_some_and(|pr| pr.state == PrState::Open);
        let is_stuck =
            matches!(job.stage, Stage::Blocked { .. } | Stage::WaitingForHuman { on: HumanWait::Directory, .. });
        let waits = matches!(
            job.stage,
            Stage::WaitingForChecks { .. } | Stage::WaitingForHuman { .. } | Stage::ReadyToMerge { .. }
        );
        let effect = if has_pr && state_in(state, &self.policy.merge.approval_states) {
            "approves nothing"
        } else if (waits || is_stuck) && state_in(state, &self.policy.orchestration.rework_states) {
            "starts no rework"
        } else if is_stuck && select::is_active(state, self.policy) {
            "starts nothing"
        } else {
            return;
        };
        let text = format!(
            "The move to `{state}` {effect}: {by} is not somebody whose words count here. Somebody whose words count has to make it, or `tracker.trusted_accounts` has to name {by}."
        );
        let head = job.current_head().map(|head| head.as_str()).unwrap_or_default();
        let key = format!("uncounted:{:016x}", stable_hash(&[&by, state, head]));
        let is_told =
            |pending: &Pending| matches!(&pending.effect.action, Action::Comment { key: told, .. } if *told == key);
        let told = job.comments.contains_key(&key) || self.state.outbox.of_ticket(id).any(is_told);
        self.note(Some(id), "move_does_not_count", text.clone());
        if !told {
            let said = Said::Reply { to: by, text, head: None };
            self.emit(Some(id), Action::Comment { key, said });
        }
    }
}

/// Whose move of the ticket a reading shows.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mover {
    /// Nobody moved it, or a machine did: the runner itself, an integration or one of `review.bots`. That is not a person's decision.
    Nobody,
    /// The reading does not tell. Another one by id will.
    Unread,
    /// A person whose words do not count.
    Uncounted,
    /// A person whose words count, or anybody where the tracker never tells who moves tickets.
    Counts,
}

/// How the column in a reading relates to the runner's own last move.
pub(super) enum Column {
    /// No move of the runner is under way.
    Plain,
    /// It shows the column that the runner wrote, before the answer came.
    Early,
    /// It shows where the ticket was before a move that has not been answered.
    Pending,
    /// It shows the column that the runner wrote.
    Visible,
    /// It shows where the ticket was before the move, or what cannot be told apart from that.
    Unsettled,
    /// A person moved the ticket elsewhere.
    Taken,
}

pub(super) fn whose_column(job: &Job, facts: &TicketFacts, basis: Basis, now: Timestamp) -> Column {
    let Some(write) = &job.column else { return Column::Plain };
    if same_state(&write.to, &facts.state) {
        return match write.status {
            WriteStatus::Sent => Column::Early,
            WriteStatus::Confirmed { .. } | WriteStatus::MaybeDone { .. } => Column::Visible,
        };
    }
    if !write.may_come_from(&facts.state) {
        return Column::Taken;
    }
    match &write.status {
        WriteStatus::Sent => Column::Pending,
        WriteStatus::Confirmed { moment, version, at } => {
            let newer = version.is_some_and(|version| facts.updated_at.is_some_and(|updated| updated > version));
            let waited = basis.is_after(*moment) && now.since(*at) >= SETTLE;
            if newer || waited { Column::Taken } else { Column::Unsettled }
        }
        WriteStatus::MaybeDone { at } => {
            if now.since(*at) >= SETTLE {
                Column::Plain
            } else {
                Column::Unsettled
            }
        }
    }
}

/// Whether the tracker reports a move into the same state that is later than the known one.
pub(super) fn moved_again(known: &TicketFacts, facts: &TicketFacts) -> bool {
    let dated = |change: &StateChange| Some(change.at).filter(|at| *at > Timestamp::default());
    let at = |facts: &TicketFacts| facts.state_changed.as_ref().and_then(dated);
    at(known).is_some_and(|known| at(facts).is_some_and(|at| at > known))
}

/// Notes that the ticket is outside of every approval state while the pull request has its present head. A later move into one then
/// approves this head.
pub(super) fn see_unapproved(job: &mut Job, basis: Basis) {
    if let Some(pr) = job.delivery.pr.as_mut().filter(|pr| !pr.seen_unapproved) {
        pr.seen_unapproved = pr.head_shown.is_some_and(|shown| basis.is_after(shown.after));
    }
}

/// Returns who made the move that a reading shows. `names_movers`: whether such a reading would name them.
pub(super) fn who_moved(facts: &TicketFacts, names_movers: bool, policy: &Policy) -> Mover {
    match facts.state_changed.as_ref().and_then(|change| change.by.as_ref()) {
        Some(by) if by.ourselves || by.trust == TrustLevel::Bot || is_listed_bot(by, policy) => Mover::Nobody,
        Some(by) if !is_trusted(by, policy) => Mover::Uncounted,
        None if !names_movers => Mover::Unread,
        _ => Mover::Counts,
    }
}
