//! Opens a ledger only for reading: takes no lock that a writer would notice, creates, migrates and checks nothing, and does not
//! wait for a writer, whether it is busy, stopped or dead.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::database::{Database, Identity};
use super::migrations::CURRENT;
use super::old_file::copy_all;
use super::{LedgerError, LedgerReader, SqliteLedger, copy, upgrade};

/// How long to wait for a lock. A reader meets one only for moments: while the first writer after a crash reads the log, or while
/// the last connection closes. After this time a copy is read instead.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens the ledger as it is now. A ledger that does not exist yet is empty. One of an older version is migrated in memory and
/// stays unchanged on disk.
pub fn open_for_reading(path: &Path) -> Result<Box<dyn LedgerReader>, LedgerError> {
    let in_place = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => empty(path),
        _ => open(path, path, OpenFlags::SQLITE_OPEN_READ_ONLY),
    };
    match in_place {
        Ok(database) => Ok(Box::new(SqliteLedger::of(database))),
        Err(error) if is_in_the_way(&error) => match copy::of(path) {
            Ok((folder, copied)) => {
                let database = open(path, &copied, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                Ok(Box::new(SqliteLedger::of_copy(database, folder)))
            }
            // Why the ledger could not be read in place says more than why the copy failed.
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Opens the file `at`. Errors contain the path of the ledger.
fn open(ledger: &Path, at: &Path, mode: OpenFlags) -> Result<Database, LedgerError> {
    let db = Connection::open_with_flags(at, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|source| LedgerError::Open { path: ledger.to_owned(), source })?;
    let database = Database::new(ledger, db);
    database.db.busy_timeout(PATIENCE).map_err(|source| database.sql("opened", source))?;
    match database.identity()? {
        Identity::Fresh => empty(ledger),
        Identity::Version(CURRENT) => Ok(database),
        Identity::Version(older) => as_this_version(&database, older),
    }
}

/// Copies a ledger into memory and migrates the copy to this version.
fn as_this_version(old: &Database, version: i64) -> Result<Database, LedgerError> {
    let copied = Connection::open_in_memory().and_then(|mut copy| copy_all(&old.db, &mut copy).map(|()| copy));
    let database = Database::new(&old.path, copied.map_err(|source| old.sql("read", source))?);
    upgrade::migrate(&database, version)?;
    Ok(database)
}

fn empty(path: &Path) -> Result<Database, LedgerError> {
    let db = Connection::open_in_memory().map_err(|source| LedgerError::Open { path: path.to_owned(), source })?;
    let database = Database::new(path, db);
    upgrade::migrate(&database, 0)?;
    Ok(database)
}

/// Whether the error comes from a lock, or from a folder in which SQLite cannot create the files that it needs for reading. The
/// content may be intact.
fn is_in_the_way(error: &LedgerError) -> bool {
    let (LedgerError::Open { source, .. } | LedgerError::Sql { source, .. }) = error else { return false };
    matches!(
        source.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
        )
    )
}
