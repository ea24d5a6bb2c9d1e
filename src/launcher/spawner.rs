//! The one thread that starts processes. The kernel ends a child tied to its parent when the *thread* that started it
//! ends, so this thread lives as long as the launcher; when it goes, its workers go too.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Request {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

pub struct Spawner {
    requests: mpsc::Sender<Request>,
}

impl Spawner {
    pub fn start() -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel::<Request>();
        thread::Builder::new().name("spawner".into()).stack_size(256 << 10).spawn(move || {
            for mut request in inbox {
                let _runtime = request.runtime.enter();
                let started = request.command.spawn();
                // A caller that went away drops the child, which ends it.
                request.answer.send(started).ok();
            }
        })?;
        Ok(Self { requests })
    }

    /// `None` when the thread is gone.
    pub async fn spawn(&self, command: Command) -> Option<io::Result<Child>> {
        let (answer, started) = oneshot::channel();
        self.requests.send(Request { command, runtime: Handle::current(), answer }).ok()?;
        started.await.ok()
    }
}
