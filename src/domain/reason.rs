//! Why a job is where it is, as one code and one sentence, and what would move it on.

use super::failure::RunFailure;
use super::ids::CommitId;
use super::job::{
    BlockCause, CheckWait, DoneHow, Hindrance, HumanWait, Job, MergeHold, ReleaseReason, ReworkCause, ReworkTrigger,
    Stage, SwitchSource, Wait, Work,
};
use super::remark::{Remark, RemarkStatus};
use super::time::Timestamp;
use super::words::each_once;

/// A reason: one code, one sentence, and what would move the job on (including who has to act, if a person must).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub code: &'static str,
    pub sentence: String,
    pub next: String,
    /// A few lines that show the cause.
    pub detail: Option<String>,
}

fn reason(code: &'static str, sentence: impl Into<String>, next: impl Into<String>) -> Reason {
    Reason { code, sentence: sentence.into(), next: next.into(), detail: None }
}

/// Commands that can also be given in a comment.
const IN_COMMENTS: [&str; 7] = ["approve", "reject", "retry", "stop", "pause", "resume", "explain"];

impl Job {
    /// Returns why the job is where it is, as far as that is its own doing. Suggested commands contain the ticket's key.
    pub fn own_reason(&self, now: Timestamp) -> Reason {
        match &self.stage {
            Stage::WaitingForHuman { on: HumanWait::Remarks { head, .. }, .. } => words_stand(self, head).of(self),
            Stage::Queued { wait: Wait::Retry { due, error, .. }, .. } if self.evidence.no_progress_with.is_some() => {
                brought_nothing(error, *due, now).of(self)
            }
            stage => stage.reason(now).of(self),
        }
    }

    /// Returns the reason with each suggested terminal command followed by the equivalent comment, addressed to `name`.
    pub fn in_comments_too(&self, reason: Reason, name: &str) -> Reason {
        let head = self.current_head().map(|head| head.short());
        let mut next = String::new();
        for (at, part) in reason.next.split('`').enumerate() {
            next.push_str(part);
            // The parts with an odd index stand between backticks.
            let written = if at % 2 == 1 { in_comment(part, name, head) } else { None };
            if at % 2 == 0 && at + 1 == reason.next.split('`').count() {
                continue;
            }
            next.push('`');
            if let Some(written) = written {
                // No brackets inside of brackets.
                let inside = next.matches('(').count() > next.matches(')').count();
                next.push_str(&if inside {
                    format!(", or comment `{written}`")
                } else {
                    format!(" (or comment `{written}`)")
                });
            }
        }
        Reason { next, ..reason }
    }

    /// Returns the reason while a hindrance, which is not the job's own doing, keeps it waiting.
    pub fn hindered_reason(&self, hindrance: &Hindrance, now: Timestamp) -> Reason {
        self.stage.hindered_reason(hindrance, now).of(self)
    }
}

/// Returns the comment that does the same as this command, or `None` if there is none.
fn in_comment(command: &str, name: &str, head: Option<&str>) -> Option<String> {
    let mut words = command.split_whitespace();
    let verb = (words.next() == Some("dirigent")).then(|| words.next()).flatten()?;
    let _ticket = words.next()?;
    let head = head.filter(|_| verb == "approve");
    let said = [verb].into_iter().chain(head).chain(words);
    IN_COMMENTS.contains(&verb).then(|| format!("/{name} {}", said.collect::<Vec<_>>().join(" ")))
}

/// Returns whose remarks stand against a merge, how they were answered, and how to go on.
fn words_stand(job: &Job, head: &CommitId) -> Reason {
    let holding: Vec<&Remark> = job.people.holding().collect();
    if holding.is_empty() {
        let sentence = format!("nothing stands against {} any more; it is looked at once more", head.short());
        return reason("remarks", sentence, "nothing: it goes on with the next look");
    }
    let by = each_once(holding.iter().map(|remark| remark.author.as_str()));
    let (by, short) = (by.join(", "), head.short());
    let dealt_with = holding.iter().all(|remark| remark.is_accepted_by_approval());
    let verdicts = holding.iter().any(|remark| remark.is_standing_verdict());
    let (sentence, next) = if dealt_with {
        (
            format!("a run has dealt with what {by} wrote; {short} waits for somebody to accept that"),
            "look at it, then `dirigent approve TICKET` accepts it and `dirigent reject TICKET WHY` asks for more",
        )
    } else if verdicts {
        (
            format!("words of {by} stand against merging {short}"),
            "whoever requested changes approves; or `dirigent approve TICKET --anyway` merges it as it is, `dirigent reject TICKET WHY` asks for changes",
        )
    } else {
        (
            format!("words of {by} stand against merging {short}"),
            "`dirigent approve TICKET --anyway` merges it as it is, `dirigent reject TICKET WHY` asks for changes",
        )
    };
    let shown = holding.iter().take(5).map(|remark| format!("{} ({})", clipped(&remark.sentence()), became(remark)));
    Reason { detail: Some(shown.collect::<Vec<_>>().join("\n")), ..reason("remarks", sentence, next) }
}

/// Returns the status of a remark in a few words.
fn became(remark: &Remark) -> String {
    match &remark.status {
        RemarkStatus::Open | RemarkStatus::Delivered { .. } => "open".to_owned(),
        RemarkStatus::Addressed { .. } => "a commit was made for it".to_owned(),
        RemarkStatus::Answered { commit, .. } => format!("fixed in {}", commit.short()),
        RemarkStatus::Explained { words, .. } => format!("explained: {}", clipped(words)),
        RemarkStatus::Declined { why, .. } => format!("declined: {}", clipped(why)),
        RemarkStatus::Withdrawn { .. } | RemarkStatus::Overruled { .. } => "over".to_owned(),
    }
}

impl Reason {
    /// Puts the job's key into the suggested commands.
    fn of(self, job: &Job) -> Self {
        if !self.next.contains("TICKET") {
            return self;
        }
        Self { next: self.next.replace("TICKET", job.ticket.key.as_str()), ..self }
    }
}

impl Stage {
    /// Returns why a job is in this stage. `now` turns due times into time spans.
    pub fn reason(&self, now: Timestamp) -> Reason {
        match self {
            Self::Queued { work, wait, .. } => queued(work, wait, now),
            Self::Working { work, run, stopping, .. } => match stopping {
                Some(stop) => reason(
                    "stopping",
                    format!("run {run} is being stopped ({})", stop.code()),
                    "nothing: it goes on when the process tree is gone and its work is saved",
                ),
                None => working(work, run.as_str()),
            },
            Self::WaitingForChecks { on, .. } => checks(on),
            Self::WaitingForHuman { on, .. } => human(on),
            Self::Blocked { cause: BlockCause::ReworkLimitExceeded { limit, trigger }, resume, .. } => {
                out_of_rounds(*limit, *trigger, resume)
            }
            Self::Blocked { cause, .. } => blocked(cause),
            Self::ReadyToMerge { turn: Some(_), .. } => {
                reason("merge_queue", "ready; it is looked at once more and merged", "nothing: it is merged next")
            }
            Self::ReadyToMerge { hold, .. } => held(hold, now),
            Self::Merging { head, .. } => {
                reason("merging", format!("{} is being merged", head.short()), "nothing: the merge is under way")
            }
            Self::Done { how: DoneHow::Merged { commit, by_us }, .. } => reason(
                "merged",
                format!(
                    "merged{}{}",
                    commit.as_ref().map(|c| format!(" as {}", c.short())).unwrap_or_default(),
                    if *by_us { "" } else { " by a person" }
                ),
                "nothing: it is finished",
            ),
            Self::Released { why, .. } => released(why),
        }
    }

    pub fn hindered_reason(&self, hindrance: &Hindrance, now: Timestamp) -> Reason {
        let what = match self {
            Self::Queued { work, .. } => what(work),
            _ => "merge",
        };
        hindered(what, hindrance, now)
    }
}

fn what(work: &Work) -> &'static str {
    match work {
        Work::Implement => "implementation",
        Work::Review { .. } => "review",
        Work::Rework { .. } => "rework",
    }
}

fn span(due: Timestamp, now: Timestamp) -> String {
    let seconds = (due.since(now).as_millis() as u64).div_ceil(1000);
    match seconds {
        0 => "now".into(),
        1..=119 => format!("in {seconds} s"),
        120..=7199 => format!("in {} min", seconds / 60),
        _ => format!("in {} h", seconds / 3600),
    }
}

/// Describes a retry after an attempt without progress. Whether the retry takes place depends on something being new by then.
fn brought_nothing(error: &RunFailure, due: Timestamp, now: Timestamp) -> Reason {
    reason(
        "retry",
        format!(
            "the last attempt brought nothing ({error}); it is tried again {} only if something is new",
            span(due, now)
        ),
        "say on the ticket what to do differently; `dirigent retry TICKET` starts it now",
    )
}

fn queued(work: &Work, wait: &Wait, now: Timestamp) -> Reason {
    match wait {
        Wait::Ready => {
            reason("ready", format!("its {} starts with the next decision", what(work)), "nothing: it is next")
        }
        Wait::Blockers { keys } => reason(
            "blocked_by",
            format!("waits for {}", join(keys)),
            "finish those tickets; a failed or missing one has to be resolved by a person",
        ),
        Wait::Cycle { keys } => reason(
            "dependency_cycle",
            format!("is part of a dependency cycle: {}", join_path(keys)),
            "a person has to remove one of these dependencies",
        ),
        Wait::Retry { attempt, due, error } => reason(
            "retry",
            format!("attempt {attempt} follows {}: {error}", span(*due, now)),
            "nothing; `dirigent retry TICKET` starts it now",
        ),
        Wait::Continuation { due } => {
            reason("continuation", format!("goes on {}", span(*due, now)), "nothing: it goes on by itself")
        }
        Wait::KillSwitch { source } => switch(*source),
        Wait::Labels { missing } => reason(
            "labels",
            format!("lacks the label{} {}", if missing.len() == 1 { "" } else { "s" }, missing.join(", ")),
            "somebody has to add it",
        ),
        Wait::NotOurs { because } => reason("not_ours", because.clone(), "somebody has to change the ticket"),
    }
}

fn hindered(what: &str, hindrance: &Hindrance, now: Timestamp) -> Reason {
    match hindrance {
        Hindrance::Switch { source } => switch(*source),
        Hindrance::Slot => reason(
            "no_slot",
            format!("its {what} waits for a free slot (agent.max_concurrent_agents)"),
            "nothing: it starts when a run ends",
        ),
        Hindrance::StateSlot { state } => reason(
            "no_state_slot",
            format!("its {what} waits for a slot of state `{state}` (agent.max_concurrent_agents_by_state)"),
            "nothing: it starts when a run in that state ends",
        ),
        Hindrance::Quota { pool, until } => reason(
            "quota",
            format!("the usage limit of `{pool}` is reached; it resets {}", span(*until, now)),
            "nothing: it goes on at the reset; with another key or a larger plan `dirigent retry TICKET` tries at once",
        ),
        Hindrance::QuotaTrial { pool } => reason(
            "quota",
            format!("the usage limit of `{pool}` should be reset; one run finds out"),
            "nothing: it goes on when that run gets through",
        ),
        Hindrance::Observe => reason(
            "observe",
            format!("its {what} would start now, but rollout.mode is observe"),
            "set rollout.mode to mutate or merge",
        ),
        Hindrance::Preflight => reason(
            "preflight",
            "rollout.preflight_required is on and this WORKFLOW.md has not been checked",
            "run `dirigent doctor`",
        ),
        Hindrance::DailyBudget { what, until } => reason(
            "daily_budget",
            format!("today's budget is spent ({what})"),
            format!("nothing: it goes on {} (midnight), or raise budget.daily", span(*until, now)),
        ),
        Hindrance::Tracker => {
            reason("tracker", "the board could not be read, or not yet", "nothing: it goes on when the tracker answers")
        }
        Hindrance::ShuttingDown => reason("shutdown", "the runner is shutting down", "start `dirigent run` again"),
        Hindrance::MergeDisabled => reason(
            "ready_for_you",
            "ready for you to merge: merge.mode is disabled",
            "merge it yourself, or set merge.mode: auto and rollout.mode: merge",
        ),
        Hindrance::RolloutForbids => reason(
            "ready_for_you",
            "ready for you to merge: rollout.mode does not allow merging",
            "merge it yourself, or set rollout.mode: merge (and merge.mode: auto)",
        ),
        Hindrance::Behind { key } => {
            reason("merge_queue", format!("ready; {key} is merged first"), "nothing: it is merged next")
        }
    }
}

fn switch(source: SwitchSource) -> Reason {
    let next = match source {
        SwitchSource::File => "remove the kill-switch file (rollout.kill_switch_file)",
        SwitchSource::TicketLabel => "remove the kill-switch label from the ticket",
        SwitchSource::PrLabel => "remove the kill-switch label from the pull request",
        SwitchSource::PauseAll => "run `dirigent resume`",
        SwitchSource::PauseTicket => "run `dirigent resume TICKET`",
    };
    let sentence = match source {
        SwitchSource::File | SwitchSource::TicketLabel | SwitchSource::PrLabel => {
            format!("a kill switch is on: {}", source.name())
        }
        SwitchSource::PauseAll => "everything is paused (dirigent pause)".to_owned(),
        SwitchSource::PauseTicket => "this ticket is paused (dirigent pause)".to_owned(),
    };
    reason("kill_switch", sentence, next)
}

fn working(work: &Work, run: &str) -> Reason {
    match work {
        Work::Implement => reason("implementing", format!("run {run} implements it"), "nothing: the worker is at it"),
        Work::Review { .. } => reason("reviewing", format!("run {run} reviews it"), "nothing: the worker is at it"),
        Work::Rework { cause } => reason(
            "rework",
            format!("run {run} reworks it ({}): {}", cause.trigger.name(), cause.summary),
            "nothing: the worker is at it",
        ),
    }
}

fn checks(on: &CheckWait) -> Reason {
    match on {
        CheckWait::Gates { head } => reason(
            "gates",
            format!("gates.task runs on {}", head.short()),
            "nothing: it goes on with the gates' result",
        ),
        CheckWait::Publishing { head } => reason(
            "opening_pr",
            format!("the pull request for {} is being opened", head.short()),
            "nothing: it goes on when the forge has it",
        ),
        CheckWait::Forge { head } => {
            reason("checks", format!("the checks of {} have not finished", head.short()), "nothing: CI moves it on")
        }
        CheckWait::Mergeability { head } => reason(
            "mergeability",
            format!("it is not known yet whether {} can be merged", head.short()),
            "nothing: the forge works it out",
        ),
        CheckWait::BranchUpdate { head } => reason(
            "branch_update",
            format!("the base is being merged into the branch at {}", head.short()),
            "nothing: the new head is checked next",
        ),
        CheckWait::ForgeQueue { head } => reason(
            "in_queue",
            format!("{} is in the forge's own merge queue", head.short()),
            "nothing: the forge merges it; a remark, `dirigent stop TICKET` or a kill switch takes it out again",
        ),
        CheckWait::TicketClosed { state } => reason(
            "ticket_closed_with_pr",
            format!("the ticket is `{state}`; the forge is asked whether its pull request was merged"),
            "nothing: it ends with the forge's answer",
        ),
    }
}

fn human(on: &HumanWait) -> Reason {
    match on {
        HumanWait::Approval { head } => reason(
            "approval",
            format!("{} waits for approval", head.short()),
            "approve the pull request, move the ticket to an approval state, or run `dirigent approve TICKET`",
        ),
        HumanWait::Branch { branch } => reason(
            "branch_ready",
            format!("the work is on branch {branch}; no pull request is opened here"),
            "review and merge the branch, then close the ticket",
        ),
        HumanWait::Directory => reason(
            "handed_over",
            "the worker says done; what it made is in the ticket's directory, which is pushed by the workflow's own prompt and hooks",
            "look at it, then close the ticket, or move it to an active state for another run",
        ),
        HumanWait::NoChecks { head } => reason(
            "no_checks",
            format!("nothing checks {}, and merge.no_checks is wait", head.short()),
            "run `dirigent approve TICKET`, add gates.task or CI, or set merge.no_checks: pass",
        ),
        HumanWait::ReviewLimit { head, limit } => reason(
            "review_limit",
            format!(
                "{} is not reviewed, and the {limit} reviews that a ticket gets (review.max_passes) are used up",
                head.short()
            ),
            "review it yourself and run `dirigent approve TICKET`, or run `dirigent retry TICKET` for another set of reviews",
        ),
        HumanWait::Draft => reason("draft", "the pull request is a draft", "mark it ready for review"),
        HumanWait::Remarks { head, by } => reason(
            "remarks",
            format!("words of {} stand against merging {}", by.join(", "), head.short()),
            "`dirigent approve TICKET --anyway` merges it as it is, `dirigent reject TICKET WHY` asks for changes; whoever requested changes can also approve",
        ),
        HumanWait::Rule { head, because } => reason(
            "forge_rule",
            format!("the forge does not let {} be merged: {because}", head.short()),
            "satisfy the rule, or merge it yourself",
        ),
        HumanWait::OtherBase { head, base } => reason(
            "other_base",
            format!("somebody set the base of {} to `{base}`, which is not the base of this workflow", head.short()),
            "whoever changed the base decides: merge it yourself, or set the base back",
        ),
        HumanWait::MergeStuck { head, because } => reason(
            "merge_stuck",
            format!("merging {} failed again and again: {because}", head.short()),
            "clear what is in the way, then run `dirigent retry TICKET`",
        ),
    }
}

fn blocked(cause: &BlockCause) -> Reason {
    match cause {
        BlockCause::RetriesExhausted { attempts, last } => reason(
            "retries_exhausted",
            format!("{attempts} attempts failed, the last because {last}"),
            format!("{}", Fix(last)),
        ),
        BlockCause::Permanent { failure } => {
            reason("permanent_failure", failure.to_string(), format!("{}", Fix(failure)))
        }
        BlockCause::NoNewEvidence { .. } => reason(
            "no_new_evidence",
            "the last attempt brought nothing, and nothing has changed since",
            "comment on the ticket, change its text or labels, or the workflow; or run `dirigent retry TICKET`",
        ),
        BlockCause::LostAgain { times } => reason(
            "lost_again",
            format!("{times} runs in a row were lost with the runner"),
            "find out what ends the runner, then run `dirigent retry TICKET`",
        ),
        BlockCause::ReworkLimitExceeded { limit, trigger } => out_of_rounds(*limit, *trigger, &Work::Implement),
        BlockCause::BudgetExceeded { what, figure, cap } => reason(
            "budget_exceeded",
            format!("the budget is spent: {what} {figure} of {cap}"),
            "raise the budget in WORKFLOW.md or run `dirigent retry TICKET` to clear it",
        ),
        BlockCause::WorkerAsked { question } => reason(
            "worker_asked",
            format!("the worker needs an answer: {question}"),
            "answer in a comment on the ticket (or `dirigent retry TICKET`)",
        ),
        BlockCause::PrClosed { number } => reason(
            "pr_closed",
            format!("pull request {number} was closed without a merge"),
            "reopen it, close the ticket, or run `dirigent retry TICKET`",
        ),
        BlockCause::StoppedByOperator => {
            reason("stopped", "a person stopped it", "run `dirigent retry TICKET` to go on")
        }
        BlockCause::SetAside => reason(
            "set_aside",
            "a person set the finished work aside",
            "run `dirigent retry TICKET` to have it checked again",
        ),
        BlockCause::MergeRefused { because } => reason(
            "merge_refused",
            format!("the merge was refused: {because}"),
            "merge it yourself, or mend the cause and run `dirigent retry TICKET`",
        ),
        BlockCause::EffectRefused { effect, because } => reason(
            "effect_refused",
            if effect == "run_gate" { because.clone() } else { format!("{effect} was refused for good: {because}") },
            "mend the cause, then run `dirigent retry TICKET`",
        ),
        BlockCause::NoEnd { runs } => reason(
            "no_end",
            format!(
                "{runs} runs in a row ended well without saying that they are done, and the ticket is still active"
            ),
            "look at the work; close or move the ticket, or run `dirigent retry TICKET` for more",
        ),
        BlockCause::ReviewUnreadable { head, because } => reason(
            "review_unreadable",
            format!("the review of {} could not be read, twice: {}", head.short(), clipped(because)),
            "review it yourself and run `dirigent approve TICKET`, or mend the reviewer (review.*) and run `dirigent retry TICKET`",
        ),
    }
}

/// Describes a job that has used up its rework rounds. `resume` is the round that was one too many, with its cause.
fn out_of_rounds(limit: u32, trigger: ReworkTrigger, resume: &Work) -> Reason {
    let cause = match resume {
        Work::Rework { cause } => Some(cause),
        Work::Implement | Work::Review { .. } => None,
    };
    let summary = cause.map(|cause| format!(": {}", clipped(&cause.summary))).unwrap_or_default();
    let sentence = format!("{limit} rework rounds were not enough; the next trigger was {}{summary}", trigger.name());
    let next = match trigger {
        ReworkTrigger::GateFailed => {
            "look at the branch and at the gate, then run `dirigent retry TICKET`: the gates run first, then another set of rounds"
        }
        _ => "look at the branch yourself, then run `dirigent retry TICKET` for another set of rounds",
    };
    Reason { detail: cause.and_then(ReworkCause::shown), ..reason("rework_limit_exceeded", sentence, next) }
}

fn clipped(text: &str) -> String {
    const LONGEST: usize = 300;
    if text.chars().count() <= LONGEST { text.to_owned() } else { text.chars().take(LONGEST).chain(['…']).collect() }
}

struct Fix<'a>(&'a RunFailure);

impl std::fmt::Display for Fix<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0.fix())
    }
}

fn held(hold: &MergeHold, now: Timestamp) -> Reason {
    match hold {
        MergeHold::Queue => reason("merge_queue", "ready to merge", "nothing: it is merged next"),
        MergeHold::Forge { because, retry_at } => reason(
            "merge_held",
            format!("ready, but {because}"),
            format!("clear what is in the way; it is tried again {}", span(*retry_at, now)),
        ),
    }
}

fn released(why: &ReleaseReason) -> Reason {
    match why {
        ReleaseReason::TicketClosed { state } => {
            reason("ticket_closed", format!("the ticket is `{state}`"), "reopen the ticket to start again")
        }
        ReleaseReason::NotActive { state } => reason(
            "not_active",
            format!("the ticket is in `{state}`, which is not an active state"),
            "move the ticket to an active state",
        ),
        ReleaseReason::NotEligible { because } => {
            reason("not_eligible", because.clone(), "somebody has to change the ticket")
        }
        ReleaseReason::GivenBack => {
            reason("given_back", "a person gave it back", "run `dirigent retry TICKET` to take it up again")
        }
        ReleaseReason::Gone => reason("gone", "the tracker no longer has the ticket", "nothing"),
    }
}

impl ReworkTrigger {
    pub fn name(self) -> &'static str {
        match self {
            Self::CheckFailed => "check failed",
            Self::MergeConflict => "merge conflict",
            Self::ChangesRequested => "changes requested",
            Self::ReviewFinding => "review finding",
            Self::UnresolvedThread => "unresolved review thread",
            Self::Bot => "remarks of a bot",
            Self::TicketComment => "comment on the ticket",
            Self::ReworkState => "ticket moved to a rework state",
            Self::GateFailed => "gate failed",
            Self::Contradicted => "the facts contradict the claim",
            Self::Operator => "asked for by a person",
            Self::Landing => "preparation of the merge",
        }
    }
}

fn join<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn join_path<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}
