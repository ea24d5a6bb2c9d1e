//! The merge conditions and their status, for people. What follows from them is decided in `assess`; a test checks that the two agree.

use super::assess;
use super::hindrance;
use super::reviewing::{self, ReviewState};
use super::state::{State, job_switch};
use crate::config::policy::Policy;
use crate::domain::condition::{Condition, ConditionName, ConditionStatus};
use crate::domain::evidence::Verification;
use crate::domain::job::{ChecksSummary, Job, Stage};
use crate::domain::pr::{Mergeability, PullRequest};
use crate::domain::time::Timestamp;
use crate::domain::words::each_once;

use ConditionStatus::{Fail, Pass, Pending};

type Standing = (ConditionStatus, Option<String>);

fn when(holds: bool, otherwise: ConditionStatus, detail: impl Into<String>) -> Standing {
    if holds { (Pass, None) } else { (otherwise, Some(detail.into())) }
}

/// Returns the conditions that a settled look shows. `since` is kept for a condition whose status has not changed.
pub fn of_look(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Vec<Condition> {
    let receipt = job.evidence.receipt.as_ref().filter(|receipt| receipt.head.as_ref() == Some(&pr.head));
    let contradicted = receipt.is_some_and(|receipt| receipt.verification == Verification::Contradicted);
    let guards = &policy.merge.guards_not_in_force;
    let mut found = vec![
        (
            ConditionName::Base,
            when(pr.base_branch == policy.pr.base_branch, Fail, format!("its base is `{}`", pr.base_branch)),
        ),
        (ConditionName::Look, when(pr.is_complete(), Pending, "the forge has not told everything")),
        (ConditionName::Checks, checks(job, pr, policy, now)),
        (ConditionName::Mergeable, mergeable(&pr.mergeability)),
    ];
    if policy.merge.prepare && policy.merge.auto {
        let prepared = job.delivery.prepared_head.as_ref() == Some(&pr.head);
        found.push((ConditionName::Prepared, when(prepared, Pending, "a run prepares it first")));
    }
    if policy.review.enabled {
        found.push((ConditionName::Review, review(job, pr, policy)));
    }
    let draft = if policy.pr.ready_when_green { Pending } else { Fail };
    found.push((ConditionName::Draft, when(!pr.draft, draft, "the pull request is a draft")));
    let holding = each_once(job.people.holding().map(|remark| remark.author.as_str()));
    let words = format!("words of {} stand against it", holding.join(", "));
    found.push((ConditionName::Remarks, when(holding.is_empty(), Fail, words)));
    if policy.merge.require_human_approval {
        let approved = job.people.is_approved(&pr.head);
        found.push((ConditionName::Approval, when(approved, Pending, "nobody has approved this head")));
    }
    found.push((ConditionName::Claims, when(!contradicted, Fail, "the facts contradict what the worker claimed")));
    if !guards.is_empty() {
        found.push((ConditionName::Guards, when(false, Fail, format!("{} is not in force", guards.join(", ")))));
    }
    let known = job.delivery.pr.as_ref().map(|facts| facts.conditions.as_slice()).unwrap_or_default();
    found.into_iter().map(|(name, standing)| dated(name, standing, known, now)).collect()
}

fn dated(name: ConditionName, (status, detail): Standing, known: &[Condition], now: Timestamp) -> Condition {
    let before = known.iter().find(|before| before.name == name && before.status == status);
    Condition { name, status, since: before.map_or(now, |before| before.since), detail }
}

fn checks(job: &Job, pr: &PullRequest, policy: &Policy, now: Timestamp) -> Standing {
    if !policy.merge.require_green_checks {
        return (Pass, Some("not required".to_owned()));
    }
    let known = job.delivery.pr.as_ref().map(|facts| facts.known_checks.as_slice()).unwrap_or_default();
    let folded = assess::fold_checks(pr, known);
    let approved = job.people.is_approved(&pr.head);
    match (folded, assess::awaited_checks(job, pr, folded, approved, policy, now)) {
        (ChecksSummary::Failed, _) => (Fail, Some("a check has failed".to_owned())),
        (_, None) => (Pass, None),
        (_, Some(assess::Assessment::Human(_))) => (Fail, Some("nothing checks it".to_owned())),
        (summary, Some(_)) => (Pending, Some(format!("checks: {}", summary.name()))),
    }
}

fn mergeable(mergeability: &Mergeability) -> Standing {
    match mergeability {
        Mergeability::Clean => (Pass, None),
        Mergeability::Unknown => (Pending, Some("the forge works it out".to_owned())),
        Mergeability::Behind => (Pending, Some("the base has gone on; the branch is updated in its turn".to_owned())),
        Mergeability::Conflicting { files } => (Fail, Some(format!("conflicts in {}", files.join(", ")))),
        Mergeability::Refused { because } => (Fail, Some(because.clone())),
    }
}

fn review(job: &Job, pr: &PullRequest, policy: &Policy) -> Standing {
    match reviewing::state(job, &pr.head, policy) {
        ReviewState::Done => (Pass, None),
        ReviewState::Needed if job.delivery.reviews.is_given_up(&pr.head) => {
            (Fail, Some("its review could not be read".to_owned()))
        }
        ReviewState::Needed => (Pending, Some("this head is not reviewed".to_owned())),
        ReviewState::UsedUp => (Fail, Some("not reviewed, and the reviews of this ticket are used up".to_owned())),
    }
}

/// Returns all conditions, including those of the moment: whether merging is on, switches, and whose turn it is.
pub fn of_job(state: &State, policy: &Policy, job: &Job) -> Vec<Condition> {
    let Some(facts) = job.delivery.pr.as_ref().filter(|_| !job.stage.phase().is_terminal()) else { return Vec::new() };
    let mut all = facts.conditions.clone();
    let since = job.stage.since();
    let mut add = |name, (status, detail): Standing| all.push(Condition { name, status, since, detail });
    let off = hindrance::of_merges(state, policy);
    let why = match policy.merge.auto {
        true => "rollout.mode does not allow it, or a switch is on",
        false => "merge.mode is disabled",
    };
    add(ConditionName::Merging, when(off.is_none(), Fail, why));
    let switch = job_switch(job, policy.rollout.kill_switch_label.as_deref());
    add(ConditionName::Switch, when(switch.is_none(), Fail, switch.map_or("", |source| source.name())));
    let has_turn = matches!(job.stage, Stage::ReadyToMerge { turn: Some(_), .. } | Stage::Merging { .. });
    add(ConditionName::Turn, when(has_turn, Pending, "it is not first in line"));
    all
}
