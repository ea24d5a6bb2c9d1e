//! Newtypes for all identifiers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        // `Arc<str>`, because ids are cloned all the time: records are compared, noted and passed on by id.
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
    /// The tracker's opaque, stable id of a ticket. Also the key of the ticket's job.
    TicketId
}
string_id! {
    /// The ticket id that people use (`ENG-12`, `#7`, `app-x3f9`).
    TicketKey
}
string_id! {
    /// The id of a run, one disposable worker execution. A ULID, so that ids sort by start time.
    RunId
}
string_id! {
    /// A comment's id in its tracker or forge.
    CommentId
}
string_id! {
    /// A git commit in its full hexadecimal form.
    CommitId
}
string_id! {
    /// The agent's own id of a conversation, by which it can be resumed.
    SessionId
}
string_id! {
    /// A group of credentials that share one usage limit.
    PoolName
}

impl CommitId {
    /// Returns the first twelve characters, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    /// Whether `name` is this commit's full name or at least the first seven characters of it, in upper or lower case.
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

/// The number of an effect in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub u64);
