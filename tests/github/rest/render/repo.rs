//! Repositories, labels, milestones.

use serde_json::{Value, json};

use crate::github::state::{Label, Milestone, Permission, Repo, World};

use super::{joined, time, user};

/// The addresses that every form of a repository carries, by what follows the repository's own.
const PLACES: [(&str, &str); 36] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
];

pub fn api(world: &World, repo: &Repo) -> String {
    format!("{}/repos/{}", world.base, repo.full_name())
}

pub fn html(world: &World, repo: &Repo) -> String {
    format!("{}/{}", world.base, repo.full_name())
}

/// The short form, as it is in Actions runs and combined statuses.
pub fn minimal(world: &World, repo: &Repo) -> Value {
    of_owner(world, repo, &repo.owner)
}

/// The short form of the repository or of a fork of it.
fn of_owner(world: &World, repo: &Repo, owner: &str) -> Value {
    let api = format!("{}/repos/{owner}/{}", world.base, repo.name);
    let mut out = json!({
        "id": if owner == repo.owner { repo.id } else { repo.id + 1 },
        "node_id": format!("R_{}", repo.id),
        "name": repo.name,
        "full_name": format!("{owner}/{}", repo.name),
        "owner": user::simple(world, owner),
        "private": repo.private,
        "html_url": format!("{}/{owner}/{}", world.base, repo.name),
        "description": null,
        "fork": owner != repo.owner,
        "url": api,
    });
    for (name, rest) in PLACES {
        out[name] = json!(format!("{api}{rest}"));
    }
    out
}

/// The form inside pull requests.
pub fn plain(world: &World, repo: &Repo, owner: &str) -> Value {
    let open = repo.issues.values().filter(|issue| issue.open).count();
    let git = format!("{}/{owner}/{}.git", world.base, repo.name);
    let more = json!({
        "git_url": git, "ssh_url": git, "clone_url": git, "mirror_url": null,
        "svn_url": format!("{}/{owner}/{}", world.base, repo.name),
        "homepage": null, "language": null, "forks_count": 0, "stargazers_count": 0, "watchers_count": 0, "size": 1,
        "default_branch": repo.default_branch, "open_issues_count": open, "has_issues": repo.settings.has_issues,
        "has_projects": true, "has_wiki": false, "has_pages": false, "has_downloads": true,
        "archived": repo.settings.archived, "disabled": false, "pushed_at": time(repo.pushed_at),
        "created_at": time(repo.created_at), "updated_at": time(repo.pushed_at), "license": null, "forks": 0,
        "open_issues": open, "watchers": 0, "visibility": if repo.private { "private" } else { "public" },
    });
    joined(of_owner(world, repo, owner), more)
}

/// The whole form, with what the caller may do and how merging is set up.
pub fn full(world: &World, repo: &Repo, login: &str) -> Value {
    let permission = repo.permission(login);
    let mut out = plain(world, repo, &repo.owner);
    let more = json!({
        "has_discussions": false, "subscribers_count": 0, "network_count": 0,
        "permissions": {
            "admin": permission >= Permission::Admin, "maintain": permission >= Permission::Maintain,
            "push": permission >= Permission::Write, "triage": permission >= Permission::Triage,
            "pull": permission >= Permission::Read,
        },
    });
    out = joined(out, more);
    // Only who may push sees the merge settings.
    if permission >= Permission::Write {
        let settings = &repo.settings;
        out = joined(
            out,
            json!({
                "allow_merge_commit": settings.merge, "allow_squash_merge": settings.squash,
                "allow_rebase_merge": settings.rebase, "allow_auto_merge": settings.auto_merge,
                "delete_branch_on_merge": settings.delete_branch_on_merge,
            }),
        );
    }
    out
}

pub fn label(world: &World, repo: &Repo, label: &Label) -> Value {
    json!({
        "id": label.id,
        "node_id": format!("LA_{}", label.id),
        "url": format!("{}/labels/{}", api(world, repo), crate::github::server::paging::encode(&label.name)),
        "name": label.name,
        "description": label.description,
        "color": label.color,
        "default": false,
    })
}

pub fn milestone(world: &World, repo: &Repo, milestone: &Milestone) -> Value {
    let url = format!("{}/milestones/{}", api(world, repo), milestone.number);
    json!({
        "url": url,
        "html_url": format!("{}/milestone/{}", html(world, repo), milestone.number),
        "labels_url": format!("{url}/labels"),
        "id": milestone.id,
        "node_id": format!("MI_{}", milestone.id),
        "number": milestone.number,
        "state": "open",
        "title": milestone.title,
        "description": null,
        "creator": user::simple(world, &repo.owner),
        "open_issues": repo.issues.values().filter(|i| i.open && i.milestone == Some(milestone.number)).count(),
        "closed_issues": 0,
        "created_at": time(milestone.created_at),
        "updated_at": time(milestone.created_at),
        "closed_at": null,
        "due_on": null,
    })
}
