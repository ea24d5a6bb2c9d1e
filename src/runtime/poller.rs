//! Polls the board: at its period, when it changed, and when a poll is requested.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::deliveries::Deliveries;
use super::handle::Message;
use super::host::RunHost;
use super::lanes::{LOOK, Lanes, POLL, Priority};
use super::now;
use crate::domain::basis::{Basis, BoardMark, Mark, Moment};
use crate::domain::hint::Hint;
use crate::domain::ids::CommitId;
use crate::engine::event::Event;
use crate::tracker::{BoardAnswer, BoardReading, Tracker};

/// The least time between two polls, or two refreshes, that changes cause, so that a burst of edits causes one.
const BREATH: Duration = Duration::from_millis(50);
/// The longest wait after a failed poll. The period may be an hour where webhooks keep the runner informed.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

pub struct PollerParts {
    pub tracker: Arc<dyn Tracker>,
    pub host: Arc<dyn RunHost>,
    pub lanes: Arc<Lanes>,
    /// The period and the states; changes with a reload.
    pub plan: watch::Receiver<PollPlan>,
    /// Each message requests a poll now.
    pub wanted: mpsc::Receiver<()>,
    pub inbox: mpsc::Sender<Message>,
    /// While webhook deliveries arrive, the board is polled less often.
    pub deliveries: Arc<Deliveries>,
    /// Whether a refresh waits for the next poll to begin.
    pub refresh_waits: Arc<AtomicBool>,
    /// What the engine has taken in so far.
    pub moment: Arc<AtomicU64>,
    /// The board mark that the driver was last told of, by this process or by the one before.
    pub told: Option<BoardMark>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollPlan {
    pub period: Duration,
    pub states: Vec<String>,
    /// The workflow's hash: under another workflow the same board may mean something else.
    pub workflow: String,
}

/// Polls until the driver is gone. The period runs from poll to poll, not from the end of one to the next. Hints that name a ticket or a
/// pull request are handed on; the board is polled only for a hint that names none.
pub async fn poll(mut parts: PollerParts) {
    let mut changes = parts.tracker.changes();
    let mut due = Instant::now();
    let mut last = None::<Instant>;
    let mut hinted = None::<Instant>;
    let mut told = parts.told.take();
    let mut complained = None::<String>;
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            wanted = parts.wanted.recv() => if wanted.is_none() { return },
            changed = parts.plan.changed() => if changed.is_err() { return },
            hint = next_hint(&mut changes) => {
                let Some(hint) = hint else {
                    changes = None;
                    continue;
                };
                // The first hint is handed on at once, those that follow it shortly after are handed on together.
                if let Some(last) = hinted {
                    sleep_until(last + BREATH).await;
                }
                hinted = Some(Instant::now());
                let hints = a_burst(hint, &mut changes);
                if !hints.contains(&Hint::Board) {
                    if parts.inbox.send(Message::Hinted(hints)).await.is_err() {
                        return;
                    }
                    continue;
                }
            }
        }
        if let Some(last) = last {
            sleep_until(last + BREATH).await;
        }
        // Polls that were requested during the breath are covered by this one.
        parts.refresh_waits.store(false, Ordering::SeqCst);
        while parts.wanted.try_recv().is_ok() {}
        while take_hint(&mut changes).is_some() {}
        let plan = parts.plan.borrow_and_update().clone();
        last = Some(Instant::now());
        let period = parts.deliveries.period(plan.period);
        while due <= Instant::now() {
            due += period;
        }
        let (event, pause) = ask(&parts, plan, &mut told).await;
        complain(&event, &mut complained);
        if matches!(event, Event::PollFailed { .. }) {
            due = due.min(Instant::now() + AFTER_FAILURE);
        }
        due = due.max(Instant::now() + pause);
        let (left_out, usage) = (parts.tracker.left_out(), parts.tracker.usage());
        let over = Message::PollOver { left_out, usage, mark: told.clone() };
        if parts.inbox.send(Message::Event(event)).await.is_err() || parts.inbox.send(over).await.is_err() {
            return;
        }
    }
}

/// Waits for the next hint. `None` when there will be no more. Hints lost on the way may have been about anything, so they become
/// [`Hint::Board`].
async fn next_hint(changes: &mut Option<broadcast::Receiver<Hint>>) -> Option<Hint> {
    let Some(changes) = changes else { return std::future::pending().await };
    match changes.recv().await {
        Ok(hint) => Some(hint),
        Err(RecvError::Lagged(_)) => Some(Hint::Board),
        Err(RecvError::Closed) => None,
    }
}

/// Returns a hint that has arrived already, if there is one.
fn take_hint(changes: &mut Option<broadcast::Receiver<Hint>>) -> Option<Hint> {
    match changes.as_mut()?.try_recv() {
        Ok(hint) => Some(hint),
        Err(TryRecvError::Lagged(_)) => Some(Hint::Board),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
    }
}

/// Returns all hints that have arrived by now, each once: one edit of a file causes several hints.
fn a_burst(first: Hint, changes: &mut Option<broadcast::Receiver<Hint>>) -> Vec<Hint> {
    let mut hints = vec![first];
    while let Some(hint) = take_hint(changes) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints
}

async fn ask(parts: &PollerParts, plan: PollPlan, told: &mut Option<BoardMark>) -> (Event, Duration) {
    // The mark is forgotten until this poll has succeeded.
    let told_before = told.take().filter(|told| told.states == plan.states && told.workflow == plan.workflow);
    let asking = async {
        // The request leaves now, however long it has waited for its place.
        let (asked, after) = (now(), Moment(parts.moment.load(Ordering::Acquire)));
        let since = told_before.as_ref().map(|told| &told.mark);
        parts.tracker.poll(&plan.states, since).await.map(|reading| (asked, after, reading))
    };
    match parts.lanes.tracker.call(Priority::Look, POLL, asking).await {
        Ok((asked, after, BoardReading { asked_at, answer })) => {
            let basis = Basis { asked_at: asked_at.unwrap_or(asked), after };
            let base = base_commit(parts).await;
            let PollPlan { states, workflow, .. } = plan;
            let known = |mark: Mark| BoardMark { mark, states, workflow, basis, ask_for: BTreeSet::new() };
            let event = match answer {
                BoardAnswer::Listed { tickets, mark } => {
                    *told = mark.map(known);
                    Event::Polled { tickets, base, basis }
                }
                BoardAnswer::Changed { tickets, mark } => {
                    *told = Some(known(mark));
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
        Err(error) => (Event::PollFailed { error: error.to_string() }, error.wait().unwrap_or(Duration::ZERO)),
    }
}

/// Logs that the board cannot be read: once, and again when the reason is a different one.
fn complain(event: &Event, complained: &mut Option<String>) {
    match event {
        Event::PollFailed { error } if complained.as_ref() != Some(error) => {
            tracing::warn!(error, "the board could not be read; nothing is changed");
            *complained = Some(error.clone());
        }
        Event::PollFailed { .. } => {}
        _ => *complained = None,
    }
}

/// Returns the commit of the base branch. `None` on any failure: a repository that cannot be read must not hold up the board.
async fn base_commit(parts: &PollerParts) -> Option<CommitId> {
    let slot = parts.lanes.workspace.enter(Priority::Look).await.ok()?;
    slot.run(LOOK, parts.host.base_commit()).await.ok().flatten()
}
