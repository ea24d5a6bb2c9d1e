//! Branches and what they demand.

use serde_json::{Value, json};

use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Permission, Thing, git};

use super::call::Call;
use super::render;

pub fn get(call: &mut Call) -> Answered {
    let name = call.text("branch").to_owned();
    let repo = call.seen(&Thing::Refs);
    let sha = repo.head(&name).ok_or_else(|| Answer::message(404, "Branch not found"))?;
    let shown = git::show(&call.world.homes[call.home].git, sha);
    let url = format!("{}/branches/{name}", render::repo::api(call.world, repo));
    let protection = repo.rules.protection(&name);
    let body = json!({
        "name": name,
        "commit": render::commit::commit(call.world, repo, &shown),
        "_links": {"html": format!("{}/tree/{name}", render::repo::html(call.world, repo)), "self": url},
        "protected": protection.is_some() || repo.rules.rulesets_of(&name).next().is_some(),
        "protection": render::rules::summary(protection),
        "protection_url": format!("{url}/protection"),
    });
    Ok(Answer::json(200, body))
}

/// Only admins read classic protection.
pub fn protection(call: &mut Call) -> Answered {
    call.need(Permission::Admin)?;
    let name = call.text("branch").to_owned();
    let repo = call.repo();
    let demands = repo.rules.protection(&name).ok_or_else(|| Answer::message(404, "Branch not protected"))?;
    Ok(Answer::json(200, render::rules::protection(call.world, repo, &name, demands)))
}

/// Rules of rulesets, which everybody who can read may read.
pub fn rules(call: &mut Call) -> Answered {
    let name = call.text("branch").to_owned();
    let repo = call.repo();
    let found: Vec<Value> =
        repo.rules.rulesets_of(&name).flat_map(|ruleset| render::rules::rules_of_branch(repo, ruleset)).collect();
    call.page(found, Clone::clone)
}

pub fn rulesets(call: &mut Call) -> Answered {
    let repo = call.repo();
    call.page(repo.rules.rulesets.iter().collect(), |one| render::rules::ruleset(repo, one, false))
}

pub fn ruleset(call: &mut Call) -> Answered {
    let repo = call.repo();
    let id = call.number("ruleset_id");
    let found = repo.rules.rulesets.iter().find(|one| one.id == id).ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::rules::ruleset(repo, found, true)))
}
