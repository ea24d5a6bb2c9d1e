//! Accounts and the tokens that speak for them.

use jiff::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserKind {
    Person,
    Bot,
    Organization,
}

#[derive(Clone, Debug)]
pub struct User {
    pub id: u64,
    pub login: String,
    pub kind: UserKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A classic personal token with these scopes.
    Classic { scopes: Vec<String> },
    /// A fine-grained personal token: cannot read check runs.
    FineGrained,
    /// The token of a GitHub App's installation.
    Installation { app: u64, expires_at: Timestamp },
}

#[derive(Clone, Debug)]
pub struct Token {
    pub text: String,
    pub login: String,
    pub kind: TokenKind,
    /// Beginnings of operation names that this token must not use: 403.
    pub denied: Vec<String>,
    /// From now on 401.
    pub revoked: bool,
}
