//! Comments on a ticket or a pull request, and the standing of their authors in the repository.

use serde::{Deserialize, Serialize};

use super::ids::CommentId;
use super::time::Timestamp;

/// An author's standing in the repository. It decides whether the author's words count.
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
    /// Whether the comment was written by the account that Dirigent itself uses. Such a comment never counts as a person's words.
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
    /// Returns the version of the comment's text. An edit that leaves the text unchanged does not make a new version.
    pub fn version(&self) -> String {
        text_version(&self.body)
    }
}

/// Whether the text has a line that starts with `/` and so may be an instruction to the runner. Which name it addresses is checked later.
pub fn has_command_line(body: &str) -> bool {
    body.lines().any(|line| line.trim_start().starts_with('/'))
}

/// The short answer to a comment that gives the runner an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledgement {
    Seen,
    Refused,
}

/// Returns a hash of the text, by which a changed text is recognised.
pub fn text_version(text: &str) -> String {
    format!("{:016x}", super::hash::stable_hash(&[text]))
}
