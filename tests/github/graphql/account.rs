//! Accounts and Apps.

use crate::github::server::paging::encode;
use crate::github::state::UserKind;

use super::Context;
use super::node::{Arguments, Kind, Resolved, Val, database_id};
use super::project;
use super::query::{number, text};

pub fn account(context: &Context, login: &str, name: &str, arguments: &Arguments) -> Option<Resolved> {
    if name == "projectV2" {
        return Some(project::of_owner(context, Some(login), number(arguments, "number")));
    }
    let world = context.world.borrow();
    let user = world.user(login);
    let id = user.map_or(10137, |user| user.id);
    // GraphQL shows bots without the ending that REST gives them.
    let shown = match user.map(|user| user.kind) {
        Some(UserKind::Bot) => login.trim_end_matches("[bot]"),
        _ => login,
    };
    Some(match name {
        "login" => Val::leaf(shown),
        "id" => Val::leaf(format!("U_{id}")),
        "databaseId" => database_id(id),
        "name" => Val::leaf(shown),
        "url" => Val::leaf(format!("{}/{}", world.base, encode(shown))),
        "resourcePath" => Val::leaf(format!("/{}", encode(shown))),
        "avatarUrl" => Val::leaf(format!("{}/avatars/{id}", world.base)),
        "email" => Val::leaf(""),
        "isViewer" => Val::leaf(login == context.login),
        "createdAt" | "updatedAt" => Val::leaf("2020-01-01T00:00:00Z"),
        "repository" => Val::maybe(world.home(login, text(arguments, "name")).map(Kind::Repository)),
        _ => return None,
    })
}

pub fn app(context: &Context, slug: &str, name: &str) -> Option<Resolved> {
    let world = context.world.borrow();
    let id = world.apps.iter().find(|app| app.slug == slug).map_or(15368, |app| app.id);
    Some(match name {
        "slug" | "name" => Val::leaf(slug),
        "id" => Val::leaf(format!("A_{id}")),
        "databaseId" => database_id(id),
        "url" => Val::leaf(format!("{}/apps/{slug}", world.base)),
        _ => return None,
    })
}
