//! Why a run failed. Code matches on these variants, never on the text of a message.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RunFailure {
    #[error("the workspace could not be prepared: {detail}")]
    Workspace { detail: String, permanent: bool },
    #[error("hook `{hook}` failed: {detail}")]
    Hook { hook: String, detail: String },
    #[error("the agent could not be started: {detail}")]
    Launch { detail: String, permanent: bool },
    #[error("the agent started but did not answer its handshake: {detail}")]
    Handshake { detail: String },
    #[error("the prompt could not be rendered: {detail}")]
    Prompt { detail: String },
    #[error("{detail}")]
    Turn { class: TurnError, detail: String, reset_at: Option<Timestamp> },
    #[error("the agent was silent for {silent_ms} ms, over the turn limit of {limit_ms} ms")]
    TurnTimeout { silent_ms: u64, limit_ms: u64 },
    #[error("no agent event for {silent_ms} ms, over the limit of {limit_ms} ms")]
    Stalled { silent_ms: u64, limit_ms: u64 },
    #[error("a tool call was open for {open_ms} ms, over the limit of {limit_ms} ms")]
    ToolTimeout { open_ms: u64, limit_ms: u64 },
    #[error("the run took {ran_ms} ms, over its cap of {limit_ms} ms")]
    RunTimeout { ran_ms: u64, limit_ms: u64 },
    #[error("the agent asked for something nobody could give: {question}")]
    InputRequired { question: String },
    /// `said` is the last line that the agent wrote to stderr.
    #[error("the agent exited with code {code}{}", last_words(.said))]
    Exit {
        code: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    #[error("the agent was ended by signal {signal}{}", last_words(.said))]
    Signal {
        signal: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    #[error("the runner stopped while this run was alive")]
    Lost,
    /// The worker declared the failure through the desk (the socket for the worker's `tk`): `tk failed`.
    #[error("the worker gave up: {why}")]
    GaveUp { why: String },
    #[error("the run ended without a new commit, a state change or a declared result")]
    NoProgress,
    #[error("the agent removed its own worktree, and with it what was not committed")]
    WorktreeGone,
    #[error("the run left uncommitted changes and workspace.on_dirty is `fail`")]
    Dirty,
    #[error("the tracker could not be asked: {detail}")]
    Tracker { detail: String },
}

/// The class that the agent itself gave to a failed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnError {
    Auth,
    RateLimit,
    Context,
    Model,
    Refused,
    Other,
}

fn last_words(said: &Option<String>) -> String {
    said.as_ref().map(|said| format!("; its last line on stderr: {said}")).unwrap_or_default()
}

impl RunFailure {
    /// Returns a stable name for logs, the API and the ledger.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Workspace { .. } => "workspace",
            Self::Hook { .. } => "hook",
            Self::Launch { .. } => "launch",
            Self::Handshake { .. } => "handshake",
            Self::Prompt { .. } => "prompt",
            Self::Turn { class: TurnError::Auth, .. } => "turn_auth",
            Self::Turn { class: TurnError::RateLimit, .. } => "turn_rate_limit",
            Self::Turn { class: TurnError::Context, .. } => "turn_context",
            Self::Turn { class: TurnError::Model, .. } => "turn_model",
            Self::Turn { class: TurnError::Refused, .. } => "turn_refused",
            Self::Turn { class: TurnError::Other, .. } => "turn_other",
            Self::TurnTimeout { .. } => "turn_timeout",
            Self::Stalled { .. } => "stalled",
            Self::ToolTimeout { .. } => "tool_timeout",
            Self::RunTimeout { .. } => "run_timeout",
            Self::InputRequired { .. } => "input_required",
            Self::Exit { .. } => "exit",
            Self::Signal { .. } => "signal",
            Self::Lost => "lost",
            Self::GaveUp { .. } => "gave_up",
            Self::NoProgress => "no_progress",
            Self::WorktreeGone => "worktree_gone",
            Self::Dirty => "dirty",
            Self::Tracker { .. } => "tracker",
        }
    }

    /// Whether another attempt cannot help until a person changes something.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Workspace { permanent: true, .. }
                | Self::Launch { permanent: true, .. }
                | Self::Prompt { .. }
                | Self::Turn { class: TurnError::Auth | TurnError::Model, .. }
        )
    }

    /// Whether the agent never got a fair try, so that this does not count as a finished attempt.
    pub fn is_infrastructure(&self) -> bool {
        matches!(
            self,
            Self::Workspace { .. }
                | Self::Hook { .. }
                | Self::Launch { .. }
                | Self::Handshake { .. }
                | Self::Lost
                | Self::Tracker { .. }
        )
    }

    /// Returns what a person can do about the failure.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Workspace { .. } => {
                "check the base branch, the disk and workspace.root, then `dirigent retry TICKET` (a change of WORKFLOW.md starts it by itself)"
            }
            Self::Hook { .. } => "run the hook by hand in a worktree and mend it, then `dirigent retry TICKET`",
            Self::Launch { .. } => {
                "correct the agent's command in WORKFLOW.md (it starts by itself then), or install the agent and run `dirigent retry TICKET`"
            }
            Self::Handshake { .. } => "start the agent by hand and see whether it answers",
            Self::Prompt { .. } => "correct the prompt in WORKFLOW.md; it is read again at once",
            Self::Turn { class: TurnError::Auth, .. } => {
                "log the agent in (or give it its key), then `dirigent retry TICKET`"
            }
            Self::Turn { class: TurnError::Model, .. } => {
                "name a model that the agent knows in WORKFLOW.md (it starts by itself then), or run `dirigent retry TICKET`"
            }
            Self::Turn { class: TurnError::RateLimit, .. } => "nothing: it goes on when the limit resets",
            Self::InputRequired { .. } => "answer on the ticket, then `dirigent retry TICKET`",
            Self::GaveUp { .. } => "change what it stumbled over (its words say what), then `dirigent retry TICKET`",
            Self::Dirty => "let the agent commit its work, or set workspace.on_dirty: commit",
            _ => "read the transcript with `dirigent logs TICKET`, then `dirigent retry TICKET`",
        }
    }
}
