//! The loop of the runner: takes an event, steps the engine, writes the ledger, performs the effects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::answers::{how_it_arrives, where_it_stands};
use super::deliveries::Deliveries;
use super::gatekeeper::Gatekeeper;
use super::handle::{Command, CommandAnswer, Handle, InForce, Message, News};
use super::idle;
use super::lanes::LaneNews;
use super::meters::Meters;
use super::now;
use super::performer::{Adapters, Performer};
use super::pictures::{Published, Snapshots};
use super::poller::PollPlan;
use super::record::{RecordLine, Recorder};
use crate::config::policy::{ForgeKind, Policy};
use crate::domain::basis::BoardMark;
use crate::domain::hint::Hint;
use crate::domain::ids::TicketId;
use crate::domain::job::Job;
use crate::domain::run::{RunOutcome, RunReport};
use crate::domain::snapshot::PolicyView;
use crate::domain::time::Timestamp;
use crate::domain::words::count;
use crate::engine::effect::{Action, Effect, Said};
use crate::engine::event::{Event, OperatorCommand};
use crate::engine::permit::Reach;
use crate::engine::state::{Changes, State};
use crate::engine::{Picture, holding, is_so_already, next_due, objection, select, step, unknown_tickets};
use crate::ledger::{Ledger, LedgerError};

/// How many messages one transaction may cover.
const BATCH: usize = 64;
/// How many news items a slow listener may lag behind before it loses the oldest.
const NEWS: usize = 1024;
/// How often a snapshot is published when polls find nothing new, so that people see that the board is still read.
const PUBLISH_POLLS: Duration = Duration::from_secs(20);
/// Snapshots are published at most this often, and less often on a large board.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
const PUBLISH_PER_JOB: Duration = Duration::from_micros(100);
/// Usage and last activity reach the ledger at least this often.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
const RETRY_WRITE_EVERY: Duration = Duration::from_secs(1);
const PULSE: Duration = Duration::from_secs(2);
/// A gap between two passes that counts as an absence. It is so much longer than a pulse that no mere delay explains it.
const ABSENCE: Duration = Duration::from_secs(6);
/// How often the ledger is pruned, from the start on. Each time it is pruned in batches, with a pause between them.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
const PRUNE_PAUSE: Duration = Duration::from_millis(250);
/// How long, after the last run is over, the runner waits for unfinished effects before it exits.
const LAST_EFFECTS: Duration = Duration::from_secs(10);

/// When the driver stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Told,
    /// When nothing runs and nothing can go on without an action from outside.
    Idle,
    /// Like `Idle`, but without waiting for the next attempt of a job that failed.
    Once,
}

pub struct DriverParts {
    pub state: State,
    pub policy: Arc<Policy>,
    pub ledger: Box<dyn Ledger>,
    /// `ledger.keep_days`.
    pub keep_days: u32,
    pub adapters: Adapters,
    pub gatekeeper: Arc<Gatekeeper>,
    pub plan: watch::Sender<PollPlan>,
    pub kill_file: watch::Sender<std::path::PathBuf>,
    pub poll_wanted: mpsc::Sender<()>,
    pub until: Until,
    pub recorder: Option<Recorder>,
    /// The engine's current moment, kept up to date for tasks that read the outside on their own.
    pub moment: Arc<AtomicU64>,
    pub lane_news: mpsc::UnboundedReceiver<LaneNews>,
    /// Warnings about the workflow.
    pub warnings: Vec<String>,
    pub policies: Vec<PolicyView>,
}

#[derive(Debug, Error)]
pub enum DriverError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(
        "a part of the runner broke down, and the rest was ended in good order: {0}\n  fix: start it again; it goes on where it was"
    )]
    BrokeDown(String),
}

pub struct Driver {
    state: State,
    policy: Arc<Policy>,
    ledger: Box<dyn Ledger>,
    keep_days: u32,
    prune_at: Instant,
    performer: Performer,
    gatekeeper: Arc<Gatekeeper>,
    inbox: mpsc::Receiver<Message>,
    published: watch::Sender<Arc<Published>>,
    news: broadcast::Sender<News>,
    plan: watch::Sender<PollPlan>,
    kill_file: watch::Sender<std::path::PathBuf>,
    poll_wanted: mpsc::Sender<()>,
    until: Until,
    /// Changes that the ledger does not hold yet. The field below holds the effects that wait for them.
    unwritten: Changes,
    unperformed: Vec<Effect>,
    /// Replies to commands. Each is sent once the result of its command is written to the ledger and published.
    unanswered: Vec<(oneshot::Sender<CommandAnswer>, CommandAnswer)>,
    /// How far the board has been read. The field below says whether the ledger holds this mark.
    board_mark: Option<BoardMark>,
    mark_is_kept: bool,
    /// The parts of the board that could not be read.
    left_out: Vec<String>,
    usage: Option<String>,
    reload_error: Option<String>,
    warnings: Vec<String>,
    policies: Vec<PolicyView>,
    soft_since: Option<Instant>,
    stale_since: Option<Instant>,
    last_published: Instant,
    /// When the loop last made a pass, by the wall clock, which goes on while the machine sleeps.
    last_pass: Timestamp,
    /// When the current pass began.
    woke: Instant,
    write_failed_at: Option<Instant>,
    write_error: Option<String>,
    /// How many polls in a row changed nothing, with everything that followed from them.
    idle_polls: u32,
    poll_is_over: bool,
    changed_since_poll: bool,
    ending_since: Option<Instant>,
    recorder: Option<Recorder>,
    moment: Arc<AtomicU64>,
    lane_news: mpsc::UnboundedReceiver<LaneNews>,
    meters: Arc<Meters>,
}

impl Driver {
    pub fn new(parts: DriverParts) -> (Self, Handle) {
        let (sender, inbox) = mpsc::channel(1024);
        let first = Picture::of(&parts.state, &parts.policy, now());
        let first = Arc::new(Published::new(first, parts.policy.clone()));
        let (published, snapshots) = watch::channel(first);
        let performer = Performer::new(parts.adapters, parts.gatekeeper.clone(), sender.clone());
        let (news, _) = broadcast::channel(NEWS);
        let meters = parts.gatekeeper.meters();
        let deliveries = Arc::new(Deliveries::new(parts.policy.pr.forge == ForgeKind::Github));
        let handle = Handle {
            inbox: sender,
            snapshots: Snapshots::new(snapshots),
            news: news.clone(),
            served_at: Arc::default(),
            meters,
            deliveries,
        };
        let driver = Self {
            state: parts.state,
            policy: parts.policy,
            ledger: parts.ledger,
            keep_days: parts.keep_days,
            prune_at: Instant::now(),
            performer,
            gatekeeper: parts.gatekeeper,
            inbox,
            published,
            news,
            plan: parts.plan,
            kill_file: parts.kill_file,
            poll_wanted: parts.poll_wanted,
            until: parts.until,
            unwritten: Changes::default(),
            unperformed: Vec::new(),
            unanswered: Vec::new(),
            board_mark: None,
            mark_is_kept: true,
            left_out: Vec::new(),
            usage: None,
            reload_error: None,
            warnings: parts.warnings,
            policies: parts.policies,
            soft_since: None,
            stale_since: None,
            last_published: Instant::now(),
            last_pass: now(),
            woke: Instant::now(),
            write_failed_at: None,
            write_error: None,
            idle_polls: 0,
            poll_is_over: false,
            changed_since_poll: false,
            ending_since: None,
            recorder: parts.recorder,
            moment: parts.moment,
            lane_news: parts.lane_news,
            meters: handle.meters.clone(),
        };
        (driver, handle)
    }

    /// Runs until it is told to stop, or until idle where `until` says so. `first` is the event that settles what an earlier process left.
    pub async fn run(mut self, first: Event) -> Result<State, DriverError> {
        self.gatekeeper.refresh(&self.state, &self.policy, None);
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&RecordLine::begun(now(), &self.state));
            recorder.write(&RecordLine::Policy { policy: Box::new((*self.policy).clone()) });
        }
        // The kill switch has to be known before anything is decided: its watcher may be slower than the board's first response.
        if self.kill_file.borrow().try_exists().unwrap_or(true) {
            self.take(Message::Event(Event::SwitchesChanged { file: true }));
        }
        self.take(Message::Event(first));
        self.flush()?;
        self.prune();
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.is_over() {
                self.publish();
                self.ledger.commit(&self.state, &self.unwritten)?;
                return Ok(self.state);
            }
            let wake = self.wake_at();
            tokio::select! {
                message = self.inbox.recv() => {
                    let Some(message) = message else { return Ok(self.state) };
                    self.notice_absence();
                    self.take(message);
                    for _ in 1..BATCH {
                        match self.inbox.try_recv() {
                            Ok(message) => self.take(message),
                            Err(_) => break,
                        }
                    }
                }
                () = tokio::time::sleep_until(wake) => {
                    self.notice_absence();
                    self.step(Event::TimerFired);
                }
                _ = pulse.tick(), if !self.state.runs.is_empty() => self.notice_absence(),
                Some(news) = self.lane_news.recv() => {
                    self.notice_absence();
                    self.lane_news(news);
                }
            }
            self.flush()?;
            self.meters.pass.observe(self.woke.elapsed());
            self.prune();
        }
    }

    /// Reports a `WasAway` event if the loop made no pass for a long time while there were runs. With runs the loop makes a pass at every
    /// pulse, so a gap means that nobody listened to them, for example because the machine slept. The gap is measured from pass to pass,
    /// whatever woke the loop, because a runner can also be suspended while it writes.
    fn notice_absence(&mut self) {
        self.woke = Instant::now();
        let at = now();
        let away = at.since(std::mem::replace(&mut self.last_pass, at));
        if away >= ABSENCE && !self.state.runs.is_empty() {
            self.step(Event::WasAway { away });
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Event(event) => {
                if let Event::RunFinished { run, .. } = &event {
                    self.performer.run_is_over(run);
                }
                self.step(event);
            }
            Message::Performed { effect, event } => {
                if let Some(event) = event {
                    self.step(event);
                }
                self.performer.performed(effect);
            }
            Message::Reload(in_force) => self.reload(*in_force),
            Message::ReloadFailed { error } => {
                self.reload_error = Some(error);
                self.stale_since.get_or_insert_with(Instant::now);
            }
            Message::Command { command, by, reply } => {
                let answer = self.command(command, by);
                self.unanswered.push((reply, answer));
            }
            Message::Hinted(hints) => {
                if hints.contains(&Hint::Board) {
                    let _ = self.poll_wanted.try_send(());
                }
                self.step(Event::Hinted { hints });
            }
            Message::PollOver { left_out, usage, mark } => {
                if mark.as_ref() != self.board_mark.as_ref() {
                    (self.board_mark, self.mark_is_kept) = (mark, false);
                }
                self.poll_is_over = true;
                // The usage figure changes with every poll; that alone is not worth a new snapshot.
                self.usage = usage;
                // But where nothing else happens, people want to see that the board is still read.
                if self.last_published.elapsed() >= PUBLISH_POLLS {
                    self.stale_since.get_or_insert_with(Instant::now);
                }
                if self.left_out != left_out {
                    self.left_out = left_out;
                    self.stale_since.get_or_insert_with(Instant::now);
                }
            }
        }
    }

    /// Steps the engine. If the event is about tickets whose jobs are archived, those jobs are handed to the engine first.
    fn step(&mut self, event: Event) {
        let unknown = unknown_tickets(&self.state, &event);
        match self.recall(&unknown) {
            Ok(jobs) if jobs.is_empty() => self.take_step(event),
            Ok(jobs) => {
                self.take_step(Event::Recalled { jobs });
                self.take_step(event);
            }
            Err(error) => {
                // Without its archived job, a ticket would begin anew. So this event is dropped, and the board is read again.
                let error = format!("the ledger cannot be read: {error}");
                tracing::warn!(error, "news of the board were left aside");
                self.take_step(Event::PollFailed { error });
            }
        }
    }

    /// Returns the archived jobs of these tickets. Those that are not written to the ledger yet take precedence over the ledger.
    fn recall(&self, ids: &[TicketId]) -> Result<Vec<Job>, LedgerError> {
        let (mut jobs, mut rest) = (Vec::new(), Vec::new());
        for id in ids {
            match self.unwritten.archived.get(id) {
                Some(job) => jobs.push(job.clone()),
                None => rest.push(id.clone()),
            }
        }
        if !rest.is_empty() {
            jobs.extend(self.ledger.jobs(&rest)?);
        }
        Ok(jobs)
    }

    fn take_step(&mut self, event: Event) {
        let reloaded = matches!(event, Event::PolicyReloaded);
        let switch_before = self.state.global_switch();
        let board_error_before = self.state.tracker.last_error.clone();
        let board_was_read = self.state.tracker.last_ok.is_some();
        let at = now();
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&RecordLine::Event { at, event: event.clone() });
        }
        let effects = step(&mut self.state, &self.policy, at, event);
        self.moment.store(self.state.moment().0, Ordering::Release);
        let changes = self.state.take_changes();
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&RecordLine::Decided { notes: changes.notes.clone(), effects: effects.clone() });
        }
        failpoint!("driver.stepped");
        log_notes(&self.state, &changes);
        self.tell_news(&changes, &effects, at);
        let all = reloaded || self.state.global_switch() != switch_before;
        if all {
            self.gatekeeper.refresh(&self.state, &self.policy, None);
        } else if !changes.jobs.is_empty() || !changes.archived.is_empty() {
            let changed = changes.jobs.iter().chain(changes.archived.keys());
            self.gatekeeper.update(&self.state, &self.policy, changed);
        }
        self.performer.look_at_gates(&self.state);
        if changes.soft && !changes.is_hard() {
            self.soft_since.get_or_insert_with(Instant::now);
        }
        self.changed_since_poll |= !changes.jobs.is_empty() || !changes.outbox.is_empty();
        // Neither an unreadable board nor the first reading of an empty one changes a job, but people must see both.
        let tracker = &self.state.tracker;
        let board_news = tracker.last_error != board_error_before || tracker.last_ok.is_some() != board_was_read;
        if changes.is_hard() || changes.soft || all || board_news {
            self.stale_since.get_or_insert_with(Instant::now);
        }
        self.unwritten.add(changes);
        for effect in effects {
            if let Some(run_over) = self.stop_before_start(&effect) {
                self.step(run_over);
            } else if effect.action.kind().reach() == Reach::Harmless {
                // Reading and stopping need no ledger entry first, so a full disk does not delay them.
                self.performer.perform(effect, &self.state, &self.policy);
            } else {
                self.unperformed.push(effect);
            }
        }
    }

    /// Sends news about finished runs and workers' comments, and counts the runs. It does not matter if there is no listener.
    fn tell_news(&self, changes: &Changes, effects: &[Effect], at: Timestamp) {
        for finished in &changes.finished {
            let well = finished.report.outcome == RunOutcome::Done;
            let (run, took) = (&finished.run, finished.ended_at.since(finished.run.started_at));
            self.meters.run_over(finished.report.outcome.code(), run.kind.name(), &run.runtime, took);
            let _ = self.news.send(News::RunOver { run: finished.run.id.to_string(), well });
        }
        for effect in effects {
            let Action::Comment { said: Said::Worker { run, text }, .. } = &effect.action else { continue };
            let Some(live) = self.state.runs.get(run) else { continue };
            let (key, attempt) = (live.key.to_string(), live.attempt);
            let _ = self.news.send(News::WorkerSaid { key, attempt, text: text.clone(), at });
        }
    }

    /// Cancels the start of a run that is to be stopped and whose start still waits for the ledger. Nothing was made of that run, so it is
    /// over at once, however long the ledger cannot be written. Returns the event that says so, or `None` if no such start waits.
    fn stop_before_start(&mut self, effect: &Effect) -> Option<Event> {
        let Action::StopRun { run: stopped, reason } = &effect.action else { return None };
        let waits = |waiting: &Effect| matches!(&waiting.action, Action::StartRun { run, .. } if run == stopped);
        let position = self.unperformed.iter().position(waits)?;
        drop(self.unperformed.remove(position));
        let report = RunReport::bare(RunOutcome::Killed { reason: reason.clone() });
        Some(Event::RunFinished { run: stopped.clone(), report })
    }

    /// Writes the changes to the ledger, then performs the effects, then publishes. Effects are not performed while changes cannot be
    /// written.
    fn flush(&mut self) -> Result<(), DriverError> {
        let checkpoint = self.soft_since.is_some_and(|since| since.elapsed() >= CHECKPOINT_EVERY);
        let may_write = self.write_failed_at.is_none_or(|at| at.elapsed() >= RETRY_WRITE_EVERY);
        if may_write && (self.unwritten.is_hard() || checkpoint) {
            // What was spent is kept with the ticket, the run and the day. They are written together, so that they agree after a crash.
            if checkpoint || self.unwritten.soft {
                self.unwritten.runs.extend(self.state.runs.keys().cloned());
                self.unwritten.jobs.extend(self.state.runs.values().map(|run| run.ticket.clone()));
            }
            failpoint!("driver.before_commit");
            match self.ledger.commit(&self.state, &self.unwritten) {
                Ok(()) => {
                    failpoint!("driver.committed");
                    self.unwritten = Changes::default();
                    self.soft_since = None;
                    if self.write_failed_at.take().is_some() {
                        self.write_error = None;
                        self.stale_since.get_or_insert_with(Instant::now);
                        tracing::info!("the ledger can be written again; everything goes on");
                    }
                }
                Err(error) => {
                    if self.write_failed_at.is_none() {
                        tracing::error!(%error, "the ledger cannot be written: nothing is changed outside until it can");
                    }
                    self.write_failed_at = Some(Instant::now());
                    self.write_error = Some(error.to_string());
                    self.stale_since.get_or_insert_with(Instant::now);
                }
            }
        }
        if !self.unwritten.is_hard() {
            self.keep_board_mark();
            for effect in std::mem::take(&mut self.unperformed) {
                failpoint!("driver.before_effect");
                self.performer.perform(effect, &self.state, &self.policy);
                failpoint!("driver.effect_begun");
            }
        }
        let somebody_waits = !self.unanswered.is_empty();
        if self.stale_since.is_some() && (somebody_waits || self.last_published.elapsed() >= self.publish_every()) {
            self.publish();
        }
        self.answer();
        if self.until != Until::Told {
            self.count_idle_polls();
        }
        Ok(())
    }

    /// Writes the board mark to the ledger, after everything that was read up to it. A lost mark only means that more of the board is read
    /// next time.
    fn keep_board_mark(&mut self) {
        if std::mem::replace(&mut self.mark_is_kept, true) {
            return;
        }
        let Some(mark) = &self.board_mark else { return };
        let mark = BoardMark { ask_for: self.state.to_ask_for(), ..mark.clone() };
        if let Err(error) = self.ledger.keep_board_mark(&mark) {
            tracing::debug!(%error, "how far the board was read is not written down");
        }
    }

    /// Drops what is older than `ledger.keep_days`, after everything that has to be written. Waits while the ledger cannot be written.
    fn prune(&mut self) {
        if self.write_failed_at.is_some() || Instant::now() < self.prune_at {
            return;
        }
        let more = match self.ledger.prune(now(), self.keep_days) {
            Ok(pruned) => {
                if pruned.notes > 0 || !pruned.runs.is_empty() {
                    let (notes, runs) = (pruned.notes, pruned.runs.len());
                    tracing::debug!(notes, runs, "notes and finished runs beyond ledger.keep_days were dropped");
                }
                pruned.more
            }
            Err(error) => {
                tracing::warn!(%error, "the ledger could not be pruned; it is tried again tomorrow");
                false
            }
        };
        self.prune_at = Instant::now() + if more { PRUNE_PAUSE } else { PRUNE_EVERY };
    }

    /// Sends the replies to commands. By now the results are in the ledger and in `status`; while the ledger cannot be written, the reply
    /// says so.
    fn answer(&mut self) {
        for (reply, answer) in std::mem::take(&mut self.unanswered) {
            let answer = match (&self.write_error, answer) {
                (Some(error), Ok(text)) => Ok(format!("{text}\n(in force, but not written down yet: {error})")),
                (_, answer) => answer,
            };
            let _ = reply.send(answer);
        }
    }

    /// With `--once`, asks for another poll when all is quiet, until two polls in a row have changed nothing.
    fn count_idle_polls(&mut self) {
        if !self.poll_is_over || !self.is_idle() {
            return;
        }
        self.idle_polls = if self.changed_since_poll { 0 } else { self.idle_polls + 1 };
        self.poll_is_over = false;
        self.changed_since_poll = false;
        if self.idle_polls < 2 {
            let _ = self.poll_wanted.try_send(());
        }
    }

    /// Takes in that a lane was told to wait, fails, or works again. A lane reports each of these once.
    fn lane_news(&mut self, news: LaneNews) {
        self.stale_since.get_or_insert_with(Instant::now);
        match news {
            LaneNews::Paused { lane, until, why, locked_out } => {
                self.step(Event::LanePaused { lane, until, why, locked_out });
            }
            LaneNews::Works { lane } => self.step(Event::LaneWorks { lane }),
            LaneNews::Failing { lane, error } => tracing::debug!(lane = lane.name(), error, "a lane fails"),
        }
    }

    fn publish(&mut self) {
        let began = Instant::now();
        failpoint!("driver.before_publish");
        let mut picture = Picture::of(&self.state, &self.policy, now());
        let general = &mut picture.general;
        general.workflow.reload_error = self.reload_error.clone();
        general.workflow.warnings.clone_from(&self.warnings);
        general.workflow.policies.clone_from(&self.policies);
        general.tracker.left_out.clone_from(&self.left_out);
        general.tracker.usage.clone_from(&self.usage);
        general.ledger_error = self.write_error.clone();
        general.lanes = self.performer.lanes().view();
        self.published.send_replace(Arc::new(Published::new(picture, self.policy.clone())));
        self.meters.publish.observe(began.elapsed());
        self.stale_since = None;
        self.last_published = Instant::now();
    }

    fn publish_every(&self) -> Duration {
        let jobs = u32::try_from(self.state.jobs.len()).unwrap_or(u32::MAX);
        PUBLISH_EVERY.max(PUBLISH_PER_JOB.saturating_mul(jobs))
    }

    fn wake_at(&self) -> Instant {
        let current = now();
        let due = if self.state.shutting_down { None } else { next_due(&self.state, &self.policy) };
        // Wait at least a moment: an event that is due but cannot be handled yet must not make the loop spin.
        let due = due.map(|at| Instant::now() + at.since(current).max(Duration::from_millis(20)));
        let publish = self.stale_since.map(|_| self.last_published + self.publish_every());
        let checkpoint = self.soft_since.map(|since| since + CHECKPOINT_EVERY);
        let write = self.write_failed_at.map(|at| at + RETRY_WRITE_EVERY);
        let ending = self.ending_since.map(|_| Instant::now() + Duration::from_millis(50));
        // The wall clock may jump, so the loop looks at it at least once a minute.
        let at_least = Instant::now() + Duration::from_secs(60);
        let prune = self.write_failed_at.is_none().then_some(self.prune_at);
        [due, publish, checkpoint, write, ending, prune].into_iter().flatten().fold(at_least, Instant::min)
    }

    fn reload(&mut self, in_force: InForce) {
        let InForce { policy, kill_file, texts, gates, warnings, policies } = in_force;
        self.warnings = warnings;
        self.policies = policies;
        self.policy = policy;
        self.performer.follow(texts, gates);
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&RecordLine::Policy { policy: Box::new((*self.policy).clone()) });
        }
        self.reload_error = None;
        self.plan.send_if_modified(|plan| {
            let new = plan_of(&self.policy);
            let changed = *plan != new;
            *plan = new;
            changed
        });
        self.kill_file.send_if_modified(|known| {
            let changed = *known != kill_file;
            known.clone_from(&kill_file);
            changed
        });
        self.gatekeeper.refresh(&self.state, &self.policy, Some(&kill_file));
        self.step(Event::PolicyReloaded);
    }

    fn command(&mut self, command: Command, by: String) -> CommandAnswer {
        match command {
            Command::Operator(command) => {
                let ticket = command.ticket().cloned();
                if let Some(id) = &ticket {
                    self.must_know(id)?;
                }
                if let Some(already) = is_so_already(&self.state, &command) {
                    return Ok(already);
                }
                if let Some(objection) = objection(&self.state, &command) {
                    return Err(objection);
                }
                self.step(Event::Operator { command, by });
                Ok(where_it_stands(&self.state, &self.policy, ticket.as_ref()))
            }
            Command::Approve { ticket, head, anyway, overrule: named } => {
                self.must_know(&ticket)?;
                let mut overrule = holding(&self.state, &ticket);
                if let Some(other) = named.iter().find(|name| !overrule.iter().any(|key| key.versioned() == **name)) {
                    return Err(format!(
                        "no remark `{other}` stands against it; it may have been edited or dealt with since"
                    ));
                }
                overrule.retain(|key| anyway || named.contains(&key.versioned()));
                self.command(Command::Operator(OperatorCommand::Approve { ticket, head, overrule }), by)
            }
            Command::Message { ticket, text, urgent } => {
                self.must_know(&ticket)?;
                self.step(Event::HumanSaid { ticket: ticket.clone(), by, text, urgent });
                let stands = where_it_stands(&self.state, &self.policy, Some(&ticket));
                Ok(format!("{stands}; {}", how_it_arrives(&self.state, &ticket)))
            }
            Command::Look => Ok(String::new()),
            Command::Poll => {
                let _ = self.poll_wanted.try_send(());
                Ok("the board is being read".into())
            }
            Command::Shutdown => {
                self.step(Event::Shutdown);
                let runs = count(self.state.runs.len(), "run is being stopped", "runs are being stopped");
                Ok(format!("shutting down; {runs}"))
            }
        }
    }

    /// Fails if the ticket is unknown. If its job is archived, brings the job back into the state.
    fn must_know(&mut self, id: &TicketId) -> Result<(), String> {
        if !self.state.jobs.contains(id) {
            let jobs = self.recall(std::slice::from_ref(id)).map_err(|error| error.to_string())?;
            if jobs.is_empty() {
                return Err("no such ticket on the board".into());
            }
            self.take_step(Event::Recalled { jobs });
        }
        Ok(())
    }

    /// Whether nothing is under way, and nothing is expected to happen without an action from outside.
    fn is_idle(&self) -> bool {
        self.performer.in_flight() == 0
            && self.unperformed.is_empty()
            && idle::is_idle(&self.state, &self.policy, self.until)
    }

    fn is_over(&mut self) -> bool {
        if self.until != Until::Told && self.idle_polls >= 2 && self.is_idle() {
            return true;
        }
        if !self.state.shutting_down || !self.state.runs.is_empty() {
            return false;
        }
        let since = *self.ending_since.get_or_insert_with(Instant::now);
        self.performer.in_flight() == 0 || since.elapsed() >= LAST_EFFECTS
    }
}

/// Returns what the poller has to read, and how often.
pub fn plan_of(policy: &Policy) -> PollPlan {
    PollPlan {
        period: policy.polling_interval,
        states: select::states_of_interest(policy),
        workflow: policy.hash.clone(),
    }
}

fn log_notes(state: &State, changes: &Changes) {
    for note in &changes.notes {
        if note.ticket.is_none() {
            tracing::info!(code = note.code, "{}", note.text);
            continue;
        }
        let job = note.ticket.as_ref().and_then(|id| state.jobs.get(id));
        let issue_id = note.ticket.as_ref().map_or("", |id| id.as_str());
        let issue_identifier = job.map_or("", |job| job.ticket.key.as_str());
        let turn = job.and_then(|job| state.runs.get(job.stage.run()?)).map_or(1, |run| run.progress.turns + 1);
        let session_id = job.and_then(|job| job.session.as_ref()).map_or(String::new(), |id| format!("{id}-{turn}"));
        let run_id = note.run.as_ref().map_or("", |id| id.as_str());
        tracing::info!(
            issue_id,
            issue_identifier,
            run_id,
            session_id,
            code = note.code,
            "{}",
            named(issue_identifier, &note.text)
        );
    }
}

/// Prefixes the message with the ticket's key unless it already begins with it, for readers of logs without fields.
fn named(key: &str, text: &str) -> String {
    if key.is_empty() || text.starts_with(key) { text.to_owned() } else { format!("{key}: {text}") }
}
