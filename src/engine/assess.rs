//! What a settled look at the pull request means. The order of the checks is the rule: work comes before waiting, waiting before people,
//! and people before merging.

use crate::config::policy::{ForgeKind, Policy};
use crate::domain::basis::Basis;
use crate::domain::evidence::{Evidence, EvidenceKind, Verification};
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::job::{CheckWait, ChecksSummary, HumanWait, Job, PrFacts, ReworkCause, ReworkTrigger};
use crate::domain::pr::{Check, CheckStatus, Mergeability, PullRequest};
use crate::domain::time::Timestamp;
use crate::domain::words::each_once;

use super::delivery::conflict;
use super::remarks::wanted_rework;
use super::reviewing::{self, ReviewState};

#[derive(Debug, Clone, PartialEq)]
pub enum Assessment {
    Rework(ReworkCause),
    Checks(CheckWait),
    Human(HumanWait),
    /// The base has to be merged into the branch first.
    NeedsUpdate {
        number: PrNumber,
        head: CommitId,
    },
    /// A run has to prepare the head for its merge first.
    NeedsPreparation {
        head: CommitId,
    },
    NeedsReview {
        head: CommitId,
    },
    /// The pull request is a draft that is to be marked ready, because its checks have passed.
    NeedsReady {
        number: PrNumber,
        head: CommitId,
    },
    Ready {
        head: CommitId,
    },
}

/// Returns the names of the required checks, or `None` if the forge requires none or the list could not be read.
fn required(pr: &PullRequest) -> Option<&[String]> {
    pr.required_checks.as_deref().filter(|names| !names.is_empty())
}

/// Folds the checks that count into one summary. If the forge requires checks, only those count. Otherwise all of them do, and a check that
/// was seen on another head is still awaited. A neutral check counts neither for nor against.
pub fn fold_checks(pr: &PullRequest, known: &[String]) -> ChecksSummary {
    let Some(checks) = &pr.checks else { return ChecksSummary::Unknown };
    let named = |name: &String| checks.iter().any(|check| check.name == *name);
    let (counting, awaited): (Vec<&Check>, bool) = match required(pr) {
        Some(names) => {
            let counting = checks.iter().filter(|check| names.contains(&check.name)).collect();
            (counting, !names.iter().all(named))
        }
        None => (checks.iter().collect(), !known.iter().all(named)),
    };
    if counting.iter().any(|check| check.status == CheckStatus::Failed) {
        return ChecksSummary::Failed;
    }
    let pending = awaited || counting.iter().any(|check| check.status == CheckStatus::Pending);
    match (counting.is_empty() && !awaited, pending) {
        (true, _) => ChecksSummary::NoneYet,
        (false, true) => ChecksSummary::Pending,
        (false, false) => ChecksSummary::Passed,
    }
}

/// Returns what the job remembers of this look. `shown` is the basis of the look; it and the current time are noted for a head that is new.
pub fn remember(
    old: Option<&PrFacts>,
    pr: &PullRequest,
    shown: Option<Basis>,
    policy: &Policy,
    now: Timestamp,
) -> PrFacts {
    let old = old.filter(|facts| facts.number == pr.number);
    let same_head = old.filter(|facts| facts.head == pr.head);
    let mut known_checks = old.map(|facts| facts.known_checks.clone()).unwrap_or_default();
    let checks = fold_checks(pr, &known_checks);
    // The local forge's checks are the runner's own gates and known at once, so none is awaited.
    let elsewhere = policy.pr.forge != ForgeKind::Local;
    for check in pr.checks.iter().flatten().filter(|_| elsewhere) {
        if !known_checks.contains(&check.name) {
            known_checks.push(check.name.clone());
        }
    }
    PrFacts {
        number: pr.number,
        url: pr.url.clone(),
        state: pr.state.clone(),
        head: pr.head.clone(),
        base: pr.base.clone(),
        base_branch: pr.base_branch.clone(),
        labels: crate::domain::ticket::normalise_labels(&pr.labels),
        mergeability: pr.mergeability.clone(),
        checks,
        known_checks,
        head_since: same_head.map_or(now, |facts| facts.head_since),
        head_shown: same_head.and_then(|facts| facts.head_shown).or(shown),
        seen_unapproved: same_head.is_some_and(|facts| facts.seen_unapproved),
        write: old.and_then(|facts| facts.write.clone()),
        conditions: old.map(|facts| facts.conditions.clone()).unwrap_or_default(),
    }
}

/// Decides what an open pull request needs.
pub fn assess(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Assessment {
    let head = pr.head.clone();
    if pr.base_branch != policy.pr.base_branch {
        return Assessment::Human(HumanWait::OtherBase { head, base: pr.base_branch.clone() });
    }
    let known = job.delivery.pr.as_ref().map(|facts| facts.known_checks.as_slice()).unwrap_or_default();
    let checks = fold_checks(pr, known);
    if let Some(cause) = what_needs_work(job, pr, checks, policy, now) {
        return Assessment::Rework(cause);
    }
    if !pr.is_complete() {
        return Assessment::Checks(CheckWait::Mergeability { head });
    }
    // Bound to the head: a commit after the approval needs a new one.
    let approved = job.people.is_approved(&pr.head);
    if policy.merge.require_green_checks
        && let Some(wait) = awaited_checks(job, pr, checks, approved, policy, now)
    {
        return wait;
    }
    if pr.mergeability == Mergeability::Unknown {
        return Assessment::Checks(CheckWait::Mergeability { head });
    }
    // Before the review and the approval, so that the head that people read is the one that is merged.
    if policy.merge.prepare && policy.merge.auto && job.delivery.prepared_head.as_ref() != Some(&head) {
        return Assessment::NeedsPreparation { head };
    }
    match reviewing::state(job, &head, policy) {
        ReviewState::Done => {}
        ReviewState::Needed => return Assessment::NeedsReview { head },
        ReviewState::UsedUp => {
            return Assessment::Human(HumanWait::ReviewLimit { head, limit: policy.review.max_passes });
        }
    }
    if pr.draft && policy.pr.ready_when_green && checks == ChecksSummary::Passed {
        return Assessment::NeedsReady { number: pr.number, head };
    }
    if pr.draft {
        return Assessment::Human(HumanWait::Draft);
    }
    let by = each_once(job.people.holding().map(|remark| remark.author.clone()));
    if !by.is_empty() {
        return Assessment::Human(HumanWait::Remarks { head, by });
    }
    if policy.merge.require_human_approval && !approved {
        return Assessment::Human(HumanWait::Approval { head });
    }
    let receipt = job.evidence.receipt.as_ref().filter(|receipt| receipt.head.as_ref() == Some(&head));
    // Not merged even with an approval. Such a head comes back here if the ticket was taken away before the rework had begun.
    if let Some(receipt) = receipt.filter(|receipt| receipt.verification == Verification::Contradicted) {
        let note = |text: &String| Evidence { kind: EvidenceKind::Note { text: text.clone() }, timestamp: now };
        return Assessment::Rework(ReworkCause {
            trigger: ReworkTrigger::Contradicted,
            summary: "what the worker claimed about it is contradicted by the facts".to_owned(),
            evidence: receipt.facts.iter().map(note).collect(),
        });
    }
    // The workflow asks for a guard that this version does not have, so nothing is merged.
    if !policy.merge.guards_not_in_force.is_empty() {
        let because =
            format!("the workflow asks for {}, which is not in force", policy.merge.guards_not_in_force.join(", "));
        return Assessment::Human(HumanWait::Rule { head, because });
    }
    match &pr.mergeability {
        Mergeability::Refused { because } => Assessment::Human(HumanWait::Rule { head, because: because.clone() }),
        // Checked last, so that a branch that waits for people is not updated again and again.
        Mergeability::Behind => Assessment::NeedsUpdate { number: pr.number, head },
        Mergeability::Clean => Assessment::Ready { head },
        Mergeability::Unknown | Mergeability::Conflicting { .. } => {
            Assessment::Checks(CheckWait::Mergeability { head })
        }
    }
}

/// Returns one rework for everything that needs work: a conflict, failed checks and open remarks together.
fn what_needs_work(
    job: &Job,
    pr: &PullRequest,
    checks: ChecksSummary,
    policy: &Policy,
    now: Timestamp,
) -> Option<ReworkCause> {
    let mut causes = Vec::new();
    if let Mergeability::Conflicting { files } = &pr.mergeability {
        causes.push(conflict(files, now));
    }
    if checks == ChecksSummary::Failed && policy.merge.require_green_checks {
        causes.push(failed_checks(pr, now));
    }
    causes.extend(wanted_rework(job, now));
    let mut causes = causes.into_iter();
    let mut first = causes.next()?;
    for other in causes {
        first.summary = format!("{}; {}", first.summary, other.summary);
        first.evidence.extend(other.evidence);
    }
    Some(first)
}

/// Returns the ids of the failed checks that are to be run again before an agent is paid to fix them. `None` if something else needs work
/// too, or if the head has used up its reruns.
pub fn to_run_again(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Option<Vec<String>> {
    let known = job.delivery.pr.as_ref().map(|facts| facts.known_checks.as_slice()).unwrap_or_default();
    let red = fold_checks(pr, known) == ChecksSummary::Failed && policy.merge.require_green_checks;
    let else_well = !matches!(pr.mergeability, Mergeability::Conflicting { .. }) && wanted_rework(job, now).is_none();
    if !red || !else_well || job.delivery.reruns >= policy.merge.rerun_failed_checks {
        return None;
    }
    let counts = |check: &&Check| required(pr).is_none_or(|names| names.contains(&check.name));
    let failed = pr.checks.iter().flatten().filter(counts).filter(|check| check.status == CheckStatus::Failed);
    Some(failed.map(|check| check.id.clone()).collect())
}

pub fn awaited_checks(
    job: &Job,
    pr: &PullRequest,
    checks: ChecksSummary,
    approved: bool,
    policy: &Policy,
    now: Timestamp,
) -> Option<Assessment> {
    let head = pr.head.clone();
    let since = job.delivery.pr.as_ref().map_or(now, |facts| facts.head_since);
    // Without a list of required checks, a fast check must not pass for one that has not registered yet.
    let in_grace = now.since(since) < policy.merge.checks_grace && required(pr).is_none();
    match checks {
        ChecksSummary::Unknown | ChecksSummary::Pending => Some(Assessment::Checks(CheckWait::Forge { head })),
        ChecksSummary::Passed | ChecksSummary::NoneYet if in_grace => {
            Some(Assessment::Checks(CheckWait::Forge { head }))
        }
        ChecksSummary::NoneYet if !policy.merge.no_checks_pass && !approved => {
            Some(Assessment::Human(HumanWait::NoChecks { head }))
        }
        ChecksSummary::NoneYet | ChecksSummary::Passed | ChecksSummary::Failed => None,
    }
}

fn failed_checks(pr: &PullRequest, now: Timestamp) -> ReworkCause {
    let counts = |check: &&Check| required(pr).is_none_or(|names| names.contains(&check.name));
    let failed: Vec<&Check> =
        pr.checks.iter().flatten().filter(counts).filter(|check| check.status == CheckStatus::Failed).collect();
    ReworkCause {
        trigger: ReworkTrigger::CheckFailed,
        summary: format!("failed: {}", failed.iter().map(|check| check.name.as_str()).collect::<Vec<_>>().join(", ")),
        evidence: failed
            .iter()
            .map(|check| Evidence {
                kind: EvidenceKind::Command {
                    command: check.name.clone(),
                    output: check.log_tail.clone().unwrap_or_default(),
                    exit_code: 1,
                },
                timestamp: now,
            })
            .collect(),
    }
}
