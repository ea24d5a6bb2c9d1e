//! A connection that knows its file: every error names it, every record is decoded in one place.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LedgerError;
use super::migrations::CURRENT;
use crate::engine::state::Meta;

/// "Drgt" as a number: tells our files from other programs'.
pub const APPLICATION_ID: i64 = 0x4472_6774;

#[derive(Debug)]
pub struct Database {
    pub path: PathBuf,
    pub db: Connection,
}

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Nothing is in it yet.
    Fresh,
    /// A ledger of this version or an older one.
    Version(i64),
}

impl Database {
    pub fn new(path: &Path, db: Connection) -> Self {
        Self { path: path.to_owned(), db }
    }

    /// Reads who made the file, and refuses what is not ours or newer than this program.
    pub fn identity(&self) -> Result<Identity, LedgerError> {
        // One picture: another program may be making this very ledger, and half of its answers would look foreign.
        self.batch("BEGIN")?;
        let seen = self.read_identity();
        self.batch("COMMIT")?;
        let (version, application, tables) = seen?;
        if version == 0 && application == 0 && tables == 0 {
            return Ok(Identity::Fresh);
        }
        if application != APPLICATION_ID {
            return Err(LedgerError::Foreign { path: self.path.clone() });
        }
        if version > CURRENT {
            return Err(LedgerError::TooNew { path: self.path.clone(), found: version, known: CURRENT });
        }
        Ok(Identity::Version(version))
    }

    fn read_identity(&self) -> Result<(i64, i64, i64), LedgerError> {
        let tables = self.number("SELECT count(*) FROM sqlite_schema")?;
        Ok((self.pragma("user_version")?, self.pragma("application_id")?, tables))
    }

    pub fn pragma(&self, name: &str) -> Result<i64, LedgerError> {
        self.number(&format!("PRAGMA {name}"))
    }

    fn number(&self, sql: &str) -> Result<i64, LedgerError> {
        self.db.query_row(sql, [], |row| row.get(0)).map_err(|source| self.sql("opened", source))
    }

    pub fn batch(&self, sql: &str) -> Result<(), LedgerError> {
        self.db.execute_batch(sql).map_err(|source| self.sql("opened", source))
    }

    /// `PRAGMA quick_check`, `integrity_check` and the like: anything but "ok" is damage.
    pub fn expect_ok(&self, check: &str) -> Result<(), LedgerError> {
        let found: String = self
            .db
            .query_row(&format!("PRAGMA {check}"), [], |row| row.get(0))
            .map_err(|source| self.sql("checked", source))?;
        if found == "ok" { Ok(()) } else { Err(LedgerError::Corrupt { path: self.path.clone(), detail: found }) }
    }

    pub fn sql(&self, doing: &'static str, source: rusqlite::Error) -> LedgerError {
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                LedgerError::Corrupt { path: self.path.clone(), detail: source.to_string() }
            }
            _ => LedgerError::Sql { path: self.path.clone(), doing, source },
        }
    }

    pub fn decode<T: DeserializeOwned>(&self, what: impl Into<String>, json: &str) -> Result<T, LedgerError> {
        serde_json::from_str(json).map_err(|source| self.record(what, source))
    }

    pub fn encode<T: Serialize>(&self, what: &str, value: &T) -> Result<String, LedgerError> {
        serde_json::to_string(value).map_err(|source| self.record(what, source))
    }

    fn record(&self, what: impl Into<String>, source: serde_json::Error) -> LedgerError {
        LedgerError::Record { path: self.path.clone(), what: what.into(), source }
    }

    /// The records that a query answers with: one column, their JSON.
    pub fn rows<T: DeserializeOwned>(
        &self,
        what: &'static str,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<T>, LedgerError> {
        self.collected::<T, Vec<T>>(what, sql, parameters)
    }

    /// The same, one after the other into where they belong: there may be thousands.
    pub fn collected<T: DeserializeOwned, C: FromIterator<T>>(
        &self,
        what: &'static str,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<C, LedgerError> {
        let read = |source| self.sql("read", source);
        let mut statement = self.db.prepare_cached(sql).map_err(read)?;
        let mut rows = statement.query(parameters).map_err(read)?;
        let mut next = || -> Result<Option<T>, LedgerError> {
            let Some(row) = rows.next().map_err(read)? else { return Ok(None) };
            let json = row.get_ref(0).and_then(|value| Ok(value.as_str()?)).map_err(read)?;
            self.decode(what, json).map(Some)
        };
        std::iter::from_fn(|| next().transpose()).collect()
    }

    pub fn meta(&self) -> Result<Option<Meta>, LedgerError> {
        let json: Option<String> = self
            .db
            .query_row("SELECT json FROM meta WHERE name = 'engine'", [], |row| row.get(0))
            .optional()
            .map_err(|source| self.sql("read", source))?;
        json.map(|json| self.decode("meta", &json)).transpose()
    }
}
