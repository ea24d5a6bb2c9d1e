//! Reports which ticket files changed since the last call, from the kernel's record (inotify).
//!
//! Each call reads all queued events, so a change made before the call is always included. On systems without such a record every
//! call reports `Lost`, and all files are read.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

pub(super) enum Seen {
    /// Only these files changed.
    Names(BTreeSet<String>),
    /// The record has a gap, or the directory was replaced: all files have to be read, with a new journal.
    Lost,
}

#[cfg(target_os = "linux")]
pub(super) struct Journal {
    inotify: nix::sys::inotify::Inotify,
    directory: (u64, u64),
}

#[cfg(target_os = "linux")]
impl Journal {
    pub fn open(dir: &Path) -> io::Result<Self> {
        use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        inotify.add_watch(dir, flags)?;
        Ok(Self { inotify, directory: identity(dir)? })
    }

    pub fn look(&self, dir: &Path) -> Seen {
        use nix::errno::Errno;
        use nix::sys::inotify::AddWatchFlags;
        let gap = AddWatchFlags::IN_Q_OVERFLOW
            | AddWatchFlags::IN_IGNORED
            | AddWatchFlags::IN_UNMOUNT
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF;
        let mut names = BTreeSet::new();
        loop {
            match self.inotify.read_events() {
                Ok(events) => {
                    for event in events {
                        if event.mask.intersects(gap) {
                            return Seen::Lost;
                        }
                        names.extend(event.name.and_then(|name| name.into_string().ok()));
                    }
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(_) => return Seen::Lost,
            }
        }
        match identity(dir) {
            Ok(now) if now == self.directory => Seen::Names(names),
            _ => Seen::Lost,
        }
    }
}

#[cfg(target_os = "linux")]
fn identity(dir: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(dir)?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(not(target_os = "linux"))]
pub(super) struct Journal;

#[cfg(not(target_os = "linux"))]
impl Journal {
    pub fn open(_dir: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn look(&self, _dir: &Path) -> Seen {
        Seen::Lost
    }
}
