//! The protocols of the agents. A [`Protocol`] is synchronous and does no IO: it takes a line and returns events and lines. `session` binds
//! one to a child process.

pub mod acp;
pub mod claude;
pub mod codex;
mod conversation;
pub mod exec;
mod fault;
mod framing;
pub mod peek;
pub mod pi;
pub mod plan;
pub mod presets;
pub mod session;
pub mod spent_file;
pub mod transcript;
mod usage_totals;

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::domain::failure::TurnError;
use crate::domain::ids::SessionId;
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;

/// The protocol of one agent. Holds the conversation's state, never a handle, a clock or a future.
pub trait Protocol: Send {
    /// Returns the first lines to write once the process is there (handshake, new or resumed session).
    fn open(&mut self, opening: &Opening) -> Reaction;

    /// Takes in a complete line without its newline. Unknown lines and fields are not errors.
    fn line(&mut self, line: &[u8]) -> Reaction;

    /// Starts a turn with this text.
    fn prompt(&mut self, text: &str) -> Reaction;

    /// Sends a message into the running turn. `None` if the agent takes no messages during a turn.
    fn steer(&mut self, text: &str) -> Option<Reaction>;

    /// Requests the end of the running turn. `None` where only the process can be stopped.
    fn interrupt(&mut self) -> Option<Reaction>;

    /// Answers an `Asked` event.
    fn answer(&mut self, ask: &str, answer: &Answer) -> Reaction;

    /// Whether stdin has to be closed after the first prompt (one-shot commands).
    fn one_shot(&self) -> bool {
        false
    }
}

/// What a session is opened with.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    pub cwd: PathBuf,
    pub resume: Option<SessionId>,
    /// What the conversation to be resumed has used so far, where that was recorded.
    pub used_before: Option<Usage>,
    /// The title of the conversation, for agents that support titles.
    pub title: Option<String>,
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    pub tools: Vec<ToolSpec>,
    /// The desk's server, for agents that take the same tools from an MCP server.
    pub desk: Option<DeskServer>,
}

/// How an agent starts the MCP server that offers the desk's tools.
#[derive(Debug, Clone)]
pub struct DeskServer {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The variables by which the server finds the run; the agent's own environment has them too.
    pub variables: Vec<(String, String)>,
    /// The token by which the desk accepts the server.
    pub token: SecretString,
}

impl DeskServer {
    /// The server's name for agents.
    pub const NAME: &'static str = "desk";
    pub const TOKEN_VARIABLE: &'static str = "DIRIGENT_TOKEN";
}

/// A tool that the runner offers to the agent.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: serde_json::Value,
}

/// The result of a line or a request.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Reaction {
    pub events: Vec<AgentEvent>,
    /// Lines to write to the agent, without newlines.
    pub send: Vec<String>,
}

/// The events of all agents, in one vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The handshake is over; a prompt may be sent.
    Ready,
    SessionStarted {
        id: SessionId,
    },
    /// The conversation to be resumed is gone. A `SessionStarted` with another id follows if the agent begins a fresh one by itself;
    /// otherwise the process has to be started again without `resume`.
    ResumeFailed {
        detail: String,
    },
    TurnStarted,
    TurnEnded(TurnEnd),
    Message {
        text: String,
    },
    ToolStarted {
        id: String,
        name: String,
        about: String,
    },
    ToolFinished {
        id: String,
        ok: bool,
    },
    /// The model that works from now on, in the agent's own spelling.
    Model {
        name: String,
    },
    /// The usage since the last report; never counted twice.
    Usage(Usage),
    /// The agent's latest report about its limits. A limit that is hit comes as an `Error` or a failed turn of that class.
    RateLimited {
        description: String,
        reset: Option<Reset>,
    },
    Asked {
        ask: String,
        question: Question,
    },
    Error {
        class: TurnError,
        detail: String,
        retryable: bool,
        reset: Option<Reset>,
    },
    /// A steering message did not reach the running turn (it had just ended, or was interrupted) and has to go into the next prompt.
    SteerFailed {
        text: String,
    },
    /// The agent called a tool that was not offered; it has been told so and goes on.
    UnsupportedTool {
        name: String,
    },
    /// Anything else that shows that the agent is alive.
    Alive,
    /// A line that could not be parsed at all.
    Malformed {
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    Completed,
    Interrupted,
    Failed { class: TurnError, detail: String, reset: Option<Reset> },
}

/// When a limit ends. Agents report a point in time or a span; only the session knows the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    At(Timestamp),
    In(Duration),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// The agent wants permission to use a tool.
    Approval { tool: String, about: String },
    /// The agent wants a text or a choice.
    Input { text: String, choices: Vec<String> },
    /// The agent calls one of the runner's tools.
    Tool { name: String, arguments: serde_json::Value },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Allow,
    Deny { because: String },
    Text(String),
    ToolResult { success: bool, output: String },
}
