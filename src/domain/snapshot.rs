//! What views see: a published copy of the engine's state, never the state itself.

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::finding::ReviewFinding;
use super::job::SwitchSource;
use super::phase::Phase;
use super::run::RunKind;
use super::time::Timestamp;
use super::usage::Usage;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub at: Timestamp,
    pub rollout: String,
    pub switches: Vec<SwitchView>,
    pub jobs: Vec<JobView>,
    pub counts: Counts,
    /// How many runs may be live at the same time.
    #[serde(default)]
    pub slots: usize,
    pub totals: Totals,
    pub pools: Vec<PoolView>,
    pub tracker: TrackerView,
    pub workflow: WorkflowView,
    /// Why the ledger cannot be written. Nothing is changed outside until it can.
    #[serde(default)]
    pub ledger_error: Option<String>,
    /// The health of the adapters. Empty where no runner is up.
    #[serde(default)]
    pub lanes: Vec<LaneView>,
    /// Effects that are written down and not confirmed yet.
    pub pending_effects: usize,
    /// The address of the API and the dashboard, if they are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_at: Option<String>,
}

impl Snapshot {
    /// Whether everything was paused by a command.
    pub fn paused_by_command(&self) -> bool {
        self.switches.iter().any(|switch| switch.source == SwitchSource::PauseAll)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchView {
    pub source: SwitchSource,
    pub subject: String,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub id: String,
    pub key: String,
    pub title: String,
    pub state: String,
    pub url: Option<String>,
    pub labels: Vec<String>,
    #[serde(default)]
    pub priority: Option<i64>,
    /// The tickets that have to be finished first.
    #[serde(default)]
    pub blocked_by: Vec<BlockerView>,
    pub phase: Phase,
    /// The code of the reason why the job is where it is.
    pub reason: String,
    /// The same reason as a sentence.
    pub sentence: String,
    /// What would move the job on, and who has to act.
    pub next: String,
    /// Lines that show the cause: the end of a gate's output, reviewers' remarks.
    #[serde(default)]
    pub detail: Option<String>,
    pub since: Timestamp,
    pub branch: String,
    pub head: Option<String>,
    pub pr: Option<PrView>,
    pub attempts: u32,
    pub failures: u32,
    pub rework_cycles: u32,
    pub spent: Usage,
    /// How much of the ticket's budget is spent since a person last cleared it.
    #[serde(default)]
    pub budget: Vec<CapView>,
    pub run: Option<RunView>,
    pub retry_at: Option<Timestamp>,
    pub verification: Option<String>,
    /// The head that a person approved: by command, by moving the ticket, or by a review.
    #[serde(default)]
    pub approved_head: Option<String>,
    /// The merge conditions, in the order in which they are judged.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Remarks that stand against a merge until a person accepts or overrules them.
    #[serde(default)]
    pub remarks: Vec<RemarkView>,
    /// What the runner's own reviews have found so far.
    #[serde(default)]
    pub review: Option<ReviewView>,
    /// The commit on the base branch, once the work is merged.
    pub merged_commit: Option<String>,
    /// `false` when a person merged the work; `None` while it is not merged.
    pub merged_by_us: Option<bool>,
}

/// A ticket that another one waits for, as the tracker shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockerView {
    pub key: String,
    /// `None` where the tracker cannot tell.
    pub state: Option<String>,
    /// Whether the blocker is finished, so that no ticket waits for it any more.
    pub is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewView {
    pub passes: u32,
    pub max_passes: u32,
    /// The head that counts as reviewed.
    pub head: Option<String>,
    pub findings: Vec<FindingView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    #[serde(flatten)]
    pub finding: ReviewFinding,
    /// How the finding was answered.
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemarkView {
    /// The name by which an approval overrules this version of the remark.
    pub name: String,
    /// The author and the text, in one shortened line.
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrView {
    pub number: u64,
    pub url: Option<String>,
    pub state: String,
    pub checks: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    pub id: String,
    pub kind: RunKind,
    /// Which agent does the run.
    #[serde(default)]
    pub runtime: String,
    pub attempt: u32,
    pub started_at: Timestamp,
    pub last_event_at: Timestamp,
    pub turn_count: u32,
    pub session: Option<String>,
    pub pid: Option<i32>,
    pub usage: Usage,
    pub said: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The tool that the agent is using.
    #[serde(default)]
    pub tool: Option<String>,
    /// Since when the agent has been silent, if that is longer than `agent.quiet_after_ms`.
    #[serde(default)]
    pub quiet_since: Option<Timestamp>,
    /// When the run is stopped as stalled, unless the agent reports something before.
    #[serde(default)]
    pub stalls_at: Option<Timestamp>,
    pub stopping: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub running: usize,
    pub retrying: usize,
    pub queued: usize,
    pub waiting: usize,
    pub blocked: usize,
    pub done: usize,
    pub released: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub usage: Usage,
    pub today: Usage,
    /// How much of the day's budget is spent.
    #[serde(default)]
    pub daily_budget: Vec<CapView>,
    /// When the day is over and its budget starts anew: local midnight.
    #[serde(default)]
    pub day_ends_at: Timestamp,
    /// Run time of all ended runs, plus that of the live ones until `at`.
    pub seconds_running: u64,
}

/// A cap and what counts against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapView {
    pub what: String,
    pub spent: String,
    pub cap: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolView {
    pub pool: String,
    pub paused_until: Option<Timestamp>,
    pub rate_limit: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerView {
    pub last_ok: Option<Timestamp>,
    pub last_error: Option<String>,
    /// Tickets that could not be read, each with the reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The requests made so far, and what is left of the tracker's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
}

/// How the calls to one adapter have been going.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneView {
    pub lane: String,
    pub last_ok: Option<Timestamp>,
    /// The last error, unless a call has succeeded since.
    pub last_error: Option<String>,
    /// Until when calls wait because the service told the runner to.
    pub paused_until: Option<Timestamp>,
    /// Whether the service refuses the runner's credentials, which a person has to fix.
    pub locked_out: bool,
    pub busy: usize,
    pub waiting: usize,
    /// How many calls were answered since the start. `errors` counts the failed ones among them.
    #[serde(default)]
    pub calls: u64,
    #[serde(default)]
    pub errors: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowView {
    pub hash: String,
    /// Why the present content of the workflow file is not in force.
    pub reload_error: Option<String>,
    /// Problems of the workflow in force: keys without effect, missing files.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What the workflow says about how the work is done, in words.
    #[serde(default)]
    pub policies: Vec<PolicyView>,
}

/// One policy of the workflow in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyView {
    pub name: String,
    pub value: String,
}
