//! What a look at the pull request means. The order is the rule: what needs work comes before what needs waiting, and
//! waiting before merging.

use crate::config::policy::{ForgeKind, Policy};
use crate::domain::comment::Author;
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::ids::{CommentId, CommitId, PrNumber};
use crate::domain::job::{CheckWait, ChecksSummary, HumanWait, Job, PrFacts, ReworkCause, ReworkTrigger};
use crate::domain::pr::{CheckStatus, Mergeability, PullRequest, Review, Verdict};
use crate::domain::time::Timestamp;

use super::delivery::conflict;

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
    NeedsReview {
        head: CommitId,
    },
    Ready {
        head: CommitId,
    },
}

/// Required checks, folded. Optional ones never block, a neutral one is neither for nor against.
pub fn fold_checks(pr: &PullRequest) -> ChecksSummary {
    let mut any = false;
    let mut pending = false;
    for check in pr.checks.iter().filter(|check| check.blocks()) {
        match check.status {
            CheckStatus::Failed => return ChecksSummary::Failed,
            CheckStatus::Pending => pending = true,
            CheckStatus::Passed | CheckStatus::Neutral => {}
        }
        any = true;
    }
    match (any, pending) {
        (false, _) => ChecksSummary::NoneYet,
        (true, true) => ChecksSummary::Pending,
        (true, false) => ChecksSummary::Passed,
    }
}

/// What the job remembers of this look. The head's age starts anew when the head moves.
pub fn remember(old: Option<&PrFacts>, pr: &PullRequest, now: Timestamp) -> PrFacts {
    let old = old.filter(|facts| facts.number == pr.number);
    let same_head = old.filter(|facts| facts.head == pr.head);
    PrFacts {
        number: pr.number,
        url: pr.url.clone(),
        state: pr.state.clone(),
        head: pr.head.clone(),
        base: pr.base.clone(),
        labels: crate::domain::ticket::normalise_labels(&pr.labels),
        mergeability: pr.mergeability.clone(),
        checks: fold_checks(pr),
        head_since: same_head.map(|facts| facts.head_since).or(pr.pushed_at).unwrap_or(now),
        review_cursor: old.and_then(|facts| facts.review_cursor.clone()),
        reopened_at: old.and_then(|facts| facts.reopened_at),
        replaced: old.is_some_and(|facts| facts.replaced),
    }
}

/// Decides what an open pull request needs. May move the job's review cursor past what it acts on.
pub fn assess(job: &mut Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Assessment {
    let head = pr.head.clone();
    if let Mergeability::Conflicting { files } = &pr.mergeability {
        return Assessment::Rework(conflict(files, now));
    }
    let checks = fold_checks(pr);
    if checks == ChecksSummary::Failed && policy.merge.require_green_checks {
        return Assessment::Rework(failed_checks(pr, now));
    }
    if let Some(cause) = requested_changes(job, pr, policy, now) {
        return Assessment::Rework(cause);
    }
    let approved = is_approved(job, pr, policy);
    if policy.merge.require_green_checks {
        match checks {
            ChecksSummary::Pending => return Assessment::Checks(CheckWait::Forge { head }),
            ChecksSummary::NoneYet => {
                let since = job.pr.as_ref().map_or(now, |facts| facts.head_since);
                // A forge of our own knows its checks at once; elsewhere CI may still register some.
                let settled = policy.pr.forge == ForgeKind::Local && policy.merge.no_checks_pass;
                if now.since(since) < policy.merge.checks_grace && !settled {
                    return Assessment::Checks(CheckWait::Forge { head });
                }
                if !policy.merge.no_checks_pass && !approved {
                    return Assessment::Human(HumanWait::NoChecks { head });
                }
            }
            ChecksSummary::Passed | ChecksSummary::Failed => {}
        }
    }
    match &pr.mergeability {
        Mergeability::Unknown => return Assessment::Checks(CheckWait::Mergeability { head }),
        Mergeability::Behind => return Assessment::NeedsUpdate { number: pr.number, head },
        Mergeability::Clean | Mergeability::Refused { .. } | Mergeability::Conflicting { .. } => {}
    }
    if policy.review.enabled && job.reviewed_head.as_ref() != Some(&head) {
        return Assessment::NeedsReview { head };
    }
    if pr.draft {
        return Assessment::Human(HumanWait::Draft);
    }
    if (policy.merge.require_human_approval || is_rejected(pr, policy)) && !approved {
        return Assessment::Human(HumanWait::Approval { head });
    }
    Assessment::Ready { head }
}

fn failed_checks(pr: &PullRequest, now: Timestamp) -> ReworkCause {
    let failed: Vec<_> =
        pr.checks.iter().filter(|check| check.blocks() && check.status == CheckStatus::Failed).collect();
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

pub fn is_trusted(author: &Author, policy: &Policy) -> bool {
    !author.ourselves && policy.tracker.trusted.contains(&author.trust)
}

/// The last word of each trusted reviewer; and open threads. Each is acted on once: the cursor remembers.
fn requested_changes(job: &mut Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Option<ReworkCause> {
    let cursor = job.pr.as_ref().and_then(|facts| facts.review_cursor.clone());
    let mut news: Vec<(CommentId, Option<Timestamp>, ReworkTrigger, String)> = Vec::new();
    for review in last_reviews(pr, policy) {
        if review.verdict == Verdict::ChangesRequested && review.head.as_ref().is_none_or(|head| *head == pr.head) {
            let text = format!("{} requests changes: {}", review.author.name, review.body);
            news.push((review.id.clone(), review.submitted_at, ReworkTrigger::ChangesRequested, text));
        }
    }
    for thread in pr.threads.iter().filter(|thread| !thread.resolved) {
        let Some(last) = thread.comments.iter().rev().find(|comment| is_trusted(&comment.author, policy)) else {
            continue;
        };
        // A thread whose last word is ours was answered.
        if thread.comments.last().is_some_and(|comment| comment.author.ourselves) {
            continue;
        }
        let place = match (&thread.path, thread.line) {
            (Some(path), Some(line)) => format!("{path}:{line}: "),
            (Some(path), None) => format!("{path}: "),
            _ => String::new(),
        };
        let text = format!("{place}{}: {}", last.author.name, last.body);
        news.push((last.id.clone(), last.created_at, ReworkTrigger::UnresolvedThread, text));
    }
    // Ids alone do not order; what was acted on is everything up to the remembered set.
    let acted_on: Vec<&str> = cursor.as_ref().map(|c| c.as_str().split(' ').collect()).unwrap_or_default();
    let fresh: Vec<_> = news.iter().filter(|(id, ..)| !acted_on.contains(&id.as_str())).collect();
    let trigger = fresh.first()?.2;
    let cause = ReworkCause {
        trigger,
        summary: format!("{} remark(s) by reviewers", fresh.len()),
        evidence: fresh
            .iter()
            .map(|(_, at, _, text)| Evidence {
                kind: EvidenceKind::Note { text: text.clone() },
                timestamp: at.unwrap_or(now),
            })
            .collect(),
    };
    let remembered = news.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>().join(" ");
    if let Some(facts) = &mut job.pr {
        facts.review_cursor = Some(CommentId::new(remembered));
    }
    Some(cause)
}

fn last_reviews<'a>(pr: &'a PullRequest, policy: &Policy) -> Vec<&'a Review> {
    let mut last: Vec<&Review> = Vec::new();
    for review in pr.reviews.iter().filter(|review| is_trusted(&review.author, policy)) {
        // A mere comment does not take an earlier verdict back.
        if review.verdict == Verdict::Commented {
            continue;
        }
        last.retain(|earlier| earlier.author.name != review.author.name);
        last.push(review);
    }
    last
}

/// Bound to the head: a commit after the approval needs a new one.
fn is_approved(job: &Job, pr: &PullRequest, policy: &Policy) -> bool {
    if job.approved_head.as_ref() == Some(&pr.head) {
        return true;
    }
    let reviews = last_reviews(pr, policy);
    let rejected = reviews.iter().any(|review| review.verdict == Verdict::ChangesRequested);
    // Whoever asked for changes has the last word, unless an operator approved.
    !rejected
        && reviews.iter().any(|review| review.verdict == Verdict::Approved && review.head.as_ref() == Some(&pr.head))
}

/// Somebody whose words count asked for changes of this very head.
fn is_rejected(pr: &PullRequest, policy: &Policy) -> bool {
    last_reviews(pr, policy).iter().any(|review| {
        review.verdict == Verdict::ChangesRequested && review.head.as_ref().is_none_or(|head| *head == pr.head)
    })
}
