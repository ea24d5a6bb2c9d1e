//! Pull requests and the merge queue.

use serde_json::Value;

use crate::github::deeds;
use crate::github::state::{Permission, Pull, Review, Thing, git, shown};

use super::Context;
use super::issue::{author, conversation};
use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};
use super::query::names;

/// What `mergeable` is to a reader; asking computes it.
fn mergeable(context: &Context, home: usize, number: u64) -> Option<bool> {
    deeds::pulls::mergeable(&mut context.world.borrow_mut(), home, number)
}

pub fn pull(context: &Context, home: usize, number: u64, name: &str, arguments: &Arguments) -> Option<Resolved> {
    match name {
        "mergeable" => {
            return Some(Val::leaf(match mergeable(context, home, number) {
                Some(true) => "MERGEABLE",
                Some(false) => "CONFLICTING",
                None => "UNKNOWN",
            }));
        }
        "mergeStateStatus" => {
            let known = mergeable(context, home, number);
            let state = deeds::pulls::merge_state(&context.world.borrow(), home, number, known);
            return Some(Val::leaf(state.to_uppercase()));
        }
        _ => {}
    }
    let world = context.world.borrow();
    let now = world.repo(home);
    let repo = world.seen(home, &Thing::Pull(number));
    let (issue, pull) = match (repo.issue(number), repo.pull(number)) {
        (Some(issue), Some(pull)) => (issue, pull),
        _ => (now.issue(number)?, now.pull(number)?),
    };
    let folder = &world.homes[home].git;
    let changes = || git::changes(folder, &pull.base_sha, &pull.head_sha);
    let reviews = world.seen(home, &Thing::Reviews(number)).pull(number);
    let review = |one: &&Review| Kind::Review(home, number, one.id);
    Some(match name {
        "id" => Val::leaf(format!("PR_{}", pull.id)),
        "databaseId" => database_id(pull.id),
        "fullDatabaseId" => Val::leaf(pull.id.to_string()),
        "state" => Val::leaf(match (&pull.merged, issue.open) {
            (Some(_), _) => "MERGED",
            (None, true) => "OPEN",
            (None, false) => "CLOSED",
        }),
        "isDraft" => Val::leaf(pull.draft),
        "merged" => Val::leaf(pull.merged.is_some()),
        "mergedAt" => Val::leaf(pull.merged.as_ref().map(|merged| shown(merged.at))),
        "mergedBy" => author(pull.merged.as_ref().map(|merged| merged.by.as_str())),
        "mergeCommit" => Val::maybe(pull.merged.as_ref().map(|merged| Kind::Commit(home, merged.sha.clone()))),
        "headRefName" => Val::leaf(pull.head_ref.as_str()),
        "headRefOid" => Val::leaf(pull.head_sha.as_str()),
        "headRef" => {
            let full = format!("refs/heads/{}", pull.local_head(&now.owner));
            Val::maybe(now.refs.contains_key(&full).then_some(Kind::Ref(home, full)))
        }
        "headRepository" => Val::maybe((pull.head_owner == now.owner).then_some(Kind::Repository(home))),
        "headRepositoryOwner" => Val::node(Kind::Account(pull.head_owner.clone())),
        "baseRefName" => Val::leaf(pull.base_ref.as_str()),
        "baseRefOid" => Val::leaf(pull.base_sha.as_str()),
        "baseRef" => Val::node(Kind::Ref(home, format!("refs/heads/{}", pull.base_ref))),
        "baseRepository" => Val::node(Kind::Repository(home)),
        "isCrossRepository" => Val::leaf(pull.head_owner != now.owner),
        "maintainerCanModify" => Val::leaf(false),
        "additions" => Val::leaf(changes().iter().map(|one| one.additions).sum::<usize>()),
        "deletions" => Val::leaf(changes().iter().map(|one| one.deletions).sum::<usize>()),
        "changedFiles" => Val::leaf(changes().len()),
        "permalink" => Val::leaf(format!("{}/{}/pull/{number}", world.base, now.full_name())),
        "commits" => {
            let all = git::between(folder, &pull.base_sha, &pull.head_sha);
            let kind = |sha: String| Kind::PullCommit(home, number, sha);
            connect("PullRequestCommitConnection", all.into_iter().map(kind).collect(), arguments)
        }
        "statusCheckRollup" if context.is_fine_grained() => {
            Err("FORBIDDEN: Resource not accessible by personal access token".to_owned())
        }
        "statusCheckRollup" => {
            let checks = world.seen(home, &Thing::Checks);
            let any = deeds::checks::rollup(checks, &pull.head_sha).is_some();
            Val::maybe(any.then(|| Kind::Rollup(home, pull.head_sha.clone())))
        }
        "reviewDecision" => Val::leaf(decision(now, reviews.unwrap_or(pull))),
        "reviews" => {
            let states = names(arguments, "states");
            let by = arguments.get("author").and_then(Value::as_str);
            let fits = |one: &&Review| {
                states.as_ref().is_none_or(|states| states.contains(&one.state))
                    && by.is_none_or(|by| one.author.as_deref() == Some(by))
                    && (one.state != "PENDING" || one.author.as_ref() == Some(&context.login))
            };
            let all = reviews.map(|pull| pull.reviews.iter().filter(fits).map(|one| review(&one)).collect());
            connect("PullRequestReviewConnection", all.unwrap_or_default(), arguments)
        }
        "latestOpinionatedReviews" | "latestReviews" => {
            let all = reviews.map(|pull| pull.verdicts().iter().map(review).collect());
            connect("PullRequestReviewConnection", all.unwrap_or_default(), arguments)
        }
        "reviewThreads" => {
            let threads = reviews.map(|pull| pull.threads.as_slice()).unwrap_or_default();
            let all = threads.iter().map(|one| Kind::Thread(home, number, one.id)).collect();
            connect("PullRequestReviewThreadConnection", all, arguments)
        }
        "reviewRequests" => {
            let all = pull.reviewers.iter().map(|login| Kind::ReviewRequest(home, number, login.clone())).collect();
            connect("ReviewRequestConnection", all, arguments)
        }
        "closingIssuesReferences" => {
            let body = issue.body.as_deref().unwrap_or_default();
            let all = deeds::landing::closing(body).into_iter().filter(|one| now.issue(*one).is_some());
            connect("IssueConnection", all.map(|one| Kind::Issue(home, one)).collect(), arguments)
        }
        "autoMergeRequest" => Val::maybe(pull.auto_merge.as_ref().map(|_| Kind::AutoMerge(home, number))),
        "isMergeQueueEnabled" => Val::leaf(now.rules.demands(&pull.base_ref).merge_queue),
        "isInMergeQueue" => Val::leaf(pull.queued.is_some()),
        "mergeQueueEntry" => Val::maybe(pull.queued.as_ref().map(|_| Kind::QueueEntry(home, number))),
        "mergeQueue" => {
            let has = now.rules.demands(&pull.base_ref).merge_queue;
            Val::maybe(has.then(|| Kind::Queue(home, pull.base_ref.clone())))
        }
        "viewerCanUpdateBranch" | "viewerCanEnableAutoMerge" => {
            Val::leaf(now.permission(&context.login) >= Permission::Write)
        }
        "totalCommentsCount" => Val::leaf(issue.comments.len()),
        _ => return conversation(context, &world, home, repo, issue, name, arguments),
    })
}

/// Null where the branch demands no review.
fn decision(repo: &crate::github::state::Repo, pull: &Pull) -> Value {
    let demands = repo.rules.demands(&pull.base_ref);
    let verdicts = pull.verdicts();
    let approvals = verdicts.iter().filter(|one| one.state == "APPROVED").count() as u64;
    if demands.reviews == 0 {
        Value::Null
    } else if verdicts.iter().any(|one| one.state == "CHANGES_REQUESTED") {
        "CHANGES_REQUESTED".into()
    } else if approvals >= demands.reviews {
        "APPROVED".into()
    } else {
        "REVIEW_REQUIRED".into()
    }
}

pub fn auto_merge(context: &Context, home: usize, number: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let auto = world.repo(home).pull(number)?.auto_merge.as_ref()?;
    Some(match name {
        "enabledAt" => Val::leaf(shown(auto.at)),
        "enabledBy" => author(Some(&auto.by)),
        "mergeMethod" => Val::leaf(auto.method.as_str()),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "commitHeadline" | "commitBody" | "authorEmail" => Val::leaf(Value::Null),
        _ => return None,
    })
}

pub fn queue(context: &Context, home: usize, branch: &str, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    Some(match name {
        "id" => Val::leaf(format!("MQ_{}", repo.id)),
        "url" => Val::leaf(format!("{}/{}/queue/{branch}", world.base, repo.full_name())),
        "resourcePath" => Val::leaf(format!("/{}/queue/{branch}", repo.full_name())),
        "repository" => Val::node(Kind::Repository(home)),
        "nextEntryEstimatedTimeToMerge" => Val::leaf(Value::Null),
        "entries" => {
            let mut all: Vec<&Pull> = repo
                .pulls
                .values()
                .map(AsRef::as_ref)
                .filter(|one| one.queued.is_some() && one.base_ref == branch)
                .collect();
            all.sort_by_key(|one| one.queued.as_ref().map(|queued| queued.id));
            let all = all.into_iter().map(|one| Kind::QueueEntry(home, one.number)).collect();
            connect("MergeQueueEntryConnection", all, arguments)
        }
        _ => return None,
    })
}

pub fn queue_entry(context: &Context, home: usize, number: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let pull = repo.pull(number)?;
    let queued = pull.queued.as_ref()?;
    let before = |other: &&std::sync::Arc<Pull>| other.queued.as_ref().is_some_and(|one| one.id < queued.id);
    Some(match name {
        "id" => Val::leaf(format!("MQE_{}", queued.id)),
        "enqueuedAt" => Val::leaf(shown(queued.at)),
        "enqueuer" => author(Some(&queued.by)),
        "state" => Val::leaf(queued.state.as_str()),
        "position" => Val::leaf(repo.pulls.values().filter(before).count() + 1),
        "headCommit" => Val::node(Kind::Commit(home, queued.head.clone())),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "mergeQueue" => Val::node(Kind::Queue(home, pull.base_ref.clone())),
        "jump" | "solo" => Val::leaf(false),
        "estimatedTimeToMerge" => Val::leaf(Value::Null),
        _ => return None,
    })
}
