//! What somebody wrote on a ticket or a pull request, and how they stand to the repository.

use serde::{Deserialize, Serialize};

use super::ids::CommentId;
use super::time::Timestamp;

/// How an author stands to the repository. Decides whether their words count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    Admin,
    Maintain,
    Write,
    Triage,
    /// A full member of the team, where the tracker knows no finer permission.
    Member,
    Stranger,
    Bot,
}

impl TrustLevel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Maintain => "maintain",
            Self::Write => "write",
            Self::Triage => "triage",
            Self::Member => "member",
            Self::Stranger => "stranger",
            Self::Bot => "bot",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub name: String,
    pub trust: TrustLevel,
    /// Written by the account that Dirigent itself uses. Never read as a human's word.
    pub ourselves: bool,
}

impl Author {
    pub fn new(name: impl Into<String>, trust: TrustLevel) -> Self {
        Self { name: name.into(), trust, ourselves: false }
    }

    pub fn ourselves() -> Self {
        Self { name: "dirigent".into(), trust: TrustLevel::Bot, ourselves: true }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: CommentId,
    pub author: Author,
    pub body: String,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

impl Comment {
    /// Which version of its text this is. An edit that changes nothing is not another one.
    pub fn version(&self) -> String {
        text_version(&self.body)
    }
}

/// Whether a text may tell us to do something. What it tells is read later, by the name that we listen to.
pub fn has_command_line(body: &str) -> bool {
    body.lines().any(|line| line.trim_start().starts_with('/'))
}

/// How a comment that tells us to do something is answered in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledgement {
    Seen,
    Refused,
}

/// Stands for a text, so that another one is told apart.
pub fn text_version(text: &str) -> String {
    format!("{:016x}", super::hash::stable_hash(&[text]))
}
