//! The results of effects: confirmed effects leave the outbox, failed ones wait, are held, or change the job.

use std::collections::BTreeSet;
use std::time::Duration;

use super::effect::{Action, Effect, Said, ToldIn};
use super::event::{EffectError, EffectResult};
use super::permit::{self, Circumstances, Refusal};
use super::phases::Observation;
use super::pull_requests::facts_of_opened;
use super::retry;
use super::select;
use super::state::{Pending, PendingStatus, Unsettled};
use super::step::{Step, pr_write};
use crate::domain::basis::WriteStatus;
use crate::domain::comment::Acknowledgement;
use crate::domain::failure::RunFailure;
use crate::domain::ids::{CommentId, EffectId, TicketId};
use crate::domain::job::{
    BlockCause, CheckWait, Job, MergeHold, PrWriteKind, ReleaseReason, Stage, SwitchSource, Wait, Work, Workpad,
};
use crate::domain::phase::Phase;
use crate::domain::pr::PrState;
use crate::domain::remark::RemarkKind;
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::ticket::same_state;
use crate::domain::time::Timestamp;

/// The key of the workpad, the one comment on a ticket that is edited.
pub const WORKPAD: &str = "workpad";
/// How long a write whose answer was lost gets to become visible before the runner looks for it.
const BECOMES_VISIBLE: Duration = Duration::from_secs(10);
/// How often a call is tried again while the runner's access is refused.
const LOCKED_OUT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);
/// The longest wait, even if the service asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

impl Step<'_> {
    pub fn effect_done(&mut self, id: EffectId, result: EffectResult) {
        let Some(pending) = self.forget_effect(id) else { return };
        let Some(ticket) = pending.effect.ticket else { return };
        // Anything that waited for this effect's answer can go on.
        self.state.jobs.mark_dirty(&ticket);
        match (pending.effect.action, result) {
            // A person deleted the comment, so it is written anew.
            (Action::WriteWorkpad { .. }, EffectResult::CommentGone) => {
                self.state.jobs.edit(&ticket, |job| {
                    *job.workpad = Workpad::default();
                    job.comments.remove(WORKPAD);
                });
            }
            (Action::WriteWorkpad { .. }, EffectResult::Commented { comment }) => {
                self.state.jobs.edit(&ticket, |job| {
                    job.comments.insert(WORKPAD.to_owned(), comment.clone());
                    job.workpad.comment = Some(comment);
                });
            }
            (Action::Comment { key, said }, EffectResult::Commented { comment }) => {
                self.we_said(&ticket, RemarkKind::TicketComment, key, comment, &said);
            }
            (Action::Acknowledge { told, key, said, .. }, EffectResult::Commented { comment }) => {
                let place = if told.pr.is_some() { RemarkKind::PrComment } else { RemarkKind::TicketComment };
                self.we_said(&ticket, place, key, comment, &said);
            }
            // Read again at once instead of with the next poll.
            (Action::AddLabels { .. }, _) => self.emit(None, Action::RefreshTickets { ids: vec![ticket] }),
            // A person had pushed meanwhile, and their commits were merged with the runner's.
            (Action::PushBranch { .. }, EffectResult::Updated { head, .. }) => {
                self.pr_write_answered(&ticket, PrWriteKind::Push, true);
                self.state.jobs.edit(&ticket, |job| {
                    job.delivery.pushed_head = Some(head.clone());
                    job.delivery.unpublished.clear();
                });
                self.decide(&ticket, Observation::JoinedWithTheirs { head });
            }
            (Action::PushBranch { head, .. }, _) => {
                self.pr_write_answered(&ticket, PrWriteKind::Push, true);
                self.state.jobs.edit(&ticket, |job| {
                    job.delivery.remote_head = Some(head.clone());
                    job.delivery.pushed_head = Some(head.clone());
                    job.delivery.unpublished.clear();
                });
                self.decide(&ticket, Observation::BranchPushed { head });
            }
            (Action::OpenPr { branch, .. }, EffectResult::Opened { pr }) => {
                let moment = self.state.next_moment();
                let Some(job) = self.state.jobs.get(&ticket) else { return };
                // The pull request was opened for a branch that was given up meanwhile, or after the work was merged.
                if job.delivery.branch.name != branch || matches!(job.stage, Stage::Done { .. }) {
                    let text = format!("{} was opened too late; nothing more is done with it", pr.number);
                    self.note(Some(&ticket), "opened_late", text);
                    return;
                }
                let facts = facts_of_opened(job, &pr, self.policy, self.now, moment);
                self.state.jobs.edit(&ticket, |job| job.delivery.pr = Some(Box::new(facts)));
                self.decide(&ticket, Observation::PrOpened { number: pr.number, url: pr.url });
            }
            (Action::ReopenPr { number }, _) => {
                self.edit_pr(&ticket, |pr| {
                    if pr.number == number {
                        pr.state = PrState::Open;
                    }
                });
                self.pr_write_answered(&ticket, PrWriteKind::Reopen, true);
                self.emit(Some(&ticket), Action::InspectPr { number });
            }
            (Action::UpdateBranch { .. }, EffectResult::Updated { head, same_diff }) => {
                self.pr_write_answered(&ticket, PrWriteKind::Update, true);
                self.decide(&ticket, Observation::BranchUpdated { head, same_diff });
            }
            (Action::UpdateBranch { number, .. }, _) => {
                self.pr_write_answered(&ticket, PrWriteKind::Update, true);
                self.emit(Some(&ticket), Action::InspectPr { number });
            }
            (Action::MergePr { .. }, EffectResult::Merged { commit }) => {
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.state.base_written = self.state.next_moment();
                self.edit_pr(&ticket, |pr| pr.state = PrState::Merged { commit: commit.clone() });
                self.decide(&ticket, Observation::PrMerged { commit, by_us: true });
                self.base_moved();
            }
            // Looks show what the forge's queue makes of it.
            (Action::MergePr { number, .. }, EffectResult::Queued) => {
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.decide(&ticket, Observation::MergeQueued);
                self.emit(Some(&ticket), Action::InspectPr { number });
            }
            (Action::RunGate { head, .. }, EffectResult::Gated { results }) => {
                self.decide(&ticket, Observation::GatesReported { head, results });
            }
            (Action::WriteReceipt { commit }, EffectResult::ReceiptKept { signed, unsigned }) => {
                let text = match (signed, unsigned) {
                    (true, _) => format!("the signed receipt of {} is kept", commit.short()),
                    (false, None) => format!("the receipt of {} is kept, unsigned", commit.short()),
                    (false, Some(why)) => format!("the receipt of {} is kept, but not signed: {why}", commit.short()),
                };
                self.note(Some(&ticket), "receipt", text);
            }
            (Action::CleanUp { .. }, EffectResult::Kept { because }) => self.directory_kept(&ticket, because),
            (Action::CleanUp { .. }, _) => self.directory_gone(&ticket),
            (Action::MoveTicket { state, .. }, EffectResult::FoundElsewhere { state: actual }) => {
                self.found_elsewhere(&ticket, &state, actual);
            }
            (Action::MoveTicket { state, .. }, result) => {
                let version = match result {
                    EffectResult::Moved { version } => version,
                    _ => None,
                };
                self.ticket_moved(&ticket, state, version);
            }
            _ => {}
        }
    }

    /// Notes a comment that the runner has made. A person who answers it has seen the head that it names.
    fn we_said(&mut self, id: &TicketId, place: RemarkKind, key: String, comment: CommentId, said: &Said) {
        self.state.jobs.edit(id, |job| {
            job.comments.insert(key, comment.clone());
            if let Some(head) = said.names() {
                job.people.head_was_named(place, comment, head.clone());
            }
        });
    }

    /// Takes over a confirmed move of the ticket, without waiting for a reading to show it. Until one does, readings that show the old
    /// column are known to be outdated.
    pub fn ticket_moved(&mut self, id: &TicketId, state: String, version: Option<Timestamp>) {
        let moment = self.state.next_moment();
        let status = WriteStatus::Confirmed { at: self.now, moment, version };
        let is_there = self.state.jobs.edit(id, |job| {
            let Some(write) = job.column.as_mut().filter(|write| same_state(&write.to, &state)) else { return false };
            write.status = status;
            job.ticket.state.clone_from(&state);
            job.ticket.updated_at = job.ticket.updated_at.max(version);
            true
        });
        if is_there != Some(true) {
            return;
        }
        self.state.read.insert(id.clone(), moment.next());
        self.state.unsettled.insert(id.clone(), Unsettled { since: self.now, moment });
        self.follow_run(id, &state);
    }

    /// Handles a move that found the ticket in an unexpected column: a person moved it, and it was left there.
    fn found_elsewhere(&mut self, id: &TicketId, wanted: &str, actual: String) {
        if !self.state.jobs.contains(id) {
            return;
        }
        self.never_moved(id, wanted);
        self.note(Some(id), "column_taken", format!("the ticket is in `{actual}`, so it was not moved to `{wanted}`"));
        self.ask_again(id);
        self.emit(None, Action::RefreshTickets { ids: vec![id.clone()] });
    }

    /// Answers a person who asked for the ticket to be worked on that they have to add the label themselves.
    fn labels_refused(&mut self, id: &TicketId, labels: &[String], told: &ToldIn, because: &str) {
        let text = format!("The label {} could not be added: {because}. Please add it yourself.", labels.join(", "));
        let key = format!("reply:{}:labels", told.comment);
        let said = Said::Reply { to: String::new(), text, head: None };
        let (told, how) = (told.clone(), Acknowledgement::Refused);
        self.emit(Some(id), Action::Acknowledge { told, how, aloud: true, key, said });
    }

    /// Looks at all ready jobs again after a merge, because they are ready against the old base.
    fn base_moved(&mut self) {
        let ready: Vec<TicketId> = self.state.jobs.index().in_phase(Phase::ReadyToMerge).cloned().collect();
        for id in ready {
            self.decide_with(&id, |job, out| {
                let (Stage::ReadyToMerge { head, .. }, Some(number)) =
                    (job.stage.clone(), job.delivery.pr.as_ref().map(|pr| pr.number))
                else {
                    return;
                };
                let on = CheckWait::Mergeability { head };
                out.move_to(job, Stage::WaitingForChecks { on, since: out.now });
                out.act(Action::InspectPr { number });
            });
        }
    }

    pub fn effect_failed(&mut self, id: EffectId, error: EffectError) {
        let Some(pending) = self.state.outbox.get(&id).cloned() else { return };
        let Some(ticket) = pending.effect.ticket.clone() else { return };
        self.state.jobs.mark_dirty(&ticket);
        let name = pending.effect.action.kind().name();
        match (error, &pending.effect.action) {
            (EffectError::Refused { refusal }, _) => self.refused(id, refusal),
            (error, Action::StartRun { run, .. }) => {
                let (detail, permanent) = (error.to_string(), matches!(error, EffectError::Permanent { .. }));
                let failure = match error {
                    EffectError::Auth { .. } => RunFailure::Tracker { detail },
                    _ => RunFailure::Launch { detail, permanent },
                };
                self.run_finished(run.clone(), RunReport::bare(RunOutcome::Failed { failure }));
            }
            (EffectError::HeadMoved { .. }, Action::MergePr { number, .. } | Action::UpdateBranch { number, .. }) => {
                let number = *number;
                let what = pr_write_kind(&pending.effect.action);
                self.forget_effect(id);
                self.pr_write_answered(&ticket, what, true);
                self.decide(&ticket, Observation::HeadMoved);
                self.emit(Some(&ticket), Action::InspectPr { number });
            }
            (EffectError::OtherBase { actual }, Action::MergePr { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.decide(&ticket, Observation::BaseChanged { base: actual });
            }
            (EffectError::MaybeDone { detail }, Action::MergePr { .. }) => self.merge_maybe_done(id, &ticket, &detail),
            // A temporary failure does not hold up the queue: the job steps back and is tried again.
            (EffectError::Transient { detail, .. }, Action::MergePr { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Merge, false);
                self.decide(&ticket, Observation::MergeHindered { because: detail, counts: true });
            }
            // Retried as often as it takes, because a person has to restore the access.
            (EffectError::Auth { detail }, Action::MergePr { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.decide(&ticket, Observation::MergeHindered { because: detail, counts: false });
            }
            (
                EffectError::Conflict { files },
                Action::MergePr { .. } | Action::UpdateBranch { .. } | Action::PushBranch { .. },
            ) => {
                let what = pr_write_kind(&pending.effect.action);
                self.forget_effect(id);
                self.pr_write_answered(&ticket, what, true);
                self.decide(&ticket, Observation::MergeConflicted { files });
            }
            (EffectError::Apart { files, kept }, Action::PushBranch { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Push, true);
                self.decide(&ticket, Observation::ApartFromTheirs { files, kept });
            }
            (EffectError::NotNow { because }, Action::MergePr { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.decide(&ticket, Observation::MergeHindered { because, counts: true });
            }
            (EffectError::Permanent { detail }, Action::MergePr { .. }) => {
                self.forget_effect(id);
                self.pr_write_answered(&ticket, PrWriteKind::Merge, true);
                self.decide(&ticket, Observation::MergeRefused { because: detail });
            }
            (EffectError::Permanent { detail }, action) => {
                let carries_the_job = carries_the_job(action);
                if let Action::MoveTicket { state, .. } = action {
                    self.never_moved(&ticket, state);
                }
                if pr_write(action).is_some() {
                    self.pr_write_answered(&ticket, pr_write_kind(action), true);
                }
                self.forget_effect(id);
                self.note(Some(&ticket), "effect_refused", format!("{name} was refused for good: {detail}"));
                if let Action::AddLabels { labels, told } = action {
                    self.labels_refused(&ticket, labels, told, &detail);
                }
                if matches!(pending.effect.action, Action::CleanUp { .. }) {
                    self.directory_kept(&ticket, detail.clone());
                }
                if carries_the_job {
                    self.decide(&ticket, Observation::PublishRefused { effect: name, because: detail });
                }
            }
            (EffectError::HeadMoved { actual }, action) => {
                if pr_write(action).is_some() {
                    self.pr_write_answered(&ticket, pr_write_kind(action), true);
                }
                self.forget_effect(id);
                let because = format!("the branch on the forge is at {}, which is not ours", actual.short());
                self.decide(&ticket, Observation::PublishRefused { effect: name, because });
            }
            (EffectError::Transient { detail, retry_after }, _) => self.later(id, pending, detail, retry_after),
            // Given time to become visible, then looked for before it is repeated.
            (EffectError::MaybeDone { detail }, action) => {
                if let Action::MoveTicket { state, .. } = action {
                    self.maybe_moved(&ticket, state);
                }
                self.later(id, pending, detail, Some(BECOMES_VISIBLE));
            }
            // Held, never dropped: it goes on when a person has restored the access.
            (EffectError::Auth { detail }, _) => self.later(id, pending, detail, Some(LOCKED_OUT)),
            (EffectError::OtherBase { actual }, _) => self.later(id, pending, actual, None),
            (EffectError::NotNow { because }, _) => self.later(id, pending, because, None),
            (EffectError::Conflict { files } | EffectError::Apart { files, .. }, _) => {
                self.later(id, pending, files.join(", "), None);
            }
        }
    }

    /// Handles a merge whose answer was lost. The forge is asked whether it merged before anything is repeated.
    pub fn merge_maybe_done(&mut self, id: EffectId, ticket: &TicketId, detail: &str) {
        self.forget_effect(id);
        self.pr_write_answered(ticket, PrWriteKind::Merge, false);
        self.note(Some(ticket), "merge_maybe_done", format!("the answer to the merge was lost: {detail}"));
        self.decide(ticket, Observation::MergeMaybeDone);
    }

    fn later(&mut self, id: EffectId, pending: Pending, detail: String, retry_after: Option<Duration>) {
        let attempts = pending.attempts.saturating_add(1);
        let name = pending.effect.action.kind().name();
        if self.is_pointless(&pending) {
            self.drop_effect(id);
            return;
        }
        let gate_gave_up =
            matches!(pending.effect.action, Action::RunGate { .. }) && attempts > self.policy.agent.max_retries;
        if let (true, Some(ticket)) = (gate_gave_up, pending.effect.ticket.as_ref()) {
            self.forget_effect(id);
            self.decide(ticket, Observation::PublishRefused { effect: name, because: detail });
            return;
        }
        let wait = retry_after
            .unwrap_or_else(|| {
                retry::backoff(attempts, LONGEST_WAIT, retry::seed_for(name, attempts.wrapping_add(id.0 as u32)))
            })
            .min(LONGEST_PAUSE);
        if attempts == 1 {
            self.note(
                pending.effect.ticket.as_ref(),
                "effect_retry",
                format!("{name} failed and is tried again: {detail}"),
            );
        }
        let at = self.now + wait;
        self.state.outbox.edit(id, |tried, status| {
            *tried = attempts;
            *status = PendingStatus::Due { at, last_error: detail };
        });
    }

    pub fn maybe_moved(&mut self, ticket: &TicketId, state: &str) {
        let at = self.now;
        let doubted = self.state.jobs.edit(ticket, |job| {
            let write = job.column.as_mut().filter(|write| same_state(&write.to, state));
            write.map(|write| write.status = WriteStatus::MaybeDone { at }).is_some()
        });
        if doubted == Some(true) {
            self.ask_again(ticket);
        }
    }

    /// Forgets a move that the tracker refused. A person may still put the ticket in that column.
    pub fn never_moved(&mut self, ticket: &TicketId, state: &str) {
        self.state.jobs.edit(ticket, |job| {
            if let Some(write) = job.column.take_if(|write| same_state(&write.to, state)) {
                // The move before it may still be on its way to a replica.
                job.column = write.earlier;
            }
        });
    }

    /// Handles an effect to which the permit was refused: it is held, or decided anew.
    pub fn refused(&mut self, id: EffectId, refusal: Refusal) {
        // The permit check read the kill-switch file itself. Take its result over before the file watcher reports it, or the same effect is
        // sent again at once.
        if refusal == (Refusal::KillSwitch { switch: SwitchSource::File }) {
            self.switch_file(true);
        }
        let Some(effect) = self.state.outbox.get(&id).map(|entry| entry.effect.clone()) else { return };
        match (&effect.action, &effect.ticket) {
            (Action::StartRun { run, .. }, Some(ticket)) => {
                self.forget_effect(id);
                self.never_started(ticket, run, refusal);
            }
            (Action::MergePr { .. }, Some(ticket)) => {
                self.forget_effect(id);
                self.merge_refused_by_permit(ticket, refusal);
            }
            _ => self.hold(id, refusal),
        }
    }

    fn hold(&mut self, id: EffectId, refusal: Refusal) {
        self.state.outbox.edit(id, |_, status| *status = PendingStatus::Held { refusal });
    }

    fn never_started(&mut self, ticket: &TicketId, run: &crate::domain::ids::RunId, refusal: Refusal) {
        self.state.runs.remove(run);
        self.decide_with(ticket, |job, out| {
            let Stage::Working { work, run: current, .. } = job.stage.clone() else { return };
            if current != *run {
                return;
            }
            job.attempts = job.attempts.saturating_sub(1);
            out.note(job, Some(run), "refused", format!("the start of run {run} was refused: {refusal}"));
            out.queue(job, work, Wait::Ready);
        });
    }

    /// Puts a job whose merge was refused by the permit back in line. The merge was never sent.
    pub fn merge_refused_by_permit(&mut self, ticket: &TicketId, refusal: Refusal) {
        self.pr_write_answered(ticket, PrWriteKind::Merge, true);
        self.decide_with(ticket, |job, out| {
            let Stage::Merging { head, withdrawn, .. } = job.stage.clone() else { return };
            out.note(job, None, "refused", format!("the merge was refused: {refusal}"));
            if withdrawn {
                out.block(job, BlockCause::SetAside, Work::Implement);
            } else {
                out.move_to(job, Stage::ReadyToMerge { head, hold: MergeHold::Queue, turn: None, since: out.now });
            }
        });
    }

    /// Sends effects that are due again or that the permit would allow now: those of jobs that changed, and all held ones if something
    /// changed for all jobs. Effects that have become pointless are dropped; those in flight are left until their result comes.
    pub fn release_effects(&mut self, changed: &BTreeSet<TicketId>, for_all: bool) {
        let outbox = &self.state.outbox;
        let mut ids: BTreeSet<EffectId> = outbox.due().due(self.now).into_iter().collect();
        // A time beyond the longest wait was set before the clock was put back.
        ids.extend(outbox.due().beyond(self.now + LONGEST_PAUSE));
        ids.extend(outbox.held().filter(|_| for_all).map(|pending| pending.effect.id));
        let waits = |pending: &&Pending| pending.status != PendingStatus::InFlight;
        let of_changed = changed.iter().flat_map(|ticket| outbox.of_ticket(ticket)).filter(waits);
        ids.extend(of_changed.map(|pending| pending.effect.id));
        for id in ids {
            let Some(pending) = self.state.outbox.get(&id) else { continue };
            let is_due = match &pending.status {
                PendingStatus::InFlight => continue,
                PendingStatus::Due { at, .. } => *at <= self.now || at.since(self.now) > LONGEST_PAUSE,
                PendingStatus::Held { .. } => self.refusal(&pending.effect).is_none(),
            };
            if self.is_pointless(pending) {
                self.drop_effect(id);
            } else if is_due {
                self.hand_over(id);
            }
        }
    }

    /// Hands an effect of the outbox to the runtime (again), unless the permit would refuse it now.
    pub fn hand_over(&mut self, id: EffectId) {
        let Some(entry) = self.state.outbox.get(&id) else { return };
        let effect = entry.effect.clone();
        if let Some(refusal) = self.refusal(&effect) {
            self.refused(id, refusal);
            return;
        }
        self.state.outbox.edit(id, |_, status| *status = PendingStatus::InFlight);
        self.effects.push(effect);
    }

    /// Drops an effect. If it was tried before, it may have happened.
    pub fn drop_effect(&mut self, id: EffectId) {
        let Some(dropped) = self.forget_effect(id) else { return };
        if let (Action::MoveTicket { state, .. }, Some(ticket)) = (&dropped.effect.action, &dropped.effect.ticket) {
            if dropped.attempts == 0 { self.never_moved(ticket, state) } else { self.maybe_moved(ticket, state) }
        }
        let (Some(what), Some(ticket)) = (pr_write(&dropped.effect.action), dropped.effect.ticket) else { return };
        self.pr_write_answered(&ticket, what, false);
    }

    pub fn is_pointless(&self, pending: &Pending) -> bool {
        let Some(job) = pending.effect.ticket.as_ref().and_then(|id| self.state.jobs.get(id)) else { return false };
        let waits_for = |wanted: CheckWait| matches!(&job.stage, Stage::WaitingForChecks { on, .. } if *on == wanted);
        let taken_away = matches!(
            job.stage,
            Stage::Released {
                why: ReleaseReason::NotEligible { .. } | ReleaseReason::GivenBack | ReleaseReason::Gone,
                ..
            }
        );
        match &pending.effect.action {
            Action::RunGate { head, .. } => !waits_for(CheckWait::Gates { head: head.clone() }),
            Action::PushBranch { head, .. } | Action::OpenPr { head, .. } => {
                !waits_for(CheckWait::Publishing { head: head.clone() })
            }
            Action::UpdateBranch { head, .. } => !waits_for(CheckWait::BranchUpdate { head: head.clone() }),
            Action::MergePr { head, .. } => !matches!(&job.stage, Stage::Merging { head: on, .. } if on == head),
            // A pull request that the job does not have any more may still be in the queue.
            Action::Dequeue { number } => {
                job.delivery.pr.as_ref().is_some_and(|pr| pr.number == *number && pr.state != PrState::Open)
            }
            Action::UpdatePr { number, .. }
            | Action::RerunChecks { number, .. }
            | Action::AnswerThread { number, .. }
            | Action::ReviewComment { number, .. }
            | Action::RequestReview { number, .. } => {
                let gone = job.delivery.pr.as_ref().is_none_or(|pr| pr.number != *number || pr.state != PrState::Open);
                gone || job.stage.phase().is_terminal()
            }
            Action::PublishGates { .. } => job.stage.phase().is_terminal(),
            Action::ReopenPr { number } => {
                // The pull request that is being opened replaces the closed one.
                let opening = matches!(&job.stage, Stage::WaitingForChecks { on: CheckWait::Publishing { .. }, .. });
                job.delivery.pr.as_ref().is_none_or(|pr| pr.number != *number)
                    || opening
                    || job.stage.phase().is_terminal()
                    || matches!(job.stage, Stage::Blocked { .. })
            }
            Action::MoveTicket { state, .. } => {
                let superseded = !job.column.as_ref().is_some_and(|write| same_state(&write.to, state));
                let closed = select::is_terminal(&job.ticket.state, self.policy);
                matches!(job.stage, Stage::Released { .. }) || superseded || closed
            }
            // Nothing more is written to a ticket that was taken away from the runner.
            _ => taken_away && matches!(pending.status, PendingStatus::Held { .. }),
        }
    }

    /// Returns why the permit would be refused for this effect now, or `None` if it would be granted.
    pub fn refusal(&self, effect: &Effect) -> Option<Refusal> {
        let circumstances = circumstances(self.state, self.policy, effect.ticket.as_ref());
        permit::permit(effect.action.kind(), &circumstances).err()
    }
}

/// Returns everything that the permit depends on, as the state knows it. The runtime reads the kill-switch file itself at the moment of
/// use.
pub fn circumstances(
    state: &super::state::State,
    policy: &crate::config::policy::Policy,
    ticket: Option<&TicketId>,
) -> Circumstances {
    let label = policy.rollout.kill_switch_label.as_deref();
    let job = ticket.and_then(|id| state.jobs.get(id));
    let is_ours = |job: &Job| select::lost_eligibility(&job.ticket, policy).is_none();
    Circumstances {
        switch: match job {
            Some(job) => state.switch_for(job, label),
            None => state.global_switch(),
        },
        rollout: policy.rollout.mode,
        preflight_missing: policy.rollout.preflight_missing,
        // Nothing is known about a ticket without a job: neither its switches nor whether it is the runner's.
        owned: ticket.is_none() || job.is_some_and(is_ours),
    }
}

fn pr_write_kind(action: &Action) -> PrWriteKind {
    pr_write(action).unwrap_or(PrWriteKind::Merge)
}

/// Whether the job cannot go on without this effect.
fn carries_the_job(action: &Action) -> bool {
    matches!(
        action,
        Action::PushBranch { .. }
            | Action::OpenPr { .. }
            | Action::ReopenPr { .. }
            | Action::UpdateBranch { .. }
            | Action::RunGate { .. }
    )
}
