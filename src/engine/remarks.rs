//! What trusted people want, kept in one set per job: taken in, delivered, answered, withdrawn, overruled.

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
    /// Resolved, dismissed or hidden; or there are other words in its place since `at`.
    TakenBack {
        kind: RemarkKind,
        id: CommentId,
        how: String,
        at: Option<Timestamp>,
    },
    /// This reviewer approved or was overruled on the forge: what they asked for until then is taken back.
    VerdictsTakenBack {
        author: String,
        until: Option<Timestamp>,
        how: String,
    },
}

/// Takes what was read into the job's set. Answers with what is new or has been opened again.
pub fn take_in(job: &mut Job, reading: RemarkReading, now: Timestamp) -> Option<Remark> {
    match reading {
        RemarkReading::Said(remark) => said(job, remark, now),
        RemarkReading::TakenBack { kind, id, how, at } => {
            // An older version of a comment is an old reading, and says nothing about what was written there since.
            let is_newer = |known: &Remark| at.is_none_or(|at| at >= known.at);
            withdraw(job, &how, now, |known| known.key.kind == kind && known.key.id == id && is_newer(known));
            None
        }
        RemarkReading::VerdictsTakenBack { author, until, how } => {
            // Also those on an earlier pull request of this job, if the forge dates both.
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

/// Whether a reading shows something as open that was taken back a moment ago: one of the two is old, and nobody knows which.
pub fn is_contested(job: &Job, reading: &RemarkReading, now: Timestamp) -> bool {
    let RemarkReading::Said(remark) = reading else { return false };
    job.people.remark(&remark.key).is_some_and(|known| match &known.status {
        RemarkStatus::Withdrawn { at, .. } => known.effect != RemarkEffect::None && now.since(*at) <= SETTLE,
        _ => false,
    })
}

fn said(job: &mut Job, remark: Remark, now: Timestamp) -> Option<Remark> {
    // A bot has had its round, or a person has approved what it speaks of.
    let approved = || job.current_head().is_some_and(|head| job.people.is_approved(head));
    if remark.by_bot && (job.people.bot_rounds > 0 || approved()) {
        return None;
    }
    let Some(known) = job.people.remark_mut(&remark.key) else {
        job.people.remarks.push(remark.clone());
        return Some(remark);
    };
    let reopened = match &known.status {
        // A replica may still show it; somebody who opens it again is seen when that lasts.
        RemarkStatus::Withdrawn { at, .. } => now.since(*at) > SETTLE,
        _ => false,
    };
    if known.is_unread() && known.key.version == remark.key.version {
        // A run has it already; now we know what it says.
        *known = Remark { status: known.status.clone(), ..remark };
        return None;
    }
    // An older version is an old reading.
    let edited = known.key.version != remark.key.version && remark.at >= known.at;
    if !(edited || reopened) {
        return None;
    }
    *known = remark.clone();
    Some(remark)
}

/// What a comment of a trusted person says besides what it tells us to do: its words, or that it has none (any more). The words of a
/// rejection come with the instruction.
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
        // In one breath with the approval: it goes along with the next round, if there is one.
        remark.effect = RemarkEffect::None;
    }
    Some(RemarkReading::Said(remark))
}

/// What a comment on the ticket or the pull request means, if it is a remark.
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

/// Everything that a look at the pull request says about remarks, as far as it was read.
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
            // Their own approval or a dismissal takes their verdict back.
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
    // Once a person has said something in it, it is theirs.
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

/// The last word of each trusted reviewer. A mere comment does not take an earlier verdict back. No bot is among them.
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

/// The rework that open remarks ask for, if any does.
pub fn wanted_rework(job: &Job, now: Timestamp) -> Option<ReworkCause> {
    // A bot gets nobody out of where a person is needed.
    let blocked = matches!(job.stage, Stage::Blocked { .. });
    let wanted =
        |remark: &&Remark| remark.effect == RemarkEffect::Rework && remark.is_open() && !(remark.by_bot && blocked);
    let mut asking: Vec<&Remark> = job.people.remarks.iter().filter(wanted).collect();
    // People first: beside them what a bot says goes along, and alone it is a round of its own.
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

/// A run that got remarks is over: what it did not answer is addressed by its commits, or open again.
pub fn after_run(job: &mut Job, run: &RunId, made_commits: bool) {
    for remark in &mut job.people.remarks {
        if matches!(&remark.status, RemarkStatus::Delivered { run: to } if to == run) {
            remark.status =
                if made_commits { RemarkStatus::Addressed { run: run.clone() } } else { RemarkStatus::Open };
        }
    }
}

/// The branch is at a person's head, which holds nothing of what these runs made: nothing is mended by it, and somebody has to look.
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

/// An approval accepts what was dealt with, and overrules what it names.
pub fn accept(job: &mut Job, by: &str, head: &CommitId, overruled: &[RemarkKey]) {
    let live = job.stage.run().cloned();
    // What was made since, and is not published yet, is not in the head that the person saw.
    let saw_the_last = job.delivery.head.as_ref().is_none_or(|last| last == head);
    let unpublished = job.delivery.unpublished.clone();
    for remark in &mut job.people.remarks {
        // Nor is what the live run makes of it, or what an earlier one made that never got there.
        let unseen = |run: &RunId| live.as_ref() == Some(run) || unpublished.contains(run);
        let dealt_with =
            saw_the_last && remark.is_accepted_by_approval() && !remark.dealt_with_by().is_some_and(unseen);
        // A bot never outranks a person.
        let by_bot = remark.by_bot && !remark.is_over();
        // In that very version: an edit after the person looked is something else.
        if dealt_with || by_bot || overruled.contains(&remark.key) && !remark.is_over() {
            remark.status = RemarkStatus::Overruled { by: by.to_owned(), head: head.clone() };
        }
    }
}

impl Step<'_> {
    /// Something that a trusted person wrote, from wherever it came.
    pub fn remark_came(&mut self, id: &TicketId, mut remark: Remark) {
        let run = self.state.jobs.get(id).and_then(|job| job.stage.run());
        // A reviewer is told nothing, so nothing that is said answers it.
        let asks = |run: &LiveRun| run.progress.waiting_for_answer && run.kind != RunKind::Review;
        let asked = run.and_then(|run| self.state.runs.get(run)).is_some_and(asks);
        if asked {
            // The answer to a live agent's own question.
            remark.effect = RemarkEffect::None;
        }
        self.note(Some(id), "human_said", format!("{}: {}", remark.author, first_line(&remark.text)));
        self.decide(id, Observation::RemarkMade { remark });
    }

    /// A run reports which remarks reached its agent.
    pub fn remarks_delivered(&mut self, id: &TicketId, run: &RunId, keys: &[RemarkKey]) {
        let now = self.now;
        self.state.jobs.edit(id, |job| {
            for key in keys {
                // It came with the prompt before any reading brought it: known in this version, part of the task if this is the
                // first run, and a remark like any other if not.
                let is_new = job.people.remark(key).is_none() && !job.ticket.has_taken_in(key);
                if key.kind == RemarkKind::TicketComment && is_new {
                    if job.attempts <= 1 {
                        job.ticket.deliver_early(key);
                    } else {
                        job.people.remarks.push(Remark::unread(key.clone(), now));
                    }
                }
                // The version that was delivered counts; what was edited since is still open.
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

    /// A message did not get through: the remark is open again.
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

    /// Open remarks that a complete reading does not have are asked for by id; a page that lacks one means nothing.
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

/// `before` is the head that the run began with.
fn answered(job: &mut Job, run: &RunId, key: &RemarkKey, answer: RemarkAnswer, before: Option<&CommitId>) {
    let head = job.delivery.head.clone();
    let Some(remark) = job.people.remark_mut(key) else { return };
    // Only what was delivered to this run can be answered by it.
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
        // Counts only with a commit that was made since.
        RemarkAnswer::Fixed { .. } => {
            if let Some(commit) = head.filter(|head| Some(head) != before) {
                remark.status = RemarkStatus::Answered { run, commit };
            }
        }
        RemarkAnswer::Explained { text } => remark.status = RemarkStatus::Explained { run, words: text },
        RemarkAnswer::Declined { text } => remark.status = RemarkStatus::Declined { run, why: text },
    }
}

/// Tells the live run at once; what cannot be told is in the next prompt.
pub fn tell(job: &Job, remark: &Remark) -> Option<Action> {
    match &job.stage {
        // Bots have the prompt of their round, and no line to a live agent.
        _ if remark.by_bot => None,
        // A reviewer changes nothing: what people want is for the next worker.
        Stage::Working { work: Work::Review { .. }, .. } => None,
        Stage::Working { run, stopping: None, .. } => {
            Some(Action::Steer { run: run.clone(), how: Steering::Say { message: HumanMessage::of(remark) } })
        }
        _ => None,
    }
}

/// As much of it as a list has room for.
pub fn clipped(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = first_line(text);
    if line.chars().count() <= LONGEST { line.to_owned() } else { line.chars().take(LONGEST).chain(['…']).collect() }
}

pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
