//! The one thread that starts processes. The kernel kills a child that is tied to its parent when the *thread* that started it exits. So
//! this thread lives as long as the launcher, and the workers are killed when it exits.

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
                // If the caller is gone, the child is dropped here, which kills it.
                request.answer.send(started).ok();
            }
        })?;
        Ok(Self { requests })
    }

    /// Starts a command on the thread. `None` if the thread is gone.
    pub async fn spawn(&self, command: Command) -> Option<io::Result<Child>> {
        let (answer, started) = oneshot::channel();
        self.requests.send(Request { command, runtime: Handle::current(), answer }).ok()?;
        started.await.ok()
    }
}
