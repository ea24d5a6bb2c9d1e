//! Reviews, their threads, and answers in them.

use crate::github::state::{Happened, Review, ReviewComment, Thread, World};

use super::issues;

/// A remark on a line.
pub struct Line {
    pub path: String,
    pub line: u64,
    pub body: String,
}

/// A submitted review with its remarks; its id.
pub fn submit(world: &mut World, home: usize, number: u64, who: &str, state: &str, body: &str, lines: &[Line]) -> u64 {
    world.ensure_user(who);
    let (id, now) = (world.next_id(), world.now());
    let commit = world.repo(home).pull(number).unwrap().head_sha.clone();
    let review = Review {
        id,
        author: Some(who.to_owned()),
        state: state.to_owned(),
        body: body.to_owned(),
        commit,
        submitted_at: now,
    };
    world.repo_mut(home).pull_mut(number).reviews.push(review);
    for line in lines {
        let comment = new_comment(world, home, number, id, who, &line.body);
        let thread = Thread {
            id: world.next_id(),
            path: line.path.clone(),
            line: line.line,
            outdated: false,
            resolved_by: None,
            comments: vec![comment],
        };
        world.repo_mut(home).pull_mut(number).threads.push(thread);
    }
    if state != "PENDING" {
        world.repo_mut(home).pull_mut(number).reviewers.retain(|login| login != who);
        issues::note(world, home, number, who, Happened::Reviewed(id));
        issues::touch(world, home, number);
    }
    id
}

fn new_comment(world: &mut World, home: usize, number: u64, review: u64, who: &str, body: &str) -> ReviewComment {
    let now = world.now();
    ReviewComment {
        id: world.next_id(),
        review,
        author: Some(who.to_owned()),
        body: body.to_owned(),
        commit: world.repo(home).pull(number).unwrap().head_sha.clone(),
        created_at: now,
        updated_at: now,
        reactions: Vec::new(),
    }
}

/// An answer in a thread. GitHub makes a review of its own for it.
pub fn reply(world: &mut World, home: usize, number: u64, thread: u64, who: &str, body: &str) -> u64 {
    let review = submit(world, home, number, who, "COMMENTED", "", &[]);
    let comment = new_comment(world, home, number, review, who, body);
    let id = comment.id;
    let pull = world.repo_mut(home).pull_mut(number);
    pull.threads.iter_mut().find(|one| one.id == thread).unwrap().comments.push(comment);
    id
}

pub fn resolve(world: &mut World, home: usize, number: u64, thread: u64, by: Option<&str>) {
    let pull = world.repo_mut(home).pull_mut(number);
    // Neither the pull request nor its conversation counts as updated by this.
    pull.threads.iter_mut().find(|one| one.id == thread).unwrap().resolved_by = by.map(str::to_owned);
}

pub fn dismiss(world: &mut World, home: usize, number: u64, review: u64, who: &str, message: &str) {
    let pull = world.repo_mut(home).pull_mut(number);
    pull.reviews.iter_mut().find(|one| one.id == review).unwrap().state = "DISMISSED".to_owned();
    issues::note(world, home, number, who, Happened::ReviewDismissed { review, message: message.to_owned() });
    issues::touch(world, home, number);
}
