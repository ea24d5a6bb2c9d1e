//! Writes to the outside: the only caller of adapter methods that change something. Each write waits for its place in the lane, and gets
//! its permit after that, right before the call.

use std::sync::Arc;
use std::time::Duration;

use super::super::gate_watch::{Halt, HaltReceiver, halted};
use super::super::gatekeeper::{Gatekeeper, Ground};
use super::super::host::{GateOrder, ReceiptOrder};
use super::super::lanes::{self, Priority, Slot};
use super::super::now;
use super::errors::{permanent, transient};
use super::{Adapters, Call};
use crate::config::policy::Policy;
use crate::domain::comment::Acknowledgement;
use crate::domain::ids::{CommentId, CommitId, PrNumber, TicketId};
use crate::domain::job::{Hindrance, Job};
use crate::domain::lane::Lane;
use crate::domain::permit::Permit;
use crate::domain::pr::NewPr;
use crate::domain::remark::{RemarkEffect, RemarkStatus};
use crate::domain::time::Timestamp;
use crate::engine::WORKPAD;
use crate::engine::effect::{Action, Effect, Said, ToldIn};
use crate::engine::event::{EffectError, EffectResult, Event};
use crate::engine::permit::EffectKind;
use crate::engine::provenance;
use crate::forge::{CommitStatus, Forge, LineNote, MergeOrder, Merged, PrChange, Pushed};
use crate::github::while_it_holds;
use crate::tracker::{Edited, Move};

/// Returns the lane in which an action is done.
pub fn lane_of(action: &Action) -> Lane {
    match action {
        Action::Acknowledge { told, .. } if told.pr.is_some() => Lane::Forge,
        Action::Comment { .. }
        | Action::WriteWorkpad { .. }
        | Action::MoveTicket { .. }
        | Action::AddLabels { .. }
        | Action::Acknowledge { .. }
        | Action::CreateTicket { .. }
        | Action::AttachLink { .. }
        | Action::RefreshTickets { .. }
        | Action::CheckRemark { .. }
        | Action::StartRun { .. }
        | Action::StopRun { .. }
        | Action::Steer { .. } => Lane::Tracker,
        Action::OpenPr { .. }
        | Action::ReopenPr { .. }
        | Action::InspectPr { .. }
        | Action::MergePr { .. }
        | Action::UpdateBranch { .. }
        | Action::Dequeue { .. }
        | Action::UpdatePr { .. }
        | Action::PublishGates { .. }
        | Action::RerunChecks { .. }
        | Action::AnswerThread { .. }
        | Action::ReviewComment { .. }
        | Action::RequestReview { .. }
        | Action::WriteReceipt { .. }
        | Action::CleanUp { .. } => Lane::Forge,
        Action::PushBranch { .. } => Lane::Workspace,
        Action::RunGate { .. } => Lane::Gates,
    }
}

/// Returns the lane in which an action is done with a forge that has no conversations on pull requests: there a review is told on the
/// ticket, and what the board answers says nothing about the forge.
fn lane_with(action: &Action, forge_converses: bool) -> Lane {
    match action {
        Action::ReviewComment { .. } if !forge_converses => Lane::Tracker,
        action => lane_of(action),
    }
}

fn priority_of(action: &Action) -> Priority {
    match action {
        Action::MergePr { .. } | Action::UpdateBranch { .. } | Action::Dequeue { .. } => Priority::Land,
        _ => Priority::Write,
    }
}

pub async fn perform(adapters: Adapters, gatekeeper: Arc<Gatekeeper>, call: Call) -> Option<Event> {
    let Call { effect, job, hindrance, policy, comment_key, halt, .. } = call;
    let Effect { id, ticket, decided_at, action } = effect;
    let kind = action.kind();
    let writing = Writing {
        adapters: &adapters,
        gatekeeper: &gatekeeper,
        policy: &policy,
        ticket: ticket?,
        job,
        hindrance,
        kind,
        decided_at,
        comment_key,
        halt: halt.clone(),
    };
    let ground = Arc::new(Ground { gatekeeper: gatekeeper.clone(), kind, ticket: writing.ticket.clone() });
    let error = match while_it_holds(ground, writing.perform(action)).await {
        Ok(result) => return Some(Event::EffectDone { effect: id, result }),
        Err(error @ EffectError::Refused { .. }) => return Some(Event::EffectFailed { effect: id, error }),
        Err(error) => error,
    };
    let error = match halt.and_then(|halt| *halt.borrow()) {
        Some(Halt::ShuttingDown) => return None,
        Some(Halt::Refused(refusal)) => EffectError::Refused { refusal },
        Some(Halt::Pointless) => error,
        None => {
            let kind = kind.name();
            tracing::warn!(effect = kind, "{kind} did not work this time: {error}");
            error
        }
    };
    Some(Event::EffectFailed { effect: id, error })
}

/// One write with everything that it depends on.
struct Writing<'a> {
    adapters: &'a Adapters,
    gatekeeper: &'a Gatekeeper,
    policy: &'a Policy,
    ticket: TicketId,
    job: Option<Arc<Job>>,
    hindrance: Option<Hindrance>,
    kind: EffectKind,
    decided_at: Timestamp,
    /// The key of the marks that prove that a comment is Dirigent's.
    comment_key: Arc<str>,
    halt: Option<HaltReceiver>,
}

impl Writing<'_> {
    async fn perform(self, action: Action) -> Result<EffectResult, EffectError> {
        let lane = self.adapters.lanes.of(lane_with(&action, self.forge_converses()));
        let slot = match self.halt.clone() {
            None => lane.enter(priority_of(&action)).await?,
            // A gate may wait for a long time, and must stop waiting when its result is no longer needed.
            Some(halt) => tokio::select! {
                slot = lane.enter(priority_of(&action)) => slot?,
                () = halted(halt) => return Err(transient("it was stopped before its turn came")),
            },
        };
        match action {
            Action::Acknowledge { told: ToldIn { comment, pr: Some(number) }, how, aloud, key, said } => {
                self.acknowledge_on_pr(slot, number, &comment, how, aloud.then_some((key, said))).await
            }
            Action::Comment { .. }
            | Action::WriteWorkpad { .. }
            | Action::MoveTicket { .. }
            | Action::AddLabels { .. }
            | Action::Acknowledge { .. }
            | Action::CreateTicket { .. }
            | Action::AttachLink { .. } => self.on_the_board(slot, action).await,
            Action::OpenPr { .. }
            | Action::ReopenPr { .. }
            | Action::MergePr { .. }
            | Action::UpdateBranch { .. }
            | Action::Dequeue { .. }
            | Action::UpdatePr { .. }
            | Action::PublishGates { .. }
            | Action::RerunChecks { .. }
            | Action::AnswerThread { .. }
            | Action::ReviewComment { .. }
            | Action::RequestReview { .. } => self.on_the_forge(slot, action).await,
            Action::PushBranch { branch, head } => {
                let (forge, permit) = (self.forge()?, self.permit()?);
                let pushed = self.job()?.delivery.pushed_head.as_ref();
                Ok(match slot.call(lanes::PUSH, forge.push_branch(&permit, &branch, &head, pushed)).await? {
                    Pushed::AsAsked => EffectResult::Plain,
                    Pushed::Joined { head } => EffectResult::Updated { head, same_diff: false },
                })
            }
            Action::WriteReceipt { commit } => self.write_receipt(slot, &commit).await,
            Action::CleanUp { branch, merged_head } => {
                if let (Some(head), Some(forge)) = (merged_head, &self.adapters.forge) {
                    let permit = self.permit()?;
                    slot.call(lanes::CLEAN_UP, forge.delete_branch(&permit, &branch, &head)).await?;
                }
                let (permit, key) = (self.permit()?, self.job()?.ticket.key.clone());
                let leaving = self.adapters.host.clean_up(permit, self.ticket.clone(), key);
                Ok(match slot.run(lanes::CLEAN_UP, leaving).await?.map_err(permanent)? {
                    None => EffectResult::Plain,
                    Some(because) => EffectResult::Kept { because },
                })
            }
            Action::RunGate { branch, head } => {
                let job = self.job()?;
                let by_run = job.delivery.made_by.clone().filter(|_| job.delivery.head.as_ref() == Some(&head));
                let order = GateOrder {
                    ticket: self.ticket.clone(),
                    key: job.ticket.key.clone(),
                    made_by: by_run,
                    branch,
                    base_branch: self.policy.pr.base_branch.clone(),
                    head,
                };
                let halt = self.halt.clone().ok_or_else(|| permanent("a gate that belongs to no ticket"))?;
                let (permit, limit) = (self.permit()?, self.adapters.gate_limits.deadline);
                let results = slot.run(limit, self.adapters.host.gate(permit, order, halt)).await?;
                Ok(EffectResult::Gated { results: results.map_err(transient)? })
            }
            Action::StartRun { .. }
            | Action::StopRun { .. }
            | Action::Steer { .. }
            | Action::RefreshTickets { .. }
            | Action::InspectPr { .. }
            | Action::CheckRemark { .. } => Ok(EffectResult::Plain),
        }
    }

    async fn on_the_board(&self, slot: Slot, action: Action) -> Result<EffectResult, EffectError> {
        const LIMIT: Duration = lanes::WRITE;
        let (tracker, ticket) = (&self.adapters.tracker, &self.ticket);
        let texts = &self.adapters.texts;
        match action {
            Action::Comment { key, said } => {
                let body = texts.comment(self.job()?, &said).map_err(permanent)?;
                let (permit, key) = (self.permit()?, self.mark(&key));
                let writing = tracker.comment(&permit, ticket, &key, &body, self.decided_at);
                Ok(EffectResult::Commented { comment: slot.call(LIMIT, writing).await?.id })
            }
            Action::WriteWorkpad { shows } => {
                let (job, hindrance, name) = (self.job()?, self.hindrance.as_ref(), &self.policy.tracker.mention);
                let body = texts.workpad(job, &shows, hindrance, name, now()).map_err(permanent)?;
                self.write_workpad(slot, &body).await
            }
            Action::MoveTicket { from, state } => {
                let permit = self.permit()?;
                let moved = slot.call(LIMIT, tracker.move_ticket(&permit, ticket, &state, &from)).await?;
                Ok(match moved {
                    Move::Moved(version) => EffectResult::Moved { version },
                    Move::Already => EffectResult::Moved { version: None },
                    Move::Elsewhere(state) => EffectResult::FoundElsewhere { state },
                })
            }
            Action::AddLabels { labels, .. } => {
                let permit = self.permit()?;
                slot.call(LIMIT, tracker.label(&permit, ticket, &labels, &[])).await?;
                Ok(EffectResult::Plain)
            }
            Action::Acknowledge { told, how, aloud, key, said } => {
                let reactions = tracker.capabilities().reactions;
                if reactions {
                    let permit = self.permit()?;
                    slot.call(LIMIT, tracker.react(&permit, ticket, &told.comment, how)).await?;
                }
                if reactions && !aloud {
                    return Ok(EffectResult::Plain);
                }
                let body = texts.comment(self.job()?, &said).map_err(permanent)?;
                let (permit, key) = (self.permit()?, self.mark(&key));
                let writing = tracker.comment(&permit, ticket, &key, &body, self.decided_at);
                Ok(EffectResult::Commented { comment: slot.call(LIMIT, writing).await?.id })
            }
            Action::AttachLink { url, title } => {
                let permit = self.permit()?;
                slot.call(LIMIT, tracker.attach_link(&permit, ticket, &url, &title)).await?;
                Ok(EffectResult::Plain)
            }
            Action::CreateTicket { key, new } => {
                let permit = self.permit()?;
                slot.call(LIMIT, tracker.create_ticket(&permit, &new, &key)).await?;
                Ok(EffectResult::Plain)
            }
            _ => Ok(EffectResult::Plain),
        }
    }

    /// Edits the workpad comment if it is known, else writes it. If it turns out that an earlier attempt, whose response was lost, has
    /// written it, that comment gets the current text.
    async fn write_workpad(&self, slot: Slot, body: &str) -> Result<EffectResult, EffectError> {
        let (tracker, ticket, job) = (&self.adapters.tracker, &self.ticket, self.job()?);
        let comment = match &job.workpad.comment {
            Some(comment) => comment.clone(),
            None => {
                let (permit, key) = (self.permit()?, self.mark(WORKPAD));
                let writing = tracker.comment(&permit, ticket, &key, body, job.created_at);
                let written = slot.call(lanes::WRITE, writing).await?;
                if !written.existed {
                    return Ok(EffectResult::Commented { comment: written.id });
                }
                written.id
            }
        };
        let permit = self.permit()?;
        match slot.call(lanes::WRITE, tracker.edit_comment(&permit, ticket, &comment, body)).await? {
            Edited::Done => Ok(EffectResult::Commented { comment }),
            Edited::Gone => Ok(EffectResult::CommentGone),
        }
    }

    /// Acknowledges a comment on the pull request with a reaction. `aloud` is the key and content of a comment to write besides.
    async fn acknowledge_on_pr(
        &self,
        slot: Slot,
        number: PrNumber,
        comment: &CommentId,
        how: Acknowledgement,
        aloud: Option<(String, Said)>,
    ) -> Result<EffectResult, EffectError> {
        let forge = self.forge()?;
        if forge.capabilities().reactions {
            let permit = self.permit()?;
            slot.call(lanes::WRITE, forge.react(&permit, number, comment, how)).await?;
        }
        let Some((key, said)) = aloud else { return Ok(EffectResult::Plain) };
        let body = self.adapters.texts.comment(self.job()?, &said).map_err(permanent)?;
        let (permit, key) = (self.permit()?, self.mark(&key));
        let comment = slot.call(lanes::WRITE, forge.upsert_comment(&permit, number, &key, &body)).await?;
        Ok(EffectResult::Commented { comment })
    }

    /// Makes the receipt and keeps it with the run first, so that the note and the pull request say exactly what was signed there.
    async fn write_receipt(&self, slot: Slot, commit: &CommitId) -> Result<EffectResult, EffectError> {
        let (forge, job) = (self.forge()?, self.job()?);
        let payload = self.adapters.texts.receipt(job, commit).map_err(permanent)?;
        let Some(payload) = payload else { return Ok(EffectResult::Plain) };
        let permit = self.permit()?;
        let order = ReceiptOrder { run: job.delivery.made_by.clone(), payload };
        // Signing may wait for a person, for example for a passphrase.
        let keeping = self.adapters.host.keep_receipt(permit, order);
        let kept = slot.run(lanes::WRITE, keeping).await?.map_err(transient)?;
        let permit = self.permit()?;
        let signature = kept.signature.as_deref();
        slot.call(lanes::PUSH, forge.keep_receipt(&permit, commit, &kept.payload, signature)).await?;
        if let (true, Some(pr)) = (forge.capabilities().conversations, &job.delivery.pr) {
            let (_, body) = self.adapters.texts.pull_request(job).map_err(permanent)?;
            let change = PrChange { body: Some(body), ..PrChange::default() };
            let permit = self.permit()?;
            slot.call(lanes::WRITE, forge.update_pr(&permit, pr.number, &change)).await?;
        }
        Ok(EffectResult::ReceiptKept { signed: kept.signature.is_some(), unsigned: kept.unsigned })
    }

    async fn on_the_forge(&self, slot: Slot, action: Action) -> Result<EffectResult, EffectError> {
        let forge = self.forge()?;
        match action {
            Action::OpenPr { branch, head } => {
                let (title, body) = self.adapters.texts.pull_request(self.job()?).map_err(permanent)?;
                let pr = &self.policy.pr;
                let new = NewPr {
                    title,
                    body,
                    head_branch: branch,
                    head,
                    base_branch: pr.base_branch.clone(),
                    draft: pr.draft,
                    labels: pr.labels.clone(),
                    reviewers: pr.reviewers.clone(),
                };
                let permit = self.permit()?;
                Ok(EffectResult::Opened { pr: slot.call(lanes::WRITE, forge.open_pr(&permit, &new)).await? })
            }
            Action::ReopenPr { number } => {
                let permit = self.permit()?;
                slot.call(lanes::WRITE, forge.reopen(&permit, number)).await?;
                Ok(EffectResult::Plain)
            }
            Action::MergePr { number, head, base_branch, method } => {
                let trailers = trailers(self.job()?);
                let order = MergeOrder { number, expected_head: head, expected_base: base_branch, method, trailers };
                let permit = self.permit()?;
                Ok(match slot.call(lanes::LAND, forge.merge(&permit, &order)).await? {
                    Merged::Done { commit } => EffectResult::Merged { commit },
                    Merged::Queued => EffectResult::Queued,
                })
            }
            Action::UpdateBranch { number, head } => {
                let permit = self.permit()?;
                let updated = slot.call(lanes::LAND, forge.update_branch(&permit, number, &head)).await?;
                Ok(EffectResult::Updated { head: updated.head, same_diff: updated.same_diff })
            }
            Action::Dequeue { number } => {
                let permit = self.permit()?;
                slot.call(lanes::LAND, forge.dequeue(&permit, number)).await?;
                Ok(EffectResult::Plain)
            }
            Action::UpdatePr { number, ready } => {
                // The title is left as people have it.
                let (_, body) = self.adapters.texts.pull_request(self.job()?).map_err(permanent)?;
                let change = PrChange { body: Some(body), draft: ready.then_some(false), ..PrChange::default() };
                let permit = self.permit()?;
                slot.call(lanes::WRITE, forge.update_pr(&permit, number, &change)).await?;
                Ok(EffectResult::Plain)
            }
            Action::PublishGates { head } => {
                let Some(status) = gates_status(self.job()?, &head) else { return Ok(EffectResult::Plain) };
                let permit = self.permit()?;
                slot.call(lanes::WRITE, forge.publish_status(&permit, &status)).await?;
                Ok(EffectResult::Plain)
            }
            Action::RerunChecks { checks, .. } => {
                for check in checks {
                    let permit = self.permit()?;
                    slot.call(lanes::WRITE, forge.rerun_check(&permit, &check)).await?;
                }
                Ok(EffectResult::Plain)
            }
            Action::AnswerThread { number, thread, key, said, resolve } => {
                let body = self.adapters.texts.comment(self.job()?, &said).map_err(permanent)?;
                let (permit, key) = (self.permit()?, self.mark(&key));
                slot.call(lanes::WRITE, forge.reply_in_thread(&permit, number, &thread, &key, &body)).await?;
                if resolve {
                    let permit = self.permit()?;
                    slot.call(lanes::WRITE, forge.resolve_thread(&permit, number, &thread)).await?;
                }
                Ok(EffectResult::Plain)
            }
            Action::ReviewComment { number, key } => {
                let (body, key) = (self.adapters.texts.review(self.job()?).map_err(permanent)?, self.mark(&key));
                let permit = self.permit()?;
                if self.forge_converses() {
                    slot.call(lanes::WRITE, forge.upsert_comment(&permit, number, &key, &body)).await?;
                    self.note_on_lines(&slot, forge.as_ref(), number).await?;
                } else {
                    // This forge has no page for the pull request, so the review goes to the ticket, where people look.
                    let tracker = &self.adapters.tracker;
                    slot.call(lanes::WRITE, tracker.comment(&permit, &self.ticket, &key, &body, self.decided_at))
                        .await?;
                }
                Ok(EffectResult::Plain)
            }
            Action::RequestReview { number, reviewer } => {
                let permit = self.permit()?;
                slot.call(lanes::WRITE, forge.request_review(&permit, number, &reviewer)).await?;
                Ok(EffectResult::Plain)
            }
            _ => Ok(EffectResult::Plain),
        }
    }

    /// Comments on the lines of findings that still have to be fixed, where the pull request's diff shows the line.
    async fn note_on_lines(&self, slot: &Slot, forge: &dyn Forge, number: PrNumber) -> Result<(), EffectError> {
        let job = self.job()?;
        let reviews = &job.delivery.reviews;
        let Some(head) = &reviews.head else { return Ok(()) };
        let mut notes = Vec::new();
        for finding in &reviews.findings {
            let waits = job.people.remark(&finding.key()).is_some_and(|remark| {
                remark.effect == RemarkEffect::Rework
                    && matches!(remark.status, RemarkStatus::Open | RemarkStatus::Delivered { .. })
            });
            let Some((path, line)) = finding.line().filter(|_| waits) else { continue };
            let body = self.adapters.texts.finding(finding).map_err(permanent)?;
            notes.push(LineNote { key: self.mark(&finding.note_key()), path, line, body });
        }
        if !notes.is_empty() {
            let permit = self.permit()?;
            slot.call(lanes::WRITE, forge.begin_threads(&permit, number, head, &notes)).await?;
        }
        Ok(())
    }

    fn forge(&self) -> Result<Arc<dyn Forge>, EffectError> {
        self.adapters.forge.clone().ok_or_else(|| permanent("there is no forge (pr.forge: none)"))
    }

    fn forge_converses(&self) -> bool {
        self.adapters.forge.as_ref().is_none_or(|forge| forge.capabilities().conversations)
    }

    fn job(&self) -> Result<&Job, EffectError> {
        self.job.as_deref().ok_or_else(|| permanent("the job is gone"))
    }

    fn mark(&self, key: &str) -> String {
        provenance::marked_key(&self.comment_key, &self.ticket, key)
    }

    fn permit(&self) -> Result<Permit, EffectError> {
        self.gatekeeper.permit(self.kind, Some(&self.ticket)).map_err(|refusal| EffectError::Refused { refusal })
    }
}

/// Returns the result of the gates on a commit as a commit status. `None` if there is no receipt for this commit.
fn gates_status(job: &Job, head: &CommitId) -> Option<CommitStatus> {
    let receipt = job.evidence.receipt.as_ref().filter(|receipt| receipt.head.as_ref() == Some(head))?;
    let passed = receipt.gates.iter().filter(|gate| gate.passed).count();
    let description = format!("{passed} of {} gates passed", receipt.gates.len());
    let name = "dirigent/gates".to_owned();
    Some(CommitStatus { commit: head.clone(), name, passed: passed == receipt.gates.len(), description })
}

/// Returns the trailers of the merge commit, which say which ticket and run the change comes from.
fn trailers(job: &Job) -> Vec<String> {
    // Each trailer stays on one line, whatever characters the key contains.
    let line = |name: &str, value: &str| format!("{name}: {}", value.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut lines = vec![line("Ticket", job.ticket.key.as_str())];
    lines.extend(job.delivery.made_by.as_ref().map(|run| line("Dirigent-Run", run.as_str())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_that_is_told_on_the_ticket_takes_the_lane_of_the_board() {
        let review = Action::ReviewComment { number: PrNumber(1), key: "review".to_owned() };
        assert_eq!(lane_with(&review, true), Lane::Forge);
        assert_eq!(lane_with(&review, false), Lane::Tracker);
        let ask = Action::RequestReview { number: PrNumber(1), reviewer: "ada".to_owned() };
        assert_eq!(lane_with(&ask, false), Lane::Forge);
    }
}
