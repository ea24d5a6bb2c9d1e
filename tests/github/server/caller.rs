//! Who asks: a token, a GitHub App by its signed word, or nobody.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::github::state::app::App;
use crate::github::state::{Token, TokenKind, World};

use super::exchange::{Answer, Request};

#[derive(Clone)]
pub enum Caller {
    Nobody,
    Token(Token),
    /// An App that speaks for itself, not for an installation.
    App(App),
}

impl Caller {
    pub fn login(&self) -> String {
        match self {
            Self::Nobody => String::new(),
            Self::Token(token) => token.login.clone(),
            Self::App(app) => app.login(),
        }
    }

    /// Reads the `Authorization` header; 401 if what it says is not worth anything.
    pub fn read(world: &World, request: &Request) -> Result<Self, Answer> {
        let Some(header) = request.header("authorization") else { return Ok(Self::Nobody) };
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        let text = match scheme.to_ascii_lowercase().as_str() {
            "bearer" | "token" => rest.trim().to_owned(),
            "basic" => password(rest.trim()).ok_or_else(bad_credentials)?,
            _ => return Err(bad_credentials()),
        };
        if text.split('.').count() == 3 {
            return app(world, &text).map(Self::App);
        }
        let known = world.tokens.iter().find(|token| token.text == text && !token.revoked);
        let token = known.ok_or_else(bad_credentials)?;
        match &token.kind {
            TokenKind::Installation { expires_at, .. } if *expires_at <= world.now() => Err(bad_credentials()),
            _ => Ok(Self::Token(token.clone())),
        }
    }

    /// The refusal, if this token must not use this operation.
    pub fn refused(&self, operation: &str) -> Option<Answer> {
        let Self::Token(token) = self else { return None };
        let fine_grained = token.kind == TokenKind::FineGrained && operation.starts_with("checks/");
        let denied = token.denied.iter().any(|beginning| operation.starts_with(beginning.as_str()));
        let words = match token.kind {
            TokenKind::Installation { .. } => "Resource not accessible by integration",
            _ => "Resource not accessible by personal access token",
        };
        (fine_grained || denied).then(|| Answer::general(403, words))
    }
}

fn bad_credentials() -> Answer {
    Answer::general(401, "Bad credentials")
}

fn password(encoded: &str) -> Option<String> {
    let pair = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

/// The App of a signed token. Its claims are read as GitHub reads them; the signature is only looked at for being one of RS256's length,
/// because no test has a reason to forge it.
fn app(world: &World, text: &str) -> Result<App, Answer> {
    let refuse = |words: &str| Answer::general(401, words);
    let parts: Vec<Vec<u8>> = text.split('.').map_while(|part| URL_SAFE_NO_PAD.decode(part).ok()).collect();
    let [head, claims, signature] = parts.as_slice() else {
        return Err(refuse("A JSON web token could not be decoded"));
    };
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let (head, claims) = (json(head), json(claims));
    if head["alg"] != "RS256" || signature.len() < 256 {
        return Err(refuse("A JSON web token could not be decoded"));
    }
    let (Some(issued), Some(expires)) = (claims["iat"].as_i64(), claims["exp"].as_i64()) else {
        return Err(refuse("Missing 'issued at' claim ('iat') or 'expiration time' claim ('exp')"));
    };
    let now = world.now().as_second();
    if issued > now + 60 {
        return Err(refuse(
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        ));
    }
    if expires <= now || expires > now + 600 + 60 {
        return Err(refuse("'Expiration time' claim ('exp') is too far in the future"));
    }
    let issuer = claims["iss"].as_u64().or_else(|| claims["iss"].as_str()?.parse().ok());
    let app = world.apps.iter().find(|app| Some(app.id) == issuer);
    app.cloned().ok_or_else(|| Answer::general(404, "Integration not found"))
}
