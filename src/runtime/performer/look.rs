//! Looks at the board and at pull requests. Only one look at the same object is under way at a time. A look that is requested meanwhile
//! follows after it, because the response under way may be older than the request.

use std::collections::HashMap;

use super::super::lanes::{CallError, LOOK, Priority};
use super::super::now;
use super::{Adapters, Call};
use crate::domain::basis::{Basis, Moment};
use crate::domain::ids::{CommentId, PrNumber, TicketId};
use crate::domain::pr::{CheckStatus, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;
use crate::engine::effect::Action;
use crate::engine::event::{Event, Lookup, RemarkFound};
use crate::forge::{Forge, ForgeError, RemarkPresence};
use crate::tracker::{CommentFound, Found};

/// The object of a look.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LookAt {
    Pr(TicketId),
    Tickets,
}

/// The looks that are under way, each with the one that is to follow it.
#[derive(Default)]
pub struct Looks {
    under_way: HashMap<LookAt, Option<Call>>,
}

impl Looks {
    /// Returns the call if it can begin now. Otherwise keeps it until the look under way is over.
    pub fn ask(&mut self, look: &LookAt, call: Call) -> Option<Call> {
        match self.under_way.get_mut(look) {
            Some(next) => {
                *next = Some(match next.take() {
                    Some(earlier) => both(earlier, call),
                    None => call,
                });
                None
            }
            None => {
                self.under_way.insert(look.clone(), None);
                Some(call)
            }
        }
    }

    /// Takes in that a look is over. Returns the look that was requested meanwhile and begins now.
    pub fn answered(&mut self, look: &LookAt) -> Option<Call> {
        let next = self.under_way.get_mut(look)?.take();
        if next.is_none() {
            self.under_way.remove(look);
        }
        next
    }

    pub fn asked_again(&self) -> usize {
        self.under_way.values().flatten().count()
    }
}

/// Merges two looks at the same object into one that returns what both would.
fn both(earlier: Call, mut later: Call) -> Call {
    if let (Action::RefreshTickets { ids: before }, Action::RefreshTickets { ids }) =
        (earlier.effect.action, &mut later.effect.action)
    {
        ids.extend(before);
        ids.sort();
        ids.dedup();
    }
    later
}

pub async fn perform(adapters: Adapters, call: Call) -> Option<Event> {
    let ticket = call.effect.ticket;
    match call.effect.action {
        Action::RefreshTickets { ids } => Some(refresh(&adapters, &ids, call.after).await),
        Action::InspectPr { number } => Some(inspect(&adapters, ticket?, number, call.after).await?),
        Action::CheckRemark { kind, id } => {
            let number = call.job.as_ref().and_then(|job| job.delivery.pr.as_ref()).map(|pr| pr.number);
            check_remark(&adapters, ticket?, number, kind, id).await
        }
        _ => None,
    }
}

fn basis(asked_at: Option<Timestamp>, asked: Timestamp, after: Moment) -> Basis {
    Basis { asked_at: asked_at.unwrap_or(asked), after }
}

/// Converts the tracker's result for one ticket into the engine's.
pub fn lookup(found: Found) -> Lookup {
    match found {
        Found::Ticket(ticket) => Lookup::Found { ticket },
        Found::Gone(because) => Lookup::Gone { because },
        Found::NotVisible => Lookup::NotVisible,
        Found::Unreadable(because) => Lookup::Unreadable { because },
    }
}

async fn refresh(adapters: &Adapters, ids: &[TicketId], after: Moment) -> Event {
    let asking = async {
        // The request leaves now, however long it has waited for its place.
        let asked = now();
        adapters.tracker.fetch_by_ids(ids).await.map(|found| (asked, found))
    };
    match adapters.lanes.tracker.call(Priority::Look, LOOK, asking).await {
        Ok((asked, found)) => Event::TicketsRefreshed {
            found: found.into_iter().map(|(id, found)| (id, lookup(found))).collect(),
            basis: basis(None, asked, after),
        },
        Err(error) => Event::PollFailed { error: error.to_string() },
    }
}

async fn inspect(adapters: &Adapters, ticket: TicketId, number: PrNumber, after: Moment) -> Option<Event> {
    let forge = adapters.forge.as_ref()?;
    let looking = async {
        let asked = now();
        let looked = forge.inspect_many(&[number]).await.into_iter().find(|(seen, _)| *seen == number);
        match looked {
            Some((_, look)) => look.map(|look| (asked, look)),
            None => Err(ForgeError::Response("the look is missing".to_owned())),
        }
    };
    Some(match adapters.lanes.forge.call(Priority::Look, LOOK, looking).await {
        Ok((asked, look)) => {
            let pr = with_logs(adapters, forge.as_ref(), look.pr).await;
            Event::PrObserved { ticket, pr, basis: basis(look.asked_at, asked, after) }
        }
        Err(error) => {
            tracing::warn!(issue_id = %ticket, %error, "the pull request could not be looked at");
            Event::PrLookFailed { ticket, number, error: error.to_string() }
        }
    })
}

/// Adds the logs of failed checks. Each log is a call of its own, so logs are requested only for checks that failed.
async fn with_logs(adapters: &Adapters, forge: &dyn Forge, mut pr: PullRequest) -> PullRequest {
    for check in pr.checks.iter_mut().flatten() {
        if check.status == CheckStatus::Failed && check.log_tail.is_none() {
            match adapters.lanes.forge.call(Priority::Look, LOOK, forge.check_log(&check.id)).await {
                Ok(log) => check.log_tail = Some(log).filter(|log| !log.is_empty()),
                // The lane is held up or the call hung; the other calls would, too, and the look waits for them.
                Err(CallError::Lane(_)) => break,
                Err(CallError::Adapter(_)) => {}
            }
        }
    }
    pr
}

async fn check_remark(
    adapters: &Adapters,
    ticket: TicketId,
    number: Option<PrNumber>,
    kind: RemarkKind,
    id: CommentId,
) -> Option<Event> {
    let found = match kind {
        RemarkKind::TicketComment => {
            let asking = adapters.tracker.find_comment(&ticket, &id);
            match adapters.lanes.tracker.call(Priority::Look, LOOK, asking).await.ok()? {
                CommentFound::There => RemarkFound::There,
                CommentFound::Gone => RemarkFound::Gone,
                CommentFound::NotVisible => RemarkFound::NotVisible,
            }
        }
        RemarkKind::Verdict | RemarkKind::Thread | RemarkKind::PrComment => {
            let asking = adapters.forge.as_ref()?.find_remark(number?, kind, &id);
            match adapters.lanes.forge.call(Priority::Look, LOOK, asking).await.ok()? {
                RemarkPresence::There => RemarkFound::There,
                RemarkPresence::Gone => RemarkFound::Gone,
                RemarkPresence::NotVisible => RemarkFound::NotVisible,
            }
        }
        RemarkKind::Message | RemarkKind::Finding => return None,
    };
    Some(Event::RemarkChecked { ticket, kind, id, found })
}
