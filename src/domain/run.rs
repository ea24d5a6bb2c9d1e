//! A run: one disposable worker execution for a job, with one worktree, one agent process and one outcome.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::failure::RunFailure;
use super::ids::{CommitId, PoolName, RunId, SessionId, TicketId, TicketKey};
use super::time::Timestamp;
use super::usage::{RateLimit, Usage};

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Implement,
    Review,
    Rework,
}

impl RunKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Rework => "rework",
        }
    }
}

/// A run that has been started (or is about to be) and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRun {
    pub id: RunId,
    pub ticket: TicketId,
    pub key: TicketKey,
    pub kind: RunKind,
    /// 1 for the first run of a job.
    pub attempt: u32,
    pub pool: PoolName,
    /// The runtime that the ticket was routed to. Its timeouts apply.
    #[serde(default)]
    pub runtime: String,
    pub branch: String,
    /// The ticket's state when last seen. Per-state slots are counted by it.
    pub ticket_state: String,
    pub started_at: Timestamp,
    /// The head of the branch when the process was started.
    pub head_before: Option<CommitId>,
    pub progress: Progress,
    pub life: Life,
}

/// How far the run has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Life {
    Spawning,
    Running { process: ProcessMark, worktree: PathBuf, session: Option<SessionId> },
}

/// Identifies a process by pid and start time, never by the pid alone, because pids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    pub pid: i32,
    /// Start time in clock ticks since boot, by the kernel's own clock.
    pub started_ticks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub last_event_at: Timestamp,
    /// When the oldest tool call that is still open was started.
    pub tool_open_since: Option<Timestamp>,
    pub turns: u32,
    pub usage: Usage,
    pub said: Option<String>,
    pub rate_limit: Option<RateLimit>,
    pub has_commit_or_evidence: bool,
    pub told_to_wrap_up: bool,
    /// Whether the agent asked a person a question. The worker itself ends that wait.
    #[serde(default)]
    pub waiting_for_answer: bool,
    /// Whether the agent was silent, was sent a nudge, and has not worked since.
    #[serde(default)]
    pub nudged: bool,
    /// The time of the last event before the silence that was noticed.
    #[serde(default)]
    pub quiet_noticed: Option<Timestamp>,
    /// The model as routed, then as the agent reports it.
    #[serde(default)]
    pub model: Option<String>,
    /// The tool that the agent is using.
    #[serde(default)]
    pub tool: Option<String>,
}

impl Progress {
    pub fn at_start(now: Timestamp) -> Self {
        Self {
            last_event_at: now,
            tool_open_since: None,
            turns: 0,
            usage: Usage::default(),
            said: None,
            rate_limit: None,
            has_commit_or_evidence: false,
            told_to_wrap_up: false,
            waiting_for_answer: false,
            nudged: false,
            quiet_noticed: None,
            model: None,
            tool: None,
        }
    }
}

/// What the worker reports while it runs. The worker merges frequent reports before it sends them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Activity {
    /// Any event of the agent. `usage` is what was added since the last report.
    Agent {
        usage: Usage,
        tool_open_since: Option<Timestamp>,
        said: Option<String>,
    },
    /// The model and the tool in use. Reported when one of them changes.
    Doing {
        model: Option<String>,
        tool: Option<String>,
    },
    SessionKnown {
        session: SessionId,
    },
    TurnEnded {
        turns: u32,
    },
    RateLimited {
        limit: RateLimit,
    },
    Committed {
        head: CommitId,
    },
    /// Through the desk (the socket for the worker's `tk`): `tk comment`.
    Commented {
        text: String,
    },
    /// The worker moves its own ticket through the tracker's API.
    MovedTicket {
        from: String,
        to: String,
        step: MoveStep,
    },
    /// Through the desk: `tk api`. The write has happened already.
    Wrote {
        what: String,
    },
    /// Through the desk: `tk evidence`.
    Proved {
        evidence: Evidence,
    },
    /// Through the desk: `tk plan`.
    Planned {
        text: String,
    },
    /// Through the desk: `tk create`.
    FollowUp {
        ticket: super::ticket::NewTicket,
        key: String,
    },
    /// The prompt, or a message to the live agent, carried these remarks.
    Delivered {
        remarks: Vec<super::remark::RemarkKey>,
    },
    /// A message with these remarks was reported as delivered, but did not reach the agent.
    NotDelivered {
        remarks: Vec<super::remark::RemarkKey>,
    },
    /// Through the desk: `tk answer`.
    AnsweredRemark {
        remark: super::remark::RemarkKey,
        answer: super::remark::RemarkAnswer,
    },
    /// The agent asks for an approval or an answer.
    Asked {
        question: String,
    },
}

/// What the worker declared through the desk or its protocol. The last declaration counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Declared {
    Done {
        summary: String,
    },
    Blocked {
        reason: String,
    },
    /// The worker gave up; the run has failed with these words.
    Failed {
        why: String,
    },
}

/// Why a run is stopped from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum StopReason {
    TerminalState,
    NotActive,
    NotEligible {
        because: String,
    },
    /// The tracker does not show the ticket any more.
    NotVisible,
    KillSwitch,
    ObserveMode,
    Operator,
    /// A person gave the ticket back.
    GivenBack,
    Budget {
        what: String,
        figure: String,
        cap: String,
    },
    FreshStart,
    Shutdown,
    /// The usage limit of the credential pool is reached.
    Quota,
    /// The day's budget is spent.
    DailyBudget,
    /// A person merged or closed the pull request, or moved its head, while the run was under way.
    Superseded,
    /// A ticket that this one waits for was opened again.
    BlockerOpened,
    /// A limit that makes the run a failed one, not a killed one.
    Limit {
        failure: RunFailure,
    },
}

impl StopReason {
    pub fn code(&self) -> &'static str {
        match self {
            Self::TerminalState => "terminal_state",
            Self::NotActive => "not_active",
            Self::NotEligible { .. } => "not_eligible",
            Self::NotVisible => "not_visible",
            Self::KillSwitch => "kill_switch",
            Self::ObserveMode => "observe_mode",
            Self::Operator => "operator",
            Self::GivenBack => "given_back",
            Self::Budget { .. } => "budget",
            Self::FreshStart => "fresh_start",
            Self::Shutdown => "shutdown",
            Self::Quota => "quota",
            Self::DailyBudget => "daily_budget",
            Self::Superseded => "superseded",
            Self::BlockerOpened => "blocker_opened",
            Self::Limit { failure } => failure.code(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RunOutcome {
    Done,
    Failed { failure: RunFailure },
    Killed { reason: StopReason },
}

/// How far a worker's move of its ticket has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveStep {
    /// The move is being sent now.
    Sent,
    Done,
    Refused,
    /// The answer was lost, so the move may or may not have happened.
    MaybeDone,
}

impl RunOutcome {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed { failure } => failure.code(),
            Self::Killed { reason } => reason.code(),
        }
    }
}

/// Everything that is known when a run is over: the outcome, and what git shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    pub outcome: RunOutcome,
    pub declared: Option<Declared>,
    pub evidence: Vec<Evidence>,
    /// Claims in the evidence that the facts contradict, one sentence each.
    #[serde(default)]
    pub contradicted: Vec<String>,
    /// The base commit that the branch was compared with.
    pub base: Option<CommitId>,
    pub head_before: Option<CommitId>,
    pub head: Option<CommitId>,
    /// Commits on the branch beyond the base.
    pub commits_ahead: u32,
    pub salvage: Option<Salvage>,
    pub session: Option<SessionId>,
    /// Usage that no `Activity` has reported yet.
    pub unreported_usage: Usage,
    pub turns: u32,
    /// The agent's text of its last turn, where that is the result: a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The worktree, if it was kept because of `workspace.keep`.
    pub kept_worktree: Option<PathBuf>,
}

impl RunReport {
    /// Makes a report of which only the outcome is known.
    pub fn bare(outcome: RunOutcome) -> Self {
        Self {
            outcome,
            declared: None,
            evidence: Vec::new(),
            contradicted: Vec::new(),
            base: None,
            head_before: None,
            head: None,
            commits_ahead: 0,
            salvage: None,
            session: None,
            unreported_usage: Usage::default(),
            turns: 0,
            said: None,
            kept_worktree: None,
        }
    }

    pub fn made_commits(&self) -> bool {
        self.head.is_some() && self.head != self.head_before && self.commits_ahead > 0
    }
}

/// Uncommitted work that was saved as a commit under a ref of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salvage {
    pub reference: String,
    pub commit: CommitId,
    pub files: u32,
    /// Files that were too large to be saved, listed for a person.
    pub left_out: Vec<String>,
}

/// A finished run as the ledger stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedRun {
    pub run: LiveRun,
    pub ended_at: Timestamp,
    pub report: RunReport,
}
