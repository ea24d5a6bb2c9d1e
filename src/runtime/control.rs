//! The unix socket through which commands reach a running runner. Only its owner may open it, and nothing that a run, a gate or a hook has
//! started is obeyed (see `peer`).
//!
//! Each connection carries one request and one reply, each a JSON object on one line.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use super::handle::{Command, Handle};
use super::peer::{self, RefusalLog, Standing};
use super::pictures::{Published, Sent};
use crate::domain::ids::{CommitId, TicketId};
use crate::domain::snapshot::Snapshot;
use crate::engine::event::OperatorCommand;

const LONGEST_REQUEST: u64 = 1 << 20;
const HELD_UP: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the runner, when it stops, waits for replies that are still being sent.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How many connections from workers are refused with a message at the same time. Beyond that, connections are closed without a reply.
const REFUSALS: usize = 8;
/// How long to wait for a ticket that is not known yet.
const NEW_TICKET: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted.
const BREATH: Duration = Duration::from_millis(100);
/// The size in bytes of the pieces in which a long reply is made and sent.
const PIECE: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum Request {
    Snapshot,
    PauseAll,
    ResumeAll,
    Pause {
        ticket: String,
    },
    Resume {
        ticket: String,
    },
    Stop {
        ticket: String,
    },
    Retry {
        ticket: String,
    },
    Approve {
        ticket: String,
        /// The head that the person saw. An approval is for this commit only.
        #[serde(default)]
        head: Option<String>,
        /// Overrules every remark that is open against the work now.
        #[serde(default)]
        anyway: bool,
        /// Overrules these remarks, each given in the version that the person saw.
        #[serde(default)]
        overrule: Vec<String>,
    },
    Reject {
        ticket: String,
        text: String,
    },
    Forget {
        ticket: String,
    },
    Message {
        ticket: String,
        text: String,
        urgent: bool,
    },
    Poll,
    Shutdown,
}

impl Request {
    pub fn changes_something(&self) -> bool {
        *self != Self::Snapshot
    }

    fn ticket(&self) -> Option<&str> {
        match self {
            Self::Pause { ticket }
            | Self::Resume { ticket }
            | Self::Stop { ticket }
            | Self::Retry { ticket }
            | Self::Approve { ticket, .. }
            | Self::Reject { ticket, .. }
            | Self::Forget { ticket }
            | Self::Message { ticket, .. } => Some(ticket),
            Self::Snapshot | Self::PauseAll | Self::ResumeAll | Self::Poll | Self::Shutdown => None,
        }
    }

    fn name(&self) -> String {
        let name = serde_json::to_value(self).ok().and_then(|value| Some(value.get("request")?.as_str()?.to_owned()));
        name.unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub enum Reply {
    Done { text: String },
    Snapshot { snapshot: Box<Snapshot> },
    Refused { error: String },
}

#[derive(Debug, Error)]
pub enum ControlError {
    #[error("the control socket {path} cannot be opened: {source}")]
    Bind { path: PathBuf, source: io::Error },
    #[error("no runner is listening at {path}")]
    NobodyThere { path: PathBuf },
    #[error("a runner is up, and has not answered within {} s", .after.as_secs())]
    NoAnswer { after: Duration },
    #[error("the runner could not be asked: {0}")]
    Io(#[from] io::Error),
    #[error("the runner's answer could not be understood: {0}")]
    Answer(#[from] serde_json::Error),
}

/// The control socket while the runner listens to it.
pub struct Listening {
    path: PathBuf,
    listener: tokio::task::JoinHandle<()>,
    /// Closed when the last conversation is over.
    conversations: mpsc::Receiver<()>,
}

impl Listening {
    /// Accepts no more requests and lets open conversations finish, so that the sender of a shutdown still gets its reply.
    pub async fn end(mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.listener.abort();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.conversations.recv()).await;
    }
}

/// Listens until [`Listening::end`]. Replaces a socket file of an earlier process, which is safe because the instance lock is already held.
pub fn serve(path: &Path, handle: Handle) -> Result<Listening, ControlError> {
    let bind = |source| ControlError::Bind { path: path.to_owned(), source };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(bind(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(bind)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(bind)?;
    let (talking, conversations) = mpsc::channel(1);
    let listener = tokio::spawn(async move {
        let door = Arc::new(Door { handle, refusals: Arc::new(Semaphore::new(REFUSALS)), log: RefusalLog::default() });
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // For example, too many files are open. The runner must keep listening.
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let (door, talking) = (door.clone(), talking.clone());
            tokio::spawn(async move {
                let _ = tokio::time::timeout(PATIENCE, door.receive(stream)).await;
                drop(talking);
            });
        }
    });
    Ok(Listening { path: path.to_owned(), listener, conversations })
}

/// What every conversation needs.
struct Door {
    handle: Handle,
    refusals: Arc<Semaphore>,
    log: RefusalLog,
}

impl Door {
    /// Finds out who the peer is before its request is read, then replies to the request.
    async fn receive(&self, stream: UnixStream) -> Result<(), ControlError> {
        let standing = peer::standing(&stream);
        let _place = match standing {
            Standing::Worker(_) => match self.refusals.clone().try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => return Ok(()),
            },
            Standing::Operator | Standing::Stranger | Standing::Doubtful(_) => None,
        };
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (read, mut write) = stream.into_split();
        let mut line = String::new();
        BufReader::new(read.take(LONGEST_REQUEST)).read_line(&mut line).await?;
        let reply = match serde_json::from_str::<Request>(&line) {
            Ok(request) => match standing.objection(request.changes_something()) {
                Some(why) => {
                    self.log.note(pid, &request.name(), why);
                    Answer::Said(Reply::Refused { error: why.to_owned() })
                }
                None => answer(request, &self.handle).await,
            },
            Err(error) => Answer::Said(Reply::Refused { error: format!("not a request: {error}") }),
        };
        match reply {
            Answer::Said(reply) => {
                let mut text = serde_json::to_string(&reply)?;
                text.push('\n');
                write.write_all(text.as_bytes()).await?;
            }
            Answer::Shown(published, served_at) => {
                let (pieces, mut made) = mpsc::channel(2);
                let making = tokio::task::spawn_blocking(move || show(&published, served_at, pieces));
                while let Some(piece) = made.recv().await {
                    write.write_all(&piece).await?;
                }
                making.await.map_err(io::Error::other)??;
            }
        }
        Ok(())
    }
}

enum Answer {
    Said(Reply),
    /// [`Reply::Snapshot`], which is serialized while it is sent; and the address of the HTTP API.
    Shown(Arc<Published>, Option<String>),
}

/// Makes the reply in pieces, so that a board of thousands of tickets is never in memory as one text.
fn show(published: &Published, served_at: Option<String>, pieces: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    #[derive(Serialize)]
    struct Shown<'a> {
        reply: &'static str,
        snapshot: Sent<'a>,
    }
    let mut out = io::BufWriter::with_capacity(PIECE, Pieces(pieces));
    // Ages are computed for the present moment, even if nothing has happened for long.
    let mut shown = Shown { reply: "snapshot", snapshot: Sent::at(published, super::now()) };
    shown.snapshot.general.served_at = served_at;
    serde_json::to_writer(&mut out, &shown)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// A writer that sends each piece to a channel, and blocks while the channel is full.
struct Pieces(mpsc::Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(bytes.to_vec()).map(|()| bytes.len()).map_err(gone)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn answer(request: Request, handle: &Handle) -> Answer {
    if request == Request::Snapshot {
        look(handle).await;
        return Answer::Shown(handle.snapshots.published(), handle.served_at.get().cloned());
    }
    Answer::Said(carry_out(request, handle, "operator").await)
}

/// Waits until the snapshot includes everything that happened before the request. A driver that does not respond in time is shown as last
/// seen.
async fn look(handle: &Handle) {
    let _ = tokio::time::timeout(HELD_UP, handle.command(Command::Look, "control")).await;
}

/// Carries out the request. `by` is the person or tool that sent it, as the ticket's history shows it.
pub async fn carry_out(request: Request, handle: &Handle, by: &str) -> Reply {
    look(handle).await;
    let snapshot = seen_with(&request, handle).await;
    let done = match to_command(request, &snapshot) {
        Ok(command) => handle.command(command, by).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(text) => Reply::Done { text },
        Err(error) => Reply::Refused { error },
    }
}

/// Returns the newest snapshot. If the requested ticket is not in it, the ticket may be new: the board is polled once more first.
async fn seen_with(request: &Request, handle: &Handle) -> Arc<Snapshot> {
    let snapshot = handle.snapshot();
    let Some(name) = request.ticket().filter(|name| find_ticket(&snapshot, name).is_err()) else { return snapshot };
    let _ = handle.command(Command::Poll, "control").await;
    let mut pictures = handle.snapshots.clone();
    let known = pictures.wait_for(|picture| find_ticket(picture, name).is_ok());
    let _ = tokio::time::timeout(NEW_TICKET, known).await;
    handle.snapshot()
}

fn to_command(request: Request, snapshot: &Snapshot) -> Result<Command, String> {
    let find = |name: &str| find_ticket(snapshot, name);
    Ok(match request {
        Request::Snapshot => Command::Look,
        Request::PauseAll => Command::Operator(OperatorCommand::PauseAll),
        Request::ResumeAll => Command::Operator(OperatorCommand::ResumeAll),
        Request::Pause { ticket } => Command::Operator(OperatorCommand::Pause { ticket: find(&ticket)? }),
        Request::Resume { ticket } => Command::Operator(OperatorCommand::Resume { ticket: find(&ticket)? }),
        Request::Stop { ticket } => Command::Operator(OperatorCommand::Stop { ticket: find(&ticket)? }),
        Request::Retry { ticket } => Command::Operator(OperatorCommand::Retry { ticket: find(&ticket)? }),
        Request::Approve { ticket, head, anyway, overrule } => {
            Command::Approve { ticket: find(&ticket)?, head: head.map(CommitId::new), anyway, overrule }
        }
        Request::Reject { ticket, text } => Command::Operator(OperatorCommand::Reject { ticket: find(&ticket)?, text }),
        Request::Forget { ticket } => Command::Operator(OperatorCommand::Forget { ticket: find(&ticket)? }),
        Request::Message { ticket, text, urgent } => Command::Message { ticket: find(&ticket)?, text, urgent },
        Request::Poll => Command::Poll,
        Request::Shutdown => Command::Shutdown,
    })
}

/// Finds a ticket by its exact key or id, else by a part of its key that only one ticket contains.
pub fn find_ticket(snapshot: &Snapshot, name: &str) -> Result<TicketId, String> {
    let name = name.trim();
    if let Some(job) = snapshot.jobs.iter().find(|job| job.key == name || job.id == name) {
        return Ok(TicketId::new(job.id.clone()));
    }
    if let Some(unread) = snapshot.tracker.left_out.iter().find(|line| line.contains(&format!("/{name}.md"))) {
        return Err(format!("the ticket `{name}` cannot be read: {unread}"));
    }
    let part: Vec<_> = snapshot.jobs.iter().filter(|job| !name.is_empty() && job.key.contains(name)).collect();
    match part.as_slice() {
        [job] => Ok(TicketId::new(job.id.clone())),
        [] => Err(format!("no ticket `{name}` is known here; `dirigent status` lists them")),
        many => {
            let keys: Vec<&str> = many.iter().take(8).map(|job| job.key.as_str()).collect();
            Err(format!("`{name}` could be {}; name one", keys.join(", ")))
        }
    }
}

/// The client side of the socket, for the command line. Synchronous: one request, one reply.
pub struct Client {
    path: PathBuf,
}

impl Client {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn ask(&self, request: &Request) -> Result<Reply, ControlError> {
        use std::io::BufRead;
        let mut stream = match std::os::unix::net::UnixStream::connect(&self.path) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(ControlError::NobodyThere { path: self.path.clone() });
            }
            Err(error) => return Err(error.into()),
        };
        let slow = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ControlError::NoAnswer { after: PATIENCE },
            _ => error.into(),
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut text = serde_json::to_string(request)?;
        text.push('\n');
        stream.write_all(text.as_bytes()).map_err(slow)?;
        let mut line = String::new();
        io::BufReader::new(stream).read_line(&mut line).map_err(slow)?;
        Ok(serde_json::from_str(&line)?)
    }
}
