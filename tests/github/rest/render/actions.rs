//! Check runs, statuses, Actions runs and their jobs.

use serde_json::{Value, json};

use crate::github::state::{Check, Job, Repo, Run, Status, World, git};

use super::{app, commit, pull, repo as repository, time, time_or_null, user};

fn pulls_of(world: &World, repo: &Repo, sha: &str) -> Vec<Value> {
    let open = |number: &u64| repo.issue(*number).is_some_and(|issue| issue.open);
    repo.pulls
        .values()
        .filter(|pull| pull.head_sha == sha && open(&pull.number))
        .map(|one| pull::minimal(world, repo, one))
        .collect()
}

pub fn check(world: &World, repo: &Repo, check: &Check) -> Value {
    let url = format!("{}/check-runs/{}", repository::api(world, repo), check.id);
    json!({
        "id": check.id,
        "head_sha": check.sha,
        "node_id": format!("CR_{}", check.id),
        "external_id": "",
        "url": url,
        "html_url": format!("{}/runs/{}", repository::html(world, repo), check.id),
        "details_url": check.details_url,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": time(check.started_at),
        "completed_at": time_or_null(check.completed_at),
        "output": {
            "title": check.title, "summary": check.summary, "text": null, "annotations_count": 0,
            "annotations_url": format!("{url}/annotations"),
        },
        "name": check.name,
        "check_suite": {"id": check.suite},
        "app": app::integration(world, &check.app),
        "pull_requests": pulls_of(world, repo, &check.sha),
    })
}

pub fn suite(world: &World, home: usize, repo: &Repo, run: &Run) -> Value {
    let api = repository::api(world, repo);
    json!({
        "id": run.suite,
        "node_id": format!("CS_{}", run.suite),
        "head_branch": run.branch,
        "head_sha": run.sha,
        "status": run.status,
        "conclusion": run.conclusion,
        "url": format!("{api}/check-suites/{}", run.suite),
        "before": null,
        "after": run.sha,
        "pull_requests": pulls_of(world, repo, &run.sha),
        "app": app::integration(world, "github-actions"),
        "repository": repository::minimal(world, repo),
        "created_at": time(run.at),
        "updated_at": time(run.at),
        "head_commit": commit::simple(&git::show(&world.homes[home].git, &run.sha)),
        "latest_check_runs_count": run.jobs.len(),
        "check_runs_url": format!("{api}/check-suites/{}/check-runs", run.suite),
    })
}

pub fn status(world: &World, repo: &Repo, status: &Status) -> Value {
    json!({
        "url": format!("{}/statuses/{}", repository::api(world, repo), status.sha),
        "avatar_url": null,
        "id": status.id,
        "node_id": format!("SC_{}", status.id),
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "context": status.context,
        "created_at": time(status.at),
        "updated_at": time(status.at),
        "creator": user::simple(world, &status.creator),
    })
}

pub fn run(world: &World, home: usize, repo: &Repo, run: &Run) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/actions/runs/{}", run.id);
    let workflow = 5001 + run.workflow.bytes().map(u64::from).sum::<u64>();
    json!({
        "id": run.id,
        "name": run.workflow,
        "node_id": format!("WFR_{}", run.id),
        "check_suite_id": run.suite,
        "check_suite_node_id": format!("CS_{}", run.suite),
        "head_branch": run.branch,
        "head_sha": run.sha,
        "path": ".github/workflows/ci.yml",
        "run_number": 1,
        "run_attempt": run.attempt,
        "event": run.event,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": workflow,
        "url": url,
        "html_url": format!("{}/actions/runs/{}", repository::html(world, repo), run.id),
        "pull_requests": pulls_of(world, repo, &run.sha),
        "created_at": time(run.at),
        "updated_at": time(run.at),
        "run_started_at": time(run.at),
        "jobs_url": format!("{url}/jobs"),
        "logs_url": format!("{url}/logs"),
        "check_suite_url": format!("{api}/check-suites/{}", run.suite),
        "artifacts_url": format!("{url}/artifacts"),
        "cancel_url": format!("{url}/cancel"),
        "rerun_url": format!("{url}/rerun"),
        "workflow_url": format!("{api}/actions/workflows/{workflow}"),
        "head_commit": commit::simple(&git::show(&world.homes[home].git, &run.sha)),
        "repository": repository::minimal(world, repo),
        "head_repository": repository::minimal(world, repo),
        "display_title": run.workflow,
    })
}

pub fn job(world: &World, repo: &Repo, run: &Run, job: &Job) -> Value {
    let api = repository::api(world, repo);
    let steps: Vec<Value> = job
        .steps
        .iter()
        .enumerate()
        .map(|(index, (name, conclusion))| {
            let done = job.conclusion.is_some();
            let conclusion = done.then_some(conclusion);
            let status = if done { "completed" } else { "in_progress" };
            json!({"name": name, "number": index + 1, "status": status, "conclusion": conclusion})
        })
        .collect();
    json!({
        "id": job.id,
        "run_id": run.id,
        "run_url": format!("{api}/actions/runs/{}", run.id),
        "run_attempt": run.attempt,
        "node_id": format!("CR_{}", job.id),
        "head_sha": run.sha,
        "url": format!("{api}/actions/jobs/{}", job.id),
        "html_url": format!("{}/actions/runs/{}/job/{}", repository::html(world, repo), run.id, job.id),
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": time(job.started_at),
        "started_at": time(job.started_at),
        "completed_at": time_or_null(job.completed_at),
        "name": job.name,
        "steps": steps,
        "check_run_url": format!("{api}/check-runs/{}", job.id),
        "labels": ["ubuntu-latest"],
        "runner_id": null,
        "runner_name": null,
        "runner_group_id": null,
        "runner_group_name": null,
        "workflow_name": run.workflow,
        "head_branch": run.branch,
    })
}
