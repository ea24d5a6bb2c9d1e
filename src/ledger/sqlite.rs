//! The embedded store: one SQLite file with a write-ahead log. Every step is one transaction.

use rusqlite::{OptionalExtension, params};
use tempfile::TempDir;

use super::database::Database;
use super::write::writes;
use super::{Ledger, LedgerError, LedgerReader, Pruned};
use crate::domain::basis::BoardMark;
use crate::domain::ids::{RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::run::{FinishedRun, LiveRun};
use crate::domain::time::Timestamp;
use crate::engine::state::{Changes, Note, Pending, State};

// These queries name their index: without it SQLite might scan every job that ever existed. If the index is missing, an error is
// better than such a scan.
pub(super) const LIVE_JOBS: &str = "SELECT json FROM jobs INDEXED BY jobs_live WHERE archived = 0";
pub(super) const LIVE_RUNS: &str = "SELECT json FROM runs INDEXED BY runs_live WHERE ended_at IS NULL";
pub(super) const JOBS_BY_ID: &str = "SELECT json FROM jobs WHERE ticket IN (SELECT value FROM json_each(?1))";
const OUTBOX: &str = "SELECT json FROM outbox ORDER BY id";
const OLD_PREFLIGHTS: &str =
    "DELETE FROM preflight WHERE hash NOT IN (SELECT hash FROM preflight ORDER BY at DESC LIMIT ?1)";

/// The number of versions of WORKFLOW.md for which it is known that `doctor` passed.
const KEPT_PREFLIGHTS: i64 = 100;

/// The most archived jobs that are offered when a name matches several.
const SIMILAR: usize = 9;

#[derive(Debug)]
pub struct SqliteLedger {
    pub(super) database: Database,
    /// The temporary folder of a copy that is read in place of the ledger. It is removed when this value is dropped.
    _copy: Option<TempDir>,
}

impl SqliteLedger {
    pub(super) fn of(database: Database) -> Self {
        Self { database, _copy: None }
    }

    pub(super) fn of_copy(database: Database, folder: TempDir) -> Self {
        Self { database, _copy: Some(folder) }
    }

    fn read_all(&self) -> Result<State, LedgerError> {
        let database = &self.database;
        let mut state = State::new(database.meta()?.unwrap_or_default());
        state.jobs = database.collected::<Job, _>("job", LIVE_JOBS, [])?;
        state.runs = database.collected::<LiveRun, _>("run", LIVE_RUNS, [])?;
        state.outbox = database.collected::<Pending, _>("effect", OUTBOX, [])?;
        Ok(state)
    }
}

impl LedgerReader for SqliteLedger {
    fn load(&self) -> Result<State, LedgerError> {
        // One transaction, because a runner may be writing at the same time.
        let picture = self.database.db.unchecked_transaction().map_err(|source| self.database.sql("read", source))?;
        let state = self.read_all()?;
        picture.commit().map_err(|source| self.database.sql("read", source))?;
        Ok(state)
    }

    fn jobs(&self, ids: &[TicketId]) -> Result<Vec<Job>, LedgerError> {
        let ids = self.database.encode("ids", &ids)?;
        self.database.rows("job", JOBS_BY_ID, params![ids])
    }

    fn archived_named(&self, name: &str) -> Result<Vec<Job>, LedgerError> {
        let exactly = "SELECT json FROM jobs WHERE (ticket = ?1 OR key = ?1) AND archived = 1";
        let found: Vec<Job> = self.database.rows("job", exactly, params![name])?;
        if !found.is_empty() || name.is_empty() {
            return Ok(found);
        }
        let similar = "SELECT json FROM jobs WHERE rowid IN (
            SELECT rowid FROM jobs WHERE instr(key, ?1) > 0 AND archived = 1 ORDER BY key LIMIT ?2
          ) ORDER BY key";
        self.database.rows("job", similar, params![name, SIMILAR as i64])
    }

    fn archived(&self, newest: usize) -> Result<Vec<Job>, LedgerError> {
        let sql = "SELECT json FROM jobs INDEXED BY jobs_archived WHERE archived = 1 ORDER BY updated_at DESC LIMIT ?1";
        self.database.rows("job", sql, params![limit(newest)])
    }

    fn archived_count(&self) -> Result<usize, LedgerError> {
        let sql = "SELECT count(*) FROM jobs INDEXED BY jobs_archived WHERE archived = 1";
        let count: i64 = self
            .database
            .db
            .query_row(sql, [], |row| row.get(0))
            .map_err(|source| self.database.sql("read", source))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    fn notes(&self, ticket: Option<&TicketId>, newest: usize) -> Result<Vec<Note>, LedgerError> {
        // Two queries, because a single one for both cases would scan all notes to find those of one ticket.
        let which = match ticket {
            Some(_) => "INDEXED BY notes_by_ticket WHERE ticket = ?1",
            None => "WHERE ?1 IS NULL",
        };
        let sql = format!(
            "SELECT at, ticket, run, code, text FROM (SELECT * FROM notes {which} ORDER BY id DESC LIMIT ?2) ORDER BY id"
        );
        let read = |source| self.database.sql("read", source);
        let mut statement = self.database.db.prepare_cached(&sql).map_err(read)?;
        statement
            .query_map(params![ticket.map(TicketId::as_str), limit(newest)], |row| {
                Ok(Note {
                    at: Timestamp(row.get(0)?),
                    ticket: row.get::<_, Option<String>>(1)?.map(TicketId::new),
                    run: row.get::<_, Option<String>>(2)?.map(RunId::new),
                    code: row.get(3)?,
                    text: row.get(4)?,
                })
            })
            .and_then(Iterator::collect)
            .map_err(read)
    }

    fn finished_runs(&self, ticket: &TicketId) -> Result<Vec<FinishedRun>, LedgerError> {
        let sql = "SELECT json FROM runs WHERE ticket = ?1 AND ended_at IS NOT NULL ORDER BY started_at, id";
        self.database.rows("run", sql, params![ticket.as_str()])
    }

    fn finished_run(&self, run: &RunId) -> Result<Option<FinishedRun>, LedgerError> {
        let sql = "SELECT json FROM runs WHERE id = ?1 AND ended_at IS NOT NULL";
        Ok(self.database.rows("run", sql, params![run.as_str()])?.pop())
    }

    fn has_preflight(&self, hash: &str) -> Result<bool, LedgerError> {
        self.database
            .db
            .query_row("SELECT 1 FROM preflight WHERE hash = ?1", params![hash], |_| Ok(()))
            .optional()
            .map(|found| found.is_some())
            .map_err(|source| self.database.sql("read", source))
    }

    fn check(&self) -> Result<(), LedgerError> {
        self.database.expect_ok("integrity_check(1)")
    }
}

impl Ledger for SqliteLedger {
    fn commit(&mut self, state: &State, changes: &Changes) -> Result<(), LedgerError> {
        let writes = writes(state, changes);
        if writes.is_empty() {
            return Ok(());
        }
        let failed = |source| self.database.sql("written", source);
        // A transaction that is dropped before its commit is rolled back.
        let transaction = self.database.db.unchecked_transaction().map_err(failed)?;
        for write in &writes {
            write.apply(&self.database)?;
        }
        failpoint!("ledger.in_transaction");
        transaction.commit().map_err(failed)?;
        failpoint!("ledger.committed");
        Ok(())
    }

    fn board_mark(&self) -> Result<Option<BoardMark>, LedgerError> {
        let sql = "SELECT json FROM meta WHERE name = 'board'";
        Ok(self.database.rows("board", sql, [])?.pop())
    }

    fn keep_board_mark(&mut self, mark: &BoardMark) -> Result<(), LedgerError> {
        let json = self.database.encode("board", mark)?;
        self.database
            .db
            .execute("INSERT OR REPLACE INTO meta (name, json) VALUES ('board', ?1)", params![json])
            .map(|_| ())
            .map_err(|source| self.database.sql("written", source))
    }

    fn record_preflight(&mut self, hash: &str, at: Timestamp) -> Result<(), LedgerError> {
        self.database
            .db
            .execute("INSERT OR REPLACE INTO preflight (hash, at) VALUES (?1, ?2)", params![hash, at.0])
            .and_then(|_| self.database.db.execute(OLD_PREFLIGHTS, params![KEPT_PREFLIGHTS]))
            .map(|_| ())
            .map_err(|source| self.database.sql("written", source))
    }

    fn prune(&mut self, now: Timestamp, keep_days: u32) -> Result<Pruned, LedgerError> {
        self.prune_batch(now, keep_days)
    }
}

fn limit(newest: usize) -> i64 {
    i64::try_from(newest).unwrap_or(i64::MAX)
}
