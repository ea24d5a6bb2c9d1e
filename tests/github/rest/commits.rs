//! Commits and comparisons.

use serde_json::{Value, json};

use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Thing, git};

use super::call::Call;
use super::checks::commit_of;
use super::render::{self, joined};

fn show(call: &Call, sha: &str) -> Value {
    render::commit::commit(call.world, call.repo(), &git::show(&call.world.homes[call.home].git, sha))
}

pub fn get(call: &mut Call) -> Answered {
    let sha = commit_of(call, call.text("ref"))?;
    let folder = &call.world.homes[call.home].git;
    let parent = git::show(folder, &sha).parents.first().cloned();
    let changes = parent.map(|parent| git::changes(folder, &parent, &sha)).unwrap_or_default();
    let files: Vec<Value> =
        changes.iter().map(|change| render::commit::file(call.world, call.repo(), &sha, change)).collect();
    Ok(Answer::json(200, joined(show(call, &sha), json!({"files": files}))))
}

pub fn git_commit(call: &mut Call) -> Answered {
    let sha = call.text("commit_sha").to_owned();
    let folder = &call.world.homes[call.home].git;
    if !git::has(folder, &sha) {
        return Err(Answer::not_found());
    }
    Ok(Answer::json(200, render::commit::git_commit(call.world, call.repo(), &git::show(folder, &sha))))
}

pub fn compare(call: &mut Call) -> Answered {
    let (base, head) = call.text("basehead").split_once("...").ok_or_else(Answer::not_found)?;
    let sha = |name: &str| commit_of(call, name).map_err(|_| Answer::not_found());
    let (base, head) = (sha(base)?, sha(head)?);
    let folder = &call.world.homes[call.home].git;
    let start = git::merge_base(folder, &base, &head).ok_or_else(Answer::not_found)?;
    let (ahead, behind) = (git::between(folder, &base, &head), git::between(folder, &head, &base));
    let status = match (ahead.is_empty(), behind.is_empty()) {
        (true, true) => "identical",
        (false, true) => "ahead",
        (true, false) => "behind",
        (false, false) => "diverged",
    };
    let url = format!("{}/compare/{base}...{head}", render::repo::api(call.world, call.repo()));
    let files: Vec<Value> = git::changes(folder, &base, &head)
        .iter()
        .map(|change| render::commit::file(call.world, call.repo(), &head, change))
        .collect();
    let body = json!({
        "url": url, "html_url": url, "permalink_url": url, "diff_url": url, "patch_url": url,
        "base_commit": show(call, &base), "merge_base_commit": show(call, &start), "status": status,
        "ahead_by": ahead.len(), "behind_by": behind.len(), "total_commits": ahead.len(),
        "commits": ahead.iter().map(|sha| show(call, sha)).collect::<Vec<Value>>(), "files": files,
    });
    Ok(Answer::json(200, body))
}

pub fn of_pull(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let pull = call.seen(&Thing::Pull(number)).pull(number).cloned();
    let pull = pull.ok_or_else(|| Answer { general: true, ..Answer::not_found() })?;
    let found = git::between(&call.world.homes[call.home].git, &pull.base_sha, &pull.head_sha);
    call.page(found, |sha| show(call, sha))
}

pub fn files_of_pull(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let pull = call.seen(&Thing::Pull(number)).pull(number).cloned();
    let pull = pull.ok_or_else(|| Answer { general: true, ..Answer::not_found() })?;
    let found = git::changes(&call.world.homes[call.home].git, &pull.base_sha, &pull.head_sha);
    call.page(found, |change| render::commit::file(call.world, call.repo(), &pull.head_sha, change))
}

pub fn pulls(call: &mut Call) -> Answered {
    let sha = call.text("commit_sha").to_owned();
    let repo = call.repo();
    let has = |pull: &crate::github::state::Pull| {
        pull.head_sha == sha || pull.merged.as_ref().is_some_and(|merged| merged.sha == sha)
    };
    let found: Vec<u64> = repo.pulls.values().filter(|pull| has(pull)).map(|pull| pull.number).collect();
    call.page(found, |number| {
        render::pull::simple(call.world, repo, repo.issue(*number).unwrap(), repo.pull(*number).unwrap())
    })
}
