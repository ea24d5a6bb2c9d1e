//! Sends a hint when a ticket file may have changed. Also watches a directory that is created only later.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::broadcast;

use super::store::{id_of_file, is_readme};
use crate::domain::hint::Hint;
use crate::domain::ids::TicketId;

/// The time between two checks for a directory that does not exist yet.
const LOOK_FOR: Duration = Duration::from_millis(250);
/// The time between two checks that the directory has not been replaced, and between two attempts to watch it.
const CHECK: Duration = Duration::from_secs(5);
/// The most hints that are queued. A receiver that misses more of them has to read everything.
const AT_ONCE: usize = 256;

pub(super) struct Watch {
    hints: broadcast::Sender<Hint>,
    orders: mpsc::Sender<Message>,
}

enum Message {
    Seen(notify::Result<Event>),
    Stop,
}

impl Watch {
    /// Starts the watch. `None` if the system offers none; the reason is logged.
    pub fn start(dir: PathBuf) -> Option<Self> {
        let (orders, inbox) = mpsc::channel();
        let from_watcher = orders.clone();
        let watcher = RecommendedWatcher::new(
            move |event| {
                let _ = from_watcher.send(Message::Seen(event));
            },
            notify::Config::default(),
        );
        let watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::warn!(dir = %dir.display(), "no file watch, new tickets are found by polling: {error}");
                return None;
            }
        };
        let hints = broadcast::Sender::new(AT_ONCE);
        let sender = hints.clone();
        let thread = std::thread::Builder::new().name("tk-watch".into());
        let spawned = thread.spawn(move || Loop::new(dir, watcher, sender).run(&inbox));
        match spawned {
            Ok(_) => Some(Self { hints, orders }),
            Err(error) => {
                tracing::warn!("no file watch, new tickets are found by polling: {error}");
                None
            }
        }
    }

    pub fn receiver(&self) -> broadcast::Receiver<Hint> {
        self.hints.subscribe()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.orders.send(Message::Stop);
    }
}

struct Loop<W> {
    dir: PathBuf,
    watcher: W,
    sender: broadcast::Sender<Hint>,
    /// The directory that was there at the last check.
    there: Option<(u64, u64)>,
    is_watched: bool,
    complained: bool,
}

impl<W: Watcher> Loop<W> {
    fn new(dir: PathBuf, watcher: W, sender: broadcast::Sender<Hint>) -> Self {
        Self { dir, watcher, sender, there: None, is_watched: false, complained: false }
    }

    fn run(mut self, inbox: &mpsc::Receiver<Message>) {
        loop {
            self.keep_watching();
            let pause = if self.there.is_some() { CHECK } else { LOOK_FOR };
            match inbox.recv_timeout(pause) {
                Ok(Message::Seen(event)) => self.seen(event),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Watches the directory if it is new or could not be watched so far. Sends a hint for what may have been missed; not for an
    /// attempt that fails again, because each hint leads to a poll.
    fn keep_watching(&mut self) {
        let there = identity(&self.dir);
        let is_new = there != self.there;
        if !is_new && (self.is_watched || there.is_none()) {
            return;
        }
        if std::mem::take(&mut self.is_watched) {
            let _ = self.watcher.unwatch(&self.dir);
        }
        self.there = there;
        if there.is_some() {
            match self.watcher.watch(&self.dir, RecursiveMode::NonRecursive) {
                Ok(()) => self.is_watched = true,
                Err(error) if !self.complained => {
                    self.complained = true;
                    tracing::warn!(dir = %self.dir.display(), "no file watch, new tickets are found by polling: {error}");
                }
                Err(_) => {}
            }
        }
        if is_new || self.is_watched {
            self.tell(Hint::Board);
        }
    }

    fn seen(&self, event: notify::Result<Event>) {
        let Ok(event) = event else { return self.tell(Hint::Board) };
        if event.need_rescan() {
            return self.tell(Hint::Board);
        }
        if !matches!(event.kind, EventKind::Access(_)) {
            event.paths.iter().filter_map(|path| self.hint(path)).for_each(|hint| self.tell(hint));
        }
    }

    fn hint(&self, path: &Path) -> Option<Hint> {
        if path == self.dir {
            return Some(Hint::Board);
        }
        let id = path.file_name().and_then(|name| name.to_str()).and_then(id_of_file)?;
        (!is_readme(id)).then(|| Hint::ticket(TicketId::new(id)))
    }

    fn tell(&self, hint: Hint) {
        // An error means that there is no receiver yet.
        let _ = self.sender.send(hint);
    }
}

fn identity(dir: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that has no watches left for the first few attempts.
    struct Exhausted(usize);

    impl Watcher for Exhausted {
        fn new<F: notify::EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
            Ok(Self(0))
        }

        fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
            if self.0 == 0 {
                return Ok(());
            }
            self.0 -= 1;
            Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch))
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            Ok(())
        }

        fn kind() -> notify::WatcherKind {
            notify::WatcherKind::NullWatcher
        }
    }

    #[test]
    fn a_directory_that_cannot_be_watched_causes_no_polls() {
        let dir = tempfile::tempdir().unwrap();
        let hints = broadcast::Sender::new(AT_ONCE);
        let mut told = hints.subscribe();
        let mut watch = Loop::new(dir.path().to_owned(), Exhausted(5), hints);
        let mut checks = |times: usize| {
            (0..times).for_each(|_| watch.keep_watching());
            std::iter::from_fn(|| told.try_recv().ok()).count()
        };
        assert_eq!(checks(1), 1, "the directory is new");
        assert_eq!(checks(4), 0, "it is tried again, and nothing is new");
        assert_eq!(checks(1), 1, "something may have changed before it was watched");
        assert_eq!(checks(3), 0);
    }
}
