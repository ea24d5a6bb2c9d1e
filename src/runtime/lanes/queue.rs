//! A bounded queue of calls to one adapter. A caller waits for a place by priority, and has a deadline from then on. A call that panics or
//! hangs holds its own place at most until its deadline, and affects no other call.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::Priority;
use super::health::{Health, Held, LaneNews};
use super::meaning::{AdapterError, Meaning};
use crate::domain::lane::Lane;
use crate::domain::snapshot::LaneView;

/// Why a call got no response from the adapter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LaneFailure {
    #[error("nothing is asked of the {} for {} s: {why}", .lane.name(), .left.as_secs())]
    Held { lane: Lane, left: Duration, why: String, locked_out: bool },
    #[error("the {} gave no answer within {} s", .lane.name(), .limit.as_secs())]
    Late { lane: Lane, limit: Duration },
    #[error("the {} broke down: {panic}", .lane.name())]
    BrokeDown { lane: Lane, panic: String },
}

/// Why a call failed: in the lane or in the adapter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError<E: AdapterError> {
    #[error(transparent)]
    Lane(#[from] LaneFailure),
    #[error("{0}")]
    Adapter(E),
}

impl<E: AdapterError> CallError<E> {
    /// Returns how long to wait before the next attempt. `None` where neither the lane nor the adapter said so.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Lane(LaneFailure::Held { left, .. }) => Some(*left),
            Self::Lane(LaneFailure::Late { .. } | LaneFailure::BrokeDown { .. }) => None,
            Self::Adapter(error) => match error.meaning() {
                Meaning::Wait(wait) | Meaning::Later(wait) => Some(wait),
                Meaning::Answered | Meaning::Failed | Meaning::LockedOut => None,
            },
        }
    }
}

#[derive(Debug)]
pub struct CallQueue {
    lane: Lane,
    inner: Mutex<Inner>,
    news: mpsc::UnboundedSender<LaneNews>,
}

#[derive(Debug)]
struct Inner {
    limit: usize,
    busy: usize,
    /// Waiting callers, ordered by priority, then by arrival.
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Slot>>,
    arrivals: u64,
    health: Health,
}

impl CallQueue {
    pub(super) fn new(lane: Lane, limit: usize, news: mpsc::UnboundedSender<LaneNews>) -> Self {
        let inner =
            Inner { limit: limit.max(1), busy: 0, waiting: BTreeMap::new(), arrivals: 0, health: Health::of(lane) };
        Self { lane, inner: Mutex::new(inner), news }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn view(&self) -> LaneView {
        let inner = self.inner();
        // Callers that gave up waiting stay in the queue until their turn comes.
        let waiting = inner.waiting.values().filter(|waiter| !waiter.is_closed()).count();
        inner.health.view(inner.busy, waiting)
    }

    /// Sets the number of places. Calls under way go on.
    pub fn set_limit(self: &Arc<Self>, limit: usize) {
        let mut inner = self.inner();
        inner.limit = limit.max(1);
        self.admit(&mut inner);
    }

    /// Waits for a place. Fails at once while the lane is paused.
    pub async fn enter(self: &Arc<Self>, priority: Priority) -> Result<Slot, LaneFailure> {
        self.refuse_while_held()?;
        let turn = {
            let mut inner = self.inner();
            let (sender, turn) = oneshot::channel();
            inner.arrivals += 1;
            let arrival = inner.arrivals;
            inner.waiting.insert((priority, arrival), sender);
            self.admit(&mut inner);
            turn
        };
        let slot = match turn.await {
            Ok(slot) => slot,
            // A lane keeps every waiting caller until its turn, so this cannot happen.
            Err(_) => return Err(LaneFailure::BrokeDown { lane: self.lane, panic: "its queue is gone".into() }),
        };
        // The lane may have been paused meanwhile.
        self.refuse_while_held()?;
        Ok(slot)
    }

    /// Enters and calls in one step, for calls that need no permit.
    pub async fn call<T, E: AdapterError>(
        self: &Arc<Self>,
        priority: Priority,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        self.enter(priority).await?.call(limit, work).await
    }

    fn refuse_while_held(&self) -> Result<(), LaneFailure> {
        match self.inner().health.held() {
            Some(Held { left, why, locked_out }) => Err(LaneFailure::Held { lane: self.lane, left, why, locked_out }),
            None => Ok(()),
        }
    }

    /// Gives free places to the next waiting callers.
    fn admit(self: &Arc<Self>, inner: &mut Inner) {
        while let Some(entry) = inner.waiting.first_entry() {
            let (priority, _) = *entry.key();
            if inner.busy >= places_for(priority, inner.limit) {
                return;
            }
            let waiter = entry.remove();
            match waiter.send(Slot { queue: self.clone(), given: true }) {
                Ok(()) => inner.busy += 1,
                // The caller has given up waiting.
                Err(mut slot) => slot.given = false,
            }
        }
    }

    fn leave(self: &Arc<Self>) {
        let mut inner = self.inner();
        inner.busy = inner.busy.saturating_sub(1);
        self.admit(&mut inner);
    }

    fn note(&self, what: impl FnOnce(&mut Health) -> Option<LaneNews>) {
        if let Some(news) = what(&mut self.inner().health) {
            // The receiver may be gone.
            let _ = self.news.send(news);
        }
    }
}

/// Returns how many places a priority may use. The last place is kept for writes: looks that hang must not delay a merge.
fn places_for(priority: Priority, limit: usize) -> usize {
    match priority {
        Priority::Land | Priority::Write => limit,
        Priority::Start | Priority::Look => limit.saturating_sub(1).max(1),
    }
}

/// A place in a lane, given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    queue: Arc<CallQueue>,
    /// Whether a caller took this place. One that was never taken is not given back.
    given: bool,
}

impl Slot {
    /// Calls the adapter, and records the result in the lane's health.
    pub async fn call<T, E: AdapterError>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        let queue = &self.queue;
        match self.run(limit, work).await {
            Ok(Ok(answer)) => {
                queue.note(Health::went_well);
                Ok(answer)
            }
            Ok(Err(error)) => {
                match error.meaning() {
                    Meaning::Answered => queue.note(Health::went_well),
                    // The adapter was not called, so this says nothing about it.
                    Meaning::Later(_) => {}
                    Meaning::Failed => queue.note(|health| health.failed(error.to_string())),
                    Meaning::Wait(wait) => queue.note(|health| health.limited(wait, error.to_string())),
                    Meaning::LockedOut => queue.note(|health| health.locked_out(error.to_string())),
                }
                Err(CallError::Adapter(error))
            }
            Err(failure) => {
                queue.note(|health| health.failed(failure.to_string()));
                Err(failure.into())
            }
        }
    }

    /// Does work that returns no adapter error, and leaves the lane's health as it is. The work is dropped when the limit has passed.
    pub async fn run<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, LaneFailure> {
        let lane = self.queue.lane;
        match tokio::time::timeout(limit, unwinding(work)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => Err(LaneFailure::BrokeDown { lane, panic }),
            Err(_) => Err(LaneFailure::Late { lane, limit }),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.given {
            self.queue.leave();
        }
    }
}

/// Does the work. A panic in it is caught and returned as its message.
pub async fn unwinding<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(message(panic.as_ref()))),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
