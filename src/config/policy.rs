//! The part of the configuration that the engine sees: plain data with every value resolved. It holds no secrets and does no IO.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::comment::TrustLevel;
use crate::domain::finding::Severity;
use crate::domain::phase::Phase;
use crate::domain::pr::MergeMethod;
use crate::domain::route::Route;
use crate::domain::time::LocalDays;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Hash of the workflow file and the overrides in force. It is part of the fingerprint of an attempt.
    pub hash: String,
    pub tracker: TrackerPolicy,
    pub agent: AgentPolicy,
    pub orchestration: OrchestrationPolicy,
    pub rollout: RolloutPolicy,
    pub pr: PrPolicy,
    pub review: ReviewPolicy,
    pub merge: MergePolicy,
    pub gates: GatesPolicy,
    pub budget: BudgetPolicy,
    pub branch_prefix: String,
    /// Whether a branch gets the name that the board proposes, if there is a usable one.
    #[serde(default)]
    pub branch_by_tracker: bool,
    /// Whether `workspace.mode` is `directory`: each ticket keeps a directory until it is closed, and the agent or a hook pushes the
    /// work in it, not the runner.
    #[serde(default)]
    pub directories: bool,
    pub polling_interval: Duration,
    /// How long a finished job stays visible before it is archived.
    pub archive_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrackerPolicy {
    pub active_states: Vec<String>,
    pub terminal_states: Vec<String>,
    /// Labels that a ticket must all have, in lower case. A blank one matches nothing.
    pub required_labels: Vec<String>,
    pub authors: Vec<String>,
    /// Trust levels of people whose comments may trigger, steer, approve and unblock.
    pub trusted: Vec<TrustLevel>,
    /// Accounts that are trusted whatever their permission is.
    pub trusted_accounts: Vec<String>,
    /// The name by which people address Dirigent in comments (`@name ...`).
    pub mention: String,
    /// Comments that only acknowledge something, such as `lgtm`, in lower case.
    pub acknowledgements: Vec<String>,
    pub completion_state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPolicy {
    /// The first route that matches a ticket decides. The last one matches every ticket.
    pub routes: Vec<RoutePolicy>,
    /// The time limits of each runtime, by the runtime's name.
    pub timeouts: BTreeMap<String, RuntimeTimeouts>,
    pub max_concurrent: usize,
    /// By state; the states are trimmed and in lower case.
    pub max_concurrent_by_state: BTreeMap<String, usize>,
    pub max_turns: u32,
    pub max_retries: u32,
    pub max_retry_backoff: Duration,
    /// Zero turns a limit off, here and in the next fields.
    pub max_run: Duration,
    pub fresh_start: Duration,
    pub tool_timeout: Duration,
    /// The time from the start of a run until its agent must be ready.
    pub start_timeout: Duration,
    pub order: Order,
}

/// How long an agent of one runtime may be silent. Zero turns a limit off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeTimeouts {
    pub stall: Duration,
    pub turn: Duration,
    /// The silence after which a run is shown as quiet and its agent gets a message.
    #[serde(default)]
    pub quiet: Duration,
}

/// A route and its conditions. All conditions must hold; an empty list is no condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePolicy {
    /// The ticket has one of these labels, in lower case.
    pub labels: Vec<String>,
    pub priority: Vec<i64>,
    pub states: Vec<String>,
    /// What the run is for, such as `review`.
    pub role: Option<String>,
    pub route: Route,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Oldest,
    CriticalPath,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationPolicy {
    pub max_rework_cycles: u32,
    pub rework_states: Vec<String>,
    /// A label that a ticket must have before Dirigent does anything with it, in lower case.
    pub required_label: Option<String>,
    pub on_comment: OnComment,
    pub workpad: bool,
    pub workpad_min_interval: Duration,
    /// The state that a ticket is moved to when its job enters a phase.
    pub states: BTreeMap<Phase, String>,
}

/// What a trusted comment does to a ticket that waits for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnComment {
    Rework,
    #[default]
    Hold,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolloutPolicy {
    pub mode: RolloutMode,
    /// The label on a ticket or pull request that stops all work on it, in lower case.
    pub kill_switch_label: Option<String>,
    /// Whether `preflight_required` is on and `doctor` has not passed for this content.
    pub preflight_missing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutMode {
    Observe,
    Mutate,
    Merge,
}

impl RolloutMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Mutate => "mutate",
            Self::Merge => "merge",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrPolicy {
    pub forge: ForgeKind,
    pub auto_create: bool,
    pub base_branch: String,
    pub closed_pr: ClosedPrPolicy,
    pub draft: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
    /// Whether Dirigent resolves the review conversations that a run has answered.
    #[serde(default)]
    pub resolve_answered: bool,
    /// Whether a draft is marked as ready for review when its checks pass.
    #[serde(default)]
    pub ready_when_green: bool,
    #[serde(default)]
    pub publish_gates: bool,
    /// Whether the ticket gets a link to the pull request.
    #[serde(default)]
    pub attach_to_tracker: bool,
    /// Whether tickets of this board have a place for links besides comments.
    #[serde(default)]
    pub has_links: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgeKind {
    Github,
    Local,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClosedPrPolicy {
    Stop,
    Reopen,
    NewBranch,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewPolicy {
    pub enabled: bool,
    pub max_passes: u32,
    /// Bots whose remarks lead to one round of rework.
    pub bots: Vec<String>,
    /// Findings of these severities lead to rework.
    #[serde(default)]
    pub fix_consideration_severities: Vec<Severity>,
    #[serde(default)]
    pub comment: ReviewComment,
}

/// How the pull request shows the findings of Dirigent's own review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewComment {
    Off,
    /// A new comment for each review.
    Create,
    /// One comment that is kept up to date.
    #[default]
    Upsert,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergePolicy {
    pub auto: bool,
    pub method: MergeMethod,
    pub queue: bool,
    /// Whether a run of the agent prepares each head before it is merged.
    #[serde(default)]
    pub prepare: bool,
    pub max_rebase_attempts: u32,
    pub require_green_checks: bool,
    pub require_head_match: bool,
    pub require_human_approval: bool,
    pub approval_states: Vec<String>,
    pub checks_grace: Duration,
    pub no_checks_pass: bool,
    /// How often failed check jobs are run again before a rework run is started.
    #[serde(default)]
    pub rerun_failed_checks: u32,
    /// Keys of guards that the workflow file asks for and that are not in force. While there is one, nothing is merged.
    #[serde(default)]
    pub guards_not_in_force: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatesPolicy {
    /// Whether there is a `gates.task` command or a hook script that checks finished work.
    pub has_task_gates: bool,
    /// The names of these gates. A head counts as checked when each of them has a result for it.
    #[serde(default)]
    pub task_names: Vec<String>,
    /// Kinds of evidence (`test`, `command`, ...) that a run must record.
    pub required_evidence: Vec<String>,
    pub allow_followups: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetPolicy {
    pub ticket: Caps,
    pub daily: Caps,
    /// When the days begin that `daily` applies to.
    #[serde(default)]
    pub days: LocalDays,
}

/// Caps on usage; `None` means no cap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Caps {
    pub max_turns: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_cost_microusd: Option<u64>,
    pub max_run: Option<Duration>,
}
