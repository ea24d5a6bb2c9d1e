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
/// The time between two checks that the directory has not been replaced.
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
        let spawned = thread.spawn(move || Loop { dir, watcher, sender, watched: None, complained: false }.run(&inbox));
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

struct Loop {
    dir: PathBuf,
    watcher: RecommendedWatcher,
    sender: broadcast::Sender<Hint>,
    watched: Option<(u64, u64)>,
    complained: bool,
}

impl Loop {
    fn run(mut self, inbox: &mpsc::Receiver<Message>) {
        loop {
            self.keep_watching();
            let pause = if self.watched.is_some() { CHECK } else { LOOK_FOR };
            match inbox.recv_timeout(pause) {
                Ok(Message::Seen(event)) => self.seen(event),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn keep_watching(&mut self) {
        let there = identity(&self.dir);
        if there == self.watched {
            return;
        }
        if self.watched.take().is_some() {
            let _ = self.watcher.unwatch(&self.dir);
        }
        if there.is_some() {
            match self.watcher.watch(&self.dir, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched = there,
                Err(error) if !self.complained => {
                    self.complained = true;
                    tracing::warn!(dir = %self.dir.display(), "no file watch, new tickets are found by polling: {error}");
                }
                Err(_) => {}
            }
        }
        self.tell(Hint::Board);
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
