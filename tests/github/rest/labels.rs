//! Labels, of the repository and on issues.

use std::sync::Arc;

use serde_json::Value;

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Label, Permission, Repo, Thing};

use super::call::Call;
use super::render;

fn of_issue(repo: &Repo, number: u64) -> Vec<&Label> {
    let names = repo.issue(number).map(|issue| issue.labels.as_slice()).unwrap_or_default();
    names.iter().filter_map(|name| repo.label(name)).collect()
}

pub fn list(call: &mut Call) -> Answered {
    let number = call.issue_seen()?.number;
    let repo = call.seen(&Thing::Issue(number));
    call.page(of_issue(repo, number), |one| render::repo::label(call.world, repo, one))
}

/// What the issue has now; the answer of everything that changes it.
fn now(call: &Call, number: u64) -> Answered {
    let repo = call.repo();
    let labels: Vec<Value> =
        of_issue(repo, number).into_iter().map(|one| render::repo::label(call.world, repo, one)).collect();
    Ok(Answer::json(200, Value::Array(labels)))
}

fn given(body: &Value) -> Vec<String> {
    let list = body.get("labels").unwrap_or(body);
    let name = |one: &Value| one.as_str().or_else(|| one["name"].as_str()).map(str::to_owned);
    match list {
        Value::Array(list) => list.iter().filter_map(name).collect(),
        one => name(one).into_iter().collect(),
    }
}

pub fn add(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let (home, login) = (call.home, call.login.clone());
    for name in given(&call.body.clone()) {
        deeds::issues::label(call.world, home, number, &login, &name);
    }
    now(call, number)
}

pub fn set(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let (home, login, names) = (call.home, call.login.clone(), given(&call.body));
    deeds::issues::set_labels(call.world, home, number, &login, &names);
    now(call, number)
}

pub fn remove(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let (home, login, name) = (call.home, call.login.clone(), call.text("name").to_owned());
    if !deeds::issues::unlabel(call.world, home, number, &login, &name) {
        return Err(Answer::message(404, "Label does not exist"));
    }
    now(call, number)
}

pub fn remove_all(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let (home, login) = (call.home, call.login.clone());
    deeds::issues::set_labels(call.world, home, number, &login, &[]);
    Ok(Answer::empty(204))
}

pub fn of_repo(call: &mut Call) -> Answered {
    let repo = call.repo();
    call.page(repo.labels.iter().collect(), |one| render::repo::label(call.world, repo, one))
}

pub fn get(call: &mut Call) -> Answered {
    let repo = call.repo();
    let label = repo.label(call.text("name")).ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::repo::label(call.world, repo, label)))
}

pub fn create(call: &mut Call) -> Answered {
    call.need(Permission::Triage)?;
    let name = call.body["name"].as_str().unwrap_or_default().to_owned();
    if call.repo().label(&name).is_some() {
        return Err(Answer::invalid("Label", "name", "already_exists", None));
    }
    let label = Label {
        id: call.world.next_id(),
        name,
        color: call.body["color"].as_str().unwrap_or("ededed").to_owned(),
        description: call.body["description"].as_str().map(str::to_owned),
    };
    let home = call.home;
    Arc::make_mut(&mut call.world.repo_mut(home).labels).push(label.clone());
    Ok(Answer::json(201, render::repo::label(call.world, call.repo(), &label)))
}
