//! The review of a head: whether it needs one, what its result is, and where that is reported.
//!
//! A review takes place when the pull request is open and its checks have passed. So nobody is paid to read what CI rejects, and the
//! findings are where people look. A review counts for the head that it read and for no other.

use super::answers::answer_of;
use super::decided::Decided;
use super::effect::{Action, Said};
use super::phases::{look_again, stop};
use super::review_format;
use crate::config::policy::{ForgeKind, Policy, ReviewComment};
use crate::domain::finding::ReviewFinding;
use crate::domain::hash::stable_hash;
use crate::domain::ids::{CommentId, CommitId, PrNumber, SessionId};
use crate::domain::job::{BlockCause, Job, SettledFinding, Stage, UnreadableReview, Wait, Work};
use crate::domain::pr::PrState;
use crate::domain::remark::{Remark, RemarkEffect, RemarkKind, RemarkStatus};
use crate::domain::run::{RunReport, StopReason};

/// The status of a head's review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    /// Reviewed, or no review is required.
    Done,
    Needed,
    /// No further review is paid for; a person has to review the head.
    UsedUp,
}

pub fn state(job: &Job, head: &CommitId, policy: &Policy) -> ReviewState {
    let reviews = &job.delivery.reviews;
    if !policy.review.enabled || reviews.head.as_ref() == Some(head) {
        return ReviewState::Done;
    }
    let used_up = reviews.passes >= policy.review.max_passes;
    // A person who approves a head that no reviewer will read has reviewed it.
    if (used_up || reviews.is_given_up(head)) && job.people.is_approved(head) {
        return ReviewState::Done;
    }
    if used_up { ReviewState::UsedUp } else { ReviewState::Needed }
}

/// Queues a review, unless two reviews of this head could not be parsed already.
pub fn ask(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    if !job.delivery.reviews.is_given_up(&head) {
        out.queue(job, Work::Review { head }, Wait::Ready);
        return;
    }
    let is_blocked = matches!(&job.stage, Stage::Blocked { cause: BlockCause::ReviewUnreadable { head: on, .. }, .. } if *on == head);
    if !is_blocked {
        give_up(job, head, out);
    }
}

fn give_up(job: &mut Job, head: CommitId, out: &mut Decided<'_>) {
    let because = job.delivery.reviews.unreadable.as_ref().map(|last| last.because.clone()).unwrap_or_default();
    out.block(job, BlockCause::ReviewUnreadable { head: head.clone(), because }, Work::Review { head });
}

/// Returns the conversation that a review resumes. It is resumed only to ask for the same review again.
pub fn conversation(job: &Job, head: &CommitId) -> Option<SessionId> {
    let reviews = &job.delivery.reviews;
    reviews.session.clone().filter(|_| reviews.unreadable.as_ref().is_some_and(|last| last.head == *head))
}

/// Handles a review run that ended well. Its text is parsed here, and counts only for the head that the run was given.
pub fn ended(job: &mut Job, head: CommitId, report: &RunReport, out: &mut Decided<'_>) {
    job.failures = 0;
    match review_format::read(report.said.as_deref().unwrap_or_default(), &head) {
        Ok(findings) => {
            let reviews = &mut *job.delivery.reviews;
            reviews.passes += 1;
            reviews.unreadable = None;
            let text = format!("review {} of {} has {} finding(s)", reviews.passes, head.short(), findings.len());
            out.note(job, None, "reviewed", text);
            if job.current_head() == Some(&head) {
                take_in(job, head.clone(), findings, out);
                tell(job, out);
            }
        }
        Err(because) => {
            let because = because.to_string();
            let before = job.delivery.reviews.unreadable.as_ref().filter(|last| last.head == head);
            let times = before.map_or(1, |last| last.times + 1);
            out.note(job, None, "review_unreadable", format!("the review of {} says nothing: {because}", head.short()));
            job.delivery.reviews.unreadable = Some(UnreadableReview { head: head.clone(), because, times });
            if times > 1 {
                give_up(job, head, out);
            } else {
                out.queue(job, Work::Review { head }, Wait::Ready);
            }
            return;
        }
    }
    // The next look judges the findings, and what people wrote meanwhile.
    if let Some(pr) = job.delivery.pr.clone() {
        look_again(job, &pr, out);
    }
}

/// Replaces the earlier findings. The reviewer was given those and did not repeat them.
fn take_in(job: &mut Job, head: CommitId, findings: Vec<ReviewFinding>, out: &Decided<'_>) {
    let answers: Vec<String> = job.delivery.reviews.findings.iter().map(|finding| job.answer_to(finding)).collect();
    job.people.remarks.retain(|remark| remark.key.kind != RemarkKind::Finding);
    let fixes = &out.policy.review.fix_consideration_severities;
    job.people.remarks.extend(findings.iter().map(|finding| Remark {
        key: finding.key(),
        author: "the review".to_owned(),
        text: finding.text(),
        place: finding.place.clone(),
        head: Some(head.clone()),
        at: out.now,
        effect: if fixes.contains(&finding.severity) { RemarkEffect::Rework } else { RemarkEffect::None },
        urgent: false,
        status: RemarkStatus::Open,
        told: true,
        by_bot: false,
    }));
    let reviews = &mut *job.delivery.reviews;
    let before = std::mem::replace(&mut reviews.findings, findings);
    reviews.settled.extend(before.into_iter().zip(answers).map(|(finding, answer)| SettledFinding {
        id: finding.id,
        severity: finding.severity,
        title: finding.title,
        answer,
    }));
    reviews.head = Some(head);
}

/// Updates the comment about the review, if its content would change.
pub fn tell(job: &mut Job, out: &mut Decided<'_>) {
    let open = job.delivery.pr.as_ref().filter(|pr| pr.state == PrState::Open).map(|pr| pr.number);
    let reviews = &job.delivery.reviews;
    let (Some(number), Some(head)) = (open, &reviews.head) else { return };
    let mut parts = vec![head.as_str().to_owned()];
    parts.extend(reviews.findings.iter().flat_map(|finding| [finding.version(), job.answer_to(finding)]));
    let shows = stable_hash(&parts.iter().map(String::as_str).collect::<Vec<_>>());
    if reviews.shown == Some(shows) {
        return;
    }
    let key = match (out.policy.review.comment, out.policy.pr.forge) {
        (ReviewComment::Off, _) | (_, ForgeKind::None) => return,
        // Comments on a ticket are not rewritten, so each change is a comment of its own.
        (_, ForgeKind::Local) => format!("review:{shows:016x}"),
        (ReviewComment::Create, ForgeKind::Github) => format!("review:{}", reviews.passes),
        (ReviewComment::Upsert, ForgeKind::Github) => "review".to_owned(),
    };
    job.delivery.reviews.shown = Some(shows);
    out.act(Action::ReviewComment { number, key });
}

/// A conversation on the pull request that the runner began about a finding, and in which nobody else has written.
pub struct OwnThread {
    pub id: CommentId,
    /// The comment key of the finding.
    pub note: String,
}

/// Reports in the conversations about findings how each was settled, and resolves those that are, so that a rule of the forge does not wait
/// for the runner.
pub fn tell_in_threads(job: &mut Job, number: PrNumber, threads: &[OwnThread], out: &mut Decided<'_>) {
    for thread in threads {
        let Some((said, resolve)) = became_of(job, &thread.note) else { continue };
        let shows = stable_hash(&[&format!("{said:?}"), if resolve { "resolved" } else { "open" }]);
        if job.delivery.reviews.told_in.insert(thread.id.clone(), shows) == Some(shows) {
            continue;
        }
        let key = format!("settled:{shows:016x}");
        out.act(Action::AnswerThread { number, thread: thread.id.clone(), key, said, resolve });
    }
}

/// Returns what to report about a finding now, and whether the finding is settled. `None` if there is nothing to report yet.
fn became_of(job: &Job, note: &str) -> Option<(Said, bool)> {
    let words = |words: String| Said::Answer { how: "settled".to_owned(), commit: None, words: Some(words) };
    let reviews = &job.delivery.reviews;
    let Some(finding) = reviews.findings.iter().find(|finding| finding.note_key() == note) else {
        let head = reviews.head.as_ref().map_or("the next head", |head| head.short());
        return Some((words(format!("The review of {head} does not find this any more.")), true));
    };
    let remark = job.people.remark(&finding.key())?;
    match &remark.status {
        RemarkStatus::Open | RemarkStatus::Delivered { .. } => None,
        RemarkStatus::Answered { .. } => Some((answer_of(remark)?, true)),
        RemarkStatus::Overruled { .. } | RemarkStatus::Withdrawn { .. } => Some((words(job.answer_to(finding)), true)),
        // A person has to accept the answer.
        RemarkStatus::Addressed { .. } | RemarkStatus::Explained { .. } | RemarkStatus::Declined { .. } => {
            Some((answer_of(remark)?, false))
        }
    }
}

/// Stops a review whose head was replaced by a push, because that head will not be merged.
pub fn head_moved(job: &mut Job, head: &CommitId, out: &mut Decided<'_>) {
    if matches!(&job.stage, Stage::Working { work: Work::Review { head: read }, .. } if read != head) {
        stop(job, StopReason::Superseded, out);
    }
}

/// Whether a queued review would read another head than the pull request has.
pub fn is_overtaken(job: &Job) -> bool {
    let Stage::Queued { work: Work::Review { head }, .. } = &job.stage else { return false };
    job.delivery.pr.as_ref().is_none_or(|pr| pr.head != *head)
}
