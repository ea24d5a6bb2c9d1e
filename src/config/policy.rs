//! What the engine sees of the configuration: plain data, every value resolved, no paths to secrets, no IO.

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
    /// Hash of the effective policy and prompt: part of an attempt's fingerprint.
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
    /// The name that the board proposes comes first.
    #[serde(default)]
    pub branch_by_tracker: bool,
    /// `workspace.mode: directory`: each ticket keeps a directory until it is closed, and what lies in it is pushed by others.
    #[serde(default)]
    pub directories: bool,
    pub polling_interval: Duration,
    /// How long a job that is over stays in view before it is archived.
    pub archive_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrackerPolicy {
    pub active_states: Vec<String>,
    pub terminal_states: Vec<String>,
    /// Lower case. A blank one matches nothing.
    pub required_labels: Vec<String>,
    pub authors: Vec<String>,
    /// Whose words trigger, steer, approve and un-block.
    pub trusted: Vec<TrustLevel>,
    /// Accounts whose words count whatever their permission.
    pub trusted_accounts: Vec<String>,
    /// The name that people address us by (`@name ...`).
    pub mention: String,
    /// What only acknowledges, such as `lgtm`. Lower case.
    pub acknowledgements: Vec<String>,
    pub completion_state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPolicy {
    /// The first one that matches a ticket decides; the last one matches every ticket.
    pub routes: Vec<RoutePolicy>,
    /// By the runtime's name.
    pub timeouts: BTreeMap<String, RuntimeTimeouts>,
    pub max_concurrent: usize,
    /// Keys trimmed and lower case.
    pub max_concurrent_by_state: BTreeMap<String, usize>,
    pub max_turns: u32,
    pub max_retries: u32,
    pub max_retry_backoff: Duration,
    /// Zero is off, here and below.
    pub max_run: Duration,
    pub fresh_start: Duration,
    pub tool_timeout: Duration,
    /// From the start of a run until its process is there.
    pub start_timeout: Duration,
    pub order: Order,
}

/// How long an agent of one runtime may be silent. Zero is off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeTimeouts {
    pub stall: Duration,
    pub turn: Duration,
    /// Before it is called quiet and spoken to.
    #[serde(default)]
    pub quiet: Duration,
}

/// All of what is named must hold; an empty list names nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePolicy {
    /// Lower case. The ticket carries one of these.
    pub labels: Vec<String>,
    pub priority: Vec<i64>,
    pub states: Vec<String>,
    /// What the run is for.
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
    /// On the ticket before any automation. Lower case.
    pub required_label: Option<String>,
    pub on_comment: OnComment,
    pub workpad: bool,
    pub workpad_min_interval: Duration,
    /// Columns to move the ticket to as phases change.
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
    /// Lower case.
    pub kill_switch_label: Option<String>,
    /// `preflight_required` is on and `doctor` has not passed for this content.
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
    /// Conversations that a run has answered are resolved by us.
    #[serde(default)]
    pub resolve_answered: bool,
    /// A draft becomes ready for review when its checks pass.
    #[serde(default)]
    pub ready_when_green: bool,
    #[serde(default)]
    pub publish_gates: bool,
    /// The ticket gets a link to the pull request.
    #[serde(default)]
    pub attach_to_tracker: bool,
    /// The board has a place for links besides comments.
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
    /// Bots whose remarks get one round of rework.
    pub bots: Vec<String>,
    /// Findings of these severities lead to rework.
    #[serde(default)]
    pub fix_consideration_severities: Vec<Severity>,
    #[serde(default)]
    pub comment: ReviewComment,
}

/// What the pull request shows of our review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewComment {
    Off,
    /// One comment per review.
    Create,
    /// One comment, kept up to date.
    #[default]
    Upsert,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergePolicy {
    pub auto: bool,
    pub method: MergeMethod,
    pub queue: bool,
    /// A run prepares each head before it is merged.
    #[serde(default)]
    pub prepare: bool,
    pub max_rebase_attempts: u32,
    pub require_green_checks: bool,
    pub require_head_match: bool,
    pub require_human_approval: bool,
    pub approval_states: Vec<String>,
    pub checks_grace: Duration,
    pub no_checks_pass: bool,
    /// How often failed jobs run again before a rework.
    #[serde(default)]
    pub rerun_failed_checks: u32,
    /// Keys of guards that the file asks for and that are not in force. While there is one, nothing is merged.
    #[serde(default)]
    pub guards_not_in_force: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatesPolicy {
    /// Whether there is a `gates.task` command to run.
    pub has_task_gates: bool,
    /// What those commands are called: a head counts as checked when each of them has looked at it.
    #[serde(default)]
    pub task_names: Vec<String>,
    /// Kinds of evidence (`test`, `command`, ...) that a run must bring.
    pub required_evidence: Vec<String>,
    pub allow_followups: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetPolicy {
    pub ticket: Caps,
    pub daily: Caps,
    /// The days that `daily` is about.
    #[serde(default)]
    pub days: LocalDays,
}

/// `None` means that there is no cap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Caps {
    pub max_turns: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_cost_microusd: Option<u64>,
    pub max_run: Option<Duration>,
}
