//! What a run may ask of the service that its ticket lives in, besides the ticket itself.

use serde_json::Value;

use super::ids::{TicketId, TicketKey};

/// The names under which agents know the APIs of the services. Only the one in use is offered.
pub const API_TOOLS: [&str; 2] = ["github_api", "linear_graphql"];

/// A service's API as a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiTool {
    /// One of [`API_TOOLS`].
    pub name: &'static str,
    pub description: &'static str,
    pub input_schema: Value,
}

/// What a run may touch: its own ticket and its own pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiScope {
    pub ticket: TicketId,
    pub key: TicketKey,
    /// The address of its pull request, once there is one.
    pub pull_request: Option<String>,
    /// Hidden in everything that is written, so that it is known as the worker's: it never steers, approves or commands.
    pub mark: String,
}

/// What a request would do. One that fits none of these is refused before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiDeed {
    Read,
    /// In a few words, for the record.
    Write {
        what: String,
    },
    /// Moves the run's own ticket to another column.
    Move {
        from: String,
        to: String,
    },
    /// Changes a text, which has to be the worker's own: this is how it stands.
    Edit {
        what: String,
        text: String,
    },
}

/// A file that a ticket refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub url: String,
    /// The last part of its address. Anybody may have chosen it.
    pub name: String,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    pub success: bool,
    pub output: String,
}
