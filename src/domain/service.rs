//! The API of the tracker's service, as far as a run may use it besides the ticket itself.

use serde_json::Value;

use super::ids::{TicketId, TicketKey};

/// The names under which agents know the services' APIs. Only the one of the tracker in use is offered.
pub const API_TOOLS: [&str; 2] = ["github_api", "linear_graphql"];

/// A service's API as a tool for agents.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiTool {
    /// One of [`API_TOOLS`].
    pub name: &'static str,
    pub description: &'static str,
    pub input_schema: Value,
}

/// What a run may change through the API: its own ticket and its own pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiScope {
    pub ticket: TicketId,
    pub key: TicketKey,
    /// The address of the run's pull request, once there is one.
    pub pull_request: Option<String>,
    /// Hidden in every text that the run writes, so that it is recognised as the worker's: it never steers, approves or commands.
    pub mark: String,
}

/// What an API request would do. A request that fits none of these is refused before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiDeed {
    Read,
    /// `what` describes the write in a few words, for the record.
    Write {
        what: String,
    },
    /// Moves the run's own ticket to another column.
    Move {
        from: String,
        to: String,
    },
    /// Changes a text, which has to be the worker's own; `text` is its present content.
    Edit {
        what: String,
        text: String,
    },
}

/// A file that a ticket refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub url: String,
    /// The last part of the file's address. Untrusted: anybody may have chosen it.
    pub name: String,
}

/// The result of an API request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    pub success: bool,
    pub output: String,
}
