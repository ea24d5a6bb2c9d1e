//! How far a look (one reading of a pull request) can be believed, and what it means for the job.
//!
//! What stops work is believed at once. What starts, approves or merges needs a look that is complete, that was asked after the answers to
//! the runner's own writes, and that shows the head which the git remote has.

use super::assess;
use super::conditions;
use super::delivery;
use super::effect::Action;
use super::instructions::{Told, answered_before, seen_before, told_in};
use super::landing;
use super::people;
use super::phases::{self, Observation};
use super::provenance::{is_ours, is_trusted, proven_key};
use super::remarks;
use super::reviewing::{self, OwnThread};
use super::state::{LOOK_AGAIN_AFTER, SETTLE};
use super::step::Step;
use crate::config::policy::{ForgeKind, Policy};
use crate::domain::basis::{Basis, Moment};
use crate::domain::finding::NOTE;
use crate::domain::ids::{CommentId, CommitId, PrNumber, TicketId};
use crate::domain::instruction::Instruction;
use crate::domain::job::{Approval, CheckWait, ChecksSummary, Job, PrFacts, PrWrite, PrWriteKind, Stage};
use crate::domain::lane::Lane;
use crate::domain::pr::{Mergeability, PrState, PullRequest, Review, Verdict};
use crate::domain::remark::RemarkKind;
use crate::domain::ticket::normalise_labels;
use crate::domain::time::Timestamp;

impl Step<'_> {
    /// Takes in a look at the job's pull request.
    pub fn pr_observed(&mut self, ticket: TicketId, pr: PullRequest, basis: Basis) {
        self.lane_works(Lane::Forge);
        let Some(job) = self.state.jobs.get(&ticket) else { return };
        // A look that was under way while the job took a new branch is about another pull request.
        let Some(facts) = job.delivery.pr.as_ref().filter(|facts| facts.number == pr.number) else { return };
        let labels = normalise_labels(&pr.labels);
        if facts.labels != labels {
            // A label may be a kill switch, also on a job that is over.
            self.edit_pr(&ticket, |facts| facts.labels = labels);
        }
        let Some(job) = self.state.jobs.get(&ticket) else { return };
        if job.stage.phase().is_terminal() {
            return;
        }
        match &pr.state {
            PrState::Merged { commit } => {
                let commit = commit.clone();
                self.pr_is_merged(&ticket, &pr, commit);
            }
            PrState::Closed => {
                // It may be reopened, and what people have withdrawn must not be asked for any more.
                self.take_in_remarks(&ticket, &pr);
                self.told_on_pr(&ticket, &pr, |_| true);
                self.pr_is_closed(&ticket, &pr, basis);
            }
            PrState::Open => self.pr_is_open(&ticket, pr, basis),
        }
    }

    fn pr_is_merged(&mut self, ticket: &TicketId, pr: &PullRequest, commit: Option<CommitId>) {
        let by_us = self
            .state
            .jobs
            .get(ticket)
            .is_some_and(|job| landing::may_be_our_merge(job) || job.delivery.in_forge_queue);
        self.edit_pr(ticket, |facts| {
            facts.state = pr.state.clone();
            // The pull request was merged at the head that the forge shows with it.
            facts.head = pr.head.clone();
            facts.write = None;
        });
        self.state.look_again.remove(ticket);
        self.decide(ticket, Observation::PrMerged { commit, by_us });
    }

    fn pr_is_closed(&mut self, ticket: &TicketId, pr: &PullRequest, basis: Basis) {
        let Some(facts) = self.state.jobs.get(ticket).and_then(|job| job.delivery.pr.as_ref()) else { return };
        // A pull request that the runner is reopening may still be shown as closed. A newly opened one is closed only if a person closed
        // it.
        if reopens_it(facts.write.as_ref()) && !is_settled(facts.write.as_ref(), basis, self.now) {
            self.look_again_soon(ticket);
            return;
        }
        self.edit_pr(ticket, |facts| facts.state = PrState::Closed);
        self.decide(ticket, Observation::PrClosed { number: pr.number });
    }

    fn pr_is_open(&mut self, ticket: &TicketId, pr: PullRequest, basis: Basis) {
        let contested = self.take_in_remarks(ticket, &pr) | self.lacks_something(&pr);
        // What is approved has to be known first; other instructions count at once.
        let approves = |one: &Instruction| matches!(one, Instruction::Approve { .. });
        self.told_on_pr(ticket, &pr, |one| !approves(one));
        if self.stays_open(ticket) || !self.take_in_head(ticket, &pr, basis) {
            return;
        }
        let before = self.state.jobs.get(ticket).and_then(|job| job.delivery.pr.clone());
        let another_head = before.as_ref().is_none_or(|known| known.head != pr.head);
        self.decide_with(ticket, |job, out| {
            delivery::overtaken(job, &pr.head, out);
            delivery::published_head_moved(job, &pr.head, out);
            reviewing::head_moved(job, &pr.head, out);
        });
        let known = before.as_ref().is_some_and(|facts| facts.head == pr.head && facts.head_shown.is_some());
        let shown = (!known).then(|| Basis { after: self.state.next_moment(), ..basis });
        let Some(job) = self.state.jobs.get(ticket) else { return };
        let mut facts = assess::remember(before.as_deref(), &pr, shown, self.policy, self.now);
        if before.as_ref().is_some_and(|known| is_settled(known.write.as_ref(), basis, self.now)) {
            facts.write = None;
        }
        let base_settled = basis.is_after(self.state.base_written);
        if !base_settled {
            // Asked before the runner's own merge moved the base: the look says nothing about what can be merged.
            facts.mergeability = Mergeability::Unknown;
        }
        let approval = approval_by_review(job, &pr, self.policy, self.now);
        let judges = phases::judges_pr(&job.stage);
        let by_others = job.delivery.head.as_ref() != Some(&pr.head);
        let local = self.policy.pr.forge == ForgeKind::Local;
        self.state.jobs.edit(ticket, |job| {
            if local {
                // A local branch can be looked at without being pushed.
                job.delivery.unpublished.clear();
            } else if judges && by_others {
                remarks::never_got_there(job);
            }
            if judges {
                job.delivery.head = Some(pr.head.clone());
            }
            if job.people.approval != approval {
                if let Some(approval) = &approval {
                    remarks::accept(job, &approval.by, &approval.head, &[]);
                    // A new approval by a person starts a new landing.
                    job.delivery.update_attempts = 0;
                }
                job.people.approval = approval;
            }
            if another_head {
                // A person's push resets the count. The runner's own update of the branch counts as one of the tries.
                if by_others {
                    job.delivery.merge_attempts = 0;
                }
                job.delivery.reruns = 0;
                job.delivery.rerun_at = None;
            }
            job.delivery.pr = Some(Box::new(facts));
        });
        self.told_on_pr(ticket, &pr, approves);
        let judges = judges && self.state.jobs.get(ticket).is_some_and(|job| phases::judges_pr(&job.stage));
        if base_settled {
            let conditions =
                self.state.jobs.get(ticket).map(|job| conditions::of_look(job, &pr, self.policy, self.now));
            self.edit_pr(ticket, |facts| facts.conditions = conditions.unwrap_or_default());
        }
        if !judges {
            return;
        }
        if !base_settled || contested {
            self.look_again_soon(ticket);
            return;
        }
        self.judge(ticket, &pr, basis);
    }

    /// Handles a look that shows the pull request of a closed ticket as open. A replica may not know of a merge yet, so a look later
    /// decides. Returns whether that was the case.
    fn stays_open(&mut self, ticket: &TicketId) -> bool {
        let Some(Stage::WaitingForChecks { on: CheckWait::TicketClosed { state }, since }) =
            self.state.jobs.get(ticket).map(|job| &job.stage)
        else {
            return false;
        };
        if self.policy.pr.forge == ForgeKind::Local || self.now.since(*since) >= SETTLE {
            let state = state.clone();
            self.decide(ticket, Observation::TicketStaysClosed { state });
        } else {
            self.look_again_soon(ticket);
        }
        true
    }

    /// Decides what a settled look at the true head requires.
    fn judge(&mut self, ticket: &TicketId, pr: &PullRequest, basis: Basis) {
        let Some(job) = self.state.jobs.get(ticket) else { return };
        // The gates have not passed on this head if a person pushed it or the runner's own update made it, if a gate was added since, or if
        // one failed before the ticket was taken away and came back.
        let receipt = job.evidence.receipt.as_ref().filter(|receipt| receipt.head.as_ref() == Some(&pr.head));
        // A contradicted claim is reworked, so no gate has to judge it.
        let gated = receipt.is_some_and(|receipt| {
            receipt.is_claim_contradicted() || receipt.is_passed_by(&self.policy.gates.task_names)
        });
        if self.policy.gates.has_task_gates && !gated {
            self.decide(ticket, Observation::HeadNotGated { head: pr.head.clone() });
            return;
        }
        // A replica may show the old result for a while after the checks were started again.
        let begun_again = job.delivery.rerun_at.is_some_and(|at| self.now.since(at) < SETTLE);
        if begun_again && assess::fold_checks(pr, &[]) == ChecksSummary::Failed {
            self.look_again_soon(ticket);
            return;
        }
        if let Some(checks) = assess::to_run_again(job, pr, self.policy, self.now) {
            let now = self.now;
            self.state.jobs.edit(ticket, |job| {
                job.delivery.reruns += 1;
                job.delivery.rerun_at = Some(now);
            });
            self.note(
                Some(ticket),
                "checks_rerun",
                "the failed checks run again before anything is reworked".to_owned(),
            );
            self.emit(Some(ticket), Action::RerunChecks { number: pr.number, checks });
            self.look_again_soon(ticket);
            return;
        }
        if self.is_thrown_out(ticket, pr, basis) {
            self.decide_with(ticket, landing::thrown_out);
        }
        let Some(job) = self.state.jobs.get(ticket) else { return };
        let assessment = assess::assess(job, pr, self.policy, self.now);
        let asked_in_turn = match &job.stage {
            Stage::ReadyToMerge { turn: Some(turn), .. } => basis.is_after(turn.moment),
            _ => false,
        };
        self.decide(ticket, Observation::PrAssessed { assessment, asked_in_turn });
    }

    /// Carries out the instructions in the pull request's comments that are `wanted` now.
    fn told_on_pr(&mut self, ticket: &TicketId, pr: &PullRequest, wanted: impl Fn(&Instruction) -> bool) {
        let Some(comments) = &pr.comments else { return };
        let secret = self.state.meta.comment_key.clone();
        for comment in comments {
            let Some(job) = self.state.jobs.get(ticket) else { return };
            if is_ours(&secret, ticket, comment, &job.comments) {
                continue;
            }
            let Some(mut told) = told_in(comment, RemarkKind::PrComment, self.policy, self.now) else { continue };
            told.instructions.retain(&wanted);
            let sees = seen_before(comment, comments, RemarkKind::PrComment, &job.people.named);
            let answered = answered_before(comment, pr.threads.as_deref().unwrap_or_default(), &secret, ticket);
            let told = Told { pr: Some(pr.number), sees, answered, ..told };
            self.told(ticket, &told, is_trusted(&comment.author, self.policy));
        }
    }

    /// Whether the forge took the pull request out of its queue: it is not in there, and had the time to show up.
    fn is_thrown_out(&self, ticket: &TicketId, pr: &PullRequest, basis: Basis) -> bool {
        let Some(job) = self.state.jobs.get(ticket) else { return false };
        let Stage::WaitingForChecks { on: CheckWait::ForgeQueue { .. }, since } = &job.stage else { return false };
        let write = job.delivery.pr.as_ref().and_then(|facts| facts.write.as_ref());
        !pr.in_queue && was_answered(write, basis) && self.now.since(*since) >= SETTLE
    }

    /// Takes in the remarks of reviewers and others, whatever head they are about. Returns whether looks disagree about one.
    fn take_in_remarks(&mut self, ticket: &TicketId, pr: &PullRequest) -> bool {
        let secret = self.state.meta.comment_key.clone();
        self.know_own_threads(ticket, pr, &secret);
        let Some(job) = self.state.jobs.get(ticket) else { return false };
        let ours = |comment: &crate::domain::comment::Comment| is_ours(&secret, ticket, comment, &job.comments);
        let readings = remarks::from_look(pr, ours, self.policy, self.now);
        let contested = readings.iter().any(|reading| remarks::is_contested(job, reading, self.now));
        let mut news = Vec::new();
        let now = self.now;
        self.state.jobs.edit(ticket, |job| {
            for reading in readings {
                news.extend(remarks::take_in(job, reading, now));
            }
        });
        for remark in news {
            self.note(Some(ticket), "human_said", format!("{}: {}", remark.author, remarks::first_line(&remark.text)));
            let told = self.state.jobs.get(ticket).and_then(|job| remarks::tell(job, &remark));
            if let Some(action) = told {
                self.emit(Some(ticket), action);
            }
        }
        let ids = |kind: RemarkKind| -> Option<Vec<CommentId>> {
            match kind {
                RemarkKind::Verdict => pr.reviews.as_ref().map(|all| all.iter().map(|one| one.id.clone()).collect()),
                RemarkKind::Thread => pr.threads.as_ref().map(|all| all.iter().map(|one| one.id.clone()).collect()),
                RemarkKind::PrComment => pr.comments.as_ref().map(|all| all.iter().map(|one| one.id.clone()).collect()),
                RemarkKind::TicketComment | RemarkKind::Message | RemarkKind::Finding => None,
            }
        };
        for kind in [RemarkKind::Verdict, RemarkKind::Thread, RemarkKind::PrComment] {
            if let Some(present) = ids(kind) {
                self.check_missing(ticket, kind, &present);
            }
        }
        contested
    }

    /// Finds the conversations that the runner began about findings of its review, and reports there how each finding was settled, as long
    /// as nobody else has written in it. Noting their first comments also tells copies of the runner's marker apart.
    fn know_own_threads(&mut self, ticket: &TicketId, pr: &PullRequest, secret: &str) {
        let mut own = Vec::new();
        for thread in pr.threads.iter().flatten() {
            let Some(first) = thread.comments.first() else { continue };
            let Some(note) = proven_key(secret, ticket, &first.body).filter(|key| key.starts_with(NOTE)) else {
                continue;
            };
            let Some(job) = self.state.jobs.get(ticket) else { return };
            if !job.comments.contains_key(note) {
                self.state.jobs.edit(ticket, |job| job.comments.insert(note.to_owned(), first.id.clone()));
            }
            let Some(job) = self.state.jobs.get(ticket) else { return };
            let ours = thread.comments.iter().all(|comment| is_ours(secret, ticket, comment, &job.comments));
            if ours && !thread.resolved {
                own.push(OwnThread { id: thread.id.clone(), note: note.to_owned() });
            }
        }
        let open = pr.state == PrState::Open
            && self.state.jobs.get(ticket).is_some_and(|job| !job.stage.phase().is_terminal());
        if open && !own.is_empty() {
            self.decide_with(ticket, |job, out| reviewing::tell_in_threads(job, pr.number, &own, out));
        }
    }

    /// Whether what the look says about the head can be believed. A head that a person pushed is adopted.
    fn take_in_head(&mut self, ticket: &TicketId, pr: &PullRequest, basis: Basis) -> bool {
        let Some(job) = self.state.jobs.get(ticket) else { return false };
        let Some(at_remote) = pr.ref_head.clone() else {
            // Not read completely: the next tick asks again.
            return false;
        };
        // This request was sent before one that was already answered, so what was decided since rests on newer information.
        let newest = self.state.looked.entry(ticket.clone()).or_default();
        if basis.after < *newest {
            return false;
        }
        *newest = basis.after;
        let write = job.delivery.pr.as_ref().and_then(|facts| facts.write.as_ref());
        if !was_answered(write, basis) {
            self.look_again_soon(ticket);
            return false;
        }
        if job.delivery.remote_head.as_ref() != Some(&at_remote) {
            self.adopt_head(ticket, at_remote, basis);
        }
        if !pr.shows_true_head() {
            self.look_again_soon(ticket);
            return false;
        }
        true
    }

    /// Adopts a head that the runner did not push, usually a person's. It is judged as it is, and no worker is started for what it makes
    /// unnecessary.
    fn adopt_head(&mut self, ticket: &TicketId, head: CommitId, basis: Basis) {
        let local = self.policy.pr.forge == ForgeKind::Local;
        let known = self.state.jobs.edit(ticket, |job| {
            // In the local repository a worker's commits are on the branch as soon as they are made. A look that was asked during the run
            // may show one that is not the last, and may be answered after the run.
            let by_worker = local && (job.stage.run().is_some() || basis.asked_at < job.stage.since());
            let delivery = &mut job.delivery;
            let ours = [&delivery.head, &delivery.pushed_head].into_iter().flatten().any(|known| *known == head);
            delivery.remote_head.replace(head.clone()).filter(|_| !ours && !by_worker)
        });
        if known.flatten().is_some() {
            self.note(Some(ticket), "head_adopted", format!("somebody pushed {}", head.short()));
            self.decide_with(ticket, people::pushed);
        }
    }

    /// Schedules another look at the pull request in a few seconds, unless one is scheduled already.
    pub fn look_again_soon(&mut self, ticket: &TicketId) {
        if self.state.look_again.get(ticket).is_none() {
            self.state.look_again.set(ticket, Some(self.now + LOOK_AGAIN_AFTER));
        }
    }

    /// Requests the looks whose time has come.
    pub fn look_again_now(&mut self) {
        let mut due = self.state.look_again.due(self.now);
        // A time so far away was set before the clock was put back.
        due.extend(self.state.look_again.beyond(self.now + LOOK_AGAIN_AFTER));
        for id in due {
            self.state.look_again.remove(&id);
            let Some(number) = self.state.jobs.get(&id).and_then(|job| job.delivery.pr.as_ref()).map(|pr| pr.number)
            else {
                continue;
            };
            self.emit(Some(&id), Action::InspectPr { number });
        }
    }

    pub fn pr_look_failed(&mut self, ticket: &TicketId, number: PrNumber, error: String) {
        let health = self.state.lanes.entry(Lane::Forge).or_default();
        let is_new = health.last_error.is_none();
        health.last_error = Some(error.clone());
        if is_new {
            self.note(Some(ticket), "forge_silent", format!("pull request {number} could not be looked at: {error}"));
        }
    }

    pub fn lane_works(&mut self, lane: Lane) {
        let health = self.state.lanes.entry(lane).or_default();
        health.last_ok = Some(self.now);
        health.last_error = None;
        health.paused_until = None;
        health.locked_out = false;
    }

    /// Notes that a write to the job's pull request is sent.
    pub fn pr_write_sent(&mut self, ticket: &TicketId, what: PrWriteKind) {
        self.edit_pr(ticket, |facts| facts.write = Some(PrWrite::Sent { what }));
    }

    pub fn pr_write_answered(&mut self, ticket: &TicketId, what: PrWriteKind, certain: bool) {
        let (moment, at) = (self.state.next_moment(), self.now);
        self.state.looked.insert(ticket.clone(), moment.next());
        self.edit_pr(ticket, |facts| {
            facts.write = Some(if certain {
                PrWrite::Answered { what, moment, at }
            } else {
                PrWrite::MaybeDone { what, moment, at }
            });
        });
    }

    /// Changes what is known about the job's pull request, if it has one.
    pub fn edit_pr(&mut self, ticket: &TicketId, change: impl FnOnce(&mut PrFacts)) {
        self.state.jobs.edit(ticket, |job| job.delivery.pr.as_deref_mut().map(change));
    }
}

/// Returns the job's approval under the present reviews: one by a person other than the author counts for its head, and one that was
/// withdrawn is gone.
fn approval_by_review(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Option<Approval> {
    let by_author = |name: &str| pr.author.as_ref().is_some_and(|author| author.name == name);
    let approving: Vec<&Review> = remarks::last_reviews(pr, policy)
        .into_iter()
        .filter(|review| review.verdict == Verdict::Approved && !by_author(&review.author.name))
        .collect();
    let stands = |approval: &Approval| {
        !approval.by_review || pr.reviews.is_none() || approving.iter().any(|review| review.author.name == approval.by)
    };
    let kept = job.people.approval.clone().filter(stands);
    if kept.as_ref().is_some_and(|approval| approval.head == pr.head) {
        return kept;
    }
    let fresh = approving.iter().find(|review| review.head.as_ref() == Some(&pr.head)).map(|review| Approval {
        head: pr.head.clone(),
        by: review.author.name.clone(),
        at: review.submitted_at.unwrap_or(now),
        by_review: true,
    });
    fresh.or(kept)
}

fn reopens_it(write: Option<&PrWrite>) -> bool {
    write.is_some_and(|write| write.kind() == PrWriteKind::Reopen)
}

/// Whether the request was sent after the runner's last write was answered.
fn was_answered(write: Option<&PrWrite>, basis: Basis) -> bool {
    match write {
        None => true,
        Some(PrWrite::Sent { .. }) => false,
        Some(PrWrite::Answered { moment, .. } | PrWrite::MaybeDone { moment, .. }) => basis.is_after(*moment),
    }
}

/// Whether the runner's last write is visible, or has had the time to become so.
fn is_settled(write: Option<&PrWrite>, basis: Basis, now: Timestamp) -> bool {
    was_answered(write, basis)
        && match write {
            None | Some(PrWrite::Sent { .. }) => write.is_none(),
            Some(PrWrite::Answered { at, what, .. } | PrWrite::MaybeDone { at, what, .. }) => {
                // A push shows in the head itself. Other writes may be missing from looks until `SETTLE` has passed.
                matches!(what, PrWriteKind::Push | PrWriteKind::Update) || now.since(*at) >= SETTLE
            }
        }
}

/// Returns the facts of a pull request that the forge has just opened or found.
pub fn facts_of_opened(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp, moment: Moment) -> PrFacts {
    let mut facts = assess::remember(job.delivery.pr.as_deref(), pr, None, policy, now);
    facts.write = Some(PrWrite::Answered { what: PrWriteKind::Open, moment, at: now });
    facts
}
