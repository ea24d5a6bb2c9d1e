//! Pull requests.

use serde_json::{Value, json};

use crate::github::deeds;
use crate::github::state::{Issue, Pull, Repo, World, git};

use super::{joined, repo as repository, time, time_or_null, user};

/// As it is in lists.
pub fn simple(world: &World, repo: &Repo, issue: &Issue, pull: &Pull) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/pulls/{}", pull.number);
    let issue_url = format!("{api}/issues/{}", pull.number);
    let html = format!("{}/pull/{}", repository::html(world, repo), pull.number);
    let labels: Vec<Value> = issue
        .labels
        .iter()
        .filter_map(|name| repo.label(name))
        .map(|one| {
            let mut label = repository::label(world, repo, one);
            // In this list the description knows no label without a description.
            if label["description"].is_null() {
                label["description"] = json!("");
            }
            label
        })
        .collect();
    let people = |logins: &[String]| logins.iter().map(|login| user::simple(world, login)).collect::<Vec<Value>>();
    let assignees = people(&issue.assignees);
    let milestone = issue.milestone.and_then(|number| repo.milestones.iter().find(|one| one.number == number));
    let side = |owner: &str, branch: &str, sha: &str| {
        json!({
            "label": format!("{owner}:{branch}"), "ref": branch, "sha": sha, "user": user::simple(world, owner),
            "repo": repository::plain(world, repo, owner),
        })
    };
    let link = |href: String| json!({"href": href});
    // In two parts, because the macro recurses per field.
    let first = json!({
        "url": url,
        "id": pull.id,
        "node_id": format!("PR_{}", pull.id),
        "html_url": html,
        "diff_url": format!("{html}.diff"),
        "patch_url": format!("{html}.patch"),
        "issue_url": issue_url,
        "commits_url": format!("{url}/commits"),
        "review_comments_url": format!("{url}/comments"),
        "review_comment_url": format!("{api}/pulls/comments{{/number}}"),
        "comments_url": format!("{issue_url}/comments"),
        "statuses_url": format!("{api}/statuses/{}", pull.head_sha),
        "number": pull.number,
        "state": if issue.open { "open" } else { "closed" },
        "locked": issue.locked.is_some(),
        "title": issue.title,
        "user": user::or_ghost(world, issue.author.as_deref()),
        "body": issue.body,
        "labels": labels,
        "milestone": milestone.map(|one| repository::milestone(world, repo, one)),
    });
    let second = json!({
        "active_lock_reason": issue.locked.as_ref().filter(|reason| !reason.is_empty()),
        "created_at": time(issue.created_at),
        "updated_at": time(issue.updated_at),
        "closed_at": time_or_null(issue.closed_at),
        "merged_at": time_or_null(pull.merged.as_ref().map(|merged| merged.at)),
        "merge_commit_sha": pull.merged.as_ref().map(|merged| merged.sha.as_str()),
        "assignee": assignees.first(),
        "assignees": assignees,
        "requested_reviewers": people(&pull.reviewers),
        "requested_teams": pull.teams.iter().map(|slug| team(world, repo, slug)).collect::<Vec<Value>>(),
        "head": side(&pull.head_owner, &pull.head_ref, &pull.head_sha),
        "base": side(&repo.owner, &pull.base_ref, &pull.base_sha),
        "_links": {
            "self": link(url.clone()), "html": link(html.clone()), "issue": link(issue_url.clone()),
            "comments": link(format!("{issue_url}/comments")), "review_comments": link(format!("{url}/comments")),
            "review_comment": link(format!("{api}/pulls/comments{{/number}}")), "commits": link(format!("{url}/commits")),
            "statuses": link(format!("{api}/statuses/{}", pull.head_sha)),
        },
        "author_association": user::association(repo, issue.author.as_deref()),
        "auto_merge": pull.auto_merge.as_ref().map(|auto| json!({
            "enabled_by": user::simple(world, &auto.by), "merge_method": auto.method.to_lowercase(),
            "commit_title": issue.title, "commit_message": "",
        })),
        "draft": pull.draft,
    });
    joined(first, second)
}

/// As it is when it is asked for alone. `repo` is how the reader sees it.
pub fn full(world: &World, home: usize, repo: &Repo, number: u64, mergeable: Option<bool>) -> Value {
    let (issue, pull) = (repo.issue(number).unwrap(), repo.pull(number).unwrap());
    let folder = &world.homes[home].git;
    let changes = git::changes(folder, &pull.base_sha, &pull.head_sha);
    let state = if issue.open { deeds::pulls::merge_state(world, home, number, mergeable) } else { "unknown" };
    let more = json!({
        "merged": pull.merged.is_some(),
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": state,
        "merged_by": user::nullable(world, pull.merged.as_ref().map(|merged| merged.by.as_str())),
        "comments": issue.comments.len(),
        "review_comments": pull.threads.iter().map(|thread| thread.comments.len()).sum::<usize>(),
        "maintainer_can_modify": false,
        "commits": git::between(folder, &pull.base_sha, &pull.head_sha).len(),
        "additions": changes.iter().map(|change| change.additions).sum::<usize>(),
        "deletions": changes.iter().map(|change| change.deletions).sum::<usize>(),
        "changed_files": changes.len(),
    });
    joined(simple(world, repo, issue, pull), more)
}

/// As it is in check runs and Actions runs.
pub fn minimal(world: &World, repo: &Repo, pull: &Pull) -> Value {
    let api = repository::api(world, repo);
    let home = json!({"id": repo.id, "url": api, "name": repo.name});
    json!({
        "id": pull.id,
        "number": pull.number,
        "url": format!("{api}/pulls/{}", pull.number),
        "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": home},
        "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": home},
    })
}

pub fn team(world: &World, repo: &Repo, slug: &str) -> Value {
    let url = format!("{}/orgs/{}/teams/{slug}", world.base, repo.owner);
    json!({
        "id": 77, "node_id": "T_77", "name": slug, "slug": slug, "description": null, "permission": "push", "url": url,
        "html_url": url, "members_url": format!("{url}/members{{/member}}"), "repositories_url": format!("{url}/repos"),
        "type": "organization", "parent": null,
    })
}
