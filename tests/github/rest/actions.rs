//! Actions: runs, jobs, logs, running again.

use serde_json::json;

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Job, Permission, Repo, Run, Thing};

use super::call::Call;
use super::issues::undocumented;
use super::render;

pub fn runs(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    let fits = |run: &&Run| {
        let is = |name: &str, value: &str| call.query(name).is_none_or(|wanted| wanted == value);
        is("head_sha", &run.sha)
            && is("branch", &run.branch)
            && is("event", &run.event)
            && call
                .query("status")
                .is_none_or(|status| run.status == status || run.conclusion.as_deref() == Some(status))
    };
    let found = repo.runs.iter().rev().filter(fits).collect();
    call.page_in("workflow_runs", found, |run| render::actions::run(call.world, call.home, repo, run))
}

fn find_run<'a>(call: &Call, repo: &'a Repo) -> Result<&'a Run, Answer> {
    let id = call.number("run_id");
    repo.runs.iter().find(|run| run.id == id).ok_or_else(|| undocumented(Answer::not_found()))
}

fn find_job<'a>(call: &Call, repo: &'a Repo, name: &str) -> Result<(&'a Run, &'a Job), Answer> {
    let id = call.number(name);
    let found = repo.runs.iter().find_map(|run| Some((run, run.jobs.iter().find(|job| job.id == id)?)));
    found.ok_or_else(|| undocumented(Answer::not_found()))
}

pub fn run(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    Ok(Answer::json(200, render::actions::run(call.world, call.home, repo, find_run(call, repo)?)))
}

pub fn jobs(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    let run = find_run(call, repo)?;
    call.page_in("jobs", run.jobs.iter().collect(), |job| render::actions::job(call.world, repo, run, job))
}

pub fn job(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    let (run, job) = find_job(call, repo, "job_id")?;
    Ok(Answer::json(200, render::actions::job(call.world, repo, run, job)))
}

/// The log is on another host, which must not get the caller's token.
pub fn logs(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    let (_, job) = find_job(call, repo, "job_id")?;
    if job.conclusion.is_none() {
        return Err(undocumented(Answer::not_found()));
    }
    Ok(Answer::empty(302).with("location", format!("{}/logs/{}", call.world.files_base, job.id)))
}

fn again(call: &mut Call, run: u64, only: Option<u64>, only_failed: bool) -> Answered {
    call.need(Permission::Write)?;
    let home = call.home;
    deeds::checks::rerun(call.world, home, run, only, only_failed);
    Ok(Answer::json(201, json!({})))
}

pub fn rerun(call: &mut Call) -> Answered {
    let run = find_run(call, call.repo())?.id;
    again(call, run, None, false)
}

pub fn rerun_failed(call: &mut Call) -> Answered {
    let run = find_run(call, call.repo())?;
    if run.status != "completed" {
        return Err(Answer::general(403, "This workflow is already running"));
    }
    let run = run.id;
    again(call, run, None, true)
}

pub fn rerun_job(call: &mut Call) -> Answered {
    let (run, job) = find_job(call, call.repo(), "job_id")?;
    let (run, job) = (run.id, job.id);
    again(call, run, Some(job), false)
}

pub fn rerequest(call: &mut Call) -> Answered {
    let (run, job) = find_job(call, call.repo(), "check_run_id")?;
    let (run, job) = (run.id, job.id);
    again(call, run, Some(job), false)
}

/// Lets a run of a stranger's pull request go on.
pub fn approve(call: &mut Call) -> Answered {
    let run = find_run(call, call.repo())?.id;
    again(call, run, None, true)
}
