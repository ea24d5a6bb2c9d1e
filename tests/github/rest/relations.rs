//! Dependencies between issues, and sub-issues.

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Happened, Permission, Thing};

use super::call::Call;
use super::render;

fn show(call: &Call, number: u64) -> serde_json::Value {
    let repo = call.seen(&Thing::Issue(number));
    let issue = repo.issue(number).or_else(|| call.repo().issue(number)).unwrap();
    render::issue::issue(call.world, repo, issue)
}

pub fn blocked_by(call: &mut Call) -> Answered {
    let found = call.issue_seen()?.blocked_by.clone();
    call.page(found, |number| show(call, *number))
}

pub fn blocking(call: &mut Call) -> Answered {
    let number = call.issue_seen()?.number;
    let repo = call.seen(&Thing::Issue(number));
    let found = repo.issues.values().filter(|one| one.blocked_by.contains(&number)).map(|one| one.number).collect();
    call.page(found, |number| show(call, *number))
}

pub fn add_blocker(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let id = call.body["issue_id"].as_u64().unwrap_or_default();
    // One of another repository is taken, and not kept.
    let is_elsewhere =
        |(at, home): (usize, &crate::github::state::Home)| at != call.home && home.repo.issue_by_id(id).is_some();
    if call.world.homes.iter().enumerate().any(is_elsewhere) {
        return Ok(Answer::json(201, show(call, number)));
    }
    let blocker = call.repo().issue_by_id(id).ok_or_else(Answer::not_found)?.number;
    if blocker == number {
        return Err(Answer::invalid("Issue", "issue_id", "invalid", Some("An issue cannot block itself")));
    }
    let (home, login) = (call.home, call.login.clone());
    let issue = call.world.repo_mut(home).issue_mut(number);
    if issue.blocked_by.contains(&blocker) {
        return Err(Answer::invalid("Issue", "issue_id", "already_exists", None));
    }
    issue.blocked_by.push(blocker);
    deeds::issues::note(call.world, home, number, &login, Happened::BlockedByAdded(blocker));
    deeds::issues::touch(call.world, home, number);
    Ok(Answer::json(201, show(call, number)))
}

pub fn remove_blocker(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let id = call.number("issue_id");
    let blocker = call.repo().issue_by_id(id).ok_or_else(Answer::not_found)?.number;
    let (home, login) = (call.home, call.login.clone());
    let issue = call.world.repo_mut(home).issue_mut(number);
    if !issue.blocked_by.contains(&blocker) {
        return Err(Answer::not_found());
    }
    issue.blocked_by.retain(|one| *one != blocker);
    deeds::issues::note(call.world, home, number, &login, Happened::BlockedByRemoved(blocker));
    deeds::issues::touch(call.world, home, number);
    Ok(Answer::json(200, show(call, number)))
}

pub fn sub_issues(call: &mut Call) -> Answered {
    let found = call.issue_seen()?.sub_issues.clone();
    call.page(found, |number| show(call, *number))
}

pub fn add_sub_issue(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let id = call.body["sub_issue_id"].as_u64().unwrap_or_default();
    let child = call.repo().issue_by_id(id).ok_or_else(Answer::not_found)?.number;
    if call.repo().parent_of(child).is_some() && call.body["replace_parent"] != true {
        let words = "Sub issue may only have one parent";
        return Err(Answer::invalid("Issue", "sub_issue_id", "invalid", Some(words)));
    }
    let (home, login) = (call.home, call.login.clone());
    call.world.repo_mut(home).issue_mut(number).sub_issues.push(child);
    deeds::issues::note(call.world, home, number, &login, Happened::SubIssueAdded(child));
    deeds::issues::touch(call.world, home, number);
    Ok(Answer::json(201, show(call, number)))
}

pub fn remove_sub_issue(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Triage)?;
    let id = call.body["sub_issue_id"].as_u64().unwrap_or_default();
    let child = call.repo().issue_by_id(id).ok_or_else(Answer::not_found)?.number;
    let (home, login) = (call.home, call.login.clone());
    call.world.repo_mut(home).issue_mut(number).sub_issues.retain(|one| *one != child);
    deeds::issues::note(call.world, home, number, &login, Happened::SubIssueRemoved(child));
    deeds::issues::touch(call.world, home, number);
    Ok(Answer::json(200, show(call, number)))
}

pub fn parent(call: &mut Call) -> Answered {
    let number = call.issue_seen()?.number;
    let parent = call.seen(&Thing::Issue(number)).parent_of(number).ok_or_else(Answer::not_found)?.number;
    Ok(Answer::json(200, show(call, parent)))
}
