//! The runner's end of the worker's `tk`: one unix socket per run, one request per connection. The requests are handled in `desk_counter`.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::desk_counter::Counter;
use super::desk_protocol::{DeskResponse, DeskVerb, MAX_REQUEST_BYTES};
use super::ticket_text::Audience;
use super::{ServiceAccess, TicketSource, WorkerEvent};
use crate::config::tracker::AgentTool;
use crate::domain::evidence::Evidence;
use crate::domain::ids::RunId;
use crate::domain::job::HumanMessage;
use crate::domain::remark::RemarkKey;
use crate::domain::run::Declared;
use crate::domain::ticket::Ticket;
use crate::workspace::Workspaces;

/// The longest request in bytes.
const REQUEST_LIMIT: usize = 1 << 20;
/// The most simultaneous connections for one run.
const CONNECTIONS: usize = 64;
/// How long a request may take to arrive, and a response to be taken.
const SLOW: Duration = Duration::from_secs(5);
/// The longest path of a unix socket: 108 bytes with the terminator.
const PATH_LIMIT: usize = 107;

#[derive(Debug, Error)]
pub enum DeskError {
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a directory of ours with mode 0700; remove it, or set XDG_RUNTIME_DIR", .path.display())]
    NotOurs { path: PathBuf },
}

/// Everything that a desk needs to know about its run.
pub struct DeskOrder {
    pub run: RunId,
    /// The ticket as the prompt shows it: its comments count as seen.
    pub ticket: Ticket,
    pub allow_followups: bool,
    /// For a reviewer: it may read the ticket and declare how the review ended, no more.
    pub reads_only: bool,
    pub audience: Audience,
    pub tickets: Arc<dyn TicketSource>,
    /// The service that the ticket lives in, and below it what the workflow lets a worker do with its API.
    pub service: Option<Arc<dyn ServiceAccess>>,
    pub agent_tool: AgentTool,
    /// The branch that the run commits to. `None` if the work is in a directory of its own.
    pub branch: Option<WorkBranch>,
    pub events: mpsc::UnboundedSender<WorkerEvent>,
}

/// The branch that the run works on.
#[derive(Clone)]
pub struct WorkBranch {
    pub workspaces: Workspaces,
    pub name: String,
}

/// An open desk. Dropping it closes the socket.
pub struct Desk {
    counter: Arc<Counter>,
    socket: PathBuf,
    accepting: AbortHandle,
}

/// Returns the path of the socket of a run's desk.
pub fn socket_of(directory: &Path, run: &RunId) -> PathBuf {
    directory.join(format!("{run}.sock"))
}

impl Desk {
    /// Opens a desk. `directory` must come from [`socket_directory`].
    pub fn open(directory: &Path, order: DeskOrder) -> Result<Self, DeskError> {
        let socket = socket_of(directory, &order.run);
        let failed = |doing, source| DeskError::Io { doing, path: socket.clone(), source };
        fs::remove_file(&socket).ok();
        let listener = UnixListener::bind(&socket).map_err(|source| failed("listen at", source))?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).map_err(|source| failed("protect", source))?;
        let token = random_token().map_err(|source| failed("make a token for", source))?;
        let counter = Arc::new(Counter::new(token, order));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&counter))).abort_handle();
        Ok(Self { counter, socket, accepting })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn token(&self) -> &str {
        self.counter.token()
    }

    pub fn declared(&self) -> Option<Declared> {
        self.counter.declared()
    }

    pub fn evidence(&self) -> Vec<Evidence> {
        self.counter.evidence()
    }

    /// Keeps a person's message to the run for `tk show --new`.
    pub fn hear(&self, word: HumanMessage) {
        self.counter.hear(word);
    }

    /// Records that these remarks have reached the agent, which can answer them from now on.
    pub fn delivered(&self, remarks: &[RemarkKey]) {
        self.counter.delivered(remarks);
    }

    /// Takes that back: these remarks did not reach the agent after all.
    pub fn not_delivered(&self, remarks: &[RemarkKey]) {
        self.counter.not_delivered(remarks);
    }

    /// Carries out a verb of an agent that calls it as a tool instead of over the socket.
    pub fn serve(&self, verb: DeskVerb) -> impl Future<Output = DeskResponse> + Send + use<> {
        let counter = Arc::clone(&self.counter);
        async move { counter.serve(verb).await }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.accepting.abort();
        fs::remove_file(&self.socket).ok();
    }
}

/// Returns a directory for sockets that only the runner's user can enter: in `runtime_dir` (`XDG_RUNTIME_DIR`) if that path is short
/// enough, else in `/tmp`. Fails if the directory exists with another owner or open to others.
pub fn socket_directory(runtime_dir: Option<&Path>) -> Result<PathBuf, DeskError> {
    let uid = nix::unistd::getuid().as_raw();
    // Room for a run's id and the suffix.
    let room = |path: &Path| path.as_os_str().len() + 40 <= PATH_LIMIT;
    let path = runtime_dir
        .filter(|dir| dir.is_absolute() && dir.is_dir())
        .map(|dir| dir.join("dirigent"))
        .filter(|dir| room(dir))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/dirigent-{uid}")));
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(DeskError::Io { doing: "make", path, source }),
    }
    let found =
        fs::symlink_metadata(&path).map_err(|source| DeskError::Io { doing: "look at", path: path.clone(), source })?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
        return Err(DeskError::NotOurs { path });
    }
    Ok(path)
}

/// Returns 192 random bits in hexadecimal.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn accept(listener: UnixListener, counter: Arc<Counter>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    attend(stream, &counter).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(error = %error, "the desk cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Handles one request of one connection. A client that is too slow is disconnected.
async fn attend(mut stream: UnixStream, counter: &Arc<Counter>) {
    let answer = match timeout(SLOW, read_request(&mut stream)).await {
        Ok(Ok(line)) => counter.answer(&line).await,
        Ok(Err(refusal)) => refusal,
        Err(_) => return,
    };
    let Ok(mut line) = serde_json::to_vec(&answer) else { return };
    line.push(b'\n');
    timeout(SLOW, stream.write_all(&line)).await.ok();
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, DeskResponse> {
    let mut line = Vec::new();
    let mut chunk = [0_u8; 4096];
    let mut total = 0_u64;
    loop {
        let count = stream.read(&mut chunk).await.unwrap_or(0);
        let piece = chunk.get(..count).unwrap_or_default();
        let end = piece.iter().position(|byte| *byte == b'\n');
        let piece = piece.get(..end.unwrap_or(count)).unwrap_or_default();
        total += piece.len() as u64;
        if line.len() + piece.len() <= REQUEST_LIMIT {
            line.extend_from_slice(piece);
        }
        // A request that is too long is still read to its end, up to a limit. Otherwise the client could not read the refusal.
        if end.is_some() || count == 0 || total > MAX_REQUEST_BYTES {
            break;
        }
    }
    if total > REQUEST_LIMIT as u64 {
        return Err(DeskResponse::refused("over", "that is more than 1 MB; put it into a file in $DIRIGENT_ARTIFACTS"));
    }
    Ok(line)
}
