//! Issues: opened, labelled, assigned, commented, closed.

use std::sync::Arc;

use crate::github::state::{Comment, Event, Happened, Issue, Label, Reaction, World};

/// A new issue; the number that it got.
pub fn open(world: &mut World, home: usize, who: &str, title: &str, body: Option<&str>) -> u64 {
    world.ensure_user(who);
    let (id, now) = (world.next_id(), world.now());
    let repo = world.repo_mut(home);
    let number = repo.next_number();
    let issue = Issue {
        id,
        number,
        title: title.to_owned(),
        body: body.map(str::to_owned),
        author: Some(who.to_owned()),
        open: true,
        state_reason: None,
        labels: Vec::new(),
        assignees: Vec::new(),
        milestone: None,
        locked: None,
        comments: Vec::new(),
        events: Vec::new(),
        reactions: Vec::new(),
        blocked_by: Vec::new(),
        sub_issues: Vec::new(),
        is_pull: false,
        created_at: now,
        updated_at: now,
        closed_at: None,
        closed_by: None,
        reworded: None,
    };
    repo.issues.insert(number, Arc::new(issue));
    number
}

/// Adds to the timeline; whether the issue counts as updated by it is the caller's matter.
pub fn note(world: &mut World, home: usize, number: u64, who: &str, what: Happened) {
    let (id, at) = (world.next_id(), world.now());
    let actor = (!who.is_empty()).then(|| who.to_owned());
    world.repo_mut(home).issue_mut(number).events.push(Event { id, actor, at, what });
}

/// Another text.
pub fn reword(world: &mut World, home: usize, number: u64, who: &str, body: Option<&str>) {
    let now = world.now();
    let issue = world.repo_mut(home).issue_mut(number);
    issue.body = body.map(str::to_owned);
    issue.reworded = Some((who.to_owned(), now));
    touch(world, home, number);
}

pub fn touch(world: &mut World, home: usize, number: u64) {
    let now = world.now();
    world.repo_mut(home).issue_mut(number).updated_at = now;
}

/// A label of the repository; made if there is none of that name.
pub fn ensure_label(world: &mut World, home: usize, name: &str) -> Label {
    if let Some(label) = world.repo(home).label(name) {
        return label.clone();
    }
    let label = Label { id: world.next_id(), name: name.to_owned(), color: "ededed".to_owned(), description: None };
    Arc::make_mut(&mut world.repo_mut(home).labels).push(label.clone());
    label
}

pub fn label(world: &mut World, home: usize, number: u64, who: &str, name: &str) {
    let name = ensure_label(world, home, name).name;
    if world.repo(home).issue(number).is_some_and(|issue| issue.has_label(&name)) {
        return;
    }
    world.repo_mut(home).issue_mut(number).labels.push(name.clone());
    note(world, home, number, who, Happened::Labeled(name));
    touch(world, home, number);
}

/// Whether the issue had it.
pub fn unlabel(world: &mut World, home: usize, number: u64, who: &str, name: &str) -> bool {
    let issue = world.repo_mut(home).issue_mut(number);
    let Some(at) = issue.labels.iter().position(|label| label.eq_ignore_ascii_case(name)) else { return false };
    let name = issue.labels.remove(at);
    note(world, home, number, who, Happened::Unlabeled(name));
    touch(world, home, number);
    true
}

pub fn set_labels(world: &mut World, home: usize, number: u64, who: &str, names: &[String]) {
    let old = world.repo(home).issue(number).map(|issue| issue.labels.clone()).unwrap_or_default();
    for name in old.iter().filter(|name| !names.iter().any(|other| other.eq_ignore_ascii_case(name))) {
        unlabel(world, home, number, who, name);
    }
    for name in names {
        label(world, home, number, who, name);
    }
}

pub fn assign(world: &mut World, home: usize, number: u64, who: &str, assignee: &str) {
    world.ensure_user(assignee);
    let issue = world.repo_mut(home).issue_mut(number);
    if !issue.assignees.iter().any(|one| one == assignee) {
        issue.assignees.push(assignee.to_owned());
        note(world, home, number, who, Happened::Assigned(assignee.to_owned()));
        touch(world, home, number);
    }
}

pub fn unassign(world: &mut World, home: usize, number: u64, who: &str, assignee: &str) {
    let issue = world.repo_mut(home).issue_mut(number);
    if let Some(at) = issue.assignees.iter().position(|one| one == assignee) {
        issue.assignees.remove(at);
        note(world, home, number, who, Happened::Unassigned(assignee.to_owned()));
        touch(world, home, number);
    }
}

pub fn comment(world: &mut World, home: usize, number: u64, who: &str, body: &str) -> u64 {
    world.ensure_user(who);
    let (id, now) = (world.next_id(), world.now());
    let comment = Comment {
        id,
        author: Some(who.to_owned()),
        body: body.to_owned(),
        created_at: now,
        updated_at: now,
        reactions: Vec::new(),
        minimized: None,
    };
    world.repo_mut(home).issue_mut(number).comments.push(comment);
    note(world, home, number, who, Happened::Commented(id));
    touch(world, home, number);
    id
}

pub fn edit_comment(world: &mut World, home: usize, id: u64, body: &str) {
    let now = world.now();
    let number = world.repo(home).issue_of_comment(id).unwrap().number;
    let issue = world.repo_mut(home).issue_mut(number);
    issue.updated_at = now;
    let comment = issue.comment_mut(id).unwrap();
    comment.body = body.to_owned();
    comment.updated_at = now;
}

/// A comment that is deleted leaves no trace, not even in the issue's `updated_at`.
pub fn delete_comment(world: &mut World, home: usize, id: u64) {
    let number = world.repo(home).issue_of_comment(id).unwrap().number;
    let issue = world.repo_mut(home).issue_mut(number);
    issue.comments.retain(|comment| comment.id != id);
    issue.events.retain(|event| event.what != Happened::Commented(id));
}

/// A reaction, and whether it is new.
pub fn react(world: &mut World, who: &str, content: &str, reactions: &mut Vec<Reaction>) -> (Reaction, bool) {
    if let Some(old) = reactions.iter().find(|one| one.user == who && one.content == content) {
        return (old.clone(), false);
    }
    let reaction =
        Reaction { id: world.next_id(), user: who.to_owned(), content: content.to_owned(), created_at: world.now() };
    reactions.push(reaction.clone());
    (reaction, true)
}

pub fn close(world: &mut World, home: usize, number: u64, who: &str, reason: Option<&str>) {
    let now = world.now();
    let issue = world.repo_mut(home).issue_mut(number);
    if !issue.open {
        return;
    }
    issue.open = false;
    issue.closed_at = Some(now);
    issue.closed_by = Some(who.to_owned());
    issue.state_reason = (!issue.is_pull).then(|| reason.unwrap_or("completed").to_owned());
    let reason = issue.state_reason.clone();
    note(world, home, number, who, Happened::Closed { reason });
    touch(world, home, number);
}

pub fn reopen(world: &mut World, home: usize, number: u64, who: &str) {
    let issue = world.repo_mut(home).issue_mut(number);
    if issue.open {
        return;
    }
    issue.open = true;
    issue.closed_at = None;
    issue.closed_by = None;
    issue.state_reason = (!issue.is_pull).then(|| "reopened".to_owned());
    note(world, home, number, who, Happened::Reopened);
    touch(world, home, number);
}
