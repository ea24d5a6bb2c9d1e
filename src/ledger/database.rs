//! A connection that knows the path of its file: every error contains the path, and every record is decoded here.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LedgerError;
use super::migrations::CURRENT;
use crate::engine::state::Meta;

/// "Drgt" as a number. It distinguishes ledgers from the databases of other programs.
pub const APPLICATION_ID: i64 = 0x4472_6774;

#[derive(Debug)]
pub struct Database {
    pub path: PathBuf,
    pub db: Connection,
}

/// What kind of database a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// An empty database.
    Fresh,
    /// A ledger of this version or an older one.
    Version(i64),
}

impl Database {
    pub fn new(path: &Path, db: Connection) -> Self {
        Self { path: path.to_owned(), db }
    }

    /// Reads what made the file. A database of another program, or a ledger newer than this program, is an error.
    pub fn identity(&self) -> Result<Identity, LedgerError> {
        // In one transaction: another process may be creating this ledger, and a mix of old and new values would look foreign.
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

    /// Runs a check such as `quick_check` or `integrity_check`. Any result other than "ok" is a `Corrupt` error.
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

    /// Returns the records of a query whose only column is their JSON.
    pub fn rows<T: DeserializeOwned>(
        &self,
        what: &'static str,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<T>, LedgerError> {
        self.collected::<T, Vec<T>>(what, sql, parameters)
    }

    /// Like `rows`, but collects the records one by one into any collection, because there may be thousands.
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
