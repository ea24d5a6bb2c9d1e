//! Newtypes for everything that is named by a string or a number.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        // Shared, because records are compared, noted and handed on by id all the time.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into().into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.into())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                String::deserialize(input).map(|text| Self(text.into()))
            }
        }
    };
}

string_id! {
    /// The tracker's opaque, stable id of a ticket. Also the key of its job.
    TicketId
}
string_id! {
    /// The id people use for a ticket (`ENG-12`, `#7`, `app-x3f9`).
    TicketKey
}
string_id! {
    /// One disposable worker execution; a ULID, so that ids sort by start.
    RunId
}
string_id! {
    /// A comment's id in its tracker or forge.
    CommentId
}
string_id! {
    /// A git commit, full hexadecimal form.
    CommitId
}
string_id! {
    /// The agent's own conversation id, by which it can be resumed.
    SessionId
}
string_id! {
    /// A group of credentials that share one usage limit.
    PoolName
}

impl CommitId {
    /// The first twelve characters, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    /// Whether a person who writes `name` means this commit: its whole name, or enough of its beginning.
    pub fn is_called(&self, name: &str) -> bool {
        const ENOUGH: usize = 7;
        let name = name.trim().to_ascii_lowercase();
        *self.0 == *name || (name.len() >= ENOUGH && self.0.to_ascii_lowercase().starts_with(&name))
    }
}

/// A pull request's number in its forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrNumber(pub u64);

impl fmt::Display for PrNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#{}", self.0)
    }
}

/// An effect's place in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub u64);

/// Letters of a run's id that people are shown; commands that take a run take them.
pub const SHORT_RUN: usize = 6;
const RUN_ID: usize = 26;

/// The last letters of every run id in the text.
pub fn short_run_ids(text: &str) -> String {
    let is_id = |word: &&str| {
        word.len() == RUN_ID && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_id);
    words.fold(text.to_owned(), |text, id| text.replace(id, short_run(id)))
}

pub fn short_run(id: &str) -> &str {
    id.len().checked_sub(SHORT_RUN).and_then(|start| id.get(start..)).unwrap_or(id)
}
