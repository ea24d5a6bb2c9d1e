//! What views see: a published picture of the engine's state. Never the state itself.

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
    /// How many runs there may be at the same time.
    #[serde(default)]
    pub slots: usize,
    pub totals: Totals,
    pub pools: Vec<PoolView>,
    pub tracker: TrackerView,
    pub workflow: WorkflowView,
    /// Why the ledger cannot be written: nothing is changed outside until it can.
    #[serde(default)]
    pub ledger_error: Option<String>,
    /// How the adapters are doing. Empty where no runner is up.
    #[serde(default)]
    pub lanes: Vec<LaneView>,
    /// Effects that are written down and not yet confirmed.
    pub pending_effects: usize,
    /// Where the API and the dashboard are, if they are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_at: Option<String>,
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
    /// What has to be finished first.
    #[serde(default)]
    pub blocked_by: Vec<BlockerView>,
    pub phase: Phase,
    /// One value that says why it is where it is.
    pub reason: String,
    /// The same as a sentence.
    pub sentence: String,
    /// What would move it on, and who.
    pub next: String,
    /// What shows the cause: the end of a gate's output, reviewers' remarks.
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
    /// What of its budget is spent, since a person last cleared it.
    #[serde(default)]
    pub budget: Vec<CapView>,
    pub run: Option<RunView>,
    pub retry_at: Option<Timestamp>,
    pub verification: Option<String>,
    /// The head that a person approved by command or by moving the ticket.
    #[serde(default)]
    pub approved_head: Option<String>,
    /// What has to hold before it is merged, in the order in which it is judged.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What stands against a merge until somebody accepts or overrules it.
    #[serde(default)]
    pub remarks: Vec<RemarkView>,
    /// What our own reviews have found so far.
    #[serde(default)]
    pub review: Option<ReviewView>,
    /// The commit on the base branch, once it is merged.
    pub merged_commit: Option<String>,
    /// `false` when a person merged it.
    pub merged_by_us: Option<bool>,
}

/// A ticket that another one waits for, as the tracker shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockerView {
    pub key: String,
    /// `None` where the tracker cannot tell.
    pub state: Option<String>,
    /// Nothing waits for it any more.
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
    /// What became of it.
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemarkView {
    /// By which an approval overrules this version of it.
    pub name: String,
    /// Who said what, and what has become of it.
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
    /// Which agent it is.
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
    /// The tool that it is using.
    #[serde(default)]
    pub tool: Option<String>,
    /// It has been silent since then, longer than `agent.quiet_after_ms`.
    #[serde(default)]
    pub quiet_since: Option<Timestamp>,
    /// When it is stopped as stalled, unless something is heard of it before.
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
    /// What of the day's budget is spent.
    #[serde(default)]
    pub daily_budget: Vec<CapView>,
    /// Ended runs plus the live ones until `at`.
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
    /// Tickets that could not be read, with the reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What was asked of it so far, and what is left of its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
}

/// How the calls to one adapter have been going.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneView {
    pub lane: String,
    pub last_ok: Option<Timestamp>,
    /// What went wrong last, unless something went well since.
    pub last_error: Option<String>,
    /// It was told to wait: nothing is asked before then.
    pub paused_until: Option<Timestamp>,
    /// Our access is refused, and a person has to mend it.
    pub locked_out: bool,
    pub busy: usize,
    pub waiting: usize,
    /// Answered calls since the start, and those of them that failed.
    #[serde(default)]
    pub calls: u64,
    #[serde(default)]
    pub errors: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowView {
    pub hash: String,
    /// Why the file as it is now is not in force.
    pub reload_error: Option<String>,
    /// What is doubtful about the one in force: keys that do nothing, files that are not there.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What it says about how the work is done, in words.
    #[serde(default)]
    pub policies: Vec<PolicyView>,
}

/// One thing that the workflow in force decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyView {
    pub name: String,
    pub value: String,
}
