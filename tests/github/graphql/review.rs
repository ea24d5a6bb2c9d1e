//! Reviews, threads and the comments in them.

use serde_json::Value;

use crate::github::rest::render;
use crate::github::state::{Permission, Thing, shown};

use super::Context;
use super::issue::author;
use super::node::{Arguments, Kind, Resolved, Val, connect, database_id};

pub fn review(
    context: &Context,
    home: usize,
    number: u64,
    id: u64,
    name: &str,
    arguments: &Arguments,
) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Reviews(number));
    let pull = repo.pull(number)?;
    let review = pull.review(id).or_else(|| world.repo(home).pull(number)?.review(id))?;
    let path = format!("/{}/pull/{number}#pullrequestreview-{id}", repo.full_name());
    Some(match name {
        "id" => Val::leaf(format!("PRR_{id}")),
        "databaseId" => database_id(id),
        "fullDatabaseId" => Val::leaf(id.to_string()),
        "state" => Val::leaf(review.state.as_str()),
        "body" | "bodyText" => Val::leaf(review.body.as_str()),
        "author" => author(review.author.as_deref()),
        "authorAssociation" => Val::leaf(render::user::association(repo, review.author.as_deref())),
        "authorCanPushToRepository" => {
            let may = review.author.as_ref().is_some_and(|login| repo.permission(login) >= Permission::Write);
            Val::leaf(may)
        }
        "commit" => Val::node(Kind::Commit(home, review.commit.clone())),
        "submittedAt" if review.state == "PENDING" => Val::leaf(Value::Null),
        "createdAt" | "updatedAt" | "submittedAt" | "publishedAt" => Val::leaf(shown(review.submitted_at)),
        "lastEditedAt" | "minimizedReason" => Val::leaf(Value::Null),
        "isMinimized" => Val::leaf(false),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "repository" => Val::node(Kind::Repository(home)),
        "comments" => {
            let comments = pull.threads.iter().flat_map(|thread| &thread.comments).filter(|one| one.review == id);
            let all = comments.map(|one| Kind::ReviewComment(home, number, one.id)).collect();
            connect("PullRequestReviewCommentConnection", all, arguments)
        }
        _ => return None,
    })
}

pub fn request(home: usize, number: u64, login: &str, name: &str) -> Option<Resolved> {
    Some(match name {
        "id" => Val::leaf(format!("RR_{number}_{login}")),
        "requestedReviewer" => Val::node(Kind::Account(login.to_owned())),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "asCodeOwner" => Val::leaf(false),
        "databaseId" => Val::leaf(Value::Null),
        _ => return None,
    })
}

pub fn thread(
    context: &Context,
    home: usize,
    number: u64,
    id: u64,
    name: &str,
    arguments: &Arguments,
) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.seen(home, &Thing::Reviews(number));
    let find = |repo: &crate::github::state::Repo| repo.pull(number)?.threads.iter().find(|one| one.id == id).cloned();
    let thread = find(repo).or_else(|| find(world.repo(home)))?;
    Some(match name {
        "id" => Val::leaf(format!("PRRT_{id}")),
        "isResolved" => Val::leaf(thread.resolved_by.is_some()),
        "isCollapsed" => Val::leaf(thread.resolved_by.is_some()),
        "isOutdated" => Val::leaf(thread.outdated),
        "resolvedBy" => author(thread.resolved_by.as_deref()),
        "path" => Val::leaf(thread.path.as_str()),
        "line" => Val::leaf((!thread.outdated).then_some(thread.line)),
        "originalLine" => Val::leaf(thread.line),
        "startLine" | "originalStartLine" | "startDiffSide" => Val::leaf(Value::Null),
        "diffSide" => Val::leaf("RIGHT"),
        "subjectType" => Val::leaf("LINE"),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "repository" => Val::node(Kind::Repository(home)),
        "viewerCanReply" => Val::leaf(true),
        "viewerCanResolve" | "viewerCanUnresolve" => {
            Val::leaf(world.repo(home).permission(&context.login) >= Permission::Write)
        }
        "comments" => {
            let all = thread.comments.iter().map(|one| Kind::ReviewComment(home, number, one.id)).collect();
            connect("PullRequestReviewCommentConnection", all, arguments)
        }
        _ => return None,
    })
}

pub fn comment(context: &Context, home: usize, number: u64, id: u64, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let repo = world.repo(home);
    let seen = world.seen(home, &Thing::Reviews(number));
    let found = seen.pull(number).and_then(|pull| pull.comment(id));
    let (thread, comment) = found.or_else(|| repo.pull(number)?.comment(id))?;
    let first = thread.comments.first().map_or(id, |first| first.id);
    let path = format!("/{}/pull/{number}#discussion_r{id}", repo.full_name());
    Some(match name {
        "id" => Val::leaf(format!("PRRC_{id}")),
        "databaseId" => database_id(id),
        "fullDatabaseId" => Val::leaf(id.to_string()),
        "body" | "bodyText" => Val::leaf(comment.body.as_str()),
        "author" => author(comment.author.as_deref()),
        "authorAssociation" => Val::leaf(render::user::association(repo, comment.author.as_deref())),
        "createdAt" | "publishedAt" | "draftedAt" => Val::leaf(shown(comment.created_at)),
        "updatedAt" => Val::leaf(shown(comment.updated_at)),
        "lastEditedAt" => {
            let edited = comment.updated_at != comment.created_at;
            Val::leaf(edited.then(|| shown(comment.updated_at)))
        }
        "isMinimized" => Val::leaf(false),
        "minimizedReason" => Val::leaf(Value::Null),
        "path" => Val::leaf(thread.path.as_str()),
        "line" => Val::leaf((!thread.outdated).then_some(thread.line)),
        "originalLine" => Val::leaf(thread.line),
        "outdated" => Val::leaf(thread.outdated),
        "diffHunk" => Val::leaf("@@ -1,3 +1,4 @@"),
        "state" => Val::leaf("SUBMITTED"),
        "commit" | "originalCommit" => Val::node(Kind::Commit(home, comment.commit.clone())),
        "replyTo" => Val::maybe((first != id).then_some(Kind::ReviewComment(home, number, first))),
        "pullRequestReview" => Val::node(Kind::Review(home, number, comment.review)),
        "pullRequest" => Val::node(Kind::Pull(home, number)),
        "repository" => Val::node(Kind::Repository(home)),
        "url" => Val::leaf(format!("{}{path}", world.base)),
        "resourcePath" => Val::leaf(path),
        "viewerDidAuthor" => Val::leaf(comment.author.as_ref() == Some(&context.login)),
        _ => return None,
    })
}
