//! Keeps the ledger of an older version beside the new one, as `ledger.db.v<version>`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::LedgerError;
use super::database::Database;

/// Puts a copy beside the ledger. An existing copy is never overwritten: one with the same content (from an earlier attempt that
/// was interrupted) is reused, otherwise the new copy gets a number.
pub fn keep_old(database: &Database, version: i64) -> Result<(), LedgerError> {
    let kept = beside(&database.path, &format!(".v{version}"));
    let not_kept = |source| LedgerError::NotKept { path: database.path.clone(), copy: kept.clone(), source };
    // Always the same name, so that the next attempt overwrites what a crash left behind.
    let part = beside(&database.path, &format!(".v{version}.part"));
    make(database, &part).map_err(not_kept)?;
    let result = put_in_place(&part, &database.path, version);
    let removed = std::fs::remove_file(&part);
    result.and(removed).and_then(|()| sync_folder(&kept)).map_err(not_kept)
}

/// Copies every page of the ledger, including its log. Uses a second connection, because the ledger's own connection holds the
/// write lock meanwhile.
fn make(database: &Database, part: &Path) -> io::Result<()> {
    File::create(part)?;
    copy_pages(&database.path, part).map_err(io::Error::other)?;
    File::open(part)?.sync_all()
}

fn copy_pages(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let from = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let mut to = Connection::open(to)?;
    // An incomplete copy is worthless, so no journal is needed to roll it back.
    to.execute_batch("PRAGMA journal_mode = OFF")?;
    copy_all(&from, &mut to)
}

/// Copies all pages in one step, so that no process can change the source in between.
pub fn copy_all(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    const ALL: i32 = i32::MAX;
    Backup::new(from, to)?.run_to_completion(ALL, Duration::from_millis(10), None)
}

fn put_in_place(part: &Path, ledger: &Path, version: i64) -> io::Result<()> {
    let mut number = 1;
    loop {
        let ending = if number == 1 { format!(".v{version}") } else { format!(".v{version}-{number}") };
        let place = beside(ledger, &ending);
        // Creating a link fails when the name is taken; a rename would overwrite it.
        match std::fs::hard_link(part, &place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if same_content(part, &place)? {
                    return Ok(());
                }
                number += 1;
            }
            result => return result,
        }
    }
}

fn same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut others = BufReader::new(other).bytes();
    for byte in BufReader::new(one).bytes() {
        if others.next().transpose()? != Some(byte?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn beside(ledger: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = ledger.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Syncs the folder of a file: only then is the file's name on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
