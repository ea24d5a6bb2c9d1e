//! Hints that something may have changed: only that ticket or pull request is read again. Until a reading is as new as the hint, older
//! readings start and merge nothing.

use std::collections::BTreeSet;

use super::effect::Action;
use super::state::{PrFloor, SETTLE};
use super::step::Step;
use crate::domain::basis::Basis;
use crate::domain::hint::{Hint, RemarkId};
use crate::domain::ids::{CommentId, PrNumber, TicketId};
use crate::domain::pr::PullRequest;
use crate::domain::remark::RemarkKind;
use crate::domain::ticket::Ticket;

impl Step<'_> {
    /// Reads only the hinted tickets and pull requests, instead of polling the board and every pull request.
    pub fn hinted(&mut self, hints: Vec<Hint>) {
        let mut ids: BTreeSet<TicketId> = BTreeSet::new();
        for hint in hints {
            match hint {
                Hint::Ticket { id, floor } => {
                    if let Some(floor) = floor {
                        let known = self.state.floors.entry(id.clone()).or_insert(floor);
                        *known = floor.max(*known);
                        self.ask_again(&id);
                        self.state.jobs.mark_dirty(&id);
                    }
                    ids.insert(id);
                }
                Hint::PullRequest { number, floor } => self.pr_hinted(number, floor),
                Hint::Board => {}
            }
        }
        if !ids.is_empty() {
            self.emit(None, Action::RefreshTickets { ids: ids.into_iter().collect() });
        }
    }

    fn pr_hinted(&mut self, number: PrNumber, floor: Option<RemarkId>) {
        let is_it = |id: &&TicketId| {
            let job = self.state.jobs.get(id);
            job.and_then(|job| job.delivery.pr.as_ref()).is_some_and(|pr| pr.number == number)
        };
        let Some(ticket) = self.state.jobs.index().with_pr.iter().find(is_it).cloned() else { return };
        if let Some(remark) = floor {
            self.state.pr_floors.push(PrFloor { number, remark, since: self.now });
        }
        self.emit(Some(&ticket), Action::InspectPr { number });
    }

    /// Whether this reading is older than the hint. If readings stay older for long, they are believed all the same.
    pub fn is_below_floor(&mut self, ticket: &Ticket, basis: Basis) -> bool {
        let Some(floor) = self.state.floors.get(&ticket.id) else { return false };
        // A board that does not date its tickets does not lag either.
        let reaches = ticket.updated_at.is_none_or(|at| at >= *floor);
        if !reaches && !self.has_lasted(&ticket.id, basis) {
            return true;
        }
        self.drop_floor(&ticket.id);
        false
    }

    /// Forgets the hint's floor: no newer reading of this ticket is expected.
    pub fn drop_floor(&mut self, id: &TicketId) {
        if self.state.floors.remove(id).is_some() {
            self.state.unsettled.remove(id);
            self.state.jobs.mark_dirty(id);
        }
    }

    /// Whether a look lacks something that a recent hint mentioned.
    pub fn lacks_something(&mut self, pr: &PullRequest) -> bool {
        let now = self.now;
        self.state.pr_floors.retain(|floor| {
            let is_over = now < floor.since || now.since(floor.since) >= SETTLE;
            !is_over && (floor.number != pr.number || !shows(pr, &floor.remark))
        });
        self.state.pr_floors.iter().any(|floor| floor.number == pr.number)
    }
}

fn shows(pr: &PullRequest, remark: &RemarkId) -> bool {
    let is_it = |id: &CommentId| *id == remark.id;
    match remark.kind {
        RemarkKind::Verdict => pr.reviews.iter().flatten().any(|review| is_it(&review.id)),
        RemarkKind::Thread => pr.threads.iter().flatten().any(|thread| is_it(&thread.id)),
        RemarkKind::PrComment => pr.comments.iter().flatten().any(|comment| is_it(&comment.id)),
        RemarkKind::TicketComment | RemarkKind::Message | RemarkKind::Finding => true,
    }
}
