//! GitHub Apps.

use serde_json::{Value, json};

use crate::github::state::app::App;
use crate::github::state::{World, shown};

use super::{time, user};

/// The App behind a check run, by its slug.
pub fn integration(world: &World, slug: &str) -> Value {
    let known = world.apps.iter().find(|app| app.slug == slug);
    let id = known.map_or(15368, |app| app.id);
    let url = format!("{}/apps/{slug}", world.base);
    json!({
        "id": id, "slug": slug, "node_id": format!("A_{id}"), "owner": user::simple(world, known.map_or("github", |a| &a.owner)),
        "name": slug, "description": null, "external_url": url, "html_url": url, "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2020-01-01T00:00:00Z", "permissions": {"checks": "write"}, "events": [],
    })
}

pub fn installation(world: &World, app: &App) -> Value {
    let api = format!("{}/app/installations/{}", world.base, app.installation);
    json!({
        "id": app.installation, "account": user::simple(world, &app.owner), "repository_selection": "all",
        "access_tokens_url": format!("{api}/access_tokens"),
        "repositories_url": format!("{}/installation/repositories", world.base),
        "html_url": format!("{}/settings/installations/{}", world.base, app.installation), "app_id": app.id,
        "target_id": world.user(&app.owner).map_or(0, |user| user.id), "target_type": "Organization",
        "permissions": permissions(), "events": ["issues", "pull_request"], "created_at": time(app.created_at),
        "updated_at": shown(app.created_at), "single_file_name": null, "app_slug": app.slug, "suspended_by": null,
        "suspended_at": null,
    })
}

pub fn permissions() -> Value {
    json!({
        "metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "checks": "write",
        "statuses": "write", "actions": "write",
    })
}
