//! Pull requests.

use serde_json::json;

use crate::github::deeds;
use crate::github::deeds::landing::Request;
use crate::github::deeds::pulls::NewPull;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::git::Method;
use crate::github::state::pull::{Mergeable, local_branch};
use crate::github::state::{Happened, Permission, Thing, shown};

use super::call::Call;
use super::issues::check_body;
use super::render;

pub fn list(call: &mut Call) -> Answered {
    let state = call.query("state").unwrap_or("open").to_owned();
    let numbers: Vec<u64> = call.repo().pulls.keys().copied().collect();
    let mut found: Vec<u64> = Vec::new();
    for number in numbers {
        let repo = call.seen(&Thing::Pull(number));
        let (Some(pull), Some(issue)) = (repo.pull(number), repo.issue(number)) else { continue };
        let head = format!("{}:{}", pull.head_owner, pull.head_ref);
        let fits = (state == "all" || (state == "open") == issue.open)
            && call.query("base").is_none_or(|base| base == pull.base_ref)
            && call.query("head").is_none_or(|wanted| wanted == head);
        if fits {
            found.push(number);
        }
    }
    let sort = call.query("sort").unwrap_or("created").to_owned();
    let descending = call.query("direction").map_or(sort == "created", |direction| direction == "desc");
    found.sort_by_key(|number| {
        let issue = call.seen(&Thing::Pull(*number)).issue(*number).unwrap();
        (shown(if sort == "updated" { issue.updated_at } else { issue.created_at }), *number)
    });
    if descending {
        found.reverse();
    }
    call.page(found, |number| {
        let repo = call.seen(&Thing::Pull(*number));
        render::pull::simple(call.world, repo, repo.issue(*number).unwrap(), repo.pull(*number).unwrap())
    })
}

pub fn get(call: &mut Call) -> Answered {
    let number = call.number("pull_number");
    if call.seen(&Thing::Pull(number)).pull(number).is_none() {
        return Err(Answer::not_found());
    }
    show(call, 200, number)
}

/// The whole pull request; asking for it makes GitHub compute whether it can be merged.
fn show(call: &mut Call, status: u16, number: u64) -> Answered {
    let known = deeds::pulls::mergeable(call.world, call.home, number);
    let repo = call.seen(&Thing::Pull(number));
    // A replica that lags also shows what was known then.
    let mergeable = match repo.pull(number).map(|pull| &pull.mergeable) {
        Some(Mergeable::Known(then)) => Some(*then),
        _ => known.filter(|_| !call.world.homes[call.home].lags()),
    };
    Ok(Answer::json(status, render::pull::full(call.world, call.home, repo, number, mergeable)))
}

pub fn create(call: &mut Call) -> Answered {
    let body = call.body.clone();
    check_body("PullRequest", body["body"].as_str())?;
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let (head, base, title) = (text("head"), text("base"), text("title"));
    let repo = call.repo();
    let (owner, branch) = head.split_once(':').unwrap_or((repo.owner.as_str(), head.as_str()));
    let fork = owner != repo.owner;
    if !fork {
        call.need(Permission::Write)?;
    }
    // A pull request needs the refs as they are, or as a replica sees them.
    let refs = call.seen(&Thing::Refs);
    let Some(head_sha) = refs.head(&local_branch(&repo.owner, owner, branch)) else {
        return Err(Answer::invalid("PullRequest", "head", "invalid", None));
    };
    let Some(base_sha) = refs.head(&base) else {
        return Err(Answer::invalid("PullRequest", "base", "invalid", None));
    };
    let folder = &call.world.homes[call.home].git;
    if crate::github::state::git::contains(folder, base_sha, head_sha) {
        let words = format!("No commits between {base} and {branch}");
        return Err(Answer::invalid("PullRequest", "head", "custom", Some(&words)));
    }
    let same = |number: &u64| repo.issue(*number).is_some_and(|issue| issue.open);
    let existing = repo.pulls.values().find(|pull| {
        pull.head_owner == owner && pull.head_ref == branch && pull.base_ref == base && same(&pull.number)
    });
    if existing.is_some() {
        let words = format!("A pull request already exists for {owner}:{branch}.");
        return Err(Answer::invalid("PullRequest", "head", "custom", Some(&words)));
    }
    let (home, login) = (call.home, call.login.clone());
    let (owner, branch) = (owner.to_owned(), branch.to_owned());
    let new = NewPull {
        title: &title,
        body: body["body"].as_str(),
        head_owner: Some(&owner),
        head: &branch,
        base: &base,
        draft: body["draft"] == true,
    };
    let number = deeds::pulls::open(call.world, home, &login, &new);
    let repo = call.repo();
    Ok(Answer::json(201, render::pull::full(call.world, home, repo, number, None)))
}

pub fn update(call: &mut Call) -> Answered {
    let pull = call.pull()?;
    let (number, old_base) = (pull.number, pull.base_ref.clone());
    let author = call.repo().issue(number).unwrap().author.clone();
    if author.as_deref() != Some(call.login.as_str()) {
        call.need(Permission::Write)?;
    }
    let body = call.body.clone();
    check_body("PullRequest", body["body"].as_str())?;
    let (home, login) = (call.home, call.login.clone());
    if let Some(title) = body["title"].as_str() {
        call.world.repo_mut(home).issue_mut(number).title = title.to_owned();
    }
    if let Some(text) = body.get("body") {
        call.world.repo_mut(home).issue_mut(number).body = text.as_str().map(str::to_owned);
    }
    if let Some(base) = body["base"].as_str().filter(|base| *base != old_base) {
        retarget(call, number, base)?;
    }
    match body["state"].as_str() {
        Some("closed") => deeds::issues::close(call.world, home, number, &login, None),
        Some("open") if call.repo().pull(number).unwrap().merged.is_none() => {
            deeds::issues::reopen(call.world, home, number, &login);
        }
        Some("open") => {
            let words = "state cannot be changed. The pull request cannot be reopened.";
            return Err(Answer::invalid("PullRequest", "state", "invalid", Some(words)));
        }
        _ => {}
    }
    deeds::issues::touch(call.world, home, number);
    show(call, 200, number)
}

fn retarget(call: &mut Call, number: u64, base: &str) -> Result<(), Answer> {
    let sha = call.repo().head(base).map(str::to_owned);
    let sha = sha.ok_or_else(|| Answer::invalid("PullRequest", "base", "invalid", None))?;
    let (home, login) = (call.home, call.login.clone());
    let pull = call.world.repo_mut(home).pull_mut(number);
    pull.base_ref = base.to_owned();
    pull.base_sha = sha;
    pull.mergeable = Mergeable::Unasked;
    let what = Happened::Plain { name: "base_ref_changed".to_owned(), commit: None };
    deeds::issues::note(call.world, home, number, &login, what);
    Ok(())
}

pub fn merge(call: &mut Call) -> Answered {
    let number = call.pull().map_err(|refusal| Answer { general: false, ..refusal })?.number;
    call.need(Permission::Write)?;
    let body = call.body.clone();
    let method = match body["merge_method"].as_str() {
        Some("squash") => Method::Squash,
        Some("rebase") => Method::Rebase,
        _ => Method::Merge,
    };
    let request = Request {
        method,
        head: body["sha"].as_str(),
        title: body["commit_title"].as_str(),
        message: body["commit_message"].as_str(),
        by_queue: false,
    };
    let (home, login) = (call.home, call.login.clone());
    match deeds::landing::merge(call.world, home, number, &login, &request) {
        Ok(sha) => {
            let body = json!({"sha": sha, "merged": true, "message": "Pull Request successfully merged"});
            Ok(Answer::json(200, body))
        }
        Err(refused) => Err(Answer::message(refused.status, &refused.words)),
    }
}

pub fn check_if_merged(call: &mut Call) -> Answered {
    let number = call.number("pull_number");
    let pull = call.seen(&Thing::Pull(number)).pull(number).ok_or_else(|| Answer::empty(404))?;
    Ok(Answer::empty(if pull.merged.is_some() { 204 } else { 404 }))
}

pub fn update_branch(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    call.need(Permission::Write)?;
    let expected = call.body["expected_head_sha"].as_str().map(str::to_owned);
    let (home, login) = (call.home, call.login.clone());
    match deeds::landing::update_branch(call.world, home, number, &login, expected.as_deref()) {
        Ok(()) => {
            let url = format!("{}/pulls/{number}", render::repo::api(call.world, call.repo()));
            Ok(Answer::json(202, json!({"message": "Updating pull request branch.", "url": url})))
        }
        Err(refused) => Err(Answer::unprocessable(&refused.words)),
    }
}
