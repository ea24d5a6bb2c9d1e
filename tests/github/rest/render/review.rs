//! Reviews and their comments.

use serde_json::{Value, json};

use crate::github::state::{Repo, Review, ReviewComment, Thread, World};

use super::{issue, repo as repository, time, user};

pub fn review(world: &World, repo: &Repo, number: u64, review: &Review) -> Value {
    let html = format!("{}/pull/{number}#pullrequestreview-{}", repository::html(world, repo), review.id);
    let url = format!("{}/pulls/{number}", repository::api(world, repo));
    let mut out = json!({
        "id": review.id,
        "node_id": format!("PRR_{}", review.id),
        "user": user::nullable(world, review.author.as_deref()),
        "body": review.body,
        "state": review.state,
        "html_url": html,
        "pull_request_url": url,
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
        "commit_id": review.commit,
        "author_association": user::association(repo, review.author.as_deref()),
    });
    if review.state != "PENDING" {
        out["submitted_at"] = time(review.submitted_at);
    }
    out
}

pub fn comment(world: &World, repo: &Repo, number: u64, thread: &Thread, comment: &ReviewComment) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/pulls/comments/{}", comment.id);
    let html = format!("{}/pull/{number}#discussion_r{}", repository::html(world, repo), comment.id);
    let pull_url = format!("{api}/pulls/{number}");
    let first = thread.comments.first().map_or(comment.id, |first| first.id);
    let mut out = json!({
        "url": url,
        "pull_request_review_id": comment.review,
        "id": comment.id,
        "node_id": format!("PRRC_{}", comment.id),
        "diff_hunk": "@@ -1,3 +1,4 @@",
        "path": thread.path,
        "commit_id": comment.commit,
        "original_commit_id": comment.commit,
        "user": user::nullable(world, comment.author.as_deref()),
        "body": comment.body,
        "created_at": time(comment.created_at),
        "updated_at": time(comment.updated_at),
        "html_url": html,
        "pull_request_url": pull_url,
        "author_association": user::association(repo, comment.author.as_deref()),
        "_links": {"self": {"href": url}, "html": {"href": html}, "pull_request": {"href": pull_url}},
        "original_position": 1,
        "original_line": thread.line,
        "side": "RIGHT",
        "start_line": null,
        "original_start_line": null,
        "start_side": null,
        "subject_type": "line",
        "reactions": issue::rollup(&format!("{url}/reactions"), &comment.reactions),
    });
    // An outdated comment has no line any more; the description knows no null for it, so it is left out.
    if !thread.outdated {
        out["line"] = json!(thread.line);
        out["position"] = json!(1);
    }
    if comment.id != first {
        out["in_reply_to_id"] = json!(first);
    }
    out
}
