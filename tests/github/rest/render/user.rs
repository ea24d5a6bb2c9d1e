//! Accounts.

use serde_json::{Value, json};

use crate::github::state::{Permission, Repo, UserKind, World, shown};

use super::joined;

pub fn simple(world: &World, login: &str) -> Value {
    let user = world.user(login);
    let id = user.map_or(10137, |user| user.id);
    let kind = match user.map(|user| user.kind) {
        Some(UserKind::Bot) => "Bot",
        Some(UserKind::Organization) => "Organization",
        _ => "User",
    };
    let encoded = crate::github::server::paging::encode(login);
    let api = format!("{}/users/{encoded}", world.base);
    json!({
        "login": login,
        "id": id,
        "node_id": format!("U_{id}"),
        "avatar_url": format!("{}/avatars/{id}", world.base),
        "gravatar_id": "",
        "url": api,
        "html_url": format!("{}/{encoded}", world.base),
        "followers_url": format!("{api}/followers"),
        "following_url": format!("{api}/following{{/other_user}}"),
        "gists_url": format!("{api}/gists{{/gist_id}}"),
        "starred_url": format!("{api}/starred{{/owner}}{{/repo}}"),
        "subscriptions_url": format!("{api}/subscriptions"),
        "organizations_url": format!("{api}/orgs"),
        "repos_url": format!("{api}/repos"),
        "events_url": format!("{api}/events{{/privacy}}"),
        "received_events_url": format!("{api}/received_events"),
        "type": kind,
        "site_admin": false,
    })
}

/// Null for an account that is gone.
pub fn nullable(world: &World, login: Option<&str>) -> Value {
    login.map_or(Value::Null, |login| simple(world, login))
}

/// Where the description does not allow null, GitHub shows the account `ghost`.
pub fn or_ghost(world: &World, login: Option<&str>) -> Value {
    simple(world, login.unwrap_or("ghost"))
}

pub fn full(world: &World, login: &str) -> Value {
    let at = shown(world.now());
    let more = json!({
        "name": login, "company": null, "blog": null, "location": null, "email": null, "hireable": null, "bio": null,
        "public_repos": 1, "public_gists": 0, "followers": 0, "following": 0, "created_at": "2020-01-01T00:00:00Z",
        "updated_at": at,
    });
    joined(simple(world, login), more)
}

/// The caller's own account.
pub fn private(world: &World, login: &str) -> Value {
    let more = json!({
        "private_gists": 0, "total_private_repos": 0, "owned_private_repos": 0, "disk_usage": 0, "collaborators": 0,
        "two_factor_authentication": true, "updated_at": "2020-01-01T00:00:00Z",
    });
    joined(full(world, login), more)
}

pub fn collaborator(world: &World, repo: &Repo, login: &str) -> Value {
    let permission = repo.permission(login);
    let more = json!({
        "permissions": {
            "pull": permission >= Permission::Read, "triage": permission >= Permission::Triage,
            "push": permission >= Permission::Write, "maintain": permission >= Permission::Maintain,
            "admin": permission >= Permission::Admin,
        },
        "role_name": permission.role(),
    });
    joined(simple(world, login), more)
}

/// How somebody belongs to a repository. It says little about what he may do, which is why nobody should decide by it.
pub fn association(repo: &Repo, login: Option<&str>) -> &'static str {
    let Some(login) = login else { return "NONE" };
    match repo.permissions.get(&login.to_lowercase()) {
        _ if login.eq_ignore_ascii_case(&repo.owner) => "OWNER",
        Some(Permission::Admin) => "MEMBER",
        Some(permission) if *permission >= Permission::Read => "COLLABORATOR",
        _ => "NONE",
    }
}
