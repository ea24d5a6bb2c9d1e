//! One call of an adapter per effect, and its answer as an event. Every call that writes has a permit of its own.

use std::sync::Arc;

use super::gate_watch::{Halt, HaltReceiver};
use super::gatekeeper::Gatekeeper;
use super::host::GateOrder;
use super::now;
use super::performer::Adapters;
use crate::config::policy::Policy;
use crate::domain::basis::{Basis, Moment};
use crate::domain::ids::{CommentId, PrNumber, TicketId};
use crate::domain::job::Job;
use crate::domain::permit::Permit;
use crate::domain::pr::{CheckStatus, NewPr, PullRequest};
use crate::domain::remark::RemarkKind;
use crate::domain::time::Timestamp;
use crate::engine::effect::{Action, Effect};
use crate::engine::event::{EffectError, EffectResult, Event, Lookup, RemarkFound};
use crate::engine::provenance;
use crate::forge::{Forge, ForgeError, MergeOrder, Merged, RemarkPresence};
use crate::tracker::{CommentFound, Edited, Found, Move, Tracker, TrackerError};

/// An effect with what its call needs to know.
pub struct Call {
    pub effect: Effect,
    pub job: Option<Job>,
    pub policy: Arc<Policy>,
    /// What the engine had taken in when the call was asked for.
    pub after: Moment,
    /// Proves that a comment is ours.
    pub comment_key: Arc<str>,
    /// For a gate, which may have to stop before its end.
    pub halt: Option<HaltReceiver>,
}

pub async fn perform(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, call: Call) -> Option<Event> {
    let kind = call.effect.action.kind().name();
    failpoint!("effect.before", kind);
    let event = answer(adapters, gatekeeper, call).await;
    failpoint!("effect.after", kind);
    event
}

async fn answer(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, call: Call) -> Option<Event> {
    let ticket = call.effect.ticket.clone();
    match &call.effect.action {
        Action::RefreshTickets { ids } => Some(refresh(adapters.tracker.as_ref(), ids, call.after).await),
        Action::InspectPr { number } => {
            let (forge, ticket) = (adapters.forge?, ticket?);
            Some(inspect(forge.as_ref(), ticket, *number, call.after).await)
        }
        Action::CheckRemark { kind, id } => {
            let number = call.job.as_ref().and_then(|job| job.delivery.pr.as_ref()).map(|pr| pr.number);
            check_remark(&adapters, ticket?, number, *kind, id.clone()).await
        }
        action => {
            let id = call.effect.id;
            let permit = match gatekeeper.permit(action.kind(), ticket.as_ref()) {
                Ok(permit) => permit,
                Err(refusal) => {
                    return Some(Event::EffectFailed { effect: id, error: EffectError::Refused { refusal } });
                }
            };
            let (kind, halt) = (action.kind().name(), call.halt.clone());
            let error = match write(&adapters, permit, ticket?, call).await {
                Ok(result) => return Some(Event::EffectDone { effect: id, result }),
                Err(error) => error,
            };
            let error = match halt.and_then(|halt| *halt.borrow()) {
                Some(Halt::ShuttingDown) => return None,
                Some(Halt::Refused(refusal)) => EffectError::Refused { refusal },
                Some(Halt::Pointless) => error,
                None => {
                    tracing::warn!(effect = kind, "{kind} did not work this time: {error}");
                    error
                }
            };
            Some(Event::EffectFailed { effect: id, error })
        }
    }
}

fn basis(asked_at: Option<Timestamp>, asked: Timestamp, after: Moment) -> Basis {
    Basis { asked_at: asked_at.unwrap_or(asked), after }
}

/// A ticket that was asked for, as the engine takes it.
pub fn lookup(found: Found) -> Lookup {
    match found {
        Found::Ticket(ticket) => Lookup::Found { ticket },
        Found::Gone(because) => Lookup::Gone { because },
        Found::NotVisible => Lookup::NotVisible,
        Found::Unreadable(because) => Lookup::Unreadable { because },
    }
}

async fn refresh(tracker: &dyn Tracker, ids: &[TicketId], after: Moment) -> Event {
    let asked = now();
    match tracker.fetch_by_ids(ids).await {
        Ok(found) => Event::TicketsRefreshed {
            found: found.into_iter().map(|(id, found)| (id, lookup(found))).collect(),
            basis: basis(None, asked, after),
        },
        Err(error) => Event::PollFailed { error: error.to_string() },
    }
}

async fn inspect(forge: &dyn Forge, ticket: TicketId, number: PrNumber, after: Moment) -> Event {
    let asked = now();
    let looked = forge.inspect_many(&[number]).await.into_iter().find(|(seen, _)| *seen == number);
    let look = looked.map_or_else(|| Err(ForgeError::Response("the look is missing".to_owned())), |(_, look)| look);
    match look {
        Ok(look) => {
            let pr = with_logs(forge, look.pr).await;
            Event::PrObserved { ticket, pr, basis: basis(look.asked_at, asked, after) }
        }
        Err(error) => {
            tracing::warn!(%ticket, code = error.code(), %error, "the pull request could not be looked at");
            Event::PrLookFailed { ticket, number, error: error.to_string() }
        }
    }
}

/// The logs of failed checks are a call of their own, and asked for only where there is something to mend.
async fn with_logs(forge: &dyn Forge, mut pr: PullRequest) -> PullRequest {
    for check in pr.checks.iter_mut().flatten() {
        if check.status == CheckStatus::Failed && check.log_tail.is_none() {
            check.log_tail = forge.check_log(&check.id).await.ok().filter(|log| !log.is_empty());
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
        RemarkKind::TicketComment => match adapters.tracker.find_comment(&ticket, &id).await.ok()? {
            CommentFound::There => RemarkFound::There,
            CommentFound::Gone => RemarkFound::Gone,
            CommentFound::NotVisible => RemarkFound::NotVisible,
        },
        RemarkKind::Verdict | RemarkKind::Thread | RemarkKind::PrComment => {
            match adapters.forge.as_ref()?.find_remark(number?, kind, &id).await.ok()? {
                RemarkPresence::There => RemarkFound::There,
                RemarkPresence::Gone => RemarkFound::Gone,
                RemarkPresence::NotVisible => RemarkFound::NotVisible,
            }
        }
        RemarkKind::Message => return None,
    };
    Some(Event::RemarkChecked { ticket, kind, id, found })
}

async fn write(adapters: &Adapters, permit: Permit, ticket: TicketId, call: Call) -> Result<EffectResult, EffectError> {
    let Call { effect, job, policy, comment_key, halt, .. } = call;
    let tracker = &adapters.tracker;
    let forge = || adapters.forge.clone().ok_or_else(|| permanent("there is no forge (pr.forge: none)"));
    let job = || job.clone().ok_or_else(|| permanent("the job is gone"));
    let unrendered = |error: crate::workflow::RenderError| permanent(error.to_string());
    let mark = |key: &str| provenance::marked_key(&comment_key, &ticket, key);
    match effect.action {
        Action::Comment { key, said } => {
            let body = adapters.texts.comment(&job()?, &said).map_err(unrendered)?;
            let written = tracker.comment(&permit, &ticket, &mark(&key), &body, effect.decided_at).await?;
            Ok(EffectResult::Commented { comment: written.id })
        }
        Action::WriteWorkpad { shows } => {
            let job = job()?;
            let body = adapters.texts.workpad(&job, &shows, now()).map_err(unrendered)?;
            write_workpad(tracker.as_ref(), &permit, &ticket, &job, &mark("workpad"), &body).await
        }
        Action::MoveTicket { from, state } => {
            let moved = tracker.move_ticket(&permit, &ticket, &state, &from).await?;
            Ok(match moved {
                Move::Moved(version) => EffectResult::Moved { version },
                Move::Already => EffectResult::Moved { version: None },
                Move::Elsewhere(state) => EffectResult::FoundElsewhere { state },
            })
        }
        Action::CreateTicket { key, new } => {
            tracker.create_ticket(&permit, &new, &key).await?;
            Ok(EffectResult::Plain)
        }
        Action::PushBranch { branch, head } => {
            forge()?.push_branch(&permit, &branch, &head).await?;
            Ok(EffectResult::Plain)
        }
        Action::OpenPr { branch, head } => {
            let job = job()?;
            let (title, body) = adapters.texts.pull_request(&job).map_err(unrendered)?;
            let new = NewPr {
                title,
                body,
                head_branch: branch,
                head,
                base_branch: policy.pr.base_branch.clone(),
                draft: policy.pr.draft,
                labels: policy.pr.labels.clone(),
                reviewers: policy.pr.reviewers.clone(),
            };
            Ok(EffectResult::Opened { pr: forge()?.open_pr(&permit, &new).await? })
        }
        Action::ReopenPr { number } => {
            forge()?.reopen(&permit, number).await?;
            Ok(EffectResult::Plain)
        }
        Action::MergePr { number, head, base_branch, method } => {
            let order = MergeOrder { number, expected_head: head, expected_base: base_branch, method };
            Ok(match forge()?.merge(&permit, &order).await? {
                Merged::Done { commit } => EffectResult::Merged { commit },
                Merged::Queued => EffectResult::Queued,
            })
        }
        Action::UpdateBranch { number, head } => {
            let updated = forge()?.update_branch(&permit, number, &head).await?;
            Ok(EffectResult::Updated { head: updated.head, same_diff: updated.same_diff })
        }
        Action::RunGate { branch, head } => {
            let order = GateOrder { key: job()?.ticket.key, branch, head };
            let halt = halt.ok_or_else(|| permanent("a gate without anybody who could stop it"))?;
            let results = adapters
                .host
                .gate(permit, order, halt)
                .await
                .map_err(|detail| EffectError::Transient { detail, retry_after: None })?;
            Ok(EffectResult::Gated { results })
        }
        Action::CleanUp { branch, merged_head } => {
            if let (Some(head), Some(forge)) = (merged_head, &adapters.forge) {
                forge.delete_branch(&permit, &branch, &head).await?;
            }
            adapters.host.clean_up(permit, job()?.ticket.key).await.map_err(permanent)?;
            Ok(EffectResult::Plain)
        }
        Action::StartRun { .. }
        | Action::StopRun { .. }
        | Action::Steer { .. }
        | Action::RefreshTickets { .. }
        | Action::InspectPr { .. }
        | Action::CheckRemark { .. }
        | Action::Notify { .. } => Ok(EffectResult::Plain),
    }
}

/// Edits the comment that is known, else writes it. One that was written by a try whose answer was lost gets today's text.
async fn write_workpad(
    tracker: &dyn Tracker,
    permit: &Permit,
    ticket: &TicketId,
    job: &Job,
    key: &str,
    body: &str,
) -> Result<EffectResult, EffectError> {
    let comment = match &job.workpad.comment {
        Some(comment) => comment.clone(),
        None => {
            let written = tracker.comment(permit, ticket, key, body, job.created_at).await?;
            if !written.existed {
                return Ok(EffectResult::Commented { comment: written.id });
            }
            written.id
        }
    };
    match tracker.edit_comment(permit, ticket, &comment, body).await? {
        Edited::Done => Ok(EffectResult::Commented { comment }),
        Edited::Gone => Ok(EffectResult::CommentGone),
    }
}

fn permanent(detail: impl Into<String>) -> EffectError {
    EffectError::Permanent { detail: detail.into() }
}

impl From<TrackerError> for EffectError {
    fn from(error: TrackerError) -> Self {
        let detail = error.to_string();
        match error {
            TrackerError::RateLimited { retry_after } => Self::Transient { detail, retry_after },
            TrackerError::MaybeDone(_) => Self::MaybeDone { detail },
            TrackerError::Auth(_) => Self::Auth { detail },
            error if error.is_transient() => Self::Transient { detail, retry_after: None },
            _ => Self::Permanent { detail },
        }
    }
}

impl From<ForgeError> for EffectError {
    fn from(error: ForgeError) -> Self {
        let detail = error.to_string();
        match error {
            ForgeError::Request(_) | ForgeError::Response(_) | ForgeError::Git(_) => {
                Self::Transient { detail, retry_after: None }
            }
            ForgeError::MaybeDone(_) => Self::MaybeDone { detail },
            ForgeError::Auth(_) => Self::Auth { detail },
            ForgeError::Status { status, .. } if status >= 500 || status == 429 => {
                Self::Transient { detail, retry_after: None }
            }
            ForgeError::RateLimited { retry_after } => Self::Transient { detail, retry_after },
            ForgeError::HeadMoved { actual, .. } => Self::HeadMoved { actual },
            ForgeError::OtherBase { actual, .. } => Self::OtherBase { actual },
            ForgeError::Conflict { files } => Self::Conflict { files },
            ForgeError::NotNow(because) => Self::NotNow { because },
            ForgeError::Status { .. } | ForgeError::NotFound(_) | ForgeError::Refused(_) => Self::Permanent { detail },
        }
    }
}
