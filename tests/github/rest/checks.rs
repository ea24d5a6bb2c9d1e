//! Check runs and commit statuses.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::github::deeds;
use crate::github::deeds::checks::NewStatus;
use crate::github::server::caller::Caller;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::server::paging::{self, Page};
use crate::github::state::{Permission, Thing, TokenKind, git};

use super::call::Call;
use super::issues::undocumented;
use super::render;

/// The commit that a ref means: a branch, a tag, or the commit itself.
pub fn commit_of(call: &Call, name: &str) -> Result<String, Answer> {
    let refs = &call.seen(&Thing::Refs).refs;
    let short = name.strip_prefix("refs/").unwrap_or(name);
    let names = [format!("refs/heads/{name}"), format!("refs/tags/{name}"), format!("refs/{short}")];
    if let Some(sha) = names.iter().find_map(|name| refs.get(name)) {
        return Ok(sha.clone());
    }
    if git::has(&call.world.homes[call.home].git, name) {
        return Ok(name.to_owned());
    }
    Err(Answer::general(422, &format!("No commit found for SHA: {name}")))
}

pub fn list(call: &mut Call) -> Answered {
    let sha = commit_of(call, call.text("ref"))?;
    let repo = call.seen(&Thing::Checks);
    let all = call.query("filter") == Some("all");
    let mut found = if all {
        repo.checks.iter().filter(|check| check.sha == sha).collect()
    } else {
        deeds::checks::checks(repo, &sha)
    };
    found.retain(|check| {
        call.query("check_name").is_none_or(|name| check.name == name)
            && call.query("status").is_none_or(|status| check.status == status)
    });
    call.page_in("check_runs", found, |one| render::actions::check(call.world, repo, one))
}

pub fn get(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Checks);
    let id = call.number("check_run_id");
    let check = repo.checks.iter().find(|check| check.id == id).ok_or_else(|| undocumented(Answer::not_found()))?;
    Ok(Answer::json(200, render::actions::check(call.world, repo, check)))
}

pub fn suites(call: &mut Call) -> Answered {
    let sha = commit_of(call, call.text("ref"))?;
    let repo = call.seen(&Thing::Checks);
    let found = repo.runs.iter().filter(|run| run.sha == sha).collect();
    call.page_in("check_suites", found, |run| render::actions::suite(call.world, call.home, repo, run))
}

pub fn annotations(call: &mut Call) -> Answered {
    call.page(Vec::<Value>::new(), Clone::clone)
}

/// Only Apps make check runs.
pub fn create(call: &mut Call) -> Answered {
    let app = match &call.caller {
        Caller::Token(token) => match token.kind {
            TokenKind::Installation { app, .. } => call.world.apps.iter().find(|one| one.id == app),
            _ => None,
        },
        _ => None,
    };
    let slug = app.map(|app| app.slug.clone());
    let slug = slug.ok_or_else(|| Answer::general(403, "You must authenticate via a GitHub App."))?;
    let text = |key: &str| call.body[key].as_str().unwrap_or_default().to_owned();
    let (sha, name, conclusion) = (text("head_sha"), text("name"), call.body["conclusion"].as_str().map(str::to_owned));
    let home = call.home;
    let id = deeds::checks::set_check(call.world, home, &sha, &slug, &name, conclusion.as_deref());
    change(call, id);
    let repo = call.repo();
    let check = repo.checks.iter().find(|check| check.id == id).unwrap();
    Ok(Answer::json(201, render::actions::check(call.world, repo, check)))
}

/// What a request says about a check run.
fn change(call: &mut Call, id: u64) {
    let (body, home, now) = (call.body.clone(), call.home, call.world.now());
    let checks = Arc::make_mut(&mut call.world.repo_mut(home).checks);
    let check = checks.iter_mut().find(|check| check.id == id).unwrap();
    if let Some(status) = body["status"].as_str() {
        check.status = status.to_owned();
    }
    if let Some(conclusion) = body["conclusion"].as_str() {
        check.conclusion = Some(conclusion.to_owned());
        check.status = "completed".to_owned();
        check.completed_at = Some(now);
    }
    check.title = body["output"]["title"].as_str().map(str::to_owned).or(check.title.take());
    check.summary = body["output"]["summary"].as_str().map(str::to_owned).or(check.summary.take());
}

pub fn update(call: &mut Call) -> Answered {
    let id = call.number("check_run_id");
    if !call.repo().checks.iter().any(|check| check.id == id) {
        return Err(undocumented(Answer::not_found()));
    }
    change(call, id);
    let repo = call.repo();
    let check = repo.checks.iter().find(|check| check.id == id).unwrap();
    Ok(Answer::json(200, render::actions::check(call.world, repo, check)))
}

pub fn create_status(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let sha = commit_of(call, call.text("sha"))?;
    let body = call.body.clone();
    let (home, login) = (call.home, call.login.clone());
    let new = NewStatus {
        context: body["context"].as_str().unwrap_or("default"),
        state: body["state"].as_str().unwrap_or_default(),
        description: body["description"].as_str(),
        target_url: body["target_url"].as_str(),
    };
    let status = deeds::checks::set_status(call.world, home, &login, &sha, &new);
    Ok(Answer::json(201, render::actions::status(call.world, call.repo(), &status)))
}

pub fn combined_status(call: &mut Call) -> Answered {
    let sha = commit_of(call, call.text("ref"))?;
    let repo = call.seen(&Thing::Checks);
    let found = deeds::checks::statuses(repo, &sha);
    let any = |words: &[&str]| found.iter().any(|status| words.contains(&status.state.as_str()));
    // Without any status it is pending too, which is why nobody should wait for it alone.
    let state = if any(&["failure", "error"]) {
        "failure"
    } else if found.is_empty() || any(&["pending"]) {
        "pending"
    } else {
        "success"
    };
    let api = render::repo::api(call.world, repo);
    let total = found.len();
    let Page { items, link } = paging::page(found, &call.query, &call.place);
    let statuses: Vec<Value> = items
        .iter()
        .map(|status| {
            let mut shown = render::actions::status(call.world, repo, status);
            shown.as_object_mut().unwrap().remove("creator");
            shown
        })
        .collect();
    let body = json!({
        "state": state, "statuses": statuses, "sha": sha, "total_count": total,
        "repository": render::repo::minimal(call.world, repo), "commit_url": format!("{api}/commits/{sha}"),
        "url": format!("{api}/commits/{sha}/status"),
    });
    Ok(paging::linked(Answer::json(200, body), link))
}

pub fn statuses(call: &mut Call) -> Answered {
    let sha = commit_of(call, call.text("ref"))?;
    let repo = call.seen(&Thing::Checks);
    let found = repo.statuses.iter().rev().filter(|status| status.sha == sha).collect();
    call.page(found, |one| render::actions::status(call.world, repo, one))
}
