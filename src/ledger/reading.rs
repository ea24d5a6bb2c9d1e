//! Opening a ledger only to look: no lock that a writer would notice, nothing made, migrated or checked, and no waiting for
//! a writer, be it busy, stopped or dead.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::database::{Database, Identity};
use super::migrations::CURRENT;
use super::old_file::copy_all;
use super::{LedgerError, LedgerReader, SqliteLedger, copy, upgrade};

/// A reader meets a lock only for moments: while the first writer after a crash reads the log, or the last one closes. After
/// that a copy is read instead.
const PATIENCE: Duration = Duration::from_secs(2);

/// The ledger as it is now. Where there is none yet it is empty; one of an older version is shown as this version would
/// have it, and left as it is.
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
            // What kept us from reading in place says more than why it could not be helped.
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Opens the file `at`; errors name the ledger.
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

/// A copy in memory, brought to this version.
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

/// Locks, and folders in which SQLite cannot make what it needs for reading: the content may be fine.
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
