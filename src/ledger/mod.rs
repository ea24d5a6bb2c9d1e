//! The durable record: jobs, runs, effects, usage, notes of every decision. Written before anything happens.
//!
//! It stores the engine's plain data and decides nothing.

mod lock;
mod migrations;
mod sqlite;

use std::path::PathBuf;

use thiserror::Error;

use crate::domain::ids::{RunId, TicketId};
use crate::domain::run::FinishedRun;
use crate::domain::time::Timestamp;
use crate::engine::state::{Changes, Note, State};

pub use lock::{Holder, InstanceLock, LockError};
pub use sqlite::SqliteLedger;

/// What the runtime and the views need of a store. Synchronous: a call is a few microseconds, and the driver must not go on
/// before it is over.
pub trait Ledger: Send {
    /// Everything that is not over.
    fn load(&self) -> Result<State, LedgerError>;

    /// All changes of a step, in one transaction.
    fn commit(&mut self, state: &State, changes: &Changes) -> Result<(), LedgerError>;

    /// The notes about a ticket, oldest first; all notes for `None`.
    fn notes(&self, ticket: Option<&TicketId>, newest: usize) -> Result<Vec<Note>, LedgerError>;

    /// The finished runs of a ticket, oldest first.
    fn finished_runs(&self, ticket: &TicketId) -> Result<Vec<FinishedRun>, LedgerError>;

    fn finished_run(&self, run: &RunId) -> Result<Option<FinishedRun>, LedgerError>;

    /// `doctor` passed for this content of WORKFLOW.md.
    fn record_preflight(&mut self, hash: &str, at: Timestamp) -> Result<(), LedgerError>;

    fn has_preflight(&self, hash: &str) -> Result<bool, LedgerError>;
}

#[derive(Debug, Error)]
pub enum LedgerError {
    #[error(
        "the ledger {path} cannot be opened: {source}\n  fix: check that the folder exists, is writable and has space left, and that enough files may be open (ulimit -n)"
    )]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error(
        "the folder of the ledger {path} cannot be made: {source}\n  fix: check its permissions, or set DIRIGENT_HOME to a writable folder"
    )]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(
        "the ledger {path} is of version {found}, and this program knows {known}: it was written by a newer dirigent\n  fix: use that version, or set DIRIGENT_HOME to another folder"
    )]
    TooNew { path: PathBuf, found: i64, known: i64 },
    #[error(
        "the ledger {path} is damaged ({detail}); it was left as it is\n  fix: move it away to start afresh (branches, tickets and salvaged work are in git and on the board), or restore a copy"
    )]
    Corrupt { path: PathBuf, detail: String },
    #[error("{path} is a database of another program")]
    Foreign { path: PathBuf },
    #[error(
        "the ledger {path} could not be {doing}: {source}\n  fix: check the space and the permissions of its folder"
    )]
    Sql { path: PathBuf, doing: &'static str, source: rusqlite::Error },
    #[error("a record of the ledger {path} cannot be understood ({what}): {source}")]
    Record { path: PathBuf, what: String, source: serde_json::Error },
}
