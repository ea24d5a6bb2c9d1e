//! Accounts and what they may do.

use serde_json::json;

use crate::github::server::caller::Caller;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::{Permission, TokenKind};

use super::call::Call;
use super::render;

pub fn authenticated(call: &mut Call) -> Answered {
    // A token of an installation is nobody's.
    if let Caller::Token(token) = &call.caller
        && matches!(token.kind, TokenKind::Installation { .. })
    {
        return Err(Answer::message(403, "Resource not accessible by integration"));
    }
    let mut user = render::user::private(call.world, &call.login);
    user["user_view_type"] = json!("private");
    Ok(Answer::json(200, user))
}

pub fn by_username(call: &mut Call) -> Answered {
    let login = call.world.user(call.text("username")).ok_or_else(Answer::not_found)?.login.clone();
    Ok(Answer::json(200, render::user::full(call.world, &login)))
}

fn members(call: &Call, at_least: Permission) -> Vec<String> {
    let repo = call.repo();
    let fits = |login: &&String| repo.permission(login) >= at_least;
    let names = repo.permissions.keys().filter(fits);
    names.map(|login| call.world.user(login).map_or(login.clone(), |user| user.login.clone())).collect()
}

pub fn collaborators(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let found = members(call, Permission::Read);
    call.page(found, |login| render::user::collaborator(call.world, call.repo(), login))
}

pub fn check_collaborator(call: &mut Call) -> Answered {
    let login = call.text("username").to_lowercase();
    if call.repo().permissions.contains_key(&login) { Ok(Answer::empty(204)) } else { Err(Answer::not_found()) }
}

/// What somebody may do. GitHub tells it only to those who may write.
pub fn permission(call: &mut Call) -> Answered {
    call.need(Permission::Write)?;
    let login = call.world.user(call.text("username")).ok_or_else(Answer::not_found)?.login.clone();
    let repo = call.repo();
    let permission = repo.permission(&login);
    let body = json!({
        "permission": permission.legacy(), "role_name": permission.role(),
        "user": render::user::collaborator(call.world, repo, &login),
    });
    Ok(Answer::json(200, body))
}

pub fn assignees(call: &mut Call) -> Answered {
    let found = members(call, Permission::Triage);
    call.page(found, |login| render::user::simple(call.world, login))
}

pub fn check_assignee(call: &mut Call) -> Answered {
    let may = call.repo().permission(call.text("assignee")) >= Permission::Triage;
    if may { Ok(Answer::empty(204)) } else { Err(Answer::not_found()) }
}
