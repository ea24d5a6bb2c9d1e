//! Comments on lines, and answers to them.

use crate::github::deeds;
use crate::github::deeds::reviews::Line;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Permission, ReviewComment, Thing, Thread, shown};

use super::call::Call;
use super::issues::{check_body, undocumented};
use super::render;

pub fn list(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let repo = call.seen(&Thing::Reviews(number));
    let since = call.query("since").and_then(|since| since.parse::<jiff::Timestamp>().ok());
    let mut found: Vec<(&Thread, &ReviewComment)> = Vec::new();
    for thread in repo.pull(number).map(|pull| pull.threads.as_slice()).unwrap_or_default() {
        found.extend(thread.comments.iter().map(|comment| (thread, comment)));
    }
    found.retain(|(_, one)| since.is_none_or(|since| shown(one.updated_at) >= shown(since)));
    found.sort_by_key(|(_, one)| one.id);
    call.page(found, |(thread, one)| render::review::comment(call.world, repo, number, thread, one))
}

pub fn of_review(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let review = call.number("review_id");
    let repo = call.seen(&Thing::Reviews(number));
    let pull = repo.pull(number).filter(|pull| pull.review(review).is_some()).ok_or_else(Answer::not_found)?;
    let mut found = Vec::new();
    for thread in &pull.threads {
        found.extend(thread.comments.iter().filter(|one| one.review == review).map(|one| (thread, one)));
    }
    call.page(found, |(thread, one)| {
        let mut shown = render::review::comment(call.world, repo, number, thread, one);
        // This list has a description of its own, in which the position is required and may be null.
        if shown.get("position").is_none() {
            shown["position"] = serde_json::Value::Null;
        }
        shown
    })
}

fn show(call: &Call, status: u16, number: u64, id: u64) -> Answered {
    let repo = call.repo();
    let (thread, comment) = repo.pull(number).and_then(|pull| pull.comment(id)).unwrap();
    Ok(Answer::json(status, render::review::comment(call.world, repo, number, thread, comment)))
}

pub fn create(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let body = call.body.clone();
    let text = body["body"].as_str().unwrap_or_default();
    check_body("PullRequestReviewComment", Some(text))?;
    let (home, login) = (call.home, call.login.clone());
    if let Some(to) = body["in_reply_to"].as_u64() {
        return answer_in(call, number, to, text, Answer::unprocessable("in_reply_to is not a comment"));
    }
    let line = Line {
        path: body["path"].as_str().unwrap_or_default().to_owned(),
        line: body["line"].as_u64().unwrap_or(1),
        body: text.to_owned(),
    };
    let review = deeds::reviews::submit(call.world, home, number, &login, "COMMENTED", "", &[line]);
    let pull = call.repo().pull(number).unwrap();
    let mut comments = pull.threads.iter().flat_map(|thread| &thread.comments);
    let id = comments.find(|one| one.review == review).unwrap().id;
    show(call, 201, number, id)
}

fn answer_in(call: &mut Call, number: u64, to: u64, text: &str, missing: Answer) -> Answered {
    let thread = call.repo().pull(number).and_then(|pull| pull.comment(to)).map(|(thread, _)| thread.id);
    let Some(thread) = thread else { return Err(missing) };
    let (home, login) = (call.home, call.login.clone());
    let id = deeds::reviews::reply(call.world, home, number, thread, &login, text);
    show(call, 201, number, id)
}

pub fn reply(call: &mut Call) -> Answered {
    let number = call.pull()?.number;
    let text = call.body["body"].as_str().unwrap_or_default().to_owned();
    let to = call.number("comment_id");
    answer_in(call, number, to, &text, Answer::not_found())
}

fn place(call: &Call) -> Result<(u64, u64), Answer> {
    let id = call.number("comment_id");
    Ok((call.repo().pull_of_review_comment(id).ok_or_else(Answer::not_found)?.number, id))
}

pub fn get(call: &mut Call) -> Answered {
    let (number, id) = place(call)?;
    let repo = call.seen(&Thing::Reviews(number));
    let found = repo.pull(number).and_then(|pull| pull.comment(id));
    let (thread, comment) = found.ok_or_else(Answer::not_found)?;
    Ok(Answer::json(200, render::review::comment(call.world, repo, number, thread, comment)))
}

fn may_change(call: &Call, number: u64, id: u64) -> Result<(), Answer> {
    let author = call.repo().pull(number).and_then(|pull| pull.comment(id)?.1.author.clone());
    if author.as_deref() == Some(call.login.as_str()) { Ok(()) } else { call.need(Permission::Write) }
}

pub fn update(call: &mut Call) -> Answered {
    let (number, id) = place(call).map_err(undocumented)?;
    may_change(call, number, id)?;
    let (text, now) = (call.body["body"].as_str().unwrap_or_default().to_owned(), call.world.now());
    let home = call.home;
    let threads = &mut call.world.repo_mut(home).pull_mut(number).threads;
    let comment = threads.iter_mut().flat_map(|thread| &mut thread.comments).find(|one| one.id == id).unwrap();
    comment.body = text;
    comment.updated_at = now;
    show(call, 200, number, id)
}

pub fn delete(call: &mut Call) -> Answered {
    let (number, id) = place(call)?;
    may_change(call, number, id)?;
    let home = call.home;
    let threads = &mut call.world.repo_mut(home).pull_mut(number).threads;
    threads.iter_mut().for_each(|thread| thread.comments.retain(|one| one.id != id));
    threads.retain(|thread| !thread.comments.is_empty());
    Ok(Answer::empty(204))
}
