//! The turns of one run in one live session, from the handshake until its process is gone: prompts, steering, questions, stopping. It does
//! not judge the work; it reports how the conversation ended.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::desk::Desk;
use super::desk_protocol::DeskResponse;
use super::inbox::Inbox;
use super::interference::{Parked, Stage, Stopping};
use super::prompt::PromptRequest;
use super::reports::Reports;
use super::{RunOrder, Worker, WorkerEvent, Workplace, guidance};
use crate::agent::session::{Session, SessionEvent, now, reset_time};
use crate::agent::{Answer, TurnEnd};
use crate::config::worker::Runtime;
use crate::domain::failure::{RunFailure, TurnError};
use crate::domain::ids::{CommitId, SessionId};
use crate::domain::job::{HumanMessage, TicketFacts};
use crate::domain::remark::RemarkKey;
use crate::domain::run::{Activity, StopReason};
use crate::domain::ticket::Ticket;
use crate::domain::usage::RateLimit;
use crate::engine::select;
use crate::launcher::Exit;

/// How often the branch is checked for new commits.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const TRACKER_LIMIT: Duration = Duration::from_secs(60);

/// How many characters of an agent's last line are reported.
const LONGEST_LAST_LINE: usize = 200;

/// The pending read of the ticket between two turns.
pub(super) type TicketAnswer = Pin<Box<dyn Future<Output = Result<Option<Ticket>, String>> + Send>>;

/// How the conversation ended.
#[derive(Debug)]
pub enum End {
    /// The last turn ended well; the process may still be running.
    TurnsOver,
    /// The process exited. `said` is its last line on stderr.
    Exited {
        exit: Exit,
        said: Option<String>,
    },
    Failed(RunFailure),
    Stopped(StopReason),
    /// The conversation to be resumed is gone; a fresh one may be tried.
    NotResumed,
}

/// What is known after the conversation.
#[derive(Debug, Default)]
pub struct ConversationSummary {
    pub session: Option<SessionId>,
    pub turns: u32,
    /// The ticket as it was last read.
    pub ticket: Option<Ticket>,
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
    /// The remarks that the first prompt carries.
    pub carried: Vec<RemarkKey>,
    pub summary: ConversationSummary,
}

/// The state of the conversation's loop.
#[derive(Default)]
pub(super) struct ConversationState {
    pub prompted: bool,
    resume_failed: bool,
    /// Messages for the next prompt.
    pub words: Vec<HumanMessage>,
    /// Messages that were sent to the agent during a turn.
    pub steered: Vec<HumanMessage>,
    pub wrap_up: WrapUp,
    pub last_turn: bool,
    /// The failure that a one-shot command reported; its exit is still to come.
    failed: Option<RunFailure>,
    pub parked: VecDeque<Parked>,
    pub stopping: Option<Stopping>,
    pub tools: JoinSet<(String, DeskResponse)>,
    /// Set between two turns, while nothing can be said to the agent.
    pub asking: Option<TicketAnswer>,
}

#[derive(Default)]
pub(super) enum WrapUp {
    #[default]
    No,
    ToSay,
    Said,
}

impl Conversation<'_> {
    pub async fn hold(&mut self) -> End {
        let mut state = ConversationState::default();
        let mut reports = Reports::from(Instant::now());
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.reset();
        let end = loop {
            let deadline = state.deadline();
            let end = tokio::select! {
                heard = self.session.next() => match heard {
                    SessionEvent::Spent => {
                        reports.spent(Instant::now());
                        None
                    }
                    heard => self.hear(&mut state, heard),
                },
                control = self.inbox.next() => self.obey(&mut state, control),
                answer = ask(&mut state.asking), if state.asking.is_some() => self.board_answered(&mut state, answer),
                Some(done) = state.tools.join_next(), if !state.tools.is_empty() => {
                    if let Ok((ask, response)) = done {
                        self.session.answer(&ask, &tool_result(response));
                    }
                    None
                }
                () = until(deadline), if deadline.is_some() => self.overdue(&mut state),
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
        self.log("session ended");
        end
    }

    fn hear(&mut self, state: &mut ConversationState, heard: SessionEvent) -> Option<End> {
        if let Some(stopping) = &mut state.stopping {
            return match heard {
                SessionEvent::Ended(_) => Some(End::Stopped(stopping.reason.clone())),
                SessionEvent::TurnEnded(_) if stopping.stage == Stage::Aborting => {
                    self.session.terminate();
                    stopping.advance(Stage::Terminating);
                    None
                }
                _ => None,
            };
        }
        match heard {
            SessionEvent::Ready => {
                if !state.prompted {
                    state.prompted = true;
                    self.session.prompt(self.first_prompt);
                    self.log("turn started");
                    self.delivered(self.carried.clone());
                }
                None
            }
            SessionEvent::HandshakeOverdue { .. } | SessionEvent::Ended(_)
                if state.resume_failed && !state.prompted =>
            {
                Some(End::NotResumed)
            }
            SessionEvent::HandshakeOverdue { detail } => {
                Some(End::Failed(RunFailure::Handshake { detail: self.explain(&detail) }))
            }
            SessionEvent::SessionStarted { id } => {
                self.summary.session = Some(id.clone());
                self.log("session started");
                self.tell(Activity::SessionKnown { session: id });
                None
            }
            SessionEvent::ResumeFailed { detail } => {
                self.session.note(&format!("the earlier conversation is gone: {detail}"));
                state.resume_failed = true;
                None
            }
            SessionEvent::TurnEnded(end) => self.turn_ended(state, end),
            SessionEvent::RateLimited { description, reset_at } => {
                self.tell(Activity::RateLimited { limit: RateLimit { description, reset_at } });
                None
            }
            SessionEvent::Asked { ask, question } => self.asked(state, ask, question),
            // A nudge that came too late is not needed: the agent has been heard from meanwhile.
            SessionEvent::SteerFailed { text } if text == guidance::NUDGE => None,
            SessionEvent::SteerFailed { text } if text == guidance::WRAP_UP => {
                state.wrap_up = WrapUp::ToSay;
                None
            }
            SessionEvent::SteerFailed { text } => {
                let told =
                    state.steered.iter().position(|message| guidance::words(std::slice::from_ref(message)) == text);
                match told.map(|at| state.steered.remove(at)) {
                    Some(message) => {
                        let remarks: Vec<RemarkKey> = message.key.clone().into_iter().collect();
                        self.desk.not_delivered(&remarks);
                        self.tell(Activity::NotDelivered { remarks });
                        state.words.push(message);
                    }
                    None => state.words.push(HumanMessage {
                        key: None,
                        from: "A person".into(),
                        text,
                        at: now(),
                        urgent: false,
                    }),
                }
                None
            }
            SessionEvent::Ended(exit) => Some(self.ended(state, exit)),
            SessionEvent::Spent => None,
        }
    }

    fn ended(&mut self, state: &mut ConversationState, exit: Exit) -> End {
        if self.one_shot && state.prompted {
            self.count_turn();
            return match state.failed.take() {
                Some(failure) => End::Failed(failure),
                None => self.exited(exit),
            };
        }
        if let Some(trouble) = self.session.trouble() {
            let (class, detail, reset_at) = (trouble.class, trouble.detail.clone(), trouble.reset_at);
            return End::Failed(RunFailure::Turn { class, detail, reset_at });
        }
        if state.prompted {
            return self.exited(exit);
        }
        match self.exited(exit) {
            End::Exited { .. } => {
                let how = match exit {
                    Exit::Code(code) => format!("it exited with code {code} before it was ready"),
                    Exit::Signal(signal) => format!("signal {signal} ended it before it was ready"),
                };
                End::Failed(RunFailure::Handshake { detail: self.explain(&how) })
            }
            other => other,
        }
    }

    /// Converts an exit. A shell exits with 127 for a command that does not exist, and with 126 for one that it cannot run.
    fn exited(&self, exit: Exit) -> End {
        match exit {
            Exit::Code(126 | 127) => End::Failed(RunFailure::Launch {
                detail: self.explain("the shell could not run its command"),
                permanent: true,
            }),
            Exit::Code(_) | Exit::Signal(_) => End::Exited { exit, said: self.last_line() },
        }
    }

    fn last_line(&self) -> Option<String> {
        let said = self.worker.secrets.cut_from(&self.session.last_stderr());
        let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(LONGEST_LAST_LINE).collect())
    }

    fn explain(&self, what: &str) -> String {
        let said = self.worker.secrets.cut_from(&self.session.last_stderr());
        let said: String = said.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
        if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }
    }

    fn turn_ended(&mut self, state: &mut ConversationState, end: TurnEnd) -> Option<End> {
        if self.one_shot {
            if let TurnEnd::Failed { class, detail, reset } = end {
                state.failed = Some(RunFailure::Turn { class, detail, reset_at: reset_time(reset) });
            }
            return None;
        }
        self.log(match &end {
            TurnEnd::Completed => "turn completed",
            TurnEnd::Interrupted => "turn interrupted",
            TurnEnd::Failed { .. } => "turn failed",
        });
        self.count_turn();
        match end {
            TurnEnd::Failed { class, detail, reset } => {
                Some(End::Failed(RunFailure::Turn { class, detail, reset_at: reset_time(reset) }))
            }
            TurnEnd::Interrupted if state.words.is_empty() => Some(End::Failed(RunFailure::Turn {
                class: TurnError::Other,
                detail: "the turn was interrupted, and not by us".into(),
                reset_at: None,
            })),
            TurnEnd::Completed | TurnEnd::Interrupted => self.after_turn(state),
        }
    }

    fn after_turn(&mut self, state: &mut ConversationState) -> Option<End> {
        // A review is one turn: its last message is the result.
        if self.desk.declared().is_some() || self.order.reviewed_head().is_some() {
            return Some(End::TurnsOver);
        }
        if state.last_turn {
            return Some(End::Stopped(StopReason::Quota));
        }
        if self.summary.turns >= self.worker.settings.agent.max_turns {
            return Some(End::TurnsOver);
        }
        match state.wrap_up {
            WrapUp::No => {}
            WrapUp::ToSay => {
                self.say_to_wrap_up(state);
                return None;
            }
            WrapUp::Said => return Some(End::TurnsOver),
        }
        if !state.words.is_empty() {
            let ticket = self.summary.ticket.clone().unwrap_or_else(|| self.order.ticket.clone());
            return self.go_on(state, &ticket);
        }
        let (tickets, id) = (self.worker.tickets.clone(), self.order.ticket.id.clone());
        state.asking = Some(Box::pin(async move {
            tokio::time::timeout(TRACKER_LIMIT, tickets.read(&id))
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {} s", TRACKER_LIMIT.as_secs())))
        }));
        None
    }

    /// Starts a turn that only wraps up. What people said meanwhile is left for the next run.
    fn say_to_wrap_up(&mut self, state: &mut ConversationState) {
        state.wrap_up = WrapUp::Said;
        self.session.prompt(guidance::WRAP_UP);
        self.log("turn started");
    }

    /// Takes in the ticket as read between two turns. The conversation goes on only while the ticket is still to be worked on.
    fn board_answered(&mut self, state: &mut ConversationState, answer: Result<Option<Ticket>, String>) -> Option<End> {
        state.asking = None;
        if state.stopping.is_some() {
            return None;
        }
        let ticket = match answer {
            Ok(Some(ticket)) => ticket,
            Ok(None) => return Some(End::TurnsOver),
            Err(detail) => return Some(End::Failed(RunFailure::Tracker { detail })),
        };
        let goes_on = select::may_go_on(&TicketFacts::of(&ticket), &self.order.policy);
        self.summary.ticket = Some(ticket.clone());
        if !goes_on {
            return Some(End::TurnsOver);
        }
        if matches!(state.wrap_up, WrapUp::ToSay) {
            self.say_to_wrap_up(state);
            return None;
        }
        self.go_on(state, &ticket)
    }

    pub(super) fn delivered(&self, remarks: Vec<RemarkKey>) {
        self.desk.delivered(&remarks);
        if !remarks.is_empty() {
            self.tell(Activity::Delivered { remarks });
        }
    }

    /// Starts the next turn in the same session: guidance, with what people said meanwhile.
    fn go_on(&mut self, state: &mut ConversationState, ticket: &Ticket) -> Option<End> {
        let words = std::mem::take(&mut state.words);
        let request = PromptRequest {
            order: self.order,
            ticket,
            worktree: self.worktree,
            turn: self.summary.turns + 1,
            words: &words,
            attached: &[],
            runtime: self.runtime,
            template: None,
            profile: None,
        };
        match self.worker.prompt(&request) {
            Ok(prompt) => {
                self.session.prompt(&prompt);
                self.log("turn started");
                self.delivered(words.into_iter().filter_map(|message| message.key).collect());
                None
            }
            Err(error) => Some(End::Failed(RunFailure::Prompt { detail: error.to_string() })),
        }
    }

    /// Logs with the fields that every line about a ticket carries. The session's id consists of its thread and its turn.
    fn log(&self, what: &str) {
        let ticket = &self.order.ticket;
        let thread = self.summary.session.as_ref().map_or("", |id| id.as_str());
        let session_id = format!("{thread}-{}", self.summary.turns + 1);
        let (issue_id, issue_identifier) = (ticket.id.as_str(), ticket.key.as_str());
        tracing::info!(issue_id, issue_identifier, session_id, run = %self.order.run, "{issue_identifier}: {what}");
    }

    fn count_turn(&mut self) {
        self.summary.turns += 1;
        self.report();
        self.tell(Activity::TurnEnded { turns: self.summary.turns });
    }

    fn report(&mut self) {
        for activity in self.session.usage_totals().report() {
            self.tell(activity);
        }
    }

    async fn look_for_commits(&mut self) {
        let Workplace::Worktrees(workspaces) = &self.worker.workplace else { return };
        if self.order.reviewed_head().is_some() {
            return;
        }
        if let Ok(Some(head)) = workspaces.branch_head(&self.order.branch).await
            && self.head.as_ref() != Some(&head)
        {
            self.head = Some(head.clone());
            self.tell(Activity::Committed { head });
        }
    }

    pub(super) fn tell(&self, activity: Activity) {
        self.events.send(WorkerEvent::Activity(activity)).ok();
    }
}

impl ConversationState {
    fn deadline(&self) -> Option<Instant> {
        match &self.stopping {
            Some(stopping) => Some(stopping.next),
            None => self.parked.front().map(|parked| parked.until),
        }
    }
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
