//! Refs through the API.

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Permission, Thing, git};

use super::call::Call;
use super::render;

fn full(call: &Call) -> String {
    format!("refs/{}", call.text("ref").trim_start_matches("refs/"))
}

pub fn get(call: &mut Call) -> Answered {
    let name = full(call);
    let repo = call.seen(&Thing::Refs);
    let sha = repo.refs.get(&name).ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::commit::reference(call.world, repo, &name, sha)))
}

pub fn matching(call: &mut Call) -> Answered {
    let beginning = full(call);
    let repo = call.seen(&Thing::Refs);
    let found = repo.refs.iter().filter(|(name, _)| name.starts_with(&beginning)).collect();
    call.page(found, |(name, sha)| render::commit::reference(call.world, repo, name, sha))
}

/// Moves a ref and shows it.
fn set(call: &mut Call, status: u16, name: &str, sha: &str) -> Answered {
    let (home, login) = (call.home, call.login.clone());
    git::set(&call.world.homes[home].git, name, Some(sha));
    deeds::refs::sync(call.world, home, &login);
    Ok(Answer::json(status, render::commit::reference(call.world, call.repo(), name, sha)))
}

fn commit(call: &Call) -> Result<String, Answer> {
    let sha = call.body["sha"].as_str().unwrap_or_default().to_owned();
    let known = git::has(&call.world.homes[call.home].git, &sha);
    if known { Ok(sha) } else { Err(Answer::unprocessable("Object does not exist")) }
}

pub fn create(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let name = call.body["ref"].as_str().unwrap_or_default().to_owned();
    if !name.starts_with("refs/") {
        return Err(Answer::unprocessable("Reference name must start with 'refs/'"));
    }
    let sha = commit(call)?;
    if call.repo().refs.contains_key(&name) {
        return Err(Answer::unprocessable("Reference already exists"));
    }
    set(call, 201, &name, &sha)
}

pub fn update(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let name = full(call);
    let sha = commit(call)?;
    let old = call.repo().refs.get(&name).cloned();
    let old = old.ok_or_else(|| Answer::unprocessable("Reference does not exist"))?;
    if call.body["force"] != true && !git::contains(&call.world.homes[call.home].git, &sha, &old) {
        return Err(Answer::unprocessable("Update is not a fast forward"));
    }
    set(call, 200, &name, &sha)
}

pub fn delete(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let name = full(call);
    if !call.repo().refs.contains_key(&name) {
        return Err(Answer::unprocessable("Reference does not exist"));
    }
    let (home, login) = (call.home, call.login.clone());
    git::set(&call.world.homes[home].git, &name, None);
    deeds::refs::sync(call.world, home, &login);
    Ok(Answer::empty(204))
}
