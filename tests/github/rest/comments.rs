//! Comments on issues and pull requests.

use crate::github::deeds;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Comment, Permission, Thing, shown};

use super::call::Call;
use super::issues::{check_body, undocumented};
use super::render;

fn since(call: &Call) -> impl Fn(&Comment) -> bool + use<> {
    let since = call.query("since").and_then(|since| since.parse::<jiff::Timestamp>().ok());
    move |comment| since.is_none_or(|since| shown(comment.updated_at) >= shown(since))
}

pub fn list(call: &mut Call) -> Answered {
    let number = call.issue_seen()?.number;
    let repo = call.seen(&Thing::Comments(number));
    let recent = since(call);
    let found = repo.issue(number).map(|issue| issue.comments.iter().filter(|one| recent(one)).collect());
    call.page(found.unwrap_or_default(), |one| render::issue::comment(call.world, repo, number, one))
}

pub fn list_all(call: &mut Call) -> Answered {
    let recent = since(call);
    let numbers: Vec<u64> = call.repo().issues.keys().copied().collect();
    let mut found = Vec::new();
    for number in numbers {
        let issue = call.seen(&Thing::Comments(number)).issue(number);
        found.extend(issue.iter().flat_map(|issue| &issue.comments).filter(|one| recent(one)).map(|one| (number, one)));
    }
    let updated = call.query("sort") == Some("updated");
    found.sort_by_key(|(_, one)| (if updated { one.updated_at } else { one.created_at }, one.id));
    if call.query("direction") == Some("desc") {
        found.reverse();
    }
    call.page(found, |(number, one)| {
        render::issue::comment(call.world, call.seen(&Thing::Comments(*number)), *number, one)
    })
}

pub fn create(call: &mut Call) -> Answered {
    let issue = call.issue()?;
    let (number, locked) = (issue.number, issue.locked.is_some());
    let body = call.body["body"].as_str().unwrap_or_default().to_owned();
    check_body("IssueComment", Some(&body))?;
    if locked && call.need(Permission::Write).is_err() {
        return Err(Answer::message(403, "Unable to create comment because issue is locked."));
    }
    let (home, login) = (call.home, call.login.clone());
    let id = deeds::issues::comment(call.world, home, number, &login, &body);
    let repo = call.repo();
    let made = repo.issue(number).unwrap().comment(id).unwrap();
    Ok(Answer::json(201, render::issue::comment(call.world, repo, number, made)))
}

/// The issue that a comment is on.
fn place(call: &Call) -> Result<(u64, u64), Answer> {
    let id = call.number("comment_id");
    let issue = call.repo().issue_of_comment(id).ok_or_else(Answer::not_found)?;
    Ok((issue.number, id))
}

pub fn get(call: &mut Call) -> Answered {
    let (number, id) = place(call)?;
    let repo = call.seen(&Thing::Comments(number));
    let comment = repo.issue(number).and_then(|issue| issue.comment(id)).ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::issue::comment(call.world, repo, number, comment)))
}

/// Only the author and those who may write change a comment.
fn may_change(call: &Call, number: u64, id: u64) -> Result<(), Answer> {
    let author = call.repo().issue(number).and_then(|issue| issue.comment(id)?.author.clone());
    if author.as_deref() == Some(call.login.as_str()) { Ok(()) } else { call.need(Permission::Write) }
}

pub fn update(call: &mut Call) -> Answered {
    let (number, id) = place(call).map_err(undocumented)?;
    may_change(call, number, id)?;
    let body = call.body["body"].as_str().unwrap_or_default().to_owned();
    check_body("IssueComment", Some(&body))?;
    deeds::issues::edit_comment(call.world, call.home, id, &body);
    let repo = call.repo();
    let comment = repo.issue(number).unwrap().comment(id).unwrap();
    Ok(Answer::json(200, render::issue::comment(call.world, repo, number, comment)))
}

pub fn delete(call: &mut Call) -> Answered {
    let (number, id) = place(call).map_err(undocumented)?;
    may_change(call, number, id)?;
    deeds::issues::delete_comment(call.world, call.home, id);
    Ok(Answer::empty(204))
}
