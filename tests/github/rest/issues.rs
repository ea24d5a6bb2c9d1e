//! Issues.

use serde_json::Value;

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Happened, Issue, Permission, Thing, shown};

use super::call::Call;
use super::render;

/// What GitHub takes at most in a body.
pub const LONGEST_BODY: usize = 65_536;

pub fn list(call: &mut Call) -> Answered {
    let state = call.query("state").unwrap_or("open").to_owned();
    let since = call.query("since").and_then(|since| since.parse::<jiff::Timestamp>().ok());
    let labels: Vec<String> =
        call.query("labels").map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default();
    let (assignee, creator) = (call.query("assignee").map(str::to_owned), call.query("creator").map(str::to_owned));
    let milestone = call.query("milestone").map(str::to_owned);
    let wanted = |issue: &Issue| {
        (state == "all" || (state == "open") == issue.open)
            // Whole seconds, as GitHub compares them.
            && since.is_none_or(|since| shown(issue.updated_at) >= shown(since))
            && labels.iter().all(|label| issue.has_label(label))
            && creator.as_ref().is_none_or(|creator| issue.author.as_ref() == Some(creator))
            && match assignee.as_deref() {
                None | Some("*") => true,
                Some("none") => issue.assignees.is_empty(),
                Some(login) => issue.assignees.iter().any(|one| one == login),
            }
            && match milestone.as_deref() {
                None | Some("*") => true,
                Some("none") => issue.milestone.is_none(),
                Some(number) => issue.milestone.map(|one| one.to_string()).as_deref() == Some(number),
            }
    };
    let numbers: Vec<u64> = call.repo().issues.keys().copied().collect();
    let mut found: Vec<&Issue> = numbers
        .iter()
        .filter_map(|number| call.seen(&Thing::Issue(*number)).issue(*number))
        .filter(|issue| wanted(issue))
        .collect();
    let descending = call.query("direction") != Some("asc");
    let by = call.query("sort").unwrap_or("created").to_owned();
    found.sort_by_key(|issue| {
        let key = match by.as_str() {
            "updated" => shown(issue.updated_at),
            "comments" => format!("{:08}", issue.comments.len()),
            _ => shown(issue.created_at),
        };
        (key, issue.number)
    });
    if descending {
        found.reverse();
    }
    let found: Vec<u64> = found.into_iter().map(|issue| issue.number).collect();
    call.page(found, |number| {
        let repo = call.seen(&Thing::Issue(*number));
        render::issue::issue(call.world, repo, repo.issue(*number).unwrap())
    })
}

pub fn get(call: &mut Call) -> Answered {
    let issue = call.issue_seen()?;
    let repo = call.seen(&Thing::Issue(issue.number));
    Ok(Answer::json(200, render::issue::issue(call.world, repo, issue)))
}

fn shown_now(call: &Call, status: u16, number: u64) -> Answered {
    let repo = call.repo();
    Ok(Answer::json(status, render::issue::issue(call.world, repo, repo.issue(number).unwrap())))
}

/// 422 for a text that is too long.
pub fn check_body(resource: &str, body: Option<&str>) -> Result<(), Answer> {
    if body.is_some_and(|body| body.chars().count() > LONGEST_BODY) {
        let words = format!("body is too long (maximum is {LONGEST_BODY} characters)");
        return Err(Answer::invalid(resource, "body", "custom", Some(&words)));
    }
    Ok(())
}

pub fn create(call: &mut Call) -> Answered {
    if !call.repo().settings.has_issues {
        return Err(Answer::message(410, "Issues has been disabled in this repository."));
    }
    let body = call.body.clone();
    check_body("Issue", body["body"].as_str())?;
    let title = body["title"].as_str().map_or_else(|| body["title"].to_string(), str::to_owned);
    let (home, login) = (call.home, call.login.clone());
    let number = deeds::issues::open(call.world, home, &login, &title, body["body"].as_str());
    // Without the right to triage, labels and assignees are dropped in silence.
    if call.need(Permission::Triage).is_ok() {
        apply(call, number, &body);
    }
    shown_now(call, 201, number)
}

fn names(value: &Value) -> Option<Vec<String>> {
    let name = |one: &Value| one.as_str().or_else(|| one["name"].as_str()).map(str::to_owned);
    value.as_array().map(|list| list.iter().filter_map(name).collect())
}

/// Labels, assignees and milestone of a request.
fn apply(call: &mut Call, number: u64, body: &Value) {
    let (home, login) = (call.home, call.login.clone());
    if let Some(labels) = names(&body["labels"]) {
        deeds::issues::set_labels(call.world, home, number, &login, &labels);
    }
    if let Some(assignees) = names(&body["assignees"]) {
        let old = call.repo().issue(number).unwrap().assignees.clone();
        for gone in old.iter().filter(|one| !assignees.contains(one)) {
            deeds::issues::unassign(call.world, home, number, &login, gone);
        }
        for one in &assignees {
            deeds::issues::assign(call.world, home, number, &login, one);
        }
    }
    if let Some(milestone) = body.get("milestone") {
        call.world.repo_mut(home).issue_mut(number).milestone = milestone.as_u64();
    }
}

pub fn update(call: &mut Call) -> Answered {
    let issue = call.issue()?;
    let (number, old_title, author) = (issue.number, issue.title.clone(), issue.author.clone());
    let body = call.body.clone();
    check_body("Issue", body["body"].as_str())?;
    let own = author.as_deref() == Some(call.login.as_str());
    if !own {
        call.need(Permission::Triage).map_err(|refusal| Answer { general: false, ..refusal })?;
    }
    let (home, login) = (call.home, call.login.clone());
    if let Some(title) = body["title"].as_str().filter(|title| *title != old_title) {
        call.world.repo_mut(home).issue_mut(number).title = title.to_owned();
        let what = Happened::Renamed { from: old_title, to: title.to_owned() };
        deeds::issues::note(call.world, home, number, &login, what);
    }
    if let Some(text) = body.get("body") {
        deeds::issues::reword(call.world, home, number, &login, text.as_str());
    }
    apply(call, number, &body);
    match body["state"].as_str() {
        Some("closed") => deeds::issues::close(call.world, home, number, &login, body["state_reason"].as_str()),
        Some("open") => deeds::issues::reopen(call.world, home, number, &login),
        _ => {}
    }
    deeds::issues::touch(call.world, home, number);
    shown_now(call, 200, number)
}

pub fn lock(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Write)?;
    let reason = call.body["lock_reason"].as_str().unwrap_or("").to_owned();
    let (home, login) = (call.home, call.login.clone());
    call.world.repo_mut(home).issue_mut(number).locked = Some(reason);
    deeds::issues::note(call.world, home, number, &login, Happened::Locked);
    Ok(Answer::empty(204))
}

pub fn unlock(call: &mut Call) -> Answered {
    let number = call.issue()?.number;
    call.need(Permission::Write)?;
    let (home, login) = (call.home, call.login.clone());
    call.world.repo_mut(home).issue_mut(number).locked = None;
    deeds::issues::note(call.world, home, number, &login, Happened::Unlocked);
    Ok(Answer::empty(204))
}

pub fn add_assignees(call: &mut Call) -> Answered {
    let number = call.issue().map_err(undocumented)?.number;
    let (home, login) = (call.home, call.login.clone());
    for one in names(&call.body["assignees"].clone()).unwrap_or_default() {
        deeds::issues::assign(call.world, home, number, &login, &one);
    }
    shown_now(call, 201, number)
}

pub fn remove_assignees(call: &mut Call) -> Answered {
    let number = call.issue().map_err(undocumented)?.number;
    let (home, login) = (call.home, call.login.clone());
    for one in names(&call.body["assignees"].clone()).unwrap_or_default() {
        deeds::issues::unassign(call.world, home, number, &login, &one);
    }
    shown_now(call, 200, number)
}

/// Operations whose description forgot that the issue may be missing.
pub fn undocumented(refusal: Answer) -> Answer {
    Answer { general: true, ..refusal }
}

pub fn milestones(call: &mut Call) -> Answered {
    let repo = call.repo();
    call.page(repo.milestones.iter().collect(), |one| render::repo::milestone(call.world, repo, one))
}
