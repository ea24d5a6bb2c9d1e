//! Opens the connection that writes: creates the ledger if it does not exist, and upgrades an older one to this version.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::database::{Database, Identity};
use super::{LedgerError, SqliteLedger, upgrade};

/// How long to wait for another process's transaction.
const PATIENCE: Duration = Duration::from_secs(10);

/// After an unclean exit a file of up to this many pages (64 MB) is checked as a whole; of a larger file only the small tables that
/// every start reads. `doctor` checks the rest: a start must not take longer the older the ledger is.
const PAGES_TO_CHECK: i64 = 16 * 1024;

/// The size in bytes to which the write-ahead log is truncated when it is emptied.
const LOG_KEEPS: u32 = 4 << 20;

impl SqliteLedger {
    /// Opens the ledger for writing. Creates it if it does not exist, and upgrades an older one, a copy of which is kept beside it.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| LedgerError::Folder { path: folder.to_owned(), source })?;
        }
        let unclean = was_left_open(path);
        let db = Connection::open(path).map_err(|source| LedgerError::Open { path: path.to_owned(), source })?;
        let mut database = Database::new(path, db);
        prepare(&mut database, unclean)?;
        Ok(Self::of(database))
    }
}

/// Whether the last process did not close the ledger. The last connection to close a ledger empties its log; a killed process does
/// not.
fn was_left_open(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|found| found.len() > 0)
}

fn prepare(database: &mut Database, unclean: bool) -> Result<(), LedgerError> {
    database.db.busy_timeout(PATIENCE).map_err(|source| database.sql("opened", source))?;
    if database.identity()? == Identity::Fresh {
        // Only possible before the first page is written.
        database.batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    } else if unclean {
        check_after_unclean_end(database)?;
    }
    // Full: a committed fact that was acted on must survive a power failure too.
    database.batch(&format!("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = {LOG_KEEPS};"))?;
    keep_a_log_ahead(database)?;
    upgrade::bring_up(database)
}

fn check_after_unclean_end(database: &Database) -> Result<(), LedgerError> {
    if database.pragma("page_count")? <= PAGES_TO_CHECK {
        return database.expect_ok("quick_check(1)");
    }
    database.expect_ok("quick_check(meta)")?;
    database.expect_ok("quick_check(outbox)")
}

/// Switches to a write-ahead log, with retries. SQLite ignores its busy timeout here, and several processes may open a new ledger
/// at the same moment.
fn keep_a_log_ahead(database: &Database) -> Result<(), LedgerError> {
    let since = Instant::now();
    loop {
        match database.db.execute_batch("PRAGMA journal_mode = WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result.map_err(|source| database.sql("opened", source)),
        }
    }
}
