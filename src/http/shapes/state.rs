//! The state of the whole board: `GET /api/v1/state`.

use schemars::JsonSchema;
use serde::Serialize;

use super::ticket::{CapShape, TicketShape, TokenCounts, session_id};
use super::time;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::usage::Usage;

/// The state of the whole board: Symphony's fields first, then Dirigent's own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StateAnswer {
    pub generated_at: String,
    pub counts: CountShape,
    pub running: Vec<RunningShape>,
    pub retrying: Vec<RetryingShape>,
    /// The same as `totals`, under the name of Symphony's specification.
    pub codex_totals: TotalShape,
    pub rate_limits: Option<Vec<PoolShape>>,
    pub totals: TotalShape,
    pub today: TotalShape,
    pub daily_budget: Vec<CapShape>,
    /// `observe`, `mutate` or `merge`.
    pub rollout: String,
    /// The switches that people have pulled to stop things.
    pub switches: Vec<SwitchShape>,
    pub pools: Vec<PoolShape>,
    pub tracker: TrackerShape,
    pub workflow: WorkflowShape,
    pub lanes: Vec<LaneShape>,
    /// Why the ledger cannot be written. Until it can be written again, nothing is changed outside.
    pub ledger_error: Option<String>,
    pub pending_effects: usize,
    pub tickets: Vec<TicketShape>,
}

/// An event of `/api/v1/events`: the state without its tickets, plus the tickets that are new or changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangeEvent {
    pub generated_at: String,
    pub counts: CountShape,
    /// Ids of tickets that are no longer on the board.
    pub gone: Vec<String>,
    pub changed: Vec<TicketShape>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountShape {
    pub running: usize,
    pub retrying: usize,
    pub queued: usize,
    pub waiting: usize,
    pub blocked: usize,
    pub done: usize,
    pub released: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunningShape {
    pub issue_id: String,
    pub issue_identifier: String,
    pub state: String,
    pub session_id: Option<String>,
    pub turn_count: u32,
    pub last_event: String,
    pub last_message: String,
    pub started_at: String,
    pub last_event_at: String,
    pub tokens: TokenCounts,
}

impl RunningShape {
    pub fn of(job: &JobView) -> Option<Self> {
        let run = job.run.as_ref()?;
        Some(Self {
            issue_id: job.id.clone(),
            issue_identifier: job.key.clone(),
            state: job.state.clone(),
            session_id: session_id(run),
            turn_count: run.turn_count,
            last_event: match (&run.tool, &run.session) {
                (Some(_), _) => "tool_call",
                (None, Some(_)) => "notification",
                (None, None) => "starting",
            }
            .to_owned(),
            last_message: run.tool.clone().or_else(|| run.said.clone()).unwrap_or_default(),
            started_at: time(run.started_at),
            last_event_at: time(run.last_event_at),
            tokens: TokenCounts::of(&run.usage),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetryingShape {
    pub issue_id: String,
    pub issue_identifier: String,
    pub attempt: u32,
    pub due_at: String,
    pub error: Option<String>,
}

impl RetryingShape {
    pub fn of(job: &JobView) -> Option<Self> {
        Some(Self {
            issue_id: job.id.clone(),
            issue_identifier: job.key.clone(),
            attempt: job.attempts + 1,
            due_at: time(job.retry_at?),
            error: (job.phase == Phase::Queued).then(|| job.sentence.clone()),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TotalShape {
    #[serde(flatten)]
    pub tokens: TokenCounts,
    pub cost_usd: f64,
    /// Running time of ended and live runs together. Known only for the total of all days.
    pub seconds_running: Option<u64>,
}

impl TotalShape {
    fn of(usage: &Usage, seconds_running: Option<u64>) -> Self {
        Self { tokens: TokenCounts::of(usage), cost_usd: usage.cost_usd(), seconds_running }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SwitchShape {
    pub source: String,
    pub subject: String,
    pub since: String,
}

/// Credentials that agents share, and how much of their usage limit is used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PoolShape {
    pub pool: String,
    pub paused_until: Option<String>,
    pub rate_limit: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrackerShape {
    pub last_ok: Option<String>,
    pub last_error: Option<String>,
    /// Tickets that could not be read, with the reason.
    pub left_out: Vec<String>,
    pub usage: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkflowShape {
    pub hash: String,
    /// Why the current workflow file is not in force.
    pub reload_error: Option<String>,
    pub warnings: Vec<String>,
}

/// The state of the calls to one adapter.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaneShape {
    pub lane: String,
    pub last_ok: Option<String>,
    pub last_error: Option<String>,
    pub paused_until: Option<String>,
    /// Whether the runner's access is refused, and a person has to repair it.
    pub locked_out: bool,
    pub busy: usize,
    pub waiting: usize,
}

/// Returns the state without its tickets. Pictures add these at the end, rendered one by one.
pub fn state_answer(picture: &Snapshot) -> StateAnswer {
    let totals = TotalShape::of(&picture.totals.usage, Some(picture.totals.seconds_running));
    let pools: Vec<PoolShape> = picture
        .pools
        .iter()
        .map(|pool| PoolShape {
            pool: pool.pool.clone(),
            paused_until: pool.paused_until.map(time),
            rate_limit: pool.rate_limit.clone(),
        })
        .collect();
    let counts = &picture.counts;
    StateAnswer {
        generated_at: time(picture.at),
        counts: CountShape {
            running: counts.running,
            retrying: counts.retrying,
            queued: counts.queued,
            waiting: counts.waiting,
            blocked: counts.blocked,
            done: counts.done,
            released: counts.released,
        },
        running: picture.jobs.iter().filter_map(RunningShape::of).collect(),
        retrying: picture.jobs.iter().filter_map(RetryingShape::of).collect(),
        codex_totals: totals.clone(),
        rate_limits: pools.iter().any(|pool| pool.rate_limit.is_some()).then(|| pools.clone()),
        totals,
        today: TotalShape::of(&picture.totals.today, None),
        daily_budget: picture.totals.daily_budget.iter().map(CapShape::of).collect(),
        rollout: picture.rollout.clone(),
        switches: picture
            .switches
            .iter()
            .map(|switch| SwitchShape {
                source: switch.source.name().to_owned(),
                subject: switch.subject.clone(),
                since: time(switch.since),
            })
            .collect(),
        pools,
        tracker: TrackerShape {
            last_ok: picture.tracker.last_ok.map(time),
            last_error: picture.tracker.last_error.clone(),
            left_out: picture.tracker.left_out.clone(),
            usage: picture.tracker.usage.clone(),
        },
        workflow: WorkflowShape {
            hash: picture.workflow.hash.clone(),
            reload_error: picture.workflow.reload_error.clone(),
            warnings: picture.workflow.warnings.clone(),
        },
        lanes: picture
            .lanes
            .iter()
            .map(|lane| LaneShape {
                lane: lane.lane.clone(),
                last_ok: lane.last_ok.map(time),
                last_error: lane.last_error.clone(),
                paused_until: lane.paused_until.map(time),
                locked_out: lane.locked_out,
                busy: lane.busy,
                waiting: lane.waiting,
            })
            .collect(),
        ledger_error: picture.ledger_error.clone(),
        pending_effects: picture.pending_effects,
        tickets: Vec::new(),
    }
}
