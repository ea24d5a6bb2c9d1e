//! Asks the board: at its period, when it changed, and when somebody wants to know now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::handle::Message;
use super::host::RunHost;
use super::lanes::{LOOK, Lanes, POLL, Priority};
use super::now;
use crate::domain::basis::{Basis, Moment};
use crate::domain::ids::CommitId;
use crate::engine::event::Event;
use crate::tracker::{BoardAnswer, BoardReading, Mark, Tracker};

/// The least time between two polls that changes ask for: a burst of edits is one poll.
const BREATH: Duration = Duration::from_millis(50);

pub struct PollerParts {
    pub tracker: Arc<dyn Tracker>,
    pub host: Arc<dyn RunHost>,
    pub lanes: Arc<Lanes>,
    /// Period and states; changes on a reload.
    pub plan: watch::Receiver<PollPlan>,
    /// Each message asks for a poll now.
    pub wanted: mpsc::Receiver<()>,
    pub inbox: mpsc::Sender<Message>,
    /// What the engine has taken in so far.
    pub moment: Arc<AtomicU64>,
}

/// What the driver was last told of the board, and under which plan.
struct Told {
    mark: Mark,
    plan: PollPlan,
    basis: Basis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollPlan {
    pub period: Duration,
    pub states: Vec<String>,
    /// The workflow's hash: with another one the same board may mean something else.
    pub workflow: String,
}

/// Runs until the driver is gone. The period is a period, not a pause after the work.
pub async fn poll(mut parts: PollerParts) {
    let mut changes = parts.tracker.changes();
    let mut due = Instant::now();
    let mut last = None::<Instant>;
    let mut told = None::<Told>;
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            wanted = parts.wanted.recv() => if wanted.is_none() { return },
            changed = parts.plan.changed() => if changed.is_err() { return },
            changed = board_changed(&mut changes) => {
                if !changed {
                    changes = None;
                    continue;
                }
            }
        }
        if let Some(last) = last {
            sleep_until(last + BREATH).await;
        }
        // What asked during the breath is answered by this poll.
        while parts.wanted.try_recv().is_ok() {}
        if let Some(changes) = &mut changes {
            changes.mark_unchanged();
        }
        let plan = parts.plan.borrow_and_update().clone();
        last = Some(Instant::now());
        while due <= Instant::now() {
            due += plan.period;
        }
        let (event, pause) = ask(&parts, plan, &mut told).await;
        due = due.max(Instant::now() + pause);
        let over = Message::PollOver { left_out: parts.tracker.left_out(), usage: parts.tracker.usage() };
        if parts.inbox.send(Message::Event(event)).await.is_err() || parts.inbox.send(over).await.is_err() {
            return;
        }
    }
}

async fn board_changed(changes: &mut Option<watch::Receiver<u64>>) -> bool {
    match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

async fn ask(parts: &PollerParts, plan: PollPlan, told: &mut Option<Told>) -> (Event, Duration) {
    // Forgotten until this poll has gone well.
    let told_before = told.take().filter(|told| told.plan == plan);
    let asking = async {
        // It leaves now, however long it has waited for its place.
        let (asked, after) = (now(), Moment(parts.moment.load(Ordering::Acquire)));
        let since = told_before.as_ref().map(|told| &told.mark);
        parts.tracker.poll(&plan.states, since).await.map(|reading| (asked, after, reading))
    };
    match parts.lanes.tracker.call(Priority::Look, POLL, asking).await {
        Ok((asked, after, BoardReading { asked_at, answer })) => {
            let basis = Basis { asked_at: asked_at.unwrap_or(asked), after };
            let base = base_commit(parts).await;
            let event = match answer {
                BoardAnswer::Listed { tickets, mark } => {
                    *told = mark.map(|mark| Told { mark, plan, basis });
                    Event::Polled { tickets, base, basis }
                }
                BoardAnswer::Changed { tickets, mark } => {
                    *told = Some(Told { mark, plan, basis });
                    Event::PolledChanges { tickets, base, basis }
                }
                BoardAnswer::Unchanged => {
                    let basis = told_before.as_ref().map_or(basis, |told| told.basis);
                    *told = told_before;
                    Event::PolledUnchanged { base, basis }
                }
            };
            (event, Duration::ZERO)
        }
        Err(error) => {
            tracing::warn!(%error, "the board could not be read; nothing is changed");
            (Event::PollFailed { error: error.to_string() }, error.wait().unwrap_or(Duration::ZERO))
        }
    }
}

/// Not known is an answer too: a repository that cannot be looked at must not hold the board.
async fn base_commit(parts: &PollerParts) -> Option<CommitId> {
    let slot = parts.lanes.workspace.enter(Priority::Look).await.ok()?;
    slot.run(LOOK, parts.host.base_commit()).await.ok().flatten()
}
