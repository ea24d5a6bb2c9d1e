//! Feeds a recording through the engine again. Performs no effects.

use std::io::{self, BufRead};

use serde::Serialize;
use thiserror::Error;

use super::record::RecordLine;
use crate::config::policy::Policy;
use crate::domain::time::Timestamp;
use crate::engine::effect::Effect;
use crate::engine::event::Event;
use crate::engine::state::{Note, State};
use crate::engine::step;

/// One event and what the engine, as it is now, decides on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayedStep {
    /// The line of the event in the recording, from 1.
    pub number: usize,
    pub at: Timestamp,
    pub event: Event,
    pub notes: Vec<Note>,
    pub effects: Vec<Effect>,
    /// Whether the recorded decision was a different one.
    pub differs: bool,
}

#[derive(Debug, Error)]
pub enum ReplayError {
    #[error("the recording cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(
        "line {number} is not a line of a recording: {source}\n  fix: use a file written by `dirigent run --record` of this version"
    )]
    Line { number: usize, source: serde_json::Error },
    #[error("line {number} comes before the recording's beginning; the file's first part is missing")]
    NoBeginning { number: usize },
}

/// Returns all steps of all lives in the recording. A line that a crash truncated is skipped.
pub fn replay(recording: impl BufRead) -> Result<Vec<ReplayedStep>, ReplayError> {
    let mut life = Life::default();
    let mut steps: Vec<ReplayedStep> = Vec::new();
    let mut cut_off: Option<ReplayError> = None;
    for (index, text) in recording.split(b'\n').enumerate() {
        let (number, text) = (index + 1, text?);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line = match serde_json::from_slice::<RecordLine>(&text) {
            Ok(line) => line,
            Err(source) => {
                if let Some(earlier) = cut_off.replace(ReplayError::Line { number, source }) {
                    return Err(earlier);
                }
                continue;
            }
        };
        match (&line, cut_off.take()) {
            (RecordLine::Begun { .. }, _) | (_, None) => {}
            (_, Some(error)) => return Err(error),
        }
        life.take(number, line, &mut steps)?;
    }
    match cut_off {
        // A recording that ends with a truncated line is fine, unless nothing precedes that line.
        Some(error) if steps.is_empty() => Err(error),
        _ => Ok(steps),
    }
}

#[derive(Default)]
struct Life {
    state: Option<State>,
    policy: Option<Policy>,
}

impl Life {
    fn take(&mut self, number: usize, line: RecordLine, steps: &mut Vec<ReplayedStep>) -> Result<(), ReplayError> {
        match line {
            RecordLine::Begun { meta, jobs, runs, outbox, .. } => {
                let mut state = State::new(meta);
                state.jobs = jobs.into_iter().collect();
                state.runs = runs.into_iter().collect();
                state.outbox = outbox.into_iter().collect();
                *self = Self { state: Some(state), policy: None };
            }
            RecordLine::Policy { policy } => self.policy = Some(*policy),
            RecordLine::Event { at, event } => {
                let (Some(state), Some(policy)) = (&mut self.state, &self.policy) else {
                    return Err(ReplayError::NoBeginning { number });
                };
                let effects = step(state, policy, at, event.clone());
                let notes = state.take_changes().notes;
                steps.push(ReplayedStep { number, at, event, notes, effects, differs: false });
            }
            RecordLine::Decided { notes, effects } => {
                if let Some(step) = steps.last_mut() {
                    step.differs = step.notes != notes || step.effects != effects;
                }
            }
        }
        Ok(())
    }
}
