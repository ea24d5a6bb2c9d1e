//! Remarks, which are what trusted people want, as one set per job: taken in, delivered, answered, withdrawn, overruled.

use super::effect::{Action, Steering};
use super::phases::Observation;
use super::provenance::{is_acknowledgement, is_addressed, is_listed_bot, is_trusted};
use super::state::SETTLE;
use super::step::Step;
use crate::config::policy::{OnComment, Policy};
use crate::domain::comment::{Author, Comment};
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::ids::{CommentId, CommitId, RunId, TicketId};
use crate::domain::instruction::{self, Instruction};
use crate::domain::job::{HumanMessage, Job, ReworkCause, ReworkTrigger, Stage, Work};
use crate::domain::pr::{PullRequest, Review, ReviewThread, Verdict};
use crate::domain::remark::{Remark, RemarkAnswer, RemarkEffect, RemarkKey, RemarkKind, RemarkStatus};
use crate::domain::run::{LiveRun, RunKind};
use crate::domain::time::Timestamp;

/// What one look or reading says about remarks.
pub enum RemarkReading {
    Said(Remark),
    /// Resolved, dismissed or hidden; or its text was replaced at the time `at`.
    TakenBack {
        kind: RemarkKind,
        id: CommentId,
        how: String,
        at: Option<Timestamp>,
    },
    /// This reviewer approved or was overruled on the forge: what they requested until then is withdrawn.
    VerdictsTakenBack {
        author: String,
        until: Option<Timestamp>,
        how: String,
    },
}

/// Takes a reading into the job's set. Returns the remark if it is new, was edited or was opened again.
pub fn take_in(job: &mut Job, reading: RemarkReading, now: Timestamp) -> Option<Remark> {
    match reading {
        RemarkReading::Said(remark) => said(job, remark, now),
        RemarkReading::TakenBack { kind, id, how, at } => {
            // An older version of a comment is an outdated reading, and does not withdraw what was written there since.
            let is_newer = |known: &Remark| at.is_none_or(|at| at >= known.at);
            withdraw(job, &how, now, |known| known.key.kind == kind && known.key.id == id && is_newer(known));
            None
        }
        RemarkReading::VerdictsTakenBack { author, until, how } => {
            // Includes verdicts on an earlier pull request of this job, if the forge dates both.
            let before = |known: &Remark| until.is_some_and(|until| known.at < until);
            withdraw(job, &how, now, |known| known.is_standing_verdict() && known.author == author && before(known));
            None
        }
    }
}

fn withdraw(job: &mut Job, how: &str, now: Timestamp, which: impl Fn(&Remark) -> bool) {
    for known in job.people.remarks.iter_mut().filter(|known| !known.is_over()) {
        if which(known) {
            known.status = RemarkStatus::Withdrawn { how: how.to_owned(), at: now };
        }
    }
}

/// Whether a reading shows a remark as open that was withdrawn a moment ago. One of the two readings is outdated, and it is not known
/// which.
pub fn is_contested(job: &Job, reading: &RemarkReading, now: Timestamp) -> bool {
    let RemarkReading::Said(remark) = reading else { return false };
    job.people.remark(&remark.key).is_some_and(|known| match &known.status {
        RemarkStatus::Withdrawn { at, .. } => known.effect != RemarkEffect::None && now.since(*at) <= SETTLE,
        _ => false,
    })
}

fn said(job: &mut Job, remark: Remark, now: Timestamp) -> Option<Remark> {
    // The bots have had their round, or a person has approved the head.
    let approved = || job.current_head().is_some_and(|head| job.people.is_approved(head));
    if remark.by_bot && (job.people.bot_rounds > 0 || approved()) {
        return None;
    }
    let Some(known) = job.people.remark_mut(&remark.key) else {
        job.people.remarks.push(remark.clone());
        return Some(remark);
    };
    let reopened = match &known.status {
        // A lagging replica may still show it. If the remark was really opened again, that lasts.
        RemarkStatus::Withdrawn { at, .. } => now.since(*at) > SETTLE,
        _ => false,
    };
    if known.is_unread() && known.key.version == remark.key.version {
        // A run has received the comment already; now its text is known.
        *known = Remark { status: known.status.clone(), ..remark };
        return None;
    }
    // An older version is an outdated reading.
    let edited = known.key.version != remark.key.version && remark.at >= known.at;
    if !(edited || reopened) {
        return None;
    }
    *known = remark.clone();
    Some(remark)
}

/// Returns what a trusted person's comment says besides its instructions: its words, or that it has none (any more). `None` for a
/// rejection, whose words come with the instruction.
pub fn said_in(kind: RemarkKind, comment: &Comment, policy: &Policy, now: Timestamp) -> Option<RemarkReading> {
    let spoken = instruction::read(&comment.body, &policy.tracker.mention);
    if spoken.instructions.is_empty() {
        return Some(RemarkReading::Said(from_comment(kind, comment, policy, now)));
    }
    if spoken.instructions.iter().any(|one| matches!(one, Instruction::Reject { .. })) {
        return None;
    }
    if spoken.words.is_empty() {
        let at = comment.updated_at.or(comment.created_at);
        return Some(RemarkReading::TakenBack { kind, id: comment.id.clone(), how: "edited".to_owned(), at });
    }
    let words = Comment { body: spoken.words, ..comment.clone() };
    let mut remark = from_comment(kind, &words, policy, now);
    remark.key.version = comment.version();
    if spoken.instructions.iter().any(|one| matches!(one, Instruction::Approve { .. })) {
        // Written together with the approval: included in the next round, if there is one.
        remark.effect = RemarkEffect::None;
    }
    Some(RemarkReading::Said(remark))
}

/// Makes a remark of a comment on the ticket or the pull request.
pub fn from_comment(kind: RemarkKind, comment: &Comment, policy: &Policy, now: Timestamp) -> Remark {
    let effect = if is_addressed(&comment.body, policy) {
        RemarkEffect::Rework
    } else if is_acknowledgement(&comment.body, policy) {
        RemarkEffect::None
    } else {
        match policy.orchestration.on_comment {
            OnComment::Rework => RemarkEffect::Rework,
            OnComment::Hold => RemarkEffect::Hold,
        }
    };
    Remark {
        key: RemarkKey { kind, id: comment.id.clone(), version: comment.version() },
        author: comment.author.name.clone(),
        text: comment.body.clone(),
        place: None,
        head: None,
        at: comment.updated_at.or(comment.created_at).unwrap_or(now),
        effect,
        urgent: false,
        status: RemarkStatus::Open,
        told: false,
        by_bot: false,
    }
}

/// Returns everything that a look at the pull request says about remarks, as far as it was read.
pub fn from_look(
    pr: &PullRequest,
    is_ours: impl Fn(&Comment) -> bool,
    policy: &Policy,
    now: Timestamp,
) -> Vec<RemarkReading> {
    let mut found = Vec::new();
    let by_bots = last_words(pr, |author| is_listed_bot(author, policy)).into_iter().map(|review| (review, true));
    for (review, by_bot) in last_reviews(pr, policy).into_iter().map(|review| (review, false)).chain(by_bots) {
        match review.verdict {
            Verdict::ChangesRequested => found.push(RemarkReading::Said(from_review(review, by_bot, now))),
            // The reviewer's own approval or a dismissal withdraws their verdict.
            Verdict::Approved | Verdict::Dismissed => {
                let how = if review.verdict == Verdict::Approved { "approved" } else { "dismissed" };
                for earlier in reviews_of(pr, &review.author.name) {
                    let (kind, id) = (RemarkKind::Verdict, earlier.id.clone());
                    found.push(RemarkReading::TakenBack { kind, id, how: how.to_owned(), at: None });
                }
                let (author, until) = (review.author.name.clone(), review.submitted_at);
                found.push(RemarkReading::VerdictsTakenBack { author, until, how: how.to_owned() });
            }
            Verdict::Commented => {}
        }
    }
    for thread in pr.threads.iter().flatten() {
        found.extend(from_thread(thread, pr, &is_ours, policy, now));
    }
    for comment in pr.comments.iter().flatten() {
        if is_trusted(&comment.author, policy) && !is_ours(comment) {
            found.extend(said_in(RemarkKind::PrComment, comment, policy, now));
        }
    }
    found
}

fn from_review(review: &Review, by_bot: bool, now: Timestamp) -> Remark {
    Remark {
        key: RemarkKey {
            kind: RemarkKind::Verdict,
            id: review.id.clone(),
            version: crate::domain::comment::text_version(&review.body),
        },
        author: review.author.name.clone(),
        text: review.body.clone(),
        place: None,
        head: review.head.clone(),
        at: review.submitted_at.unwrap_or(now),
        effect: RemarkEffect::Rework,
        urgent: false,
        status: RemarkStatus::Open,
        told: false,
        by_bot,
    }
}

fn from_thread(
    thread: &ReviewThread,
    pr: &PullRequest,
    is_ours: &impl Fn(&Comment) -> bool,
    policy: &Policy,
    now: Timestamp,
) -> Option<RemarkReading> {
    if thread.resolved {
        return Some(RemarkReading::TakenBack {
            kind: RemarkKind::Thread,
            id: thread.id.clone(),
            how: "resolved".to_owned(),
            at: None,
        });
    }
    let last = |counts: fn(&Author, &Policy) -> bool| {
        thread.comments.iter().rev().find(|comment| counts(&comment.author, policy) && !is_ours(comment))
    };
    // Once a person has written in the conversation, it counts as theirs.
    let (last, by_bot) = match last(is_trusted) {
        Some(last) => (last, false),
        None => (last(is_listed_bot)?, true),
    };
    let is_nit = thread.review.as_ref().is_some_and(|id| {
        let reviews = pr.reviews.iter().flatten();
        reviews.into_iter().any(|review| review.id == *id && review.verdict == Verdict::Approved)
    });
    let place = thread.path.as_ref().map(|path| match thread.line {
        Some(line) => format!("{path}:{line}"),
        None => path.clone(),
    });
    Some(RemarkReading::Said(Remark {
        key: RemarkKey { kind: RemarkKind::Thread, id: thread.id.clone(), version: last.version() },
        author: last.author.name.clone(),
        text: last.body.clone(),
        place,
        head: None,
        at: last.updated_at.or(last.created_at).unwrap_or(now),
        effect: if is_nit { RemarkEffect::None } else { RemarkEffect::Rework },
        urgent: false,
        status: RemarkStatus::Open,
        told: false,
        by_bot,
    }))
}

fn reviews_of<'a>(pr: &'a PullRequest, author: &'a str) -> impl Iterator<Item = &'a Review> {
    pr.reviews.iter().flatten().filter(move |review| review.author.name == author)
}

/// Returns the last verdict of each trusted reviewer, without bots. A mere comment does not withdraw an earlier verdict.
pub fn last_reviews<'a>(pr: &'a PullRequest, policy: &Policy) -> Vec<&'a Review> {
    last_words(pr, |author| is_trusted(author, policy))
}

fn last_words(pr: &PullRequest, counts: impl Fn(&Author) -> bool) -> Vec<&Review> {
    let mut last: Vec<&Review> = Vec::new();
    for review in pr.reviews.iter().flatten().filter(|review| counts(&review.author)) {
        if review.verdict == Verdict::Commented {
            continue;
        }
        last.retain(|earlier| earlier.author.name != review.author.name);
        last.push(review);
    }
    last
}

/// Returns the rework that open remarks require, if any does.
pub fn wanted_rework(job: &Job, now: Timestamp) -> Option<ReworkCause> {
    // A bot's remark does not unblock a job that needs a person.
    let blocked = matches!(job.stage, Stage::Blocked { .. });
    let wanted =
        |remark: &&Remark| remark.effect == RemarkEffect::Rework && remark.is_open() && !(remark.by_bot && blocked);
    let mut asking: Vec<&Remark> = job.people.remarks.iter().filter(wanted).collect();
    // People first. A bot's remarks are included beside theirs; alone they make a round of their own.
    asking.sort_by_key(|remark| remark.by_bot);
    let first = asking.first()?;
    let trigger = match first.key.kind {
        _ if first.by_bot => ReworkTrigger::Bot,
        RemarkKind::Verdict => ReworkTrigger::ChangesRequested,
        RemarkKind::Thread => ReworkTrigger::UnresolvedThread,
        RemarkKind::PrComment | RemarkKind::TicketComment => ReworkTrigger::TicketComment,
        RemarkKind::Message => ReworkTrigger::Operator,
        RemarkKind::Finding => ReworkTrigger::ReviewFinding,
    };
    let note = |remark: &&Remark| Evidence {
        kind: EvidenceKind::Note { text: remark.sentence() },
        timestamp: if remark.at == Timestamp::default() { now } else { remark.at },
    };
    let count = asking.len();
    let summary = match asking.as_slice() {
        [one] if one.key.kind == RemarkKind::Finding => format!("the review has a finding: {}", first_line(&one.text)),
        [one] => format!("{} asks for a change", one.author),
        _ => format!("{count} remarks ask for changes"),
    };
    Some(ReworkCause { trigger, summary, evidence: asking.iter().map(note).collect() })
}

/// Updates the remarks of a run that is over. Those that it did not answer are addressed by its commits, or open again.
pub fn after_run(job: &mut Job, run: &RunId, made_commits: bool) {
    for remark in &mut job.people.remarks {
        if matches!(&remark.status, RemarkStatus::Delivered { run: to } if to == run) {
            remark.status =
                if made_commits { RemarkStatus::Addressed { run: run.clone() } } else { RemarkStatus::Open };
        }
    }
}

/// Takes back answers that refer to unpublished commits, because the branch is at a person's head without them. A person has to look at
/// these remarks.
pub fn never_got_there(job: &mut Job) {
    let unpublished = &job.delivery.unpublished;
    for remark in &mut job.people.remarks {
        if let RemarkStatus::Answered { run, .. } = &remark.status
            && unpublished.contains(run)
        {
            remark.status = RemarkStatus::Addressed { run: run.clone() };
        }
    }
}

/// Takes in an approval: it accepts what was dealt with, and overrules the remarks in `overruled`.
pub fn accept(job: &mut Job, by: &str, head: &CommitId, overruled: &[RemarkKey]) {
    let live = job.stage.run().cloned();
    // Unpublished commits that were made since are not in the head that the person saw.
    let saw_the_last = job.delivery.head.as_ref().is_none_or(|last| last == head);
    let unpublished = job.delivery.unpublished.clone();
    for remark in &mut job.people.remarks {
        // Neither is what the live run makes, or what an earlier run made that was never published.
        let unseen = |run: &RunId| live.as_ref() == Some(run) || unpublished.contains(run);
        let dealt_with =
            saw_the_last && remark.is_accepted_by_approval() && !remark.dealt_with_by().is_some_and(unseen);
        // A bot never outranks a person.
        let by_bot = remark.by_bot && !remark.is_over();
        // Exactly this version: an edit after the person looked is not covered.
        if dealt_with || by_bot || overruled.contains(&remark.key) && !remark.is_over() {
            remark.status = RemarkStatus::Overruled { by: by.to_owned(), head: head.clone() };
        }
    }
}

impl Step<'_> {
    /// Handles what a trusted person wrote, from any source.
    pub fn remark_came(&mut self, id: &TicketId, mut remark: Remark) {
        let run = self.state.jobs.get(id).and_then(|job| job.stage.run());
        // A reviewer receives no messages, so nothing that people write answers its question.
        let asks = |run: &LiveRun| run.progress.waiting_for_answer && run.kind != RunKind::Review;
        let asked = run.and_then(|run| self.state.runs.get(run)).is_some_and(asks);
        if asked {
            // The answer to the live agent's own question.
            remark.effect = RemarkEffect::None;
        }
        self.note(Some(id), "human_said", format!("{}: {}", remark.author, first_line(&remark.text)));
        self.decide(id, Observation::RemarkMade { remark });
    }

    /// Notes which remarks reached a run's agent, as the run reported.
    pub fn remarks_delivered(&mut self, id: &TicketId, run: &RunId, keys: &[RemarkKey]) {
        let now = self.now;
        self.state.jobs.edit(id, |job| {
            for key in keys {
                // The comment came with the prompt before any reading brought it. It is known in this version: part of the task if this is
                // the first run, otherwise a remark like any other.
                let is_new = job.people.remark(key).is_none() && !job.ticket.has_taken_in(key);
                if key.kind == RemarkKind::TicketComment && is_new {
                    if job.attempts <= 1 {
                        job.ticket.deliver_early(key);
                    } else {
                        job.people.remarks.push(Remark::unread(key.clone(), now));
                    }
                }
                // The delivered version counts; one that was edited since is still open.
                let mut remarks = job.people.remarks.iter_mut();
                if let Some(remark) = remarks.find(|remark| remark.key == *key && remark.is_open()) {
                    remark.status = RemarkStatus::Delivered { run: run.clone() };
                    remark.told = false;
                }
            }
            let from_bot = |remark: &Remark| remark.by_bot && keys.contains(&remark.key);
            if job.people.bot_rounds == 0 && job.people.remarks.iter().any(from_bot) {
                job.people.bots_are_heard();
            }
        });
    }

    /// Reopens the remarks of a message that did not reach the agent.
    pub fn remarks_returned(&mut self, id: &TicketId, run: &RunId, keys: &[RemarkKey]) {
        self.state.jobs.edit(id, |job| {
            for remark in job.people.remarks.iter_mut().filter(|remark| keys.contains(&remark.key)) {
                if matches!(&remark.status, RemarkStatus::Delivered { run: to } if to == run) {
                    remark.status = RemarkStatus::Open;
                }
            }
        });
    }

    pub fn remark_answered(&mut self, id: &TicketId, run: &RunId, key: &RemarkKey, answer: RemarkAnswer) {
        let Some(live) = self.state.runs.get(run) else { return };
        let before = live.head_before.clone();
        self.state.jobs.edit(id, |job| answered(job, run, key, answer, before.as_ref()));
    }

    /// Reads by id the open remarks that a complete reading lacks, because missing from a page alone means nothing.
    pub fn check_missing(&mut self, id: &TicketId, kind: RemarkKind, present: &[CommentId]) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let missing: Vec<CommentId> = job
            .people
            .remarks
            .iter()
            .filter(|remark| remark.key.kind == kind && !remark.is_over() && !present.contains(&remark.key.id))
            .map(|remark| remark.key.id.clone())
            .collect();
        for comment in missing {
            self.emit(Some(id), Action::CheckRemark { kind, id: comment });
        }
    }
}

/// Notes a run's answer to a remark. `before` is the head with which the run began.
fn answered(job: &mut Job, run: &RunId, key: &RemarkKey, answer: RemarkAnswer, before: Option<&CommitId>) {
    let head = job.delivery.head.clone();
    let Some(remark) = job.people.remark_mut(key) else { return };
    // A run can only answer what was delivered to it.
    let delivered = match &remark.status {
        RemarkStatus::Delivered { run: to }
        | RemarkStatus::Explained { run: to, .. }
        | RemarkStatus::Declined { run: to, .. }
        | RemarkStatus::Answered { run: to, .. } => to == run,
        _ => false,
    };
    if !delivered {
        return;
    }
    let run = run.clone();
    match answer {
        // Counts only with a commit that was made since the run began.
        RemarkAnswer::Fixed { .. } => {
            if let Some(commit) = head.filter(|head| Some(head) != before) {
                remark.status = RemarkStatus::Answered { run, commit };
            }
        }
        RemarkAnswer::Explained { text } => remark.status = RemarkStatus::Explained { run, words: text },
        RemarkAnswer::Declined { text } => remark.status = RemarkStatus::Declined { run, why: text },
    }
}

/// Returns the message for the live run, if there is one that can be told. Otherwise the remark is in the next prompt.
pub fn tell(job: &Job, remark: &Remark) -> Option<Action> {
    match &job.stage {
        // Bots have the prompt of their round, and no messages to a live agent.
        _ if remark.by_bot => None,
        // A reviewer changes nothing: what people want is for the next worker.
        Stage::Working { work: Work::Review { .. }, .. } => None,
        Stage::Working { run, stopping: None, .. } => {
            Some(Action::Steer { run: run.clone(), how: Steering::Say { message: HumanMessage::of(remark) } })
        }
        _ => None,
    }
}

/// Returns the first line, shortened for a list.
pub fn clipped(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = first_line(text);
    if line.chars().count() <= LONGEST { line.to_owned() } else { line.chars().take(LONGEST).chain(['…']).collect() }
}

pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
