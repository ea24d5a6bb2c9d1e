//! GitHub Apps: who they are, and the tokens of their installations.

use jiff::SignedDuration;
use serde_json::json;

use crate::github::server::caller::Caller;
use crate::github::server::exchange::{Answer, Answered};
use crate::github::state::app::App;
use crate::github::state::{Token, TokenKind, shown};

use super::call::Call;
use super::issues::undocumented;
use super::render;

/// Leaves with 401 unless an App speaks for itself.
fn app(call: &Call) -> Result<App, Answer> {
    match &call.caller {
        Caller::App(app) => Ok(app.clone()),
        _ => Err(Answer::general(401, "A JSON web token could not be decoded")),
    }
}

pub fn authenticated(call: &mut Call) -> Answered {
    let app = app(call)?;
    Ok(Answer::json(200, render::app::integration(call.world, &app.slug)))
}

pub fn installation(call: &mut Call) -> Answered {
    let app = app(call)?;
    if app.installation != call.number("installation_id") {
        return Err(Answer::not_found());
    }
    Ok(Answer::json(200, render::app::installation(call.world, &app)))
}

pub fn repo_installation(call: &mut Call) -> Answered {
    let app = app(call)?;
    Ok(Answer::json(200, render::app::installation(call.world, &app)))
}

pub fn create_token(call: &mut Call) -> Answered {
    let app = app(call)?;
    if app.installation != call.number("installation_id") {
        return Err(Answer::not_found());
    }
    let expires_at = call.world.now() + SignedDuration::from_hours(1);
    let text = format!("ghs_{}", call.world.next_id());
    call.world.ensure_user(&app.login());
    call.world.tokens.push(Token {
        text: text.clone(),
        login: app.login(),
        kind: TokenKind::Installation { app: app.id, expires_at },
        denied: Vec::new(),
        revoked: false,
    });
    let body = json!({
        "token": text, "expires_at": shown(expires_at), "permissions": render::app::permissions(),
        "repository_selection": "all",
    });
    Ok(Answer::json(201, body))
}

pub fn repositories(call: &mut Call) -> Answered {
    let Caller::Token(Token { kind: TokenKind::Installation { .. }, .. }) = &call.caller else {
        return Err(undocumented(Answer::message(403, "You must authenticate with an installation access token")));
    };
    let found = call.world.homes.iter().collect();
    call.page_in("repositories", found, |home| render::repo::plain(call.world, &home.repo, &home.repo.owner))
}
