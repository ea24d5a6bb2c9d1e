//! The health of a lane: its last success, its last failure, and how long it was told to wait.

use std::time::Duration;

use tokio::time::Instant;

use super::super::now;
use crate::domain::lane::Lane;
use crate::domain::snapshot::LaneView;
use crate::domain::time::Timestamp;

/// How often one call is let through while the runner's access is refused.
const TRY_AGAIN: Duration = Duration::from_secs(20);

/// A change in a lane's health, reported to the driver once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneNews {
    /// The lane makes no calls until `until`. With `locked_out`, calls fail until a person repairs the access, and `until` is `None`.
    Paused {
        lane: Lane,
        until: Option<Timestamp>,
        why: String,
        locked_out: bool,
    },
    Failing {
        lane: Lane,
        error: String,
    },
    /// A call succeeded after a pause or a failure.
    Works {
        lane: Lane,
    },
}

/// Why a lane makes no calls just now, and for how much longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub left: Duration,
    pub why: String,
    pub locked_out: bool,
}

#[derive(Debug, Clone)]
struct Pause {
    ends: Instant,
    shown: Timestamp,
    why: String,
    locked_out: bool,
}

/// What is remembered of a lane's calls.
#[derive(Debug)]
pub(super) struct Health {
    lane: Lane,
    last_ok: Option<Timestamp>,
    last_error: Option<String>,
    pause: Option<Pause>,
    calls: u64,
    errors: u64,
}

impl Health {
    pub fn of(lane: Lane) -> Self {
        Self { lane, last_ok: None, last_error: None, pause: None, calls: 0, errors: 0 }
    }

    pub fn went_well(&mut self) -> Option<LaneNews> {
        self.last_ok = Some(now());
        self.calls += 1;
        let was_paused = self.pause.take().is_some();
        let was_failing = self.last_error.take().is_some();
        (was_paused || was_failing).then_some(LaneNews::Works { lane: self.lane })
    }

    pub fn failed(&mut self, error: String) -> Option<LaneNews> {
        self.count_error();
        let news = self.last_error.as_ref() != Some(&error);
        self.last_error = Some(error.clone());
        news.then_some(LaneNews::Failing { lane: self.lane, error })
    }

    pub fn limited(&mut self, wait: Duration, why: String) -> Option<LaneNews> {
        self.count_error();
        let known = self.held().is_some();
        self.last_error = Some(why.clone());
        let shown = now() + wait;
        self.pause = Some(Pause { ends: Instant::now() + wait, shown, why: why.clone(), locked_out: false });
        (!known).then_some(LaneNews::Paused { lane: self.lane, until: Some(shown), why, locked_out: false })
    }

    pub fn locked_out(&mut self, why: String) -> Option<LaneNews> {
        self.count_error();
        let known = self.pause.as_ref().is_some_and(|pause| pause.locked_out);
        self.last_error = Some(why.clone());
        let ends = Instant::now() + TRY_AGAIN;
        self.pause = Some(Pause { ends, shown: now() + TRY_AGAIN, why: why.clone(), locked_out: true });
        (!known).then_some(LaneNews::Paused { lane: self.lane, until: None, why, locked_out: true })
    }

    fn count_error(&mut self) {
        self.calls += 1;
        self.errors += 1;
    }

    pub fn held(&self) -> Option<Held> {
        let pause = self.pause.as_ref()?;
        let left = pause.ends.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| Held { left, why: pause.why.clone(), locked_out: pause.locked_out })
    }

    pub fn view(&self, busy: usize, waiting: usize) -> LaneView {
        let pause = self.pause.as_ref();
        LaneView {
            lane: self.lane.name().to_owned(),
            last_ok: self.last_ok,
            last_error: self.last_error.clone(),
            paused_until: pause.filter(|_| self.held().is_some()).map(|pause| pause.shown),
            locked_out: pause.is_some_and(|pause| pause.locked_out),
            busy,
            waiting,
            calls: self.calls,
            errors: self.errors,
        }
    }
}
