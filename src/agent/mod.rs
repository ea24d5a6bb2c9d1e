//! How each agent speaks. A [`Protocol`] is synchronous and does no IO: a line in, events and lines out.
//! `session` binds one to a child process.

pub mod acp;
pub mod claude;
pub mod codex;
mod conversation;
pub mod exec;
mod fault;
mod framing;
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

/// One agent's language. Holds the conversation's state, never a handle, a clock or a future.
pub trait Protocol: Send {
    /// The first lines to write once the process is there (handshake, new or resumed session).
    fn open(&mut self, opening: &Opening) -> Reaction;

    /// A complete line without its newline. Unknown lines and fields are not errors.
    fn line(&mut self, line: &[u8]) -> Reaction;

    /// Starts a turn with this text.
    fn prompt(&mut self, text: &str) -> Reaction;

    /// Says something into the running turn. `None` where the agent cannot listen while it works.
    fn steer(&mut self, text: &str) -> Option<Reaction>;

    /// Asks the agent to end the running turn. `None` where only the process can be stopped.
    fn interrupt(&mut self) -> Option<Reaction>;

    /// The answer to an `Asked` event.
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
    /// What the conversation is about, for agents that name theirs.
    pub title: Option<String>,
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    pub tools: Vec<ToolSpec>,
    /// The same tools, for agents that take them from an MCP server.
    pub desk: Option<DeskServer>,
}

/// How an agent starts the server that brings the desk's tools to it.
#[derive(Debug, Clone)]
pub struct DeskServer {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What it needs to find the run; the agent's own environment has the same.
    pub variables: Vec<(String, String)>,
    /// And to be let in.
    pub token: SecretString,
}

impl DeskServer {
    /// What agents call it.
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

/// What came of a line or a request.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Reaction {
    pub events: Vec<AgentEvent>,
    /// Lines to write to the agent, without newlines.
    pub send: Vec<String>,
}

/// One vocabulary for all agents.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The handshake is over; a prompt may be sent.
    Ready,
    SessionStarted {
        id: SessionId,
    },
    /// The conversation to be resumed is gone. A `SessionStarted` with another id follows where the agent begins a fresh
    /// one by itself; otherwise the process has to be started again without `resume`.
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
    /// The model that works from now on, as the agent calls it.
    Model {
        name: String,
    },
    /// What was added since the last report; never counted twice.
    Usage(Usage),
    /// The agent's latest word about its limits. A limit that is hit comes as an `Error` or a failed turn of that class.
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
    /// A steering text did not reach the running turn (it had just ended, or was interrupted): say it with the next prompt.
    SteerFailed {
        text: String,
    },
    /// The agent called a tool that was not offered; it has been told so and goes on.
    UnsupportedTool {
        name: String,
    },
    /// Anything else that shows the agent is alive.
    Alive,
    /// A line that could not be understood at all.
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

/// Agents name a reset as a point in time or as a span; only the runtime knows the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    At(Timestamp),
    In(Duration),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// May I run this?
    Approval { tool: String, about: String },
    /// Text or a choice is wanted.
    Input { text: String, choices: Vec<String> },
    /// One of our tools is called.
    Tool { name: String, arguments: serde_json::Value },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Allow,
    Deny { because: String },
    Text(String),
    ToolResult { success: bool, output: String },
}
