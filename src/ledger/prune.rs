//! Retention: drops notes and finished runs after `keep_days`, in small batches, and shrinks the file accordingly.

use rusqlite::params;

use super::database::Database;
use super::{LedgerError, SqliteLedger};
use crate::domain::ids::RunId;
use crate::domain::time::Timestamp;

const NOTES: usize = 500;
const RUNS: usize = 100;
/// The most pages that one batch returns to the file system (1 MB).
const PAGES: i64 = 256;
/// Free pages that stay in the file for the next writes.
const SPARE_PAGES: i64 = 64;
const DAY_MS: i64 = 86_400_000;

/// What one batch dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The dropped runs. Removing their folders is up to the caller.
    pub runs: Vec<RunId>,
    pub notes: usize,
    /// Whether there is more to drop, or more free space to return.
    pub more: bool,
}

impl SqliteLedger {
    pub(super) fn prune_batch(&mut self, now: Timestamp, keep_days: u32) -> Result<Pruned, LedgerError> {
        let before = now.0.saturating_sub(i64::from(keep_days).saturating_mul(DAY_MS));
        let (runs, notes) = drop_older(&mut self.database, before)?;
        let full = runs.len() == RUNS || notes == NOTES;
        let more = give_space_back(&self.database)? || full;
        Ok(Pruned { runs, notes, more })
    }
}

fn drop_older(database: &mut Database, before: i64) -> Result<(Vec<RunId>, usize), LedgerError> {
    const OLD_RUNS: &str = "DELETE FROM runs WHERE id IN (
        SELECT id FROM runs INDEXED BY runs_by_age
        WHERE ended_at IS NOT NULL AND spared = 0 AND ended_at < ?1 ORDER BY ended_at LIMIT ?2
      ) RETURNING id";
    const OLD_NOTES: &str = "DELETE FROM notes WHERE id IN (
        SELECT id FROM notes INDEXED BY notes_by_age WHERE at < ?1 ORDER BY at LIMIT ?2
      )";
    let work = |database: &mut Database| {
        let transaction = database.db.transaction()?;
        let runs = transaction
            .prepare_cached(OLD_RUNS)?
            .query_map(params![before, RUNS as i64], |row| Ok(RunId::new(row.get::<_, String>(0)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        let notes = transaction.prepare_cached(OLD_NOTES)?.execute(params![before, NOTES as i64])?;
        transaction.commit()?;
        Ok((runs, notes))
    };
    work(database).map_err(|source| database.sql("written", source))
}

/// Returns some free pages to the file system, and whether there are more.
fn give_space_back(database: &Database) -> Result<bool, LedgerError> {
    let free = database.pragma("freelist_count")?;
    let pages = (free - SPARE_PAGES).min(PAGES);
    if pages <= 0 || database.pragma("auto_vacuum")? == 0 {
        return Ok(false);
    }
    // The pragma returns one row per page and only works as far as its rows are read.
    let written = |source| database.sql("written", source);
    let mut statement = database.db.prepare(&format!("PRAGMA incremental_vacuum({pages})")).map_err(written)?;
    let mut rows = statement.query([]).map_err(written)?;
    while rows.next().map_err(written)?.is_some() {}
    Ok(free - pages > SPARE_PAGES)
}
