//! The durable record: jobs, runs, effects, usage, and a note about every decision. It is written before an effect is performed.
//!
//! The ledger stores the engine's plain data and decides nothing. Commands that only read use `open_for_reading`, which waits for
//! no lock for long and changes nothing. Only the runner's own connection writes.

mod copy;
mod database;
mod lock;
mod migrations;
mod old_file;
mod open;
mod prune;
mod reading;
mod sqlite;
#[cfg(test)]
mod tests;
mod upgrade;
mod write;

use std::path::PathBuf;

use thiserror::Error;

use crate::domain::basis::BoardMark;
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::run::FinishedRun;
use crate::domain::time::Timestamp;
use crate::engine::state::{Changes, Note, State};

pub use lock::{Holder, InstanceLock, LockError};
pub use prune::Pruned;
pub use reading::open_for_reading;
pub use sqlite::SqliteLedger;

/// Read access to a ledger. Synchronous, because a call takes a few microseconds.
pub trait LedgerReader: Send {
    /// Returns everything that is not archived, as of one moment.
    fn load(&self) -> Result<State, LedgerError>;

    /// Returns the jobs of these tickets, archived or not. Tickets without a job are left out.
    fn jobs(&self, ids: &[TicketId]) -> Result<Vec<Job>, LedgerError>;

    /// Returns the archived job with this id or key. If there is none, returns the first few archived jobs whose key contains
    /// `name`.
    fn archived_named(&self, name: &str) -> Result<Vec<Job>, LedgerError>;

    /// Returns the archived jobs that changed last, the newest first, at most `newest` of them.
    fn archived(&self, newest: usize) -> Result<Vec<Job>, LedgerError>;

    fn archived_count(&self) -> Result<usize, LedgerError>;

    /// Returns the last `newest` notes about a ticket, the oldest first. `None`: notes about everything.
    fn notes(&self, ticket: Option<&TicketId>, newest: usize) -> Result<Vec<Note>, LedgerError>;

    /// Returns the finished runs of a ticket, the oldest first.
    fn finished_runs(&self, ticket: &TicketId) -> Result<Vec<FinishedRun>, LedgerError>;

    fn finished_run(&self, run: &RunId) -> Result<Option<FinishedRun>, LedgerError>;

    fn has_preflight(&self, hash: &str) -> Result<bool, LedgerError>;

    /// Checks every page of the file for damage. This reads the whole file, so only `doctor` calls it.
    fn check(&self) -> Result<(), LedgerError>;
}

/// What the runner needs in addition: writing. The driver waits for each call to return before it goes on.
pub trait Ledger: LedgerReader {
    /// Writes all changes of a step in one transaction. The cost depends on the number of changes, not on the number of jobs.
    fn commit(&mut self, state: &State, changes: &Changes) -> Result<(), LedgerError>;

    /// Returns how far the board has been read. `None` if that was never recorded.
    fn board_mark(&self) -> Result<Option<BoardMark>, LedgerError>;

    /// Records how far the board has been read. Called only after the readings up to this mark have been committed.
    fn keep_board_mark(&mut self, mark: &BoardMark) -> Result<(), LedgerError>;

    /// Records that `doctor` passed for this content of WORKFLOW.md.
    fn record_preflight(&mut self, hash: &str, at: Timestamp) -> Result<(), LedgerError>;

    /// Drops a small batch of notes and finished runs that are older than `keep_days`, and returns free space to the file system.
    /// The caller calls it again soon while `Pruned::more` is true.
    fn prune(&mut self, now: Timestamp, keep_days: u32) -> Result<Pruned, LedgerError>;
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
    #[error("the ledger {path} has to be brought from version {found} to {known}, which needs it alone: {source}")]
    InUse { path: PathBuf, found: i64, known: i64, source: LockError },
    #[error(
        "the ledger {path} is of an older version, and no copy of it can be kept as {copy}: {source}; nothing was changed\n  fix: make room in that folder, and check its permissions"
    )]
    NotKept { path: PathBuf, copy: PathBuf, source: std::io::Error },
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
    #[error(
        "a record of the ledger {path} cannot be understood ({what}): {source}; it was left as it is\n  fix: go on with the dirigent that wrote it and report this, or move the ledger away to start afresh"
    )]
    Record { path: PathBuf, what: String, source: serde_json::Error },
}
