//! Refs, commits and what checks say about them.

use serde_json::Value;

use crate::github::deeds;
use crate::github::state::{Repo, Thing, git, shown};

use super::Context;
use super::issue::author;
use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};
use super::query::number;

pub fn reference(context: &Context, home: usize, full: &str, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Refs);
    let prefix = if full.starts_with("refs/tags/") { "refs/tags/" } else { "refs/heads/" };
    Some(match name {
        "id" => Val::leaf(format!("REF_{full}")),
        "name" => Val::leaf(full.strip_prefix(prefix).unwrap_or(full)),
        "prefix" => Val::leaf(prefix),
        "repository" => Val::node(Kind::Repository(home)),
        "target" => Val::maybe(repo.refs.get(full).map(|sha| Kind::Commit(home, sha.clone()))),
        _ => return None,
    })
}

pub fn commit(context: &Context, home: usize, sha: &str, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let show = || git::show(&world.homes[home].git, sha);
    let path = format!("/{}/commit/{sha}", repo.full_name());
    Some(match name {
        "oid" => Val::leaf(sha),
        "abbreviatedOid" => Val::leaf(&sha[..7]),
        "id" => Val::leaf(format!("C_{sha}")),
        "message" => Val::leaf(show().message),
        "messageHeadline" => Val::leaf(show().message.lines().next().unwrap_or_default()),
        "messageBody" => Val::leaf(show().message.lines().skip(2).collect::<Vec<_>>().join("\n")),
        "authoredDate" | "committedDate" => Val::leaf(shown(show().at)),
        "pushedDate" => Val::leaf(Value::Null),
        "url" | "commitUrl" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" | "commitResourcePath" => Val::leaf(path),
        "repository" => Val::node(Kind::Repository(home)),
        "statusCheckRollup" => {
            let any = deeds::checks::rollup(world.seen(home, &Thing::Checks), sha).is_some();
            Val::maybe(any.then(|| Kind::Rollup(home, sha.to_owned())))
        }
        _ => return None,
    })
}

pub fn pull_commit(home: usize, number: u64, sha: &str, name: &str) -> Option<Resolved> {
    Some(match name {
        "id" => Val::leaf(format!("PURC_{sha}")),
        "commit" => Val::node(Kind::Commit(home, sha.to_owned())),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        _ => return None,
    })
}

pub fn rollup(context: &Context, home: usize, sha: &str, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Checks);
    Some(match name {
        "id" => Val::leaf(format!("SCR_{sha}")),
        "state" => Val::leaf(deeds::checks::rollup(repo, sha).unwrap_or("EXPECTED")),
        "commit" => Val::node(Kind::Commit(home, sha.to_owned())),
        "contexts" => {
            let checks = deeds::checks::checks(repo, sha);
            let mut all: Vec<Kind> = checks.into_iter().map(|one| Kind::Check(home, one.id)).collect();
            all.extend(deeds::checks::statuses(repo, sha).into_iter().map(|one| Kind::Status(home, one.id)));
            connect("StatusCheckRollupContextConnection", all, arguments)
        }
        _ => return None,
    })
}

/// Whether the base of a pull request demands a check of this name.
fn is_required(repo: &Repo, check: &str, arguments: &Arguments) -> Resolved {
    let by_number = repo.pull(number(arguments, "pullRequestNumber"));
    let id = arguments.get("pullRequestId").and_then(Value::as_str).and_then(|id| id.strip_prefix("PR_")?.parse().ok());
    let Some(pull) = by_number.or_else(|| repo.pull_by_id(id?)) else {
        return Err("NOT_FOUND: A pull request ID or pull request number is required.".to_owned());
    };
    Val::leaf(repo.rules.demands(&pull.base_ref).checks.iter().any(|one| one == check))
}

pub fn check(context: &Context, home: usize, id: u64, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let seen = world.seen(home, &Thing::Checks);
    let check = seen.checks.iter().chain(repo.checks.iter()).find(|check| check.id == id)?;
    let path = format!("/{}/runs/{id}", repo.full_name());
    Some(match name {
        "id" => Val::leaf(format!("CR_{id}")),
        "databaseId" => database_id(id),
        "name" => Val::leaf(check.name.as_str()),
        "status" => Val::leaf(check.status.to_uppercase()),
        "conclusion" => Val::leaf(check.conclusion.as_ref().map(|word| word.to_uppercase())),
        "startedAt" => Val::leaf(shown(check.started_at)),
        "completedAt" => Val::leaf(check.completed_at.map(shown)),
        "detailsUrl" => Val::leaf(check.details_url.clone()),
        "url" | "permalink" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "title" => Val::leaf(check.title.clone()),
        "summary" => Val::leaf(check.summary.clone()),
        "text" | "externalId" => Val::leaf(Value::Null),
        "isRequired" => is_required(repo, &check.name, arguments),
        "checkSuite" => Val::node(Kind::Suite(home, check.suite)),
        "repository" => Val::node(Kind::Repository(home)),
        _ => return None,
    })
}

pub fn suite(context: &Context, home: usize, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let check = repo.checks.iter().find(|check| check.suite == id)?;
    let run = repo.runs.iter().find(|run| run.suite == id);
    let path = format!("/{}/commits/{}/checks", repo.full_name(), check.sha);
    Some(match name {
        "id" => Val::leaf(format!("CS_{id}")),
        "databaseId" => database_id(id),
        "app" => Val::node(Kind::App(check.app.clone())),
        "commit" => Val::node(Kind::Commit(home, check.sha.clone())),
        "status" => Val::leaf(run.map_or(check.status.as_str(), |run| run.status.as_str()).to_uppercase()),
        "conclusion" => {
            let word = run.map_or(&check.conclusion, |run| &run.conclusion);
            Val::leaf(word.as_ref().map(|word| word.to_uppercase()))
        }
        "createdAt" | "updatedAt" => Val::leaf(shown(check.started_at)),
        "workflowRun" => Val::maybe(run.map(|run| Kind::Run(home, run.id))),
        "repository" => Val::node(Kind::Repository(home)),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        _ => return None,
    })
}

pub fn run(context: &Context, home: usize, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let run = repo.runs.iter().find(|run| run.id == id)?;
    let path = format!("/{}/actions/runs/{id}", repo.full_name());
    Some(match name {
        "id" => Val::leaf(format!("WFR_{id}")),
        "databaseId" => database_id(id),
        "event" => Val::leaf(run.event.as_str()),
        "runNumber" => Val::leaf(1),
        "createdAt" | "updatedAt" => Val::leaf(shown(run.at)),
        "checkSuite" => Val::node(Kind::Suite(home, run.suite)),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        _ => return None,
    })
}

pub fn status(context: &Context, home: usize, id: u64, name: &str, arguments: &Arguments) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let status = repo.statuses.iter().find(|status| status.id == id)?;
    Some(match name {
        "id" => Val::leaf(format!("SC_{id}")),
        "context" => Val::leaf(status.context.as_str()),
        "state" => Val::leaf(status.state.to_uppercase()),
        "description" => Val::leaf(status.description.clone()),
        "targetUrl" => Val::leaf(status.target_url.clone()),
        "createdAt" => Val::leaf(shown(status.at)),
        "creator" => author(Some(&status.creator)),
        "commit" => Val::node(Kind::Commit(home, status.sha.clone())),
        "isRequired" => is_required(repo, &status.context, arguments),
        _ => return None,
    })
}
