//! The simulated workers: they finish, fail, stall, lie, ask, flood, hit limits and die, with and without unsaved work.

use dirigent::domain::failure::{RunFailure, TurnError};
use dirigent::domain::finding::Severity;
use dirigent::domain::ids::{CommitId, RunId, SessionId, TicketId};
use dirigent::domain::remark::{RemarkAnswer, RemarkKey};
use dirigent::domain::run::{Activity, Declared, ProcessMark, RunOutcome, RunReport, Salvage, StopReason};
use dirigent::domain::ticket::NewTicket;
use dirigent::domain::time::Timestamp;
use dirigent::domain::usage::Usage;
use dirigent::engine::event::Event;

use super::chance::Chance;
use super::engine::fixtures::{commit, exit, failed, report, review_text, reviewed};
use super::world::World;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Temper {
    Good,
    Fails,
    Dies,
    Stalls,
    Lies,
    Asks,
    Chatty,
    Floods,
    Limited,
    LoggedOut,
    Refuses,
    Idle,
    /// Commits on its way, and says of each remark that it is fixed.
    Answers,
    /// Explains or declines what it was told, and changes nothing if there is something to explain.
    Explains,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub run: RunId,
    pub ticket: TicketId,
    pub branch: String,
    pub review: Option<CommitId>,
    pub temper: Temper,
    /// Remarks that its prompt carries, or that it was told.
    pub undelivered: Vec<RemarkKey>,
    /// Those that have reached it.
    pub delivered: Vec<RemarkKey>,
    pub explained: bool,
    pub committed: Option<CommitId>,
    pub next_at: Timestamp,
    pub beats: u32,
    pub started: bool,
    pub head_before: Option<CommitId>,
    /// Told to stop: ends at this time.
    pub stopping: Option<(Timestamp, StopReason)>,
}

/// What one beat spends.
pub const BEAT_TOKENS: u64 = 40;
/// How many lines a flooding worker prints, one every few milliseconds.
const FLOOD: u32 = 400;

impl Agent {
    pub fn temper(chance: &mut Chance) -> Temper {
        match chance.below(26) {
            0 => Temper::Fails,
            1 => Temper::Stalls,
            2 => Temper::Lies,
            3 => Temper::Asks,
            4 => Temper::Limited,
            5 => Temper::LoggedOut,
            6 => Temper::Idle,
            7 => Temper::Dies,
            8 => Temper::Refuses,
            9 | 10 => Temper::Chatty,
            11 | 12 => Temper::Floods,
            13..=15 => Temper::Answers,
            16 | 17 => Temper::Explains,
            _ => Temper::Good,
        }
    }

    /// When it does something next; a stalled one only when it is told to stop.
    pub fn due(&self) -> Option<Timestamp> {
        match &self.stopping {
            Some((at, _)) => Some(*at),
            None if self.temper == Temper::Stalls && self.beats >= 2 => None,
            None => Some(self.next_at),
        }
    }

    pub fn pause(&self, chance: &mut Chance) -> i64 {
        match self.temper {
            Temper::Floods if self.beats > 3 && self.beats < FLOOD => 5 + chance.below(40) as i64,
            _ => 2000 + chance.below(40_000) as i64,
        }
    }

    /// Uncommitted work: every worker that got somewhere has some until it ends well.
    pub fn is_dirty(&self) -> bool {
        self.started && self.beats >= 2 && self.review.is_none()
    }

    /// The work of a run that is torn down is saved first.
    pub fn salvage(&self, world: &mut World) -> Option<Salvage> {
        self.is_dirty().then(|| {
            world.salvaged.insert(self.run.clone(), self.ticket.clone());
            salvage_of(&self.run)
        })
    }

    /// Its next event, and whether it is over with it.
    pub fn act(&mut self, world: &mut World, now: Timestamp) -> (Event, bool) {
        let run = self.run.clone();
        if let Some((_, reason)) = self.stopping.clone() {
            let mut ended = report(RunOutcome::Killed { reason });
            ended.unreported_usage = Usage { output: BEAT_TOKENS, ..Usage::default() };
            ended.salvage = self.salvage(world);
            return (Event::RunFinished { run, report: ended }, true);
        }
        if !self.started {
            self.started = true;
            self.head_before = world.begin_with(&self.branch);
            let head = self.head_before.clone().unwrap_or_else(|| commit("base"));
            let process = ProcessMark { pid: 1, started_ticks: 1 };
            let event = Event::RunStarted { run, process, worktree: "/w".into(), head: Some(head) };
            return (event, false);
        }
        if !self.undelivered.is_empty() {
            let remarks = std::mem::take(&mut self.undelivered);
            if self.beats % 8 == 3 && self.beats > 3 {
                // Told in the middle of a turn, and not taken.
                return (Event::RunProgress { run, activity: Activity::NotDelivered { remarks } }, false);
            }
            self.delivered.extend(remarks.iter().cloned());
            return (Event::RunProgress { run, activity: Activity::Delivered { remarks } }, false);
        }
        if self.beats >= 2
            && let Some(activity) = self.answers()
        {
            return (Event::RunProgress { run, activity }, false);
        }
        self.beats += 1;
        let activity = match (self.beats, self.temper) {
            (1, _) => Activity::SessionKnown { session: SessionId::new(format!("talk-{}", self.ticket)) },
            (2, Temper::Chatty) => {
                *world.worker_words.entry(self.ticket.clone()).or_default() += 1;
                Activity::Commented { text: "half way".into() }
            }
            (3, Temper::Chatty) => {
                let new = NewTicket {
                    title: "and also".into(),
                    description: String::new(),
                    labels: Vec::new(),
                    priority: None,
                    parent: None,
                    blocked_by: Vec::new(),
                };
                Activity::FollowUp { ticket: new, key: format!("follow-up:{run}") }
            }
            (4, Temper::Chatty) => {
                *world.worker_words.entry(self.ticket.clone()).or_default() += 1;
                Activity::Asked { question: "may I?".into() }
            }
            (2, Temper::Answers) if self.review.is_none() => Activity::Committed { head: self.commits(world) },
            (2..=4, _) => spent(BEAT_TOKENS, None),
            (5..FLOOD, Temper::Floods) => spent(0, self.beats.is_multiple_of(9).then_some(now)),
            (5 | FLOOD, _) => Activity::TurnEnded { turns: 1 },
            _ => return (Event::RunFinished { run, report: self.ends(world, now) }, true),
        };
        (Event::RunProgress { run, activity }, false)
    }

    fn answers(&mut self) -> Option<Activity> {
        if !matches!(self.temper, Temper::Answers | Temper::Explains) || self.review.is_some() {
            return None;
        }
        let remark = self.delivered.pop()?;
        let text = "see there".to_owned();
        let answer = match self.temper {
            Temper::Answers => RemarkAnswer::Fixed { text },
            _ if self.delivered.len().is_multiple_of(2) => RemarkAnswer::Explained { text },
            _ => RemarkAnswer::Declined { text },
        };
        self.explained |= self.temper == Temper::Explains;
        Some(Activity::AnsweredRemark { remark, answer })
    }

    fn commits(&mut self, world: &mut World) -> CommitId {
        let last = self.committed.clone().or_else(|| self.head_before.clone());
        let head = world.new_commit(last.into_iter().collect());
        world.branches.insert(self.branch.clone(), head.clone());
        world.by_worker.insert(head.clone());
        self.committed = Some(head.clone());
        head
    }

    /// Finds nothing, or something that has to be mended, or something that need not.
    fn reviews(&self, world: &mut World, head: CommitId, now: Timestamp) -> RunReport {
        let findings: &[Severity] = match now.0 % 5 {
            0 => &[Severity::P1],
            1 => &[Severity::P2, Severity::P4],
            2 => &[Severity::P4],
            _ => &[],
        };
        if findings.iter().any(|severity| *severity < Severity::P3) {
            world.found_wanting.insert(head.clone());
        } else {
            // The words of an earlier reviewer of the same head were lost with the runner.
            world.found_wanting.remove(&head);
        }
        let said = reviewed(&review_text(&head, findings));
        world.reviewed.insert(head);
        said
    }

    fn ends(&mut self, world: &mut World, now: Timestamp) -> RunReport {
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
        let turn = |class, reset_at| failed(RunFailure::Turn { class, detail: "the agent said so".into(), reset_at });
        let mut ended = match self.temper {
            // Done without a commit: whether that is so depends on whether its explanation counts.
            Temper::Explains if self.explained => {
                world.lied_about.insert(self.ticket.clone());
                done(before.clone(), u32::from(before.is_some()))
            }
            Temper::Good | Temper::Stalls | Temper::Chatty | Temper::Floods | Temper::Answers | Temper::Explains => {
                match self.review.clone() {
                    Some(head) => self.reviews(world, head, now),
                    None => {
                        let head = self.commits(world);
                        done(Some(head), 1)
                    }
                }
            }
            // About another head than the one that it was given.
            Temper::Lies if self.review.is_some() => reviewed(&review_text(&commit("elsewhere"), &[])),
            Temper::Lies => {
                world.lied_about.insert(self.ticket.clone());
                done(before.clone(), u32::from(before.is_some()))
            }
            Temper::Fails => failed(exit()),
            Temper::Dies => failed(RunFailure::Signal { signal: 9, said: None }),
            Temper::Idle => report(RunOutcome::Done),
            Temper::Asks => {
                let declared = Some(Declared::Blocked { reason: "which?".into() });
                RunReport { declared, ..report(RunOutcome::Done) }
            }
            Temper::Limited => turn(TurnError::RateLimit, Some(Timestamp(now.0 + 600_000))),
            Temper::LoggedOut => turn(TurnError::Auth, None),
            Temper::Refuses => turn(TurnError::Refused, None),
        };
        if matches!(ended.outcome, RunOutcome::Failed { .. }) {
            ended.salvage = self.salvage(world);
        }
        ended
    }
}

pub fn salvage_of(run: &RunId) -> Salvage {
    let reference = format!("refs/dirigent/salvage/{run}");
    Salvage { reference, commit: commit("saved"), files: 1, left_out: Vec::new() }
}

fn spent(output: u64, tool_open_since: Option<Timestamp>) -> Activity {
    Activity::Agent { usage: Usage { output, ..Usage::default() }, tool_open_since, said: None }
}
