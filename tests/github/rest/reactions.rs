//! Reactions to issues, comments and review comments.

use crate::github::deeds::issues::react;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Reaction, World};

use super::call::Call;
use super::issues::undocumented;
use super::render;

/// Where a list of reactions is.
#[derive(Clone, Copy)]
enum Place {
    Issue(u64),
    Comment(u64, u64),
    ReviewComment(u64, u64),
}

fn reactions(world: &mut World, home: usize, place: Place) -> &mut Vec<Reaction> {
    let repo = world.repo_mut(home);
    match place {
        Place::Issue(number) => &mut repo.issue_mut(number).reactions,
        Place::Comment(number, id) => &mut repo.issue_mut(number).comment_mut(id).unwrap().reactions,
        Place::ReviewComment(number, id) => {
            let threads = &mut repo.pull_mut(number).threads;
            let mut comments = threads.iter_mut().flat_map(|thread| &mut thread.comments);
            &mut comments.find(|comment| comment.id == id).unwrap().reactions
        }
    }
}

fn issue(call: &Call) -> Result<Place, Answer> {
    Ok(Place::Issue(call.issue()?.number))
}

fn comment(call: &Call) -> Result<Place, Answer> {
    let id = call.number("comment_id");
    Ok(Place::Comment(call.repo().issue_of_comment(id).ok_or_else(Answer::not_found)?.number, id))
}

fn review_comment(call: &Call) -> Result<Place, Answer> {
    let id = call.number("comment_id");
    Ok(Place::ReviewComment(call.repo().pull_of_review_comment(id).ok_or_else(Answer::not_found)?.number, id))
}

fn list(call: &mut Call, place: Place) -> Answered {
    let wanted = call.query("content").map(str::to_owned);
    let mut found = reactions(call.world, call.home, place).clone();
    found.retain(|one| wanted.as_ref().is_none_or(|wanted| one.content == *wanted));
    call.page(found, |one| render::issue::reaction(call.world, one))
}

/// 201 for a new one, 200 for one that was there.
fn add(call: &mut Call, place: Place) -> Answered {
    let content = call.body["content"].as_str().unwrap_or_default().to_owned();
    let (home, login) = (call.home, call.login.clone());
    let mut list = reactions(call.world, home, place).clone();
    let (reaction, new) = react(call.world, &login, &content, &mut list);
    *reactions(call.world, home, place) = list;
    Ok(Answer::json(if new { 201 } else { 200 }, render::issue::reaction(call.world, &reaction)))
}

fn delete(call: &mut Call, place: Place) -> Answered {
    let id = call.number("reaction_id");
    reactions(call.world, call.home, place).retain(|one| one.id != id);
    Ok(Answer::empty(204))
}

pub fn of_issue(call: &mut Call) -> Answered {
    let place = issue(call)?;
    list(call, place)
}

pub fn to_issue(call: &mut Call) -> Answered {
    let place = issue(call).map_err(undocumented)?;
    add(call, place)
}

pub fn delete_of_issue(call: &mut Call) -> Answered {
    let place = issue(call).map_err(undocumented)?;
    delete(call, place)
}

pub fn of_comment(call: &mut Call) -> Answered {
    let place = comment(call)?;
    list(call, place)
}

pub fn to_comment(call: &mut Call) -> Answered {
    let place = comment(call).map_err(undocumented)?;
    add(call, place)
}

pub fn delete_of_comment(call: &mut Call) -> Answered {
    let place = comment(call).map_err(undocumented)?;
    delete(call, place)
}

pub fn of_review_comment(call: &mut Call) -> Answered {
    let place = review_comment(call)?;
    list(call, place)
}

pub fn to_review_comment(call: &mut Call) -> Answered {
    let place = review_comment(call).map_err(undocumented)?;
    add(call, place)
}
