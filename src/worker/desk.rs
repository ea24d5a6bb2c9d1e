//! The runner's end of the worker's `tk`: one unix socket per run, one request per connection. What is said there is
//! `desk_counter`'s affair.

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

/// A request may say this much.
const REQUEST_LIMIT: usize = 1 << 20;
/// At the same time, for one run.
const CONNECTIONS: usize = 64;
/// For a request to arrive, and for an answer to be taken.
const SLOW: Duration = Duration::from_secs(5);
/// A unix socket's path has to fit into 108 bytes with its end.
const PATH_LIMIT: usize = 107;

#[derive(Debug, Error)]
pub enum DeskError {
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a directory of ours with mode 0700; remove it, or set XDG_RUNTIME_DIR", .path.display())]
    NotOurs { path: PathBuf },
}

/// What a desk is for.
pub struct DeskOrder {
    pub run: RunId,
    /// As the prompt shows it: its comments count as seen.
    pub ticket: Ticket,
    pub allow_followups: bool,
    /// A reviewer looks at the ticket and says how it ended, no more.
    pub reads_only: bool,
    pub audience: Audience,
    pub tickets: Arc<dyn TicketSource>,
    /// The service that the ticket lives in, and what the workflow lets a worker do with its API.
    pub service: Option<Arc<dyn ServiceAccess>>,
    pub agent_tool: AgentTool,
    /// Where a commit would show; `None` where the work is in a directory of its own.
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

/// Where the desk of a run listens.
pub fn socket_of(directory: &Path, run: &RunId) -> PathBuf {
    directory.join(format!("{run}.sock"))
}

impl Desk {
    /// `directory` is one that [`socket_directory`] made.
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

    /// Something a person said into the run, for `tk show --new`.
    pub fn hear(&self, word: HumanMessage) {
        self.counter.hear(word);
    }

    /// These remarks have reached the agent: it can answer them from now on.
    pub fn delivered(&self, remarks: &[RemarkKey]) {
        self.counter.delivered(remarks);
    }

    /// The same verbs for an agent that calls them as a tool.
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

/// A directory for sockets that only we can enter: in `runtime_dir` (`XDG_RUNTIME_DIR`) where that is short enough.
pub fn socket_directory(runtime_dir: Option<&Path>) -> Result<PathBuf, DeskError> {
    let uid = nix::unistd::getuid().as_raw();
    // A run's id and the suffix.
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

/// 192 bits that nobody can guess.
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

/// One request, one answer. A client that is too slow is let go.
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
        // A request that is too long is still read to its end, within reason: else nobody hears the refusal.
        if end.is_some() || count == 0 || total > MAX_REQUEST_BYTES {
            break;
        }
    }
    if total > REQUEST_LIMIT as u64 {
        return Err(DeskResponse::refused("over", "that is more than 1 MB; put it into a file in $DIRIGENT_ARTIFACTS"));
    }
    Ok(line)
}
