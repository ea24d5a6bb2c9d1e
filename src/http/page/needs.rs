//! What a person has to do, each with the button for it.

use serde::Serialize;

use super::words::{AgeView, clip, cut, segment, sentence, web_link};
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

/// How many tickets are shown in full; further ones are shown as lines.
const IN_FULL: usize = 6;
/// How many tickets are shown as lines.
const LINES: usize = 20;

#[derive(Debug, Clone, Serialize)]
pub struct NeedsView {
    pub count: usize,
    pub first: Vec<NeedView>,
    pub more: Vec<super::board::TicketLine>,
    /// How many tickets are not shown.
    pub rest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct NeedView {
    pub key: String,
    pub path: String,
    pub title: String,
    pub phase: &'static str,
    /// What the person has to do, in two or three words.
    pub wanted: &'static str,
    pub age: AgeView,
    pub sentence: String,
    pub next: String,
    pub detail: Option<String>,
    pub link: Option<OutsideLink>,
    pub buttons: TicketButtons,
}

#[derive(Debug, Clone, Serialize)]
pub struct OutsideLink {
    pub url: String,
    pub label: String,
}

/// Which buttons a ticket has.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TicketButtons {
    pub path: String,
    pub key: String,
    /// The head that an approval is for. The button itself is shown beside the diff.
    pub approve: Option<String>,
    /// Whether remarks stand against a merge, so that the approval overrules them.
    pub anyway: bool,
    pub diff: bool,
    pub reject: bool,
    pub answer: bool,
    pub message: bool,
    pub retry: bool,
    pub stop: bool,
    pub pause: bool,
    pub resume: bool,
}

/// Whether the ticket waits until a person does something.
pub fn needs_a_person(job: &JobView) -> bool {
    matches!(job.phase, Phase::WaitingForHuman | Phase::Blocked)
        || matches!(job.reason.as_str(), "ready_for_you" | "dependency_cycle")
}

/// Returns the tickets that wait for a person: finished work first, then questions, then blocked ones. Within each the oldest first.
pub fn needs(picture: &Snapshot) -> NeedsView {
    let mut waiting: Vec<&JobView> = picture.jobs.iter().filter(|job| needs_a_person(job)).collect();
    waiting.sort_by_key(|job| (urgency(job), job.since, job.key.as_str()));
    let count = waiting.len();
    let lines = waiting.len().saturating_sub(IN_FULL).min(LINES);
    NeedsView {
        count,
        first: waiting.iter().take(IN_FULL).map(|job| need(job, picture.at)).collect(),
        more: waiting.iter().skip(IN_FULL).take(LINES).map(|job| super::board::TicketLine::of(job)).collect(),
        rest: count - count.min(IN_FULL) - lines,
    }
}

fn urgency(job: &JobView) -> u8 {
    match job.phase {
        Phase::WaitingForHuman | Phase::ReadyToMerge => 0,
        Phase::Blocked if job.reason == "worker_asked" => 1,
        // A person did this and knows about it.
        Phase::Blocked if matches!(job.reason.as_str(), "stopped" | "set_aside") => 3,
        _ => 2,
    }
}

fn need(job: &JobView, now: Timestamp) -> NeedView {
    NeedView {
        key: job.key.clone(),
        path: segment(&job.key),
        title: clip(&job.title, 120),
        phase: job.phase.name(),
        wanted: wanted(job),
        age: AgeView::of(job.since, now),
        sentence: sentence(&job.sentence, 300),
        next: sentence(&job.next, 240),
        detail: job.detail.as_deref().map(|detail| cut(detail, 500)),
        link: link(job),
        buttons: TicketButtons { stop: false, pause: false, resume: false, ..buttons(job, false) },
    }
}

/// Returns the link to the pull request, else to the ticket.
pub fn link(job: &JobView) -> Option<OutsideLink> {
    let pr = job.pr.as_ref();
    let of_pr = pr.and_then(|pr| Some((web_link(pr.url.as_deref())?, format!("Pull request #{}", pr.number))));
    let of_ticket = || web_link(job.url.as_deref()).map(|url| (url, "Ticket".to_owned()));
    of_pr.or_else(of_ticket).map(|(url, label)| OutsideLink { url, label })
}

fn wanted(job: &JobView) -> &'static str {
    match job.reason.as_str() {
        "approval" | "no_checks" | "review_limit" => "Approve or reject",
        "remarks" => "Settle remarks",
        "plan" => "Approve a plan",
        "worker_asked" => "Answer",
        "ready_for_you" | "branch_ready" => "Merge it",
        "handed_over" => "Take it over",
        "draft" => "Mark it ready",
        "dependency_cycle" => "Break a cycle",
        "review_unreadable" => "Review it",
        _ if job.phase == Phase::Blocked => "Unblock",
        _ => "Look at it",
    }
}

/// Returns which buttons a ticket has. `paused` tells whether a command about this ticket paused it.
pub fn buttons(job: &JobView, paused: bool) -> TicketButtons {
    let reason = job.reason.as_str();
    let over = job.phase.is_terminal();
    let works = job.run.is_some();
    let judged = matches!(job.phase, Phase::WaitingForHuman | Phase::WaitingForChecks | Phase::ReadyToMerge)
        || matches!(reason, "review_unreadable" | "merge_refused");
    // A branch may have a head without commits of its own.
    let has_work = job.head.is_some() && (job.pr.is_some() || judged);
    let is_open = job.pr.as_ref().is_some_and(|pr| pr.state == "open");
    let approved_already = job.head.is_some() && job.approved_head == job.head && reason != "remarks";
    let approve = judged && is_open && !approved_already;
    let answer = matches!(reason, "worker_asked" | "no_new_evidence" | "plan");
    TicketButtons {
        path: segment(&job.key),
        key: job.key.clone(),
        approve: job.head.clone().filter(|_| approve && reason != "plan"),
        anyway: reason == "remarks",
        diff: has_work && judged && reason != "plan",
        reject: !over && has_work && job.phase != Phase::Merging && !works,
        answer,
        // Answering is the message that is needed then.
        message: !over && !answer,
        retry: !over
            && !works
            && (matches!(job.phase, Phase::Blocked)
                || matches!(reason, "merge_stuck" | "review_limit" | "retry" | "quota")),
        stop: !over && job.phase != Phase::Blocked,
        pause: !over && !paused,
        resume: !over && paused,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn with(reason: &str, phase: Phase) -> JobView {
        JobView { reason: reason.to_owned(), ..sample::finished("T-1", phase) }
    }

    #[test]
    fn each_kind_of_wait_has_its_own_buttons() {
        let approval = buttons(&with("approval", Phase::WaitingForHuman), false);
        assert!(approval.approve.is_some() && approval.diff && approval.reject && !approval.anyway && !approval.retry);
        let remarks = buttons(&with("remarks", Phase::WaitingForHuman), false);
        assert!(remarks.approve.is_some() && remarks.anyway);
        let asked = buttons(&with("worker_asked", Phase::Blocked), false);
        assert!(asked.answer && asked.retry && asked.approve.is_none() && !asked.stop);
        let refused = buttons(&with("merge_refused", Phase::Blocked), false);
        assert!(refused.approve.is_some() && refused.retry);
        let done = buttons(&with("merged", Phase::Done), false);
        assert!(!done.message && !done.stop && !done.reject && !done.retry && !done.pause && done.approve.is_none());
        let paused = buttons(&with("kill_switch", Phase::Queued), true);
        assert!(paused.resume && !paused.pause);
    }

    #[test]
    fn finished_work_comes_before_questions_and_these_before_the_rest() {
        let mut picture = sample::picture();
        picture.jobs = vec![
            with("stopped", Phase::Blocked),
            with("retries_exhausted", Phase::Blocked),
            with("worker_asked", Phase::Blocked),
            with("approval", Phase::WaitingForHuman),
            with("ready", Phase::Queued),
        ];
        let order: Vec<&str> = needs(&picture).first.iter().map(|need| need.wanted).collect();
        assert_eq!(order, ["Approve or reject", "Answer", "Unblock", "Unblock"]);
    }

    #[test]
    fn many_are_counted_and_none_is_dropped() {
        let mut picture = sample::picture();
        picture.jobs = (0..500).map(|_| with("approval", Phase::WaitingForHuman)).collect();
        let needs = needs(&picture);
        assert_eq!((needs.count, needs.first.len(), needs.more.len()), (500, IN_FULL, LINES));
        assert_eq!(needs.first.len() + needs.more.len() + needs.rest, 500);
    }
}
