//! `agent-state.json` on disk: an unreadable file counts as missing, writes are atomic, and read-change-write happens under a lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::team_state::{TeamState, time_text};
use crate::domain::time::Timestamp;

/// How long to wait for the lock. A hook must not delay its agent, so without the lock by then the change is not made.
const PATIENCE: Duration = Duration::from_millis(60);
const LOCK: &str = ".agent-state.lock";

#[derive(Debug, Clone)]
pub struct TeamStateFile {
    path: PathBuf,
}

impl TeamStateFile {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the document. `None` if there is no file or it cannot be parsed.
    pub fn read(&self) -> Option<TeamState> {
        serde_json::from_slice(&std::fs::read(&self.path).ok()?).ok()
    }

    /// Writes the document atomically, with `now` as its `lastUpdated`. A failed write leaves no temporary file behind.
    pub fn write(&self, state: &TeamState, now: Timestamp) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut file = NamedTempFile::with_prefix_in(".agent-state.", directory)?;
        let dated = TeamState { last_updated: time_text(now), ..state.clone() };
        serde_json::to_writer_pretty(&mut file, &dated)?;
        file.write_all(b"\n")?;
        // Temporary files are private to their owner; this one is to be readable by all, like a file that an editor makes.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads, changes and writes the file under the lock. `change` gets the current document, or `None`, and returns the new one; `None`
    /// leaves the file as it is.
    pub fn change(
        &self,
        now: Timestamp,
        change: impl FnOnce(Option<TeamState>) -> Option<TeamState>,
    ) -> io::Result<()> {
        let _lock = self.lock()?;
        match change(self.read()) {
            Some(state) => self.write(&state, now),
            None => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<File> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join(LOCK))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}
