//! Commits and the files that they change.

use serde_json::{Value, json};

use crate::github::state::git::{Changed, Shown};
use crate::github::state::{Repo, World};

use super::{repo as repository, time};

/// As it is in lists of commits.
pub fn commit(world: &World, repo: &Repo, shown: &Shown) -> Value {
    let api = repository::api(world, repo);
    let url = format!("{api}/commits/{}", shown.sha);
    let person = json!({"name": shown.author, "email": shown.email, "date": time(shown.at)});
    let parents: Vec<Value> =
        shown.parents.iter().map(|sha| json!({"sha": sha, "url": format!("{api}/commits/{sha}")})).collect();
    json!({
        "url": url,
        "sha": shown.sha,
        "node_id": format!("C_{}", shown.sha),
        "html_url": format!("{}/commit/{}", repository::html(world, repo), shown.sha),
        "comments_url": format!("{url}/comments"),
        "commit": {
            "url": format!("{api}/git/commits/{}", shown.sha), "author": person, "committer": person,
            "message": shown.message, "comment_count": 0,
            "tree": {"sha": shown.tree, "url": format!("{api}/git/trees/{}", shown.tree)},
            "verification": unsigned(),
        },
        "author": null,
        "committer": null,
        "parents": parents,
    })
}

fn unsigned() -> Value {
    json!({"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null})
}

/// As git itself has it.
pub fn git_commit(world: &World, repo: &Repo, shown: &Shown) -> Value {
    let api = repository::api(world, repo);
    let html = |sha: &str| format!("{}/commit/{sha}", repository::html(world, repo));
    let person = json!({"name": shown.author, "email": shown.email, "date": time(shown.at)});
    let parents: Vec<Value> = shown
        .parents
        .iter()
        .map(|sha| json!({"sha": sha, "url": format!("{api}/git/commits/{sha}"), "html_url": html(sha)}))
        .collect();
    json!({
        "sha": shown.sha,
        "node_id": format!("C_{}", shown.sha),
        "url": format!("{api}/git/commits/{}", shown.sha),
        "html_url": html(&shown.sha),
        "author": person,
        "committer": person,
        "message": shown.message,
        "tree": {"sha": shown.tree, "url": format!("{api}/git/trees/{}", shown.tree)},
        "parents": parents,
        "verification": unsigned(),
    })
}

pub fn simple(shown: &Shown) -> Value {
    let person = json!({"name": shown.author, "email": shown.email});
    json!({
        "id": shown.sha, "tree_id": shown.tree, "message": shown.message, "timestamp": time(shown.at), "author": person,
        "committer": person,
    })
}

pub fn file(world: &World, repo: &Repo, sha: &str, change: &Changed) -> Value {
    let html = repository::html(world, repo);
    json!({
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": format!("{html}/blob/{sha}/{}", change.path),
        "raw_url": format!("{html}/raw/{sha}/{}", change.path),
        "contents_url": format!("{}/contents/{}?ref={sha}", repository::api(world, repo), change.path),
        "patch": change.patch,
    })
}

pub fn reference(world: &World, repo: &Repo, name: &str, sha: &str) -> Value {
    let api = repository::api(world, repo);
    let rest = name.strip_prefix("refs/").unwrap_or(name);
    json!({
        "ref": name,
        "node_id": format!("REF_{name}"),
        "url": format!("{api}/git/refs/{rest}"),
        "object": {"type": "commit", "sha": sha, "url": format!("{api}/git/commits/{sha}")},
    })
}
