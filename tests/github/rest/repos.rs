//! The repository itself, its files, and the limits.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::github::server::exchange::{Answer, Answered};
use crate::github::server::limits::Primary;
use crate::github::state::{Thing, git};

use super::call::Call;
use super::render;

pub fn root(call: &mut Call) -> Answered {
    let names = [
        "current_user_url",
        "current_user_authorizations_html_url",
        "authorizations_url",
        "code_search_url",
        "commit_search_url",
        "emails_url",
        "emojis_url",
        "events_url",
        "feeds_url",
        "followers_url",
        "following_url",
        "gists_url",
        "issue_search_url",
        "issues_url",
        "keys_url",
        "label_search_url",
        "notifications_url",
        "organization_url",
        "organization_repositories_url",
        "organization_teams_url",
        "public_gists_url",
        "rate_limit_url",
        "repository_url",
        "repository_search_url",
        "current_user_repositories_url",
        "starred_url",
        "starred_gists_url",
        "user_url",
        "user_organizations_url",
        "user_repositories_url",
        "user_search_url",
    ];
    let base = &call.world.base;
    let all: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!(format!("{base}/{}", name.trim_end_matches("_url")))))
        .collect();
    Ok(Answer::json(200, Value::Object(all)))
}

pub fn rate_limit(call: &mut Call) -> Answered {
    let now = call.world.now();
    call.world.limits.renew(now);
    let shown = |primary: &Primary| {
        json!({
            "limit": primary.limit, "used": primary.used, "remaining": primary.limit.saturating_sub(primary.used),
            "reset": primary.reset_at.as_second(),
        })
    };
    let core = shown(&call.world.limits.core);
    let search = json!({"limit": 30, "used": 0, "remaining": 30, "reset": call.world.limits.core.reset_at.as_second()});
    let graphql = shown(&call.world.limits.graphql);
    let body = json!({"resources": {"core": core, "search": search, "graphql": graphql}, "rate": core});
    Ok(Answer::json(200, body))
}

pub fn get(call: &mut Call) -> Answered {
    Ok(Answer::json(200, render::repo::full(call.world, call.repo(), &call.login)))
}

pub fn content(call: &mut Call) -> Answered {
    let repo = call.seen(&Thing::Refs);
    let name = call.query("ref").unwrap_or(&repo.default_branch);
    let sha = repo.head(name).unwrap_or(name).to_owned();
    let path = call.text("path").to_owned();
    let folder = &call.world.homes[call.home].git;
    if !git::has(folder, &sha) {
        return Err(Answer::not_found());
    }
    let (blob, bytes) = git::file(folder, &sha, &path).ok_or_else(Answer::not_found)?;
    let api = render::repo::api(call.world, repo);
    let url = format!("{api}/contents/{path}?ref={name}");
    let html = format!("{}/blob/{name}/{path}", render::repo::html(call.world, repo));
    let git_url = format!("{api}/git/blobs/{blob}");
    let body = json!({
        "type": "file", "encoding": "base64", "size": bytes.len(), "name": path.rsplit('/').next(), "path": path,
        "content": base64::engine::general_purpose::STANDARD.encode(&bytes), "sha": blob, "url": url, "git_url": git_url,
        "html_url": html, "download_url": html, "_links": {"git": git_url, "html": html, "self": url},
    });
    Ok(Answer::json(200, body))
}
