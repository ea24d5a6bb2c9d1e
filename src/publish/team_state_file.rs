//! `agent-state.json` on disk: read leniently, replaced whole or not at all, changed under a lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::team_state::{TeamState, time_text};
use crate::domain::time::Timestamp;

/// A hook must not hold its agent up: whoever does not get the lock by then goes without a change.
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

    /// `None` where there is no file, or none that can be understood.
    pub fn read(&self) -> Option<TeamState> {
        serde_json::from_slice(&std::fs::read(&self.path).ok()?).ok()
    }

    /// Whole or not at all; what was begun and failed leaves nothing behind.
    pub fn write(&self, state: &TeamState, now: Timestamp) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut file = NamedTempFile::with_prefix_in(".agent-state.", directory)?;
        let dated = TeamState { last_updated: time_text(now), ..state.clone() };
        serde_json::to_writer_pretty(&mut file, &dated)?;
        file.write_all(b"\n")?;
        // Others than the owner may read it, as they may read a file that an editor made.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads, changes and writes, one at a time. `change` gets what is there, or nothing, and answers with what is to be there.
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
