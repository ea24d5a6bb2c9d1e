//! How a `tk` command fails: its message on stderr and its exit code.

use thiserror::Error;

use crate::tracker::tk::StoreError;

/// Exit code of `claim`: somebody else has the ticket.
pub const CLAIM_LOST: u8 = 3;
/// Exit code of `claim`: the ticket cannot be worked on now.
pub const CLAIM_NOT_READY: u8 = 4;

#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Wrong arguments; the text says how the command is used.
    #[error("{0}")]
    Usage(String),
    #[error("Unknown option: {0}")]
    UnknownOption(String),
    #[error("option '{0}' needs a value")]
    MissingValue(String),
    /// A message for people, with its exit code.
    #[error("{sentence}")]
    Said { sentence: String, code: u8 },
}

impl Failure {
    pub fn said(sentence: impl Into<String>) -> Self {
        Self::Said { sentence: sentence.into(), code: 1 }
    }

    pub fn code(&self) -> u8 {
        match self {
            Self::Said { code, .. } => *code,
            _ => 1,
        }
    }

    /// Returns the text for stderr.
    pub fn report(&self) -> String {
        match self {
            Self::Usage(_) | Self::UnknownOption(_) => self.to_string(),
            Self::Store(StoreError::Ambiguous { matches, .. }) => {
                let some = matches.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if matches.len() > 5 { ", ..." } else { "" };
                format!("Error: {self}\nCandidates: {some}{more}")
            }
            _ => format!("Error: {self}"),
        }
    }
}
