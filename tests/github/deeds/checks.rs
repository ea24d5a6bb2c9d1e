//! Checks: what they say about a commit, and how Actions makes them.

use std::sync::Arc;

use crate::github::state::{Check, Job, Repo, Run, Status, World};

/// What a check of this name says about a commit: passed, failed, or not yet anything.
pub fn verdict(repo: &Repo, sha: &str, name: &str) -> Option<bool> {
    let check = repo.checks.iter().rev().find(|check| check.sha == sha && check.name == name);
    let status = repo.statuses.iter().rev().find(|status| status.sha == sha && status.context == name);
    match (check, status) {
        (Some(check), _) => check.conclusion.as_deref().map(passed),
        (None, Some(status)) if status.state == "pending" => None,
        (None, Some(status)) => Some(status.state == "success"),
        (None, None) => None,
    }
}

fn passed(conclusion: &str) -> bool {
    matches!(conclusion, "success" | "neutral" | "skipped")
}

/// The newest status of each context.
pub fn statuses<'a>(repo: &'a Repo, sha: &str) -> Vec<&'a Status> {
    let mut newest: Vec<&Status> = Vec::new();
    for status in repo.statuses.iter().filter(|status| status.sha == sha) {
        newest.retain(|other| other.context != status.context);
        newest.push(status);
    }
    newest
}

/// The newest check run of each name, and of each workflow of Actions.
pub fn checks<'a>(repo: &'a Repo, sha: &str) -> Vec<&'a Check> {
    let mut newest: Vec<&Check> = Vec::new();
    for check in repo.checks.iter().filter(|check| check.sha == sha) {
        // Jobs of different workflows may have the same name.
        let is_other_run = |other: &&Check| check.app == ACTIONS && other.suite != check.suite;
        newest.retain(|other| other.name != check.name || other.app != check.app || is_other_run(other));
        newest.push(check);
    }
    newest
}

/// All checks of a commit in one word, as GraphQL gives it; `None` if there are none.
pub fn rollup(repo: &Repo, sha: &str) -> Option<&'static str> {
    let (checks, statuses) = (checks(repo, sha), statuses(repo, sha));
    if checks.is_empty() && statuses.is_empty() {
        return None;
    }
    let failed = checks.iter().any(|check| check.conclusion.as_deref().is_some_and(|word| !passed(word)))
        || statuses.iter().any(|status| matches!(status.state.as_str(), "failure" | "error"));
    let pending = checks.iter().any(|check| check.conclusion.is_none())
        || statuses.iter().any(|status| status.state == "pending");
    Some(if failed {
        "FAILURE"
    } else if pending {
        "PENDING"
    } else {
        "SUCCESS"
    })
}

/// A workflow that is not named otherwise.
pub const WORKFLOW: &str = "CI";
const ACTIONS: &str = "github-actions";

/// A job of Actions.
pub struct NewJob<'a> {
    pub workflow: &'a str,
    pub name: &'a str,
    /// `None`: it is queued or running.
    pub conclusion: Option<&'a str>,
    pub log: &'a str,
}

/// A job of Actions on a commit, with its check run.
pub fn set_job(world: &mut World, home: usize, sha: &str, new: &NewJob) -> u64 {
    let NewJob { workflow, name, conclusion, log } = *new;
    let now = world.now();
    let status = if conclusion.is_some() { "completed" } else { "in_progress" };
    let known = world.repo(home).runs.iter().position(|run| run.sha == sha && run.workflow == workflow);
    let at = known.unwrap_or_else(|| {
        let (id, suite) = (world.next_id(), world.next_id());
        let repo = world.repo_mut(home);
        let found = repo.refs.iter().find(|(name, head)| name.starts_with("refs/heads/") && *head == sha);
        let branch = found.map(|(name, _)| name["refs/heads/".len()..].to_owned()).unwrap_or_default();
        let run = Run {
            id,
            suite,
            sha: sha.to_owned(),
            branch,
            workflow: workflow.to_owned(),
            event: "pull_request".to_owned(),
            status: "in_progress".to_owned(),
            conclusion: None,
            attempt: 1,
            jobs: Vec::new(),
            at: now,
        };
        Arc::make_mut(&mut repo.runs).push(run);
        repo.runs.len() - 1
    });
    let step = if conclusion.is_none_or(passed) { "success" } else { "failure" };
    let jobs = &world.repo(home).runs[at].jobs;
    let running = jobs.iter().find(|job| job.name == name && job.conclusion.is_none()).map(|job| job.id);
    let id = running.unwrap_or_else(|| world.next_id());
    let job = Job {
        id,
        name: name.to_owned(),
        status: status.to_owned(),
        conclusion: conclusion.map(str::to_owned),
        steps: vec![("Set up job".to_owned(), "success".to_owned()), ("Run tests".to_owned(), step.to_owned())],
        log: log.to_owned(),
        started_at: now,
        completed_at: conclusion.map(|_| now),
    };
    let files = format!("/logs/{id}");
    world.files.insert(files, log.as_bytes().to_vec());
    let repo = world.repo_mut(home);
    let run = &mut Arc::make_mut(&mut repo.runs)[at];
    run.jobs.retain(|other| other.name != name);
    run.jobs.push(job);
    settle(run);
    let (suite, run_id) = (run.suite, run.id);
    let url = format!("{}/{}/actions/runs/{run_id}/job/{id}", world.base, world.repo(home).full_name());
    let check = Check {
        id,
        suite,
        sha: sha.to_owned(),
        name: name.to_owned(),
        status: status.to_owned(),
        conclusion: conclusion.map(str::to_owned),
        app: ACTIONS.to_owned(),
        title: None,
        summary: None,
        details_url: Some(url),
        started_at: now,
        completed_at: conclusion.map(|_| now),
    };
    let checks = Arc::make_mut(&mut world.repo_mut(home).checks);
    checks.retain(|other| other.id != id);
    checks.push(check);
    id
}

fn settle(run: &mut Run) {
    let done = run.jobs.iter().all(|job| job.conclusion.is_some());
    let words = || run.jobs.iter().filter_map(|job| job.conclusion.as_deref());
    run.conclusion = done.then(|| {
        let worst =
            ["action_required", "failure", "timed_out", "cancelled"].into_iter().find(|bad| words().any(|w| w == *bad));
        worst.unwrap_or("success").to_owned()
    });
    run.status = if done { "completed" } else { "in_progress" }.to_owned();
}

/// Starts jobs again: those that failed, or all. Their old check runs stay, as they do on GitHub.
pub fn rerun(world: &mut World, home: usize, run: u64, only: Option<u64>, only_failed: bool) {
    let repo = world.repo(home);
    let at = repo.runs.iter().position(|one| one.id == run).unwrap();
    let run = &repo.runs[at];
    let again = |job: &&Job| {
        only.is_none_or(|only| only == job.id) && (!only_failed || !job.conclusion.as_deref().is_none_or(passed))
    };
    let names: Vec<String> = run.jobs.iter().filter(again).map(|job| job.name.clone()).collect();
    let (sha, workflow) = (run.sha.clone(), run.workflow.clone());
    Arc::make_mut(&mut world.repo_mut(home).runs)[at].attempt += 1;
    for name in names {
        set_job(world, home, &sha, &NewJob { workflow: &workflow, name: &name, conclusion: None, log: "" });
    }
}

/// A check run of an App that is not Actions.
pub fn set_check(world: &mut World, home: usize, sha: &str, app: &str, name: &str, conclusion: Option<&str>) -> u64 {
    let (id, suite, now) = (world.next_id(), world.next_id(), world.now());
    let check = Check {
        id,
        suite,
        sha: sha.to_owned(),
        name: name.to_owned(),
        status: if conclusion.is_some() { "completed" } else { "queued" }.to_owned(),
        conclusion: conclusion.map(str::to_owned),
        app: app.to_owned(),
        title: None,
        summary: None,
        details_url: None,
        started_at: now,
        completed_at: conclusion.map(|_| now),
    };
    Arc::make_mut(&mut world.repo_mut(home).checks).push(check);
    id
}

/// What somebody says about a commit.
pub struct NewStatus<'a> {
    pub context: &'a str,
    pub state: &'a str,
    pub description: Option<&'a str>,
    pub target_url: Option<&'a str>,
}

pub fn set_status(world: &mut World, home: usize, who: &str, sha: &str, new: &NewStatus) -> Status {
    let status = Status {
        id: world.next_id(),
        sha: sha.to_owned(),
        context: new.context.to_owned(),
        state: new.state.to_owned(),
        description: new.description.map(str::to_owned),
        target_url: new.target_url.map(str::to_owned),
        creator: who.to_owned(),
        at: world.now(),
    };
    Arc::make_mut(&mut world.repo_mut(home).statuses).push(status.clone());
    status
}
