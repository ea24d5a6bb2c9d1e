//! Upgrades a ledger to this version: first a copy of the old file is kept beside it, then everything changes in one transaction.
//!
//! A crash at any moment leaves either the old ledger unchanged or the new one complete.

use std::path::Path;

use rusqlite::params;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::database::{APPLICATION_ID, Database};
use super::lock::InstanceLock;
use super::migrations::{CURRENT, MIGRATIONS, Records, Rewrite};
use super::old_file::keep_old;
use super::write::Write;
use super::{Holder, LedgerError, LockError};
use crate::domain::job::Job;
use crate::domain::run::{FinishedRun, LiveRun};
use crate::domain::time::Timestamp;
use crate::engine::state::{Meta, Pending};

/// The number of records that are read and written back at a time.
const BATCH: usize = 500;

/// Makes a complete ledger of this version out of the file, whether it is new, older or current.
pub fn bring_up(database: &Database) -> Result<(), LedgerError> {
    if database.pragma("user_version")? < CURRENT || database.meta()?.is_none() {
        // Takes the write lock, because two processes may open a new ledger at the same moment.
        database.batch("BEGIN IMMEDIATE")?;
        let alone = bring_up_locked(database);
        let ended = database.batch(if alone.is_ok() { "COMMIT" } else { "ROLLBACK" });
        // The lock was held until here; now it is released.
        drop(alone?);
        ended?;
    }
    make_it_shrink(database)
}

/// Upgrades the ledger inside the caller's transaction. For an older ledger it takes the runner's lock first and returns it: no
/// other process may use the ledger meanwhile, not even an older dirigent that knows nothing of this version.
fn bring_up_locked(database: &Database) -> Result<Option<InstanceLock>, LedgerError> {
    let version = database.pragma("user_version")?;
    let alone = if (1..CURRENT).contains(&version) {
        let alone = alone(&database.path).map_err(|source| LedgerError::InUse {
            path: database.path.clone(),
            found: version,
            known: CURRENT,
            source,
        })?;
        keep_old(database, version)?;
        failpoint!("upgrade.old_kept");
        migrate(database, version)?;
        failpoint!("upgrade.migrated");
        alone
    } else {
        migrate(database, version)?;
        None
    };
    if database.meta()?.is_none() {
        failpoint!("ledger.being_born");
        initialise(database)?;
    }
    Ok(alone)
}

/// Runs every migration after `version` on the open database, a file or a copy in memory. The caller's transaction makes it all or
/// nothing.
pub fn migrate(database: &Database, version: i64) -> Result<(), LedgerError> {
    for (number, migration) in (1..).zip(&MIGRATIONS).skip_while(|(number, _)| *number <= version) {
        database.batch(&format!(
            "{}; PRAGMA user_version = {number}; PRAGMA application_id = {APPLICATION_ID};",
            migration.sql
        ))?;
        rewrite_records(database, &migration.records)?;
    }
    if (1..CURRENT).contains(&version) { understand_everything(database) } else { Ok(()) }
}

fn rewrite_records(database: &Database, records: &Records) -> Result<(), LedgerError> {
    for (table, rewrite) in
        [("jobs", records.job), ("runs", records.run), ("outbox", records.effect), ("meta", records.meta)]
    {
        if let Some(rewrite) = rewrite {
            rewrite_table(database, table, rewrite)?;
        }
    }
    Ok(())
}

fn rewrite_table(database: &Database, table: &str, rewrite: Rewrite) -> Result<(), LedgerError> {
    let failed = |source| database.sql("migrated", source);
    let select = format!("SELECT rowid, json FROM {table} WHERE rowid > ?1 ORDER BY rowid LIMIT {BATCH}");
    let update = format!("UPDATE {table} SET json = ?2 WHERE rowid = ?1");
    let mut last = i64::MIN;
    loop {
        let rows: Vec<(i64, String)> = database
            .db
            .prepare_cached(&select)
            .and_then(|mut statement| {
                statement.query_map(params![last], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
            })
            .map_err(failed)?;
        let Some((newest, _)) = rows.last() else { return Ok(()) };
        last = *newest;
        for (id, json) in rows {
            let record: Value = database.decode(format!("{table}, row {id}"), &json)?;
            let json = database.encode(table, &rewrite(record))?;
            let written = database.db.prepare_cached(&update).and_then(|mut update| update.execute(params![id, json]));
            written.map_err(failed)?;
        }
    }
}

/// Decodes every record. A record that this version cannot read would be lost together with the old file, so it is better not to
/// migrate at all.
fn understand_everything(database: &Database) -> Result<(), LedgerError> {
    each::<Job>(database, "SELECT json, 'job ' || ticket FROM jobs")?;
    each::<LiveRun>(database, "SELECT json, 'run ' || id FROM runs WHERE ended_at IS NULL")?;
    each::<FinishedRun>(database, "SELECT json, 'finished run ' || id FROM runs WHERE ended_at IS NOT NULL")?;
    each::<Pending>(database, "SELECT json, 'effect ' || id FROM outbox")?;
    database.meta().map(|_| ())
}

/// Decodes every record of a query. The second column is the record's name for errors.
fn each<T: DeserializeOwned>(database: &Database, sql: &str) -> Result<(), LedgerError> {
    let read = |source| database.sql("read", source);
    let mut statement = database.db.prepare(sql).map_err(read)?;
    let mut rows = statement.query([]).map_err(read)?;
    while let Some(row) = rows.next().map_err(read)? {
        let text = |at| row.get_ref(at).and_then(|value| Ok(value.as_str()?)).map_err(read);
        database.decode::<T>(text(1)?, text(0)?)?;
    }
    Ok(())
}

/// Writes the engine's metadata with a random seed, the only random number of the ledger's life.
fn initialise(database: &Database) -> Result<(), LedgerError> {
    let random: i64 = database
        .db
        .query_row("SELECT random()", [], |row| row.get(0))
        .map_err(|source| database.sql("read", source))?;
    let meta = Meta { seed: random.unsigned_abs(), ..Meta::default() };
    Write::Meta(&meta).apply(database)
}

/// Takes the lock on the ledger's folder as a runner does. `None` if this process holds it already.
fn alone(ledger: &Path) -> Result<Option<InstanceLock>, LockError> {
    let Some(folder) = ledger.parent() else { return Ok(None) };
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let ourselves = Holder::this_process(now, true);
    match InstanceLock::take(&[folder], &ourselves) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { holder: Some(holder), .. }) if holder.is_this_process() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Rebuilds, once, a ledger that was made before files could shrink. If that is not possible now (no space, or a runner is at
/// work), the ledger is used as it is and the next start tries again.
fn make_it_shrink(database: &Database) -> Result<(), LedgerError> {
    const INCREMENTAL: i64 = 2;
    if database.pragma("auto_vacuum")? == INCREMENTAL {
        return Ok(());
    }
    let Ok(_alone) = alone(&database.path) else { return Ok(()) };
    failpoint!("upgrade.before_shrinking");
    let made_over = "PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);";
    if let Err(error) = database.batch(made_over) {
        tracing::warn!(%error, "the file of the ledger cannot be made smaller for now");
    }
    Ok(())
}
