//! Issues, comments, reactions.

use serde_json::{Value, json};

use crate::github::state::{Comment, Issue, Reaction, Repo, World};

use super::{joined, repo as repository, time, time_or_null, user};

pub fn issue(world: &World, repo: &Repo, issue: &Issue) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/issues/{}", issue.number);
    let place = if issue.is_pull { "pull" } else { "issues" };
    let html = format!("{}/{place}/{}", repository::html(world, repo), issue.number);
    let labels: Vec<Value> = issue
        .labels
        .iter()
        .filter_map(|name| repo.label(name))
        .map(|one| repository::label(world, repo, one))
        .collect();
    let assignees: Vec<Value> = issue.assignees.iter().map(|login| user::simple(world, login)).collect();
    let milestone = issue.milestone.and_then(|number| repo.milestones.iter().find(|one| one.number == number));
    let done = |numbers: &[u64]| numbers.iter().filter(|n| repo.issue(**n).is_some_and(|i| !i.open)).count();
    let blocking: Vec<u64> =
        repo.issues.values().filter(|other| other.blocked_by.contains(&issue.number)).map(|one| one.number).collect();
    let mut out = json!({
        "id": issue.id,
        "node_id": node_id(repo, issue),
        "url": url,
        "repository_url": api,
        "labels_url": format!("{url}/labels{{/name}}"),
        "comments_url": format!("{url}/comments"),
        "events_url": format!("{url}/events"),
        "timeline_url": format!("{url}/timeline"),
        "html_url": html,
        "number": issue.number,
        "state": if issue.open { "open" } else { "closed" },
        "state_reason": issue.state_reason,
        "title": issue.title,
        "body": issue.body,
        "user": user::nullable(world, issue.author.as_deref()),
        "labels": labels,
        "assignee": assignees.first(),
        "assignees": assignees,
        "milestone": milestone.map(|one| repository::milestone(world, repo, one)),
        "locked": issue.locked.is_some(),
        "active_lock_reason": issue.locked.as_ref().filter(|reason| !reason.is_empty()),
        "comments": issue.comments.len(),
        "closed_at": time_or_null(issue.closed_at),
        "closed_by": user::nullable(world, issue.closed_by.as_deref()),
        "created_at": time(issue.created_at),
        "updated_at": time(issue.updated_at),
        "author_association": user::association(repo, issue.author.as_deref()),
        "reactions": rollup(&format!("{url}/reactions"), &issue.reactions),
        "performed_via_github_app": null,
    });
    if issue.is_pull {
        let pull = repo.pull(issue.number);
        out["draft"] = json!(pull.is_some_and(|pull| pull.draft));
        out["pull_request"] = json!({
            "url": format!("{api}/pulls/{}", issue.number),
            "html_url": html,
            "diff_url": format!("{html}.diff"),
            "patch_url": format!("{html}.patch"),
            "merged_at": time_or_null(pull.and_then(|pull| pull.merged.as_ref()).map(|merged| merged.at)),
        });
        return out;
    }
    let total = issue.sub_issues.len();
    let completed = done(&issue.sub_issues);
    let more = json!({
        "sub_issues_summary": {
            "total": total, "completed": completed, "percent_completed": (completed * 100).checked_div(total).unwrap_or(0),
        },
        "issue_dependencies_summary": {
            "blocked_by": issue.blocked_by.len() - done(&issue.blocked_by), "total_blocked_by": issue.blocked_by.len(),
            "blocking": blocking.len() - done(&blocking), "total_blocking": blocking.len(),
        },
    });
    if let Some(parent) = repo.parent_of(issue.number) {
        out["parent_issue_url"] = json!(format!("{api}/issues/{}", parent.number));
    }
    joined(out, more)
}

/// The id that GraphQL knows it by: of a pull request, that of the pull request.
pub fn node_id(repo: &Repo, issue: &Issue) -> String {
    match repo.pull(issue.number) {
        Some(pull) => format!("PR_{}", pull.id),
        None => format!("I_{}", issue.id),
    }
}

pub fn comment(world: &World, repo: &Repo, number: u64, comment: &Comment) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/issues/comments/{}", comment.id);
    let place = if repo.pull(number).is_some() { "pull" } else { "issues" };
    json!({
        "id": comment.id,
        "node_id": format!("IC_{}", comment.id),
        "url": url,
        "html_url": format!("{}/{place}/{number}#issuecomment-{}", repository::html(world, repo), comment.id),
        "issue_url": format!("{api}/issues/{number}"),
        "body": comment.body,
        "user": user::nullable(world, comment.author.as_deref()),
        "created_at": time(comment.created_at),
        "updated_at": time(comment.updated_at),
        "author_association": user::association(repo, comment.author.as_deref()),
        "reactions": rollup(&format!("{url}/reactions"), &comment.reactions),
        "performed_via_github_app": null,
    })
}

pub fn reaction(world: &World, reaction: &Reaction) -> Value {
    json!({
        "id": reaction.id,
        "node_id": format!("REA_{}", reaction.id),
        "user": user::simple(world, &reaction.user),
        "content": reaction.content,
        "created_at": time(reaction.created_at),
    })
}

pub fn rollup(url: &str, reactions: &[Reaction]) -> Value {
    let mut out = json!({"url": url, "total_count": reactions.len()});
    for content in ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"] {
        out[content] = json!(reactions.iter().filter(|one| one.content == content).count());
    }
    out
}
