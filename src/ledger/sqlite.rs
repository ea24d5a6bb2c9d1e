//! The embedded store: one SQLite file, write-ahead log, every step one transaction.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::migrations::MIGRATIONS;
use super::{Ledger, LedgerError};
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::run::{FinishedRun, LiveRun};
use crate::domain::time::Timestamp;
use crate::engine::state::{Changes, Meta, Note, Pending, State};

/// "Drgt" as a number: tells our files from other programs'.
const APPLICATION_ID: i64 = 0x4472_6774;

/// How long another program's transaction is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct SqliteLedger {
    path: PathBuf,
    db: Connection,
}

impl SqliteLedger {
    /// Opens the ledger, makes it if it is not there, and brings it to this version.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| LedgerError::Folder { path: folder.to_owned(), source })?;
        }
        let db = Connection::open(path).map_err(|source| LedgerError::Open { path: path.to_owned(), source })?;
        let mut ledger = Self { path: path.to_owned(), db };
        ledger.prepare()?;
        Ok(ledger)
    }

    fn prepare(&mut self) -> Result<(), LedgerError> {
        self.db.busy_timeout(PATIENCE).map_err(|source| self.sql("opened", source))?;
        // One picture: another program may be making this very ledger, and half of its answers would look foreign.
        self.batch("BEGIN")?;
        let seen = self.read_identity();
        self.batch("COMMIT")?;
        let (version, application, empty) = seen?;
        let fresh = version == 0 && application == 0 && empty;
        if !fresh && application != APPLICATION_ID {
            return Err(LedgerError::Foreign { path: self.path.clone() });
        }
        let known = MIGRATIONS.len() as i64;
        if version > known {
            return Err(LedgerError::TooNew { path: self.path.clone(), found: version, known });
        }
        let check: String = self
            .db
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|source| self.sql("checked", source))?;
        if check != "ok" {
            return Err(LedgerError::Corrupt { path: self.path.clone(), detail: check });
        }
        // Full: a fact that was acted on must survive a power cut too.
        self.batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
        self.keep_a_log_ahead()?;
        self.migrate()
    }

    /// SQLite does not wait here, whatever its patience: a new ledger may be opened by several programs in one moment.
    fn keep_a_log_ahead(&self) -> Result<(), LedgerError> {
        let since = Instant::now();
        loop {
            match self.db.execute_batch("PRAGMA journal_mode = WAL") {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && since.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                result => return result.map_err(|source| self.sql("migrated", source)),
            }
        }
    }

    /// Under the write lock, because two programs may open a new ledger at the same moment.
    fn migrate(&mut self) -> Result<(), LedgerError> {
        self.batch("BEGIN IMMEDIATE")?;
        let result = self.migrate_locked();
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        result.and(self.batch(end))
    }

    fn migrate_locked(&self) -> Result<(), LedgerError> {
        let version = self.pragma("user_version")?;
        for (index, migration) in MIGRATIONS.iter().enumerate().skip(version as usize) {
            let number = index + 1;
            self.batch(&format!(
                "{migration}; PRAGMA user_version = {number}; PRAGMA application_id = {APPLICATION_ID};"
            ))?;
        }
        if self.meta()?.is_none() {
            failpoint!("ledger.being_born");
            self.initialise()?;
        }
        Ok(())
    }

    /// The one random number of the engine's life.
    fn initialise(&self) -> Result<(), LedgerError> {
        let random: i64 =
            self.db.query_row("SELECT random()", [], |row| row.get(0)).map_err(|source| self.sql("read", source))?;
        let meta = Meta { seed: random.unsigned_abs(), ..Meta::default() };
        let write = Write::Meta(self.encode("meta", &meta)?);
        write.apply(&self.db).map_err(|source| self.sql("written", source))
    }

    fn read_identity(&self) -> Result<(i64, i64, bool), LedgerError> {
        Ok((self.pragma("user_version")?, self.pragma("application_id")?, self.is_empty()?))
    }

    fn is_empty(&self) -> Result<bool, LedgerError> {
        let tables: i64 = self
            .db
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(|source| self.sql("read", source))?;
        Ok(tables == 0)
    }

    fn pragma(&self, name: &str) -> Result<i64, LedgerError> {
        self.db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).map_err(|source| self.sql("opened", source))
    }

    fn batch(&self, sql: &str) -> Result<(), LedgerError> {
        self.db.execute_batch(sql).map_err(|source| self.sql("migrated", source))
    }

    fn sql(&self, doing: &'static str, source: rusqlite::Error) -> LedgerError {
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                LedgerError::Corrupt { path: self.path.clone(), detail: source.to_string() }
            }
            _ => LedgerError::Sql { path: self.path.clone(), doing, source },
        }
    }

    fn decode<T: DeserializeOwned>(&self, what: impl Into<String>, json: &str) -> Result<T, LedgerError> {
        serde_json::from_str(json).map_err(|source| LedgerError::Record {
            path: self.path.clone(),
            what: what.into(),
            source,
        })
    }

    fn encode<T: Serialize>(&self, what: &str, value: &T) -> Result<String, LedgerError> {
        serde_json::to_string(value).map_err(|source| LedgerError::Record {
            path: self.path.clone(),
            what: what.to_owned(),
            source,
        })
    }

    /// All `(json)` rows of a query, decoded.
    fn rows<T: DeserializeOwned>(
        &self,
        what: &'static str,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = self.db.prepare_cached(sql).map_err(|source| self.sql("read", source))?;
        let texts = statement
            .query_map(parameters, |row| row.get::<_, String>(0))
            .and_then(Iterator::collect::<Result<Vec<String>, _>>)
            .map_err(|source| self.sql("read", source))?;
        texts.iter().map(|json| self.decode(what, json)).collect()
    }

    fn meta(&self) -> Result<Option<Meta>, LedgerError> {
        let json: Option<String> = self
            .db
            .query_row("SELECT json FROM meta WHERE name = 'engine'", [], |row| row.get(0))
            .optional()
            .map_err(|source| self.sql("read", source))?;
        json.map(|json| self.decode("meta", &json)).transpose()
    }

    /// The records to be written, encoded before the transaction begins.
    fn writes(&self, state: &State, changes: &Changes) -> Result<Vec<Write>, LedgerError> {
        let mut writes = Vec::new();
        for id in &changes.jobs {
            if let Some(job) = state.jobs.get(id) {
                writes.push(Write::Job(Box::new(job.clone()), self.encode("job", job)?));
            }
        }
        for id in &changes.runs {
            match state.runs.get(id) {
                Some(run) => writes.push(Write::LiveRun(Box::new(run.clone()), self.encode("run", run)?)),
                None => writes.push(Write::NoLiveRun(id.clone())),
            }
        }
        for finished in &changes.finished {
            writes.push(Write::FinishedRun(Box::new(finished.clone()), self.encode("run", finished)?));
        }
        for id in &changes.outbox {
            match state.outbox.get(id) {
                Some(pending) => {
                    writes.push(Write::Effect(*id, Box::new(pending.clone()), self.encode("effect", pending)?))
                }
                None => writes.push(Write::NoEffect(*id)),
            }
        }
        writes.extend(changes.notes.iter().cloned().map(Write::Note));
        if changes.meta || changes.soft {
            writes.push(Write::Meta(self.encode("meta", &state.meta)?));
        }
        Ok(writes)
    }
}

enum Write {
    Job(Box<Job>, String),
    LiveRun(Box<LiveRun>, String),
    NoLiveRun(RunId),
    FinishedRun(Box<FinishedRun>, String),
    Effect(EffectId, Box<Pending>, String),
    NoEffect(EffectId),
    Note(Note),
    Meta(String),
}

impl Write {
    fn apply(&self, db: &Connection) -> Result<(), rusqlite::Error> {
        let execute = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> Result<(), rusqlite::Error> {
            db.prepare_cached(sql)?.execute(parameters).map(|_| ())
        };
        match self {
            Self::Job(job, json) => execute(
                "INSERT OR REPLACE INTO jobs (ticket, key, phase, updated_at, json) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    job.ticket.id.as_str(),
                    job.ticket.key.as_str(),
                    job.stage.phase().name(),
                    job.updated_at.0,
                    json
                ],
            ),
            Self::LiveRun(run, json) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, json) VALUES (?1, ?2, ?3, NULL, NULL, ?4)",
                params![run.id.as_str(), run.ticket.as_str(), run.started_at.0, json],
            ),
            // A run that never was leaves no trace; a finished one is written over right after.
            Self::NoLiveRun(id) => execute("DELETE FROM runs WHERE id = ?1 AND ended_at IS NULL", params![id.as_str()]),
            Self::FinishedRun(finished, json) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    finished.run.id.as_str(),
                    finished.run.ticket.as_str(),
                    finished.run.started_at.0,
                    finished.ended_at.0,
                    finished.report.outcome.code(),
                    json
                ],
            ),
            Self::Effect(id, pending, json) => execute(
                "INSERT OR REPLACE INTO outbox (id, ticket, kind, json) VALUES (?1, ?2, ?3, ?4)",
                params![
                    id.0 as i64,
                    pending.effect.ticket.as_ref().map(TicketId::as_str),
                    pending.effect.action.kind().name(),
                    json
                ],
            ),
            Self::NoEffect(id) => execute("DELETE FROM outbox WHERE id = ?1", params![id.0 as i64]),
            Self::Note(note) => execute(
                "INSERT INTO notes (at, ticket, run, code, text) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    note.at.0,
                    note.ticket.as_ref().map(TicketId::as_str),
                    note.run.as_ref().map(RunId::as_str),
                    note.code,
                    note.text
                ],
            ),
            Self::Meta(json) => {
                execute("INSERT OR REPLACE INTO meta (name, json) VALUES ('engine', ?1)", params![json])
            }
        }
    }
}

impl Ledger for SqliteLedger {
    fn load(&self) -> Result<State, LedgerError> {
        let mut state = State::new(self.meta()?.unwrap_or_default());
        for job in self.rows::<Job>("job", "SELECT json FROM jobs", [])? {
            state.jobs.insert(job.ticket.id.clone(), job);
        }
        for run in self.rows::<LiveRun>("run", "SELECT json FROM runs WHERE ended_at IS NULL", [])? {
            state.runs.insert(run.id.clone(), run);
        }
        for pending in self.rows::<Pending>("effect", "SELECT json FROM outbox ORDER BY id", [])? {
            state.outbox.insert(pending.effect.id, pending);
        }
        Ok(state)
    }

    fn commit(&mut self, state: &State, changes: &Changes) -> Result<(), LedgerError> {
        let writes = self.writes(state, changes)?;
        if writes.is_empty() {
            return Ok(());
        }
        let path = self.path.clone();
        let failed = |source: rusqlite::Error| LedgerError::Sql { path: path.clone(), doing: "written", source };
        let transaction = self.db.transaction().map_err(failed)?;
        for write in &writes {
            write.apply(&transaction).map_err(failed)?;
        }
        failpoint!("ledger.in_transaction");
        transaction.commit().map_err(failed)?;
        failpoint!("ledger.committed");
        Ok(())
    }

    fn notes(&self, ticket: Option<&TicketId>, newest: usize) -> Result<Vec<Note>, LedgerError> {
        let mut statement = self
            .db
            .prepare_cached(
                "SELECT at, ticket, run, code, text FROM (
                   SELECT * FROM notes WHERE ?1 IS NULL OR ticket = ?1 ORDER BY id DESC LIMIT ?2
                 ) ORDER BY id",
            )
            .map_err(|source| self.sql("read", source))?;
        statement
            .query_map(params![ticket.map(TicketId::as_str), newest as i64], |row| {
                Ok(Note {
                    at: Timestamp(row.get(0)?),
                    ticket: row.get::<_, Option<String>>(1)?.map(TicketId::new),
                    run: row.get::<_, Option<String>>(2)?.map(RunId::new),
                    code: row.get(3)?,
                    text: row.get(4)?,
                })
            })
            .and_then(Iterator::collect)
            .map_err(|source| self.sql("read", source))
    }

    fn finished_runs(&self, ticket: &TicketId) -> Result<Vec<FinishedRun>, LedgerError> {
        let sql = "SELECT json FROM runs WHERE ticket = ?1 AND ended_at IS NOT NULL ORDER BY started_at, id";
        self.rows("run", sql, params![ticket.as_str()])
    }

    fn finished_run(&self, run: &RunId) -> Result<Option<FinishedRun>, LedgerError> {
        let sql = "SELECT json FROM runs WHERE id = ?1 AND ended_at IS NOT NULL";
        Ok(self.rows("run", sql, params![run.as_str()])?.pop())
    }

    fn record_preflight(&mut self, hash: &str, at: Timestamp) -> Result<(), LedgerError> {
        self.db
            .execute("INSERT OR REPLACE INTO preflight (hash, at) VALUES (?1, ?2)", params![hash, at.0])
            .map(|_| ())
            .map_err(|source| self.sql("written", source))
    }

    fn has_preflight(&self, hash: &str) -> Result<bool, LedgerError> {
        self.db
            .query_row("SELECT 1 FROM preflight WHERE hash = ?1", params![hash], |_| Ok(()))
            .optional()
            .map(|found| found.is_some())
            .map_err(|source| self.sql("read", source))
    }
}
