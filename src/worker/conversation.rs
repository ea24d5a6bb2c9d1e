//! The turns of one run on one live session, from the handshake to the end of its process: prompts, steering, questions,
//! stopping. Decides nothing about the work; it says how the talking ended.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::desk::Desk;
use super::desk_protocol::DeskResponse;
use super::questions::{self, Verdict};
use super::reports::Reports;
use super::{Control, PromptRequest, RunOrder, TicketAnswer, Worker, WorkerEvent, Workplace, desk_tools, guidance};
use crate::agent::session::{Heard, Session, now, reset_time};
use crate::agent::{Answer, Question, TurnEnd};
use crate::config::worker::Runtime;
use crate::domain::failure::{RunFailure, TurnError};
use crate::domain::ids::{CommitId, SessionId};
use crate::domain::job::HumanWord;
use crate::domain::run::{Activity, StopReason};
use crate::domain::ticket::{Ticket, state_in};
use crate::domain::usage::RateLimit;
use crate::launcher::Exit;

/// How often the branch is looked at for new commits.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const TRACKER_LIMIT: Duration = Duration::from_secs(60);
/// An interrupted turn gets at most this long before the process is asked.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// How the talking ended.
#[derive(Debug)]
pub enum End {
    /// The last turn ended well; the process may still be there.
    TurnsOver,
    Exited(Exit),
    Failed(RunFailure),
    Stopped(StopReason),
    /// The conversation to be resumed is gone; a fresh one may be tried.
    NotResumed,
}

/// What is known after the talking.
#[derive(Debug, Default)]
pub struct Talk {
    pub session: Option<SessionId>,
    pub turns: u32,
    /// The ticket as it was last read.
    pub ticket: Option<Ticket>,
}

/// The words to a running worker. A runner that is gone means stop.
pub struct Inbox {
    control: mpsc::Receiver<Control>,
    early: VecDeque<Control>,
    closed: bool,
}

impl Inbox {
    pub fn new(control: mpsc::Receiver<Control>) -> Self {
        Self { control, early: VecDeque::new(), closed: false }
    }

    /// Whether a stop was asked for; other words are kept for later.
    pub fn stop_asked(&mut self) -> Option<StopReason> {
        loop {
            match self.control.try_recv() {
                Ok(Control::Stop(reason)) => return Some(reason),
                Ok(other) => self.early.push_back(other),
                Err(_) => return None,
            }
        }
    }

    /// Waits for a stop alone.
    pub async fn stopped(&mut self) -> StopReason {
        loop {
            match self.control.recv().await {
                Some(Control::Stop(reason)) => return reason,
                Some(other) => self.early.push_back(other),
                None => return StopReason::Shutdown,
            }
        }
    }

    async fn next(&mut self) -> Control {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        if self.closed {
            return std::future::pending().await;
        }
        match self.control.recv().await {
            Some(control) => control,
            None => {
                self.closed = true;
                Control::Stop(StopReason::Shutdown)
            }
        }
    }
}

pub struct Conversation<'a> {
    pub worker: &'a Worker,
    pub order: &'a RunOrder,
    pub session: &'a mut Session,
    pub desk: &'a Desk,
    pub inbox: &'a mut Inbox,
    pub events: &'a mpsc::UnboundedSender<WorkerEvent>,
    pub one_shot: bool,
    pub runtime: Runtime,
    pub first_prompt: &'a str,
    pub worktree: &'a Path,
    /// The branch's head as last seen.
    pub head: Option<CommitId>,
    pub talk: Talk,
}

/// What the loop keeps in mind.
#[derive(Default)]
struct Mind {
    prompted: bool,
    resume_failed: bool,
    /// Words for the next prompt.
    words: Vec<HumanWord>,
    wrap_up: WrapUp,
    last_turn: bool,
    /// A one-shot command said that its turn failed; its end is still to come.
    failed: Option<RunFailure>,
    parked: VecDeque<Parked>,
    stopping: Option<Stopping>,
    tools: JoinSet<(String, DeskResponse)>,
    asking: Option<TicketAnswer>,
}

#[derive(Default)]
enum WrapUp {
    #[default]
    No,
    ToSay,
    Said,
}

struct Parked {
    ask: String,
    question: Question,
    until: Instant,
}

struct Stopping {
    reason: StopReason,
    stage: Stage,
    next: Instant,
    kill_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Aborting,
    Terminating,
    Killing,
}

impl Conversation<'_> {
    pub async fn hold(&mut self) -> End {
        let mut mind = Mind::default();
        let mut reports = Reports::from(Instant::now());
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.reset();
        let end = loop {
            let deadline = mind.deadline();
            let end = tokio::select! {
                heard = self.session.next() => match heard {
                    Heard::Spent => {
                        reports.spent(Instant::now());
                        None
                    }
                    heard => self.hear(&mut mind, heard),
                },
                control = self.inbox.next() => self.obey(&mut mind, control),
                answer = ask(&mut mind.asking), if mind.asking.is_some() => self.board_answered(&mut mind, answer),
                Some(done) = mind.tools.join_next(), if !mind.tools.is_empty() => {
                    if let Ok((ask, response)) = done {
                        self.session.answer(&ask, &tool_result(response));
                    }
                    None
                }
                () = until(deadline), if deadline.is_some() => self.overdue(&mut mind),
                () = sleep_until(reports.due()) => {
                    reports.made(Instant::now());
                    self.report();
                    None
                }
                _ = look.tick() => {
                    self.look_for_commits().await;
                    None
                }
            };
            if let Some(end) = end {
                break end;
            }
        };
        self.report();
        end
    }

    fn hear(&mut self, mind: &mut Mind, heard: Heard) -> Option<End> {
        if let Some(stopping) = &mut mind.stopping {
            return match heard {
                Heard::Ended(_) => Some(End::Stopped(stopping.reason.clone())),
                Heard::TurnEnded(_) if stopping.stage == Stage::Aborting => {
                    self.session.terminate();
                    stopping.advance(Stage::Terminating);
                    None
                }
                _ => None,
            };
        }
        match heard {
            Heard::Ready => {
                if !mind.prompted {
                    mind.prompted = true;
                    self.session.prompt(self.first_prompt);
                }
                None
            }
            Heard::HandshakeOverdue { .. } | Heard::Ended(_) if mind.resume_failed && !mind.prompted => {
                Some(End::NotResumed)
            }
            Heard::HandshakeOverdue { detail } => {
                Some(End::Failed(RunFailure::Handshake { detail: self.explain(&detail) }))
            }
            Heard::SessionStarted { id } => {
                self.talk.session = Some(id.clone());
                self.tell(Activity::SessionKnown { session: id });
                None
            }
            Heard::ResumeFailed { detail } => {
                self.session.note(&format!("the earlier conversation is gone: {detail}"));
                mind.resume_failed = true;
                None
            }
            Heard::TurnEnded(end) => self.turn_ended(mind, end),
            Heard::RateLimited { description, reset_at } => {
                self.tell(Activity::RateLimited { limit: RateLimit { description, reset_at } });
                None
            }
            Heard::Asked { ask, question } => self.asked(mind, ask, question),
            Heard::SteerFailed { text } => {
                mind.words.push(HumanWord { from: "A person".into(), text, at: now(), urgent: false });
                None
            }
            Heard::Ended(exit) => Some(self.ended(mind, exit)),
            Heard::Spent => None,
        }
    }

    fn ended(&mut self, mind: &mut Mind, exit: Exit) -> End {
        if self.one_shot && mind.prompted {
            self.count_turn();
            return match mind.failed.take() {
                Some(failure) => End::Failed(failure),
                None => self.exited(exit),
            };
        }
        if let Some(trouble) = self.session.trouble() {
            let (class, detail, reset_at) = (trouble.class, trouble.detail.clone(), trouble.reset_at);
            return End::Failed(RunFailure::Turn { class, detail, reset_at });
        }
        if mind.prompted {
            return self.exited(exit);
        }
        match self.exited(exit) {
            End::Exited(_) => {
                let how = match exit {
                    Exit::Code(code) => format!("it exited with code {code} before it was ready"),
                    Exit::Signal(signal) => format!("signal {signal} ended it before it was ready"),
                };
                End::Failed(RunFailure::Handshake { detail: self.explain(&how) })
            }
            other => other,
        }
    }

    /// A shell says 127 (or 126) for a command that is not there (or cannot be run).
    fn exited(&self, exit: Exit) -> End {
        match exit {
            Exit::Code(126 | 127) => End::Failed(RunFailure::Launch {
                detail: self.explain("the shell could not run its command"),
                permanent: true,
            }),
            Exit::Code(_) | Exit::Signal(_) => End::Exited(exit),
        }
    }

    fn explain(&self, what: &str) -> String {
        let said = self.session.last_stderr();
        let said: String = said.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
        if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }
    }

    fn turn_ended(&mut self, mind: &mut Mind, end: TurnEnd) -> Option<End> {
        if self.one_shot {
            if let TurnEnd::Failed { class, detail, reset } = end {
                mind.failed = Some(RunFailure::Turn { class, detail, reset_at: reset_time(reset) });
            }
            return None;
        }
        self.count_turn();
        match end {
            TurnEnd::Failed { class, detail, reset } => {
                Some(End::Failed(RunFailure::Turn { class, detail, reset_at: reset_time(reset) }))
            }
            TurnEnd::Interrupted if mind.words.is_empty() => Some(End::Failed(RunFailure::Turn {
                class: TurnError::Other,
                detail: "the turn was interrupted, and not by us".into(),
                reset_at: None,
            })),
            TurnEnd::Completed | TurnEnd::Interrupted => self.after_turn(mind),
        }
    }

    fn after_turn(&mut self, mind: &mut Mind) -> Option<End> {
        if self.desk.declared().is_some() {
            return Some(End::TurnsOver);
        }
        if mind.last_turn {
            return Some(End::Stopped(StopReason::Quota));
        }
        if self.talk.turns >= self.worker.settings.agent.max_turns {
            return Some(End::TurnsOver);
        }
        match mind.wrap_up {
            WrapUp::No => {}
            WrapUp::ToSay => {
                mind.wrap_up = WrapUp::Said;
                self.session.prompt(guidance::WRAP_UP);
                return None;
            }
            WrapUp::Said => return Some(End::TurnsOver),
        }
        if !mind.words.is_empty() {
            let words = std::mem::take(&mut mind.words);
            self.session.prompt(&guidance::words(&words));
            return None;
        }
        let answer = (self.worker.read_ticket)(self.order.ticket.id.clone());
        mind.asking = Some(Box::pin(async move {
            tokio::time::timeout(TRACKER_LIMIT, answer)
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {} s", TRACKER_LIMIT.as_secs())))
        }));
        None
    }

    /// Between two turns: goes on while the ticket is still ours to work on.
    fn board_answered(&mut self, mind: &mut Mind, answer: Result<Option<Ticket>, String>) -> Option<End> {
        mind.asking = None;
        if mind.stopping.is_some() {
            return None;
        }
        let ticket = match answer {
            Ok(Some(ticket)) => ticket,
            Ok(None) => return Some(End::TurnsOver),
            Err(detail) => return Some(End::Failed(RunFailure::Tracker { detail })),
        };
        let active = is_active(self.worker, &ticket);
        self.talk.ticket = Some(ticket.clone());
        if !active {
            return Some(End::TurnsOver);
        }
        let words = std::mem::take(&mut mind.words);
        let request = PromptRequest {
            order: self.order,
            ticket: &ticket,
            worktree: self.worktree,
            turn: self.talk.turns + 1,
            words: &words,
            runtime: self.runtime,
            template: None,
        };
        match (self.worker.render)(&request) {
            Ok(prompt) => {
                self.session.prompt(&prompt);
                None
            }
            Err(detail) => Some(End::Failed(RunFailure::Prompt { detail })),
        }
    }

    fn asked(&mut self, mind: &mut Mind, ask: String, question: Question) -> Option<End> {
        if let Question::Tool { name, arguments } = &question
            && let Ok(verb) = desk_tools::read(name, arguments)
        {
            let answer = self.desk.serve(verb);
            mind.tools.spawn(async move { (ask, answer.await) });
            return None;
        }
        if let Question::Tool { name, arguments } = &question {
            let output = desk_tools::read(name, arguments).err().unwrap_or_default();
            self.session.answer(&ask, &Answer::ToolResult { success: false, output });
            return None;
        }
        match questions::decide(&self.worker.settings.agent, &question) {
            Verdict::Answer(answer) => {
                self.session.answer(&ask, &answer);
                None
            }
            Verdict::Ask(text) => {
                self.tell(Activity::Asked { question: text });
                let until = Instant::now() + self.worker.settings.agent.ask_timeout;
                mind.parked.push_back(Parked { ask, question, until });
                None
            }
            Verdict::Fail(question) => Some(End::Failed(RunFailure::InputRequired { question })),
        }
    }

    fn obey(&mut self, mind: &mut Mind, control: Control) -> Option<End> {
        match control {
            Control::Stop(reason) => self.stop(mind, reason),
            Control::Steer(word) => self.steer(mind, word),
            Control::WrapUp => {
                mind.wrap_up = WrapUp::Said;
                if !self.session.steer(guidance::WRAP_UP) {
                    mind.wrap_up = WrapUp::ToSay;
                    let text = guidance::WRAP_UP.to_owned();
                    self.desk.hear(HumanWord { from: "dirigent".into(), text, at: now(), urgent: true });
                }
            }
            Control::StopAfterTurn => mind.last_turn = true,
        }
        None
    }

    /// Abort, then TERM, then KILL; asked a second time it kills at once.
    fn stop(&mut self, mind: &mut Mind, reason: StopReason) {
        if let Some(stopping) = &mut mind.stopping {
            self.session.kill();
            stopping.advance(Stage::Killing);
            return;
        }
        let grace = self.worker.settings.agent.stop_grace;
        let start = Instant::now();
        let kill_at = start + grace;
        self.session.note(&format!("stopping: {}", reason.code()));
        let mut stopping =
            Stopping { reason, stage: Stage::Aborting, next: start + (grace / 4).min(ABORT_LIMIT), kill_at };
        if !(mind.prompted && self.session.interrupt()) {
            self.session.terminate();
            stopping.advance(Stage::Terminating);
        }
        mind.stopping = Some(stopping);
    }

    fn steer(&mut self, mind: &mut Mind, word: HumanWord) {
        if let Some(parked) = mind.parked.pop_front() {
            self.session.answer(&parked.ask, &questions::reply(&parked.question, &word.text));
            return;
        }
        if mind.stopping.is_some() {
            return;
        }
        let urgent_stop = word.urgent && mind.prompted && self.session.interrupt();
        if urgent_stop || !self.session.steer(&guidance::words(std::slice::from_ref(&word))) {
            mind.words.push(word.clone());
            self.desk.hear(word);
        }
    }

    fn overdue(&mut self, mind: &mut Mind) -> Option<End> {
        if let Some(stopping) = &mut mind.stopping {
            match stopping.stage {
                Stage::Aborting => {
                    self.session.terminate();
                    stopping.advance(Stage::Terminating);
                }
                Stage::Terminating => {
                    self.session.kill();
                    stopping.advance(Stage::Killing);
                }
                // The aftermath finds out that it is still there.
                Stage::Killing => return Some(End::Stopped(stopping.reason.clone())),
            }
            return None;
        }
        let parked = mind.parked.pop_front()?;
        match questions::unanswered(&self.worker.settings.agent, &parked.question) {
            Some(answer) => {
                self.session.answer(&parked.ask, &answer);
                None
            }
            None => {
                let question = questions::sentence(&parked.question);
                Some(End::Failed(RunFailure::InputRequired { question }))
            }
        }
    }

    fn count_turn(&mut self) {
        self.talk.turns += 1;
        self.report();
        self.tell(Activity::TurnEnded { turns: self.talk.turns });
    }

    fn report(&mut self) {
        if let Some(activity) = self.session.tally().report() {
            self.tell(activity);
        }
    }

    async fn look_for_commits(&mut self) {
        let Workplace::Worktrees(workspaces) = &self.worker.workplace else { return };
        if let Ok(Some(head)) = workspaces.branch_head(&self.order.branch).await
            && self.head.as_ref() != Some(&head)
        {
            self.head = Some(head.clone());
            self.tell(Activity::Committed { head });
        }
    }

    fn tell(&self, activity: Activity) {
        self.events.send(WorkerEvent::Activity(activity)).ok();
    }
}

impl Mind {
    fn deadline(&self) -> Option<Instant> {
        match &self.stopping {
            Some(stopping) => Some(stopping.next),
            None => self.parked.front().map(|parked| parked.until),
        }
    }
}

impl Stopping {
    fn advance(&mut self, stage: Stage) {
        self.stage = stage;
        self.next = if stage == Stage::Killing { Instant::now() + KILL_LIMIT } else { self.kill_at };
    }
}

/// Whether a run may go on with this ticket.
pub fn is_active(worker: &Worker, ticket: &Ticket) -> bool {
    let tracker = &worker.settings.tracker;
    let labelled = tracker.required_labels.iter().all(|label| ticket.labels.contains(&label.trim().to_lowercase()));
    state_in(&ticket.state, &tracker.active_states) && !state_in(&ticket.state, &tracker.terminal_states) && labelled
}

fn tool_result(response: DeskResponse) -> Answer {
    let output = response.error.map(|error| error.message).or(response.text).unwrap_or_default();
    Answer::ToolResult { success: response.ok, output }
}

async fn ask(answer: &mut Option<TicketAnswer>) -> Result<Option<Ticket>, String> {
    match answer {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
