//! The ledger as an older version left it, kept beside the new one as `ledger.db.v<version>`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::LedgerError;
use super::database::Database;

/// Puts a copy beside the ledger. One that is there already is never written over: it stands for this one if it is the same
/// (a try before this one was cut short), else this one gets a number.
pub fn keep_old(database: &Database, version: i64) -> Result<(), LedgerError> {
    let kept = beside(&database.path, &format!(".v{version}"));
    let not_kept = |source| LedgerError::NotKept { path: database.path.clone(), copy: kept.clone(), source };
    // Always the same name, so that what a crash leaves is used up by the next try.
    let part = beside(&database.path, &format!(".v{version}.part"));
    make(database, &part).map_err(not_kept)?;
    let result = put_in_place(&part, &database.path, version);
    let removed = std::fs::remove_file(&part);
    result.and(removed).and_then(|()| sync_folder(&kept)).map_err(not_kept)
}

/// Copies every page as it stands in the ledger, log included. The ledger's own connection holds the write lock meanwhile,
/// so another one reads.
fn make(database: &Database, part: &Path) -> io::Result<()> {
    File::create(part)?;
    copy_pages(&database.path, part).map_err(io::Error::other)?;
    File::open(part)?.sync_all()
}

fn copy_pages(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let from = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let mut to = Connection::open(to)?;
    // It is worth nothing before it is complete, so nothing has to be taken back.
    to.execute_batch("PRAGMA journal_mode = OFF")?;
    copy_all(&from, &mut to)
}

/// Everything in one step: nobody may change the source in between.
pub fn copy_all(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    const ALL: i32 = i32::MAX;
    Backup::new(from, to)?.run_to_completion(ALL, Duration::from_millis(10), None)
}

fn put_in_place(part: &Path, ledger: &Path, version: i64) -> io::Result<()> {
    let mut number = 1;
    loop {
        let ending = if number == 1 { format!(".v{version}") } else { format!(".v{version}-{number}") };
        let place = beside(ledger, &ending);
        // A link refuses a name that is taken, a rename does not.
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

/// A name is on the disk when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
