//! Makes a private copy of a ledger's files, for when the ledger cannot be read in place: its writer was stopped while it held the
//! lock that keeps readers out, or SQLite cannot create the file that it needs for reading in that folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;

use super::Holder;

const NAME: &str = "ledger.db";
/// How often a copy is tried. A running writer may spoil a copy; a stopped one does not.
const TRIES: usize = 20;

/// Copies the database and its write-ahead log to a temporary folder, and returns that folder and the path of the copy.
///
/// Refuses to run in the process that writes the ledger: POSIX gives up all locks of a process on a file when it closes any
/// descriptor of that file.
pub fn of(ledger: &Path) -> io::Result<(TempDir, PathBuf)> {
    if is_ours(ledger) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "this process writes it"));
    }
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join(NAME);
    for _ in 0..TRIES {
        let before = Mark::of(ledger)?;
        std::fs::copy(ledger, &copy)?;
        copy_log(ledger, &copy)?;
        if Mark::of(ledger)? == before {
            return Ok((folder, copy));
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it changes all the time"))
}

fn is_ours(ledger: &Path) -> bool {
    ledger.parent().and_then(Holder::named_in).is_some_and(|holder| holder.is_this_process())
}

/// A value that changes when a copy may be torn. As long as the log keeps the same header it only grows, and it holds every page
/// that was moved from it to the database in the meantime. The log is copied last, so it makes up for a database that changed
/// during the copy. Without a log the database itself has to be unchanged.
#[derive(PartialEq, Eq)]
enum Mark {
    Log([u8; LOG_HEADER]),
    Database { length: u64, changed: Option<SystemTime> },
}

const LOG_HEADER: usize = 32;

impl Mark {
    fn of(ledger: &Path) -> io::Result<Self> {
        let mut header = [0; LOG_HEADER];
        match File::open(log_of(ledger)).and_then(|mut log| log.read_exact(&mut header)) {
            Ok(()) => Ok(Self::Log(header)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                let found = std::fs::metadata(ledger)?;
                Ok(Self::Database { length: found.len(), changed: found.modified().ok() })
            }
            Err(error) => Err(error),
        }
    }
}

fn copy_log(ledger: &Path, copy: &Path) -> io::Result<()> {
    let log = log_of(copy);
    match std::fs::copy(log_of(ledger), &log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::remove_file(&log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        },
        result => result.map(|_| ()),
    }
}

fn log_of(ledger: &Path) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
