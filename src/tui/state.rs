//! The state of `top` and how it changes: it takes snapshots, answers and keys, and returns wishes (what the caller has to do). It uses no
//! terminal, clock or socket.

use crate::domain::snapshot::{JobView, Snapshot};
use crate::runtime::Request;

use super::rows::rows;

/// How many lines of a log are kept.
const LOG_LINES: usize = 2_000;

/// Something that happened and changes the state.
#[derive(Debug, Clone, PartialEq)]
pub enum TopAction {
    /// A new snapshot, and where it comes from, in words ("runner up").
    Picture(Box<Snapshot>, String),
    /// The runner's answer to a request, or why the runner could not be reached.
    Answer(String),
    /// More lines of the log that is being followed.
    LogLines(Vec<String>),
    Key(TopKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKey {
    Up,
    Down,
    Enter,
    Back,
    Erase,
    Letter(char),
}

/// What the caller has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Ask(Request),
    /// Open the log of the ticket's newest run. The caller then sends new lines by itself.
    FollowLog {
        ticket: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Screen {
    Board,
    /// The details of the ticket with this id; `Log` holds a ticket's id too.
    Ticket(String),
    Log(String),
}

/// An input line that is open: a message being typed, or a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    Message {
        ticket: String,
        text: String,
    },
    /// Asks for confirmation, because stopping a run loses the agent's conversation.
    ReallyStop {
        ticket: String,
    },
}

#[derive(Debug, Clone)]
pub struct TopState {
    pub picture: Snapshot,
    pub behind: String,
    pub screen: Screen,
    /// The id of the ticket under the cursor. When rows move, the cursor stays with its ticket.
    pub selected: Option<String>,
    pub log: Vec<String>,
    /// How many lines the log view is scrolled up from its end.
    pub log_back: usize,
    pub asking: Option<Asking>,
    pub answer: Option<String>,
}

impl TopState {
    pub fn new(picture: Snapshot, behind: String) -> Self {
        let mut state = Self {
            picture,
            behind,
            screen: Screen::Board,
            selected: None,
            log: Vec::new(),
            log_back: 0,
            asking: None,
            answer: None,
        };
        state.keep_selection();
        state
    }

    /// Returns the tickets in the order of the table: those that wait for a person come first.
    pub fn rows(&self) -> Vec<&JobView> {
        rows(&self.picture)
    }

    pub fn job(&self, id: &str) -> Option<&JobView> {
        self.picture.jobs.iter().find(|job| job.id == id)
    }

    /// Returns the ticket that keys act on: the one that is open, else the one under the cursor.
    pub fn current(&self) -> Option<&JobView> {
        let id = match &self.screen {
            Screen::Ticket(id) | Screen::Log(id) => id,
            Screen::Board => self.selected.as_ref()?,
        };
        self.job(id)
    }

    pub fn reduce(&mut self, action: TopAction) -> Option<Wish> {
        match action {
            TopAction::Picture(picture, behind) => {
                self.picture = *picture;
                self.behind = behind;
                self.keep_selection();
                None
            }
            TopAction::Answer(answer) => {
                self.answer = Some(answer);
                None
            }
            TopAction::LogLines(lines) => {
                self.log.extend(lines);
                let too_many = self.log.len().saturating_sub(LOG_LINES);
                self.log.drain(..too_many);
                None
            }
            TopAction::Key(key) => match self.asking.take() {
                Some(asking) => self.answered(asking, key),
                None => self.pressed(key),
            },
        }
    }

    fn keep_selection(&mut self) {
        let there = self.selected.as_ref().is_some_and(|id| self.rows().iter().any(|job| job.id == *id));
        if !there {
            self.selected = self.rows().first().map(|job| job.id.clone());
        }
    }

    fn answered(&mut self, asking: Asking, key: TopKey) -> Option<Wish> {
        match (asking, key) {
            (Asking::ReallyStop { ticket }, TopKey::Letter('y')) => Some(Wish::Ask(Request::Stop { ticket })),
            (Asking::ReallyStop { .. }, _) | (Asking::Message { .. }, TopKey::Back) => None,
            (Asking::Message { ticket, text }, TopKey::Enter) => {
                let text = text.trim().to_owned();
                (!text.is_empty()).then_some(Wish::Ask(Request::Message { ticket, text, urgent: false }))
            }
            (Asking::Message { ticket, mut text }, key) => {
                match key {
                    TopKey::Letter(letter) => text.push(letter),
                    TopKey::Erase => drop(text.pop()),
                    _ => {}
                }
                self.asking = Some(Asking::Message { ticket, text });
                None
            }
        }
    }

    fn pressed(&mut self, key: TopKey) -> Option<Wish> {
        self.answer = None;
        match key {
            TopKey::Up | TopKey::Letter('k') => self.step(-1),
            TopKey::Down | TopKey::Letter('j') => self.step(1),
            TopKey::Letter('q') if self.screen == Screen::Board => return Some(Wish::Quit),
            TopKey::Back if self.screen == Screen::Board => return Some(Wish::Quit),
            TopKey::Back | TopKey::Letter('q') => self.back(),
            TopKey::Enter => {
                if let (Screen::Board, Some(id)) = (&self.screen, self.selected.clone()) {
                    self.screen = Screen::Ticket(id);
                }
            }
            TopKey::Letter('P') => return Some(Wish::Ask(self.pause_all())),
            TopKey::Letter(letter) => return self.about_ticket(letter),
            TopKey::Erase => {}
        }
        None
    }

    fn about_ticket(&mut self, letter: char) -> Option<Wish> {
        let job = self.current()?;
        let (id, paused, runs) = (job.id.clone(), self.is_paused(&job.key), job.run.is_some());
        match letter {
            'l' => {
                (self.log, self.log_back) = (Vec::new(), 0);
                self.screen = Screen::Log(id.clone());
                Some(Wish::FollowLog { ticket: id })
            }
            'p' if paused => Some(Wish::Ask(Request::Resume { ticket: id })),
            'p' => Some(Wish::Ask(Request::Pause { ticket: id })),
            'r' => Some(Wish::Ask(Request::Retry { ticket: id })),
            's' if runs => {
                self.asking = Some(Asking::ReallyStop { ticket: id });
                None
            }
            's' => {
                self.answer = Some("nothing runs for this ticket".into());
                None
            }
            'm' => {
                self.asking = Some(Asking::Message { ticket: id, text: String::new() });
                None
            }
            _ => None,
        }
    }

    fn is_paused(&self, key: &str) -> bool {
        use crate::domain::job::SwitchSource::PauseTicket;
        self.picture.switches.iter().any(|switch| switch.source == PauseTicket && switch.subject == key)
    }

    fn pause_all(&self) -> Request {
        if self.picture.paused_by_command() { Request::ResumeAll } else { Request::PauseAll }
    }

    fn back(&mut self) {
        self.screen = match &self.screen {
            Screen::Log(id) => Screen::Ticket(id.clone()),
            Screen::Board | Screen::Ticket(_) => Screen::Board,
        };
    }

    /// Moves the cursor by `by` rows; in a log, scrolls by as many lines.
    fn step(&mut self, by: isize) {
        if let Screen::Log(_) = self.screen {
            self.log_back = self.log_back.saturating_add_signed(-by).min(self.log.len().saturating_sub(1));
            return;
        }
        let next = {
            let rows = self.rows();
            let at = rows.iter().position(|job| Some(&job.id) == self.selected.as_ref()).unwrap_or(0);
            let at = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
            rows.get(at).map(|job| job.id.clone())
        };
        if let (Screen::Ticket(open), Some(id)) = (&mut self.screen, &next) {
            open.clone_from(id);
        }
        self.selected = next;
    }
}
