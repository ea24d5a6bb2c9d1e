//! The connection that writes: makes the ledger if it is not there, and brings an older one to this version.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::database::{Database, Identity};
use super::{LedgerError, SqliteLedger, upgrade};

/// How long another program's transaction is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// After an unclean end a file of up to this many pages (64 MB) is looked through; of a larger one the small tables that
/// every start reads. The rest is `doctor`'s: a start must not take longer the longer the ledger has lived.
const PAGES_TO_CHECK: i64 = 16 * 1024;

/// What the write-ahead log may keep of the disk when it is empty.
const LOG_KEEPS: u32 = 4 << 20;

impl SqliteLedger {
    /// Opens the ledger for writing, makes it if it is not there, and brings it to this version. An older one is kept
    /// beside it.
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

/// The last one to close the ledger empties its log. Whoever was killed did not.
fn was_left_open(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|found| found.len() > 0)
}

fn prepare(database: &mut Database, unclean: bool) -> Result<(), LedgerError> {
    database.db.busy_timeout(PATIENCE).map_err(|source| database.sql("opened", source))?;
    if database.identity()? == Identity::Fresh {
        // Can only be said before the first page is written.
        database.batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    } else if unclean {
        check_after_unclean_end(database)?;
    }
    // Full: a fact that was acted on must survive a power cut too.
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

/// SQLite does not wait here, whatever its patience: a new ledger may be opened by several programs in one moment.
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
