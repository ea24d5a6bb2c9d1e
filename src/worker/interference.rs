//! What interrupts an agent's work: its own questions, messages of people, the budget, a stop. Each is handled without waiting.

use std::time::Duration;

use tokio::time::Instant;

use super::conversation::{Conversation, ConversationState, End, WrapUp};
use super::questions::{self, QuestionVerdict};
use super::{Control, desk_tools, guidance};
use crate::agent::session::now;
use crate::agent::{Answer, Question};
use crate::domain::failure::RunFailure;
use crate::domain::job::HumanMessage;
use crate::domain::run::{Activity, StopReason};

/// How long an interrupted turn may take to end before the process is told to terminate. With a short grace it is a quarter of that.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// How many calls of the desk's tools are handled at the same time.
const TOOLS_AT_ONCE: usize = 64;
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// A question that waits for a person.
pub(super) struct Parked {
    pub ask: String,
    pub question: Question,
    pub until: Instant,
}

/// A stop under way, from interrupting the turn to killing the process.
pub(super) struct Stopping {
    pub reason: StopReason,
    pub stage: Stage,
    pub next: Instant,
    kill_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Aborting,
    Terminating,
    Killing,
}

impl Conversation<'_> {
    pub(super) fn asked(&mut self, state: &mut ConversationState, ask: String, question: Question) -> Option<End> {
        if let Question::Tool { name, arguments } = &question
            && let Ok(verb) = desk_tools::read(name, arguments)
        {
            if state.tools.len() >= TOOLS_AT_ONCE {
                let output = format!("{TOOLS_AT_ONCE} calls are still being answered; wait for them");
                self.session.answer(&ask, &Answer::ToolResult { success: false, output });
                return None;
            }
            let answer = self.desk.serve(verb);
            state.tools.spawn(async move { (ask, answer.await) });
            return None;
        }
        if let Question::Tool { name, arguments } = &question {
            let output = desk_tools::read(name, arguments).err().unwrap_or_default();
            self.session.answer(&ask, &Answer::ToolResult { success: false, output });
            return None;
        }
        match questions::decide(&self.worker.settings.agent, &question) {
            QuestionVerdict::Answer(answer) => {
                self.session.answer(&ask, &answer);
                None
            }
            // No person is called to the ticket for a reviewer: its question is handled like one that nobody answered.
            QuestionVerdict::Ask(text) if self.order.reviewed_head().is_some() => {
                match questions::unanswered(&self.worker.settings.agent, &question) {
                    Some(answer) => {
                        self.session.answer(&ask, &answer);
                        None
                    }
                    None => Some(End::Failed(RunFailure::InputRequired { question: text })),
                }
            }
            QuestionVerdict::Ask(text) => {
                self.tell(Activity::Asked { question: text });
                let until = Instant::now() + self.worker.settings.agent.ask_timeout;
                state.parked.push_back(Parked { ask, question, until });
                None
            }
            QuestionVerdict::Fail(question) => Some(End::Failed(RunFailure::InputRequired { question })),
        }
    }

    pub(super) fn obey(&mut self, state: &mut ConversationState, control: Control) -> Option<End> {
        match control {
            Control::Stop(reason) => self.stop(state, reason),
            Control::Steer(word) => self.steer(state, word),
            Control::WrapUp => {
                state.wrap_up = WrapUp::Said;
                if state.asking.is_some() || !self.session.steer(guidance::WRAP_UP) {
                    state.wrap_up = WrapUp::ToSay;
                    let text = guidance::WRAP_UP.to_owned();
                    self.desk.hear(HumanMessage { key: None, from: "dirigent".into(), text, at: now(), urgent: true });
                }
            }
            // An agent that takes no messages during a turn is left to its deadline.
            Control::Nudge => {
                if state.prompted && state.stopping.is_none() && self.session.steer(guidance::NUDGE) {
                    self.session.note("the agent was silent and has been spoken to");
                }
            }
            Control::StopAfterTurn => state.last_turn = true,
        }
        None
    }

    /// Stops the agent: interrupts its turn, then TERM, then KILL. A second stop kills at once.
    fn stop(&mut self, state: &mut ConversationState, reason: StopReason) {
        if let Some(stopping) = &mut state.stopping {
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
        if !(state.prompted && self.session.interrupt()) {
            self.session.terminate();
            stopping.advance(Stage::Terminating);
        }
        state.stopping = Some(stopping);
    }

    fn steer(&mut self, state: &mut ConversationState, word: HumanMessage) {
        if let Some(parked) = state.parked.pop_front() {
            self.session.answer(&parked.ask, &questions::reply(&parked.question, &word.text));
            self.delivered(word.key.into_iter().collect());
            return;
        }
        if state.stopping.is_some() {
            return;
        }
        // The prompt contains it already: it was written on the ticket between the decision and the start.
        if word.key.as_ref().is_some_and(|key| self.carried.contains(key)) {
            return;
        }
        // Between two turns it belongs into the next prompt.
        let between = state.asking.is_some();
        let urgent_stop = !between && word.urgent && state.prompted && self.session.interrupt();
        if between || urgent_stop || !self.session.steer(&guidance::words(std::slice::from_ref(&word))) {
            state.words.push(word.clone());
            self.desk.hear(word);
        } else {
            self.delivered(word.key.clone().into_iter().collect());
            state.steered.push(word);
        }
    }

    pub(super) fn overdue(&mut self, state: &mut ConversationState) -> Option<End> {
        if let Some(stopping) = &mut state.stopping {
            match stopping.stage {
                Stage::Aborting => {
                    self.session.terminate();
                    stopping.advance(Stage::Terminating);
                }
                Stage::Terminating => {
                    self.session.kill();
                    stopping.advance(Stage::Killing);
                }
                // It survived the KILL; wrap_up finds the survivors.
                Stage::Killing => return Some(End::Stopped(stopping.reason.clone())),
            }
            return None;
        }
        let parked = state.parked.pop_front()?;
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
}

impl Stopping {
    pub fn advance(&mut self, stage: Stage) {
        self.stage = stage;
        self.next = if stage == Stage::Killing { Instant::now() + KILL_LIMIT } else { self.kill_at };
    }
}
