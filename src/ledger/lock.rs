//! Locks that allow one runner per ledger, per workspace root and per ticket store. A second runner learns which process holds the
//! lock.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::domain::time::Timestamp;

/// How long to wait for the lock of a runner that has already exited.
const LAST_MOMENTS: Duration = Duration::from_secs(3);
/// How long to wait for a command that only writes something down. It may bring a large ledger of an older version over first.
const A_COMMAND: Duration = Duration::from_secs(30);
const NAME: &str = ".dirigent.lock";

/// The process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub started_at: Timestamp,
    /// Whether the lock is held by a command that only writes something down, and not by a runner.
    #[serde(default)]
    pub brief: bool,
    /// A random number of the process. Two processes may have the same pid in two containers that share a folder. Zero if an older
    /// version wrote the lock file.
    #[serde(default)]
    pub process: u64,
}

impl Holder {
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id() && self.process == own_number()
    }

    /// Returns the process that took the lock of this folder last. It may have exited since. `None` if the lock file does not say.
    pub fn named_in(place: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(place.join(NAME)).ok()?).ok()
    }

    /// Returns this process as the holder of a lock.
    pub fn this_process(started_at: Timestamp, brief: bool) -> Self {
        Self { pid: std::process::id(), started_at, brief, process: own_number() }
    }

    fn is_gone(&self) -> bool {
        let pid = i32::try_from(self.pid).map(nix::unistd::Pid::from_raw);
        pid.is_ok_and(|pid| nix::sys::signal::kill(pid, None) == Err(nix::errno::Errno::ESRCH))
    }
}

/// Returns the random number of this process.
fn own_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| RandomState::new().hash_one(std::process::id()).max(1))
}

impl LockError {
    /// Replaces the runner's internal folder `own` in the message with `known_as`, the folder that people know.
    pub fn standing_for(self, own: &Path, known_as: &Path) -> Self {
        match self {
            Self::Held { place, holder } if place == own => Self::Held { place: known_as.to_owned(), holder },
            other => other,
        }
    }
}

#[derive(Debug, Error)]
pub enum LockError {
    #[error(
        "another dirigent works on {place}: {}\n  fix: stop it first (`dirigent status` shows what it does), or let this one be",
        holder_words(.holder)
    )]
    Held { place: PathBuf, holder: Option<Holder> },
    #[error("{path} cannot be locked: {source}")]
    Io { path: PathBuf, source: std::io::Error },
}

fn holder_words(holder: &Option<Holder>) -> String {
    match holder {
        Some(holder) => {
            let started = jiff::Timestamp::from_millisecond(holder.started_at.0).map(|at| at.to_string());
            format!("pid {}, started {}", holder.pid, started.unwrap_or_else(|_| holder.started_at.0.to_string()))
        }
        None => "its lock file does not say which".into(),
    }
}

/// Locks that are held until this value is dropped. The kernel releases them when the process dies.
#[derive(Debug)]
pub struct InstanceLock {
    _files: Vec<Flock<File>>,
}

impl InstanceLock {
    /// Takes the locks of all folders, or none of them.
    pub fn take(places: &[&Path], holder: &Holder) -> Result<Self, LockError> {
        let mut files = Vec::new();
        for place in places {
            files.push(lock_one(place, holder)?);
        }
        Ok(Self { _files: files })
    }
}

/// Takes one lock. The lock of a killed runner may outlive it briefly, in a child that was forked and has not yet executed its own
/// program; so the lock of a process that is gone is waited for up to `LAST_MOMENTS`. A command that holds it is waited for as well, so
/// that a runner starts although somebody pauses a ticket in the same moment.
fn lock_one(place: &Path, holder: &Holder) -> Result<Flock<File>, LockError> {
    let since = Instant::now();
    loop {
        match try_lock(place, holder) {
            Err(LockError::Held { holder, .. }) if since.elapsed() < patience(holder.as_ref()) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
}

fn patience(holder: Option<&Holder>) -> Duration {
    match holder {
        Some(holder) if holder.is_gone() => LAST_MOMENTS,
        Some(holder) if holder.brief && !holder.is_this_process() => A_COMMAND,
        Some(_) => Duration::ZERO,
        None => LAST_MOMENTS,
    }
}

fn try_lock(place: &Path, holder: &Holder) -> Result<Flock<File>, LockError> {
    let path = place.join(NAME);
    let io = |source: std::io::Error| LockError::Io { path: path.clone(), source };
    std::fs::create_dir_all(place).map_err(io)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut locked) => {
            let text = serde_json::to_string(holder).unwrap_or_default();
            locked.set_len(0).map_err(io)?;
            locked.rewind().map_err(io)?;
            locked.write_all(text.as_bytes()).map_err(io)?;
            Ok(locked)
        }
        Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
            let mut text = String::new();
            let holder = file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
            Err(LockError::Held { place: place.to_owned(), holder })
        }
        Err((_, errno)) => Err(io(errno.into())),
    }
}
