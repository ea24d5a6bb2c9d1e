//! The simulated workers: they finish, fail, stall, lie, ask, hit limits and die.

use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::ids::{CommitId, RunId, SessionId, TicketId};
use dirigent::domain::run::{Activity, Declared, ProcessMark, RunOutcome, RunReport, StopReason};
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::engine::event::Event;

use super::chance::Chance;
use super::world::World;
use crate::engine::fixtures::{commit, exit, failed, report};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Temper {
    Good,
    Fails,
    Stalls,
    Lies,
    Asks,
    Limited,
    LoggedOut,
    Idle,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub run: RunId,
    pub ticket: TicketId,
    pub branch: String,
    pub review: bool,
    pub temper: Temper,
    pub next_at: Timestamp,
    pub beats: u32,
    pub started: bool,
    pub head_before: Option<CommitId>,
    /// Told to stop: ends at this time.
    pub stopping: Option<(Timestamp, StopReason)>,
}

/// What one beat spends.
pub const BEAT_TOKENS: u64 = 40;

impl Agent {
    pub fn temper(chance: &mut Chance) -> Temper {
        match chance.below(16) {
            0 => Temper::Fails,
            1 => Temper::Stalls,
            2 => Temper::Lies,
            3 => Temper::Asks,
            4 => Temper::Limited,
            5 => Temper::LoggedOut,
            6 => Temper::Idle,
            _ => Temper::Good,
        }
    }

    /// When it does something next; a stalled one only when it is told to stop.
    pub fn due(&self) -> Option<Timestamp> {
        match &self.stopping {
            Some((at, _)) => Some((*at).min(self.next_at.max(*at))),
            None if self.temper == Temper::Stalls && self.beats >= 2 => None,
            None => Some(self.next_at),
        }
    }

    /// Its next event, and whether it is over with it.
    pub fn act(&mut self, world: &mut World, now: Timestamp) -> (Event, bool) {
        let run = self.run.clone();
        if let Some((_, reason)) = self.stopping.clone() {
            let mut ended = report(RunOutcome::Killed { reason });
            ended.unreported_usage = Usage { output: BEAT_TOKENS, ..Usage::default() };
            return (Event::RunFinished { run, report: ended }, true);
        }
        if !self.started {
            self.started = true;
            self.head_before = world.branches.get(&self.branch).cloned();
            let head = self.head_before.clone().unwrap_or_else(|| commit("base"));
            let process = ProcessMark { pid: 1, started_ticks: 1 };
            let event = Event::RunStarted { run, process, worktree: "/w".into(), base: commit("base"), head };
            return (event, false);
        }
        self.beats += 1;
        match self.beats {
            1 => {
                let session = SessionId::new(format!("talk-{}", self.ticket));
                (Event::RunProgress { run, activity: Activity::SessionKnown { session } }, false)
            }
            2..=4 => {
                let usage = Usage { output: BEAT_TOKENS, ..Usage::default() };
                let activity = Activity::Agent { usage, tool_open_since: None, said: None };
                (Event::RunProgress { run, activity }, false)
            }
            5 => (Event::RunProgress { run, activity: Activity::TurnEnded { turns: 1 } }, false),
            _ => (Event::RunFinished { run, report: self.ends(world, now) }, true),
        }
    }

    fn ends(&self, world: &mut World, now: Timestamp) -> RunReport {
        let before = self.head_before.clone();
        let done = |head: Option<CommitId>, commits_ahead| RunReport {
            declared: Some(Declared::Done { summary: "did it".into() }),
            base: Some(commit("base")),
            head_before: before.clone(),
            head,
            commits_ahead,
            turns: 1,
            ..report(RunOutcome::Done)
        };
        match self.temper {
            Temper::Good if self.review => done(before.clone(), 1),
            Temper::Good | Temper::Stalls => {
                let head = world.new_commit();
                world.branches.insert(self.branch.clone(), head.clone());
                done(Some(head), 1)
            }
            Temper::Lies => done(before.clone(), u32::from(before.is_some())),
            Temper::Fails => failed(exit()),
            Temper::Idle => report(RunOutcome::Done),
            Temper::Asks => {
                let declared = Some(Declared::Blocked { reason: "which?".into() });
                RunReport { declared, ..report(RunOutcome::Done) }
            }
            Temper::Limited => {
                let reset_at = Some(Timestamp(now.0 + 600_000));
                failed(RunFailure::Turn { class: TurnError::RateLimit, detail: "limit".into(), reset_at })
            }
            Temper::LoggedOut => {
                failed(RunFailure::Turn { class: TurnError::Auth, detail: "log in".into(), reset_at: None })
            }
        }
    }
}
