//! The records of the local forge: pull requests, their checks, and the landing under way. They are tables of their own in the ledger file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use thiserror::Error;

use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, PrNumber};
use crate::domain::pr::NewPr;
use crate::domain::time::Timestamp;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS local_prs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        head_branch TEXT NOT NULL,
        head TEXT NOT NULL,
        base_branch TEXT NOT NULL,
        draft INTEGER NOT NULL,
        labels TEXT NOT NULL,
        pushed_at INTEGER NOT NULL,
        merged INTEGER NOT NULL DEFAULT 0,
        merge_commit TEXT
    ) STRICT;
    CREATE INDEX IF NOT EXISTS local_prs_by_branch ON local_prs (head_branch);
    CREATE TABLE IF NOT EXISTS local_checks (head TEXT PRIMARY KEY, results TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS local_landings (
        base_branch TEXT PRIMARY KEY,
        number INTEGER NOT NULL,
        head TEXT NOT NULL,
        old TEXT NOT NULL,
        new TEXT NOT NULL
    ) STRICT;
";

const COLUMNS: &str =
    "number, title, body, head_branch, head, base_branch, draft, labels, pushed_at, merged, merge_commit";

#[derive(Debug, Error)]
pub enum PrStoreError {
    #[error(
        "the record of pull requests in {path} cannot be used: {source}\n  fix: check that its folder is writable and has space left, and that enough files may be open (ulimit -n)"
    )]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("the record of pull requests in {path} cannot be opened: {source}")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("the record of pull requests in {path} cannot be read: {source}")]
    Content { path: PathBuf, source: serde_json::Error },
}

/// The record of one pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrRecord {
    pub number: PrNumber,
    pub title: String,
    pub body: String,
    pub head_branch: String,
    /// The branch's head as last seen.
    pub head: CommitId,
    pub base_branch: String,
    pub draft: bool,
    pub labels: Vec<String>,
    pub pushed_at: Timestamp,
    pub merged: bool,
    pub merge_commit: Option<CommitId>,
}

/// A merge that is computed and being put in place. It is recorded before any ref or work tree changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    pub base_branch: String,
    pub number: PrNumber,
    pub head: CommitId,
    pub old: CommitId,
    pub new: CommitId,
}

pub struct PrBook {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl PrBook {
    pub fn open(path: &Path) -> Result<Self, PrStoreError> {
        // SQLite does not tell why a file cannot be opened; opening it directly gives the reason.
        let failed = |source| match std::fs::OpenOptions::new().read(true).write(true).open(path) {
            Err(source) => PrStoreError::Open { path: path.to_owned(), source },
            Ok(_) => PrStoreError::Sqlite { path: path.to_owned(), source },
        };
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        // A landing must be on disk before a ref moves.
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, PrStoreError> {
        let mut connection = self.connection.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        work(&mut connection).map_err(|source| PrStoreError::Sqlite { path: self.path.clone(), source })
    }

    fn json<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, PrStoreError> {
        serde_json::from_str(text).map_err(|source| PrStoreError::Content { path: self.path.clone(), source })
    }

    fn text(&self, value: &impl serde::Serialize) -> Result<String, PrStoreError> {
        serde_json::to_string(value).map_err(|source| PrStoreError::Content { path: self.path.clone(), source })
    }

    pub fn get(&self, number: PrNumber) -> Result<Option<PrRecord>, PrStoreError> {
        self.one(&format!("SELECT {COLUMNS} FROM local_prs WHERE number = ?1"), params![to_sql(number)])
    }

    /// Returns the branch's pull request that is not merged, else its newest.
    pub fn of_branch(&self, branch: &str) -> Result<Option<PrRecord>, PrStoreError> {
        let query = "FROM local_prs WHERE head_branch = ?1 ORDER BY merged, number DESC LIMIT 1";
        self.one(&format!("SELECT {COLUMNS} {query}"), params![branch])
    }

    fn one(&self, query: &str, params: impl rusqlite::Params) -> Result<Option<PrRecord>, PrStoreError> {
        let found = self.with(|connection| connection.query_row(query, params, read_row).optional())?;
        found.map(|(record, labels)| Ok(PrRecord { labels: self.json(&labels)?, ..record })).transpose()
    }

    pub fn add(&self, new: &NewPr, now: Timestamp) -> Result<PrNumber, PrStoreError> {
        let labels = self.text(&new.labels)?;
        let insert = "INSERT INTO local_prs (title, body, head_branch, head, base_branch, draft, labels, pushed_at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let row = self.with(|connection| {
            connection.execute(
                insert,
                params![
                    new.title,
                    new.body,
                    new.head_branch,
                    new.head.as_str(),
                    new.base_branch,
                    new.draft,
                    labels,
                    now.0
                ],
            )?;
            Ok(connection.last_insert_rowid())
        })?;
        Ok(PrNumber(u64::try_from(row).unwrap_or_default()))
    }

    /// Records the branch's current head. `pushed_at` is set only when the head is a new one.
    pub fn see_head(&self, number: PrNumber, head: &CommitId, now: Timestamp) -> Result<(), PrStoreError> {
        let update = "UPDATE local_prs SET head = ?2, pushed_at = ?3 WHERE number = ?1 AND head <> ?2";
        self.with(|connection| connection.execute(update, params![to_sql(number), head.as_str(), now.0]))?;
        Ok(())
    }

    /// Records the merge and removes its landing, in one transaction.
    pub fn merged(&self, number: PrNumber, head: &CommitId, commit: &CommitId) -> Result<(), PrStoreError> {
        self.with(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "UPDATE local_prs SET merged = 1, head = ?2, merge_commit = ?3 WHERE number = ?1",
                params![to_sql(number), head.as_str(), commit.as_str()],
            )?;
            transaction.execute("DELETE FROM local_landings WHERE number = ?1", params![to_sql(number)])?;
            transaction.commit()
        })
    }

    pub fn landing(&self, base_branch: &str) -> Result<Option<Landing>, PrStoreError> {
        let query = "SELECT base_branch, number, head, old, new FROM local_landings WHERE base_branch = ?1";
        self.with(|connection| {
            connection
                .query_row(query, params![base_branch], |row| {
                    Ok(Landing {
                        base_branch: row.get(0)?,
                        number: PrNumber(row.get::<_, i64>(1)?.try_into().unwrap_or_default()),
                        head: CommitId::new(row.get::<_, String>(2)?),
                        old: CommitId::new(row.get::<_, String>(3)?),
                        new: CommitId::new(row.get::<_, String>(4)?),
                    })
                })
                .optional()
        })
    }

    pub fn begin_landing(&self, landing: &Landing) -> Result<(), PrStoreError> {
        let insert = "INSERT OR REPLACE INTO local_landings (base_branch, number, head, old, new)
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        let Landing { base_branch, number, head, old, new } = landing;
        self.with(|connection| {
            let values = params![base_branch, to_sql(*number), head.as_str(), old.as_str(), new.as_str()];
            connection.execute(insert, values)
        })?;
        Ok(())
    }

    pub fn end_landing(&self, base_branch: &str) -> Result<(), PrStoreError> {
        let delete = "DELETE FROM local_landings WHERE base_branch = ?1";
        self.with(|connection| connection.execute(delete, params![base_branch]))?;
        Ok(())
    }

    pub fn record_checks(&self, head: &CommitId, results: &[GateResult]) -> Result<(), PrStoreError> {
        let text = self.text(&results)?;
        let insert = "INSERT OR REPLACE INTO local_checks (head, results) VALUES (?1, ?2)";
        self.with(|connection| connection.execute(insert, params![head.as_str(), text]))?;
        Ok(())
    }

    pub fn checks(&self, head: &CommitId) -> Result<Vec<GateResult>, PrStoreError> {
        let query = "SELECT results FROM local_checks WHERE head = ?1";
        let text: Option<String> =
            self.with(|connection| connection.query_row(query, params![head.as_str()], |row| row.get(0)).optional())?;
        text.map_or_else(|| Ok(Vec::new()), |text| self.json(&text))
    }
}

fn to_sql(number: PrNumber) -> i64 {
    i64::try_from(number.0).unwrap_or(i64::MAX)
}

/// Reads a row. The labels are returned separately, as the JSON text that they are stored as.
fn read_row(row: &Row<'_>) -> rusqlite::Result<(PrRecord, String)> {
    let record = PrRecord {
        number: PrNumber(row.get::<_, i64>(0)?.try_into().unwrap_or_default()),
        title: row.get(1)?,
        body: row.get(2)?,
        head_branch: row.get(3)?,
        head: CommitId::new(row.get::<_, String>(4)?),
        base_branch: row.get(5)?,
        draft: row.get(6)?,
        labels: Vec::new(),
        pushed_at: Timestamp(row.get(8)?),
        merged: row.get(9)?,
        merge_commit: row.get::<_, Option<String>>(10)?.map(CommitId::new),
    };
    Ok((record, row.get(7)?))
}
