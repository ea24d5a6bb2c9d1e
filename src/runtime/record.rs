//! Records what a driver does as JSON lines: the state that it began with, every policy, every event with its time, and what the engine
//! decided on it. `replay` reads the recording. Secrets are removed by their values.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::policy::Policy;
use crate::domain::job::Job;
use crate::domain::run::LiveRun;
use crate::domain::time::Timestamp;
use crate::engine::effect::Effect;
use crate::engine::event::Event;
use crate::engine::state::{Meta, Note, Pending, State};
use crate::launcher::environment::Secrets;

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "line")]
pub enum RecordLine {
    /// A driver begins with this state from the ledger.
    Begun {
        at: Timestamp,
        version: String,
        meta: Meta,
        jobs: Vec<Job>,
        runs: Vec<LiveRun>,
        outbox: Vec<Pending>,
    },
    Policy {
        policy: Box<Policy>,
    },
    Event {
        at: Timestamp,
        event: Event,
    },
    /// What the engine decided on the event before.
    Decided {
        notes: Vec<Note>,
        effects: Vec<Effect>,
    },
}

impl RecordLine {
    pub fn begun(at: Timestamp, state: &State) -> Self {
        Self::Begun {
            at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            meta: state.meta.clone(),
            jobs: state.jobs.values().cloned().collect(),
            runs: state.runs.values().cloned().collect(),
            outbox: state.outbox.values().cloned().collect(),
        }
    }
}

#[derive(Debug, Error)]
#[error("the recording {} cannot be written: {source}\n  fix: choose a file in a folder that exists and is writable", .path.display())]
pub struct RecordError {
    path: PathBuf,
    source: io::Error,
}

/// An open recording. A write that fails ends the recording, never the run.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: Option<File>,
    secrets: Arc<Secrets>,
}

impl Recorder {
    /// Opens a recording for appending: a file may hold several lives of a runner.
    pub fn open(path: &Path, secrets: Arc<Secrets>) -> Result<Self, RecordError> {
        let failed = |source| RecordError { path: path.to_owned(), source };
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > 0 {
            // A crash may have truncated the last line.
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Self { path: path.to_owned(), file: Some(file), secrets })
    }

    pub fn write(&mut self, line: &RecordLine) {
        let Some(file) = &mut self.file else { return };
        let text = match serde_json::to_string(line) {
            Ok(text) => self.secrets.cut_from(&text) + "\n",
            Err(error) => {
                tracing::warn!(%error, "a line of the recording is left out");
                return;
            }
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            tracing::warn!(path = %self.path.display(), %error, "the recording ends here");
            self.file = None;
        }
    }
}
