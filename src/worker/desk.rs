//! The runner's end of the worker's `tk`: one unix socket per run, one request per connection, one ticket.
//!
//! What the worker says becomes activity or a declared result; nothing here writes to the tracker.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::desk_protocol::{DESK_VERSION, DeskRequest, DeskResponse, DeskVerb, MAX_REQUEST_BYTES};
use super::ticket_text::{self, Audience};
use super::{TicketSource, WorkerEvent};
use crate::agent::session::now;
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::ids::{CommentId, RunId};
use crate::domain::job::HumanMessage;
use crate::domain::run::{Activity, Declared};
use crate::domain::ticket::{NewTicket, Ticket, normalise_labels};

/// A request may say this much.
const REQUEST_LIMIT: usize = 1 << 20;
/// What is kept of a command's output in evidence.
const OUTPUT_LIMIT: usize = 8 << 10;
/// At the same time, for one run.
const CONNECTIONS: usize = 64;
/// Comments, evidence, plans and follow-ups of one run together.
const MESSAGES: usize = 1000;
/// For a request to arrive, and for an answer to be taken.
const SLOW: Duration = Duration::from_secs(5);
const TRACKER_LIMIT: Duration = Duration::from_secs(10);
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
    pub audience: Audience,
    pub tickets: Arc<dyn TicketSource>,
    pub events: mpsc::UnboundedSender<WorkerEvent>,
}

/// An open desk. Dropping it closes the socket.
pub struct Desk {
    counter: Arc<Counter>,
    socket: PathBuf,
    accepting: AbortHandle,
}

struct Counter {
    token: String,
    order: DeskOrder,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    declared: Option<Declared>,
    evidence: Vec<Evidence>,
    seen: BTreeSet<CommentId>,
    /// What people said into the run and the worker has not looked up yet.
    words: Vec<HumanMessage>,
    messages: usize,
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
        let seen = order.ticket.known_comments().iter().map(|comment| comment.id.clone()).collect();
        let book = Mutex::new(Book { seen, ..Book::default() });
        let counter = Arc::new(Counter { token, order, book });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&counter))).abort_handle();
        Ok(Self { counter, socket, accepting })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn token(&self) -> &str {
        &self.counter.token
    }

    pub fn declared(&self) -> Option<Declared> {
        self.counter.book().declared.clone()
    }

    pub fn evidence(&self) -> Vec<Evidence> {
        self.counter.book().evidence.clone()
    }

    /// Something a person said into the run, for `tk show --new`.
    pub fn hear(&self, word: HumanMessage) {
        self.counter.book().words.push(word);
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

fn random_token() -> io::Result<String> {
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
async fn attend(mut stream: UnixStream, counter: &Counter) {
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

impl Counter {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, line: &[u8]) -> DeskResponse {
        let head: Head = match serde_json::from_slice(line) {
            Ok(head) => head,
            Err(error) => return DeskResponse::refused("bad_request", format!("not a request: {error}")),
        };
        if !same(head.token.as_bytes(), self.token.as_bytes()) {
            return DeskResponse::refused("bad_token", "this token is not the run's own");
        }
        if head.v != DESK_VERSION {
            let message = format!("this desk speaks version {DESK_VERSION}, not {}", head.v);
            return DeskResponse::refused("version", message);
        }
        match serde_json::from_slice::<DeskRequest>(line) {
            Ok(request) => self.serve(request.verb).await,
            Err(error) => DeskResponse::refused("bad_request", format!("not a request: {error}")),
        }
    }

    async fn serve(&self, verb: DeskVerb) -> DeskResponse {
        let ticket = &self.order.ticket;
        if let Some(named) = verb.ticket()
            && named != ticket.id.as_str()
            && named != ticket.key.as_str()
        {
            let message = format!("this run may only touch its own ticket, {}", ticket.key);
            return DeskResponse::refused("other_ticket", message);
        }
        if !matches!(verb, DeskVerb::Show { .. } | DeskVerb::Done { .. } | DeskVerb::Blocked { .. }) {
            let mut book = self.book();
            if book.messages >= MESSAGES {
                return DeskResponse::refused("over", format!("this run has said {MESSAGES} things already"));
            }
            book.messages += 1;
        }
        match verb {
            DeskVerb::Show { new, .. } => self.show(new).await,
            DeskVerb::Comment { text, .. } => self.comment(text),
            DeskVerb::Evidence { evidence, .. } => self.prove(evidence),
            DeskVerb::Done { summary, .. } => {
                self.book().declared = Some(Declared::Done { summary });
                DeskResponse::done(format!("{} is declared done; end your turn now", ticket.key))
            }
            DeskVerb::Blocked { reason, .. } => self.block(&reason),
            DeskVerb::Plan { text, .. } if text.trim().is_empty() => {
                DeskResponse::refused("bad_request", "the plan is empty")
            }
            DeskVerb::Plan { text, .. } => {
                self.tell(Activity::Planned { text });
                DeskResponse::done("the plan is noted")
            }
            DeskVerb::Create { title, description, labels, priority } => self.create(NewTicket {
                title: title.trim().to_owned(),
                description,
                labels: normalise_labels(labels),
                priority,
                parent: Some(ticket.id.clone()),
                blocked_by: Vec::new(),
            }),
        }
    }

    fn comment(&self, text: String) -> DeskResponse {
        let text = text.trim();
        if text.is_empty() {
            return DeskResponse::refused("bad_request", "the comment is empty");
        }
        if let Some(reason) = text.strip_prefix("BLOCKED:") {
            return self.block(reason);
        }
        self.tell(Activity::Commented { text: text.to_owned() });
        DeskResponse::done("the comment is noted")
    }

    fn block(&self, reason: &str) -> DeskResponse {
        let reason = reason.trim().to_owned();
        if reason.is_empty() {
            return DeskResponse::refused("bad_request", "say what is needed to go on");
        }
        self.book().declared = Some(Declared::Blocked { reason });
        DeskResponse::done(format!("{} is declared blocked; end your turn now", self.order.ticket.key))
    }

    fn prove(&self, mut kind: EvidenceKind) -> DeskResponse {
        if let EvidenceKind::Command { output, .. } = &mut kind
            && output.len() > OUTPUT_LIMIT
        {
            let cut = output.len() - OUTPUT_LIMIT;
            let start = (cut..output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
            *output = format!("[cut]{}", output.get(start..).unwrap_or_default());
        }
        let evidence = Evidence { kind, timestamp: now() };
        self.book().evidence.push(evidence.clone());
        let name = evidence.kind.name();
        self.tell(Activity::Proved { evidence });
        DeskResponse::done(format!("the evidence ({name}) is noted"))
    }

    fn create(&self, ticket: NewTicket) -> DeskResponse {
        if !self.order.allow_followups {
            return DeskResponse::refused("not_allowed", "gates.allow_followups is off in this workflow");
        }
        if ticket.title.is_empty() {
            return DeskResponse::refused("bad_request", "the ticket has no title");
        }
        let key = format!("{}-followup-{}", self.order.run, self.book().messages);
        let title = ticket.title.clone();
        self.tell(Activity::FollowUp { ticket, key });
        DeskResponse::done(format!("the follow-up `{title}` will be created"))
    }

    async fn show(&self, only_new: bool) -> DeskResponse {
        let read = timeout(TRACKER_LIMIT, self.order.tickets.read(&self.order.ticket.id)).await;
        let (ticket, stale) = match read {
            Ok(Ok(Some(ticket))) => (ticket, None),
            Ok(Ok(None)) => (self.order.ticket.clone(), Some("the ticket is gone from the tracker".to_owned())),
            Ok(Err(error)) => (self.order.ticket.clone(), Some(format!("as it was at the start: {error}"))),
            Err(_) => (self.order.ticket.clone(), Some("as it was at the start: the tracker is slow".to_owned())),
        };
        let mut book = self.book();
        let seen = std::mem::take(&mut book.seen);
        book.seen =
            ticket.known_comments().iter().map(|comment| comment.id.clone()).chain(seen.iter().cloned()).collect();
        let words = if only_new { std::mem::take(&mut book.words) } else { book.words.clone() };
        drop(book);
        if !words.is_empty() {
            self.tell(Activity::Delivered {
                remarks: words.iter().filter_map(|message| message.key.clone()).collect(),
            });
        }
        let shown = if only_new {
            let fresh: Vec<_> = ticket
                .known_comments()
                .iter()
                .filter(|comment| !seen.contains(&comment.id) && !comment.author.ourselves)
                .collect();
            ticket_text::news(&fresh, &words, &self.order.audience)
        } else {
            ticket_text::whole(&ticket, &words, &self.order.audience)
        };
        let text = match stale {
            Some(note) => format!("{}\n({note})\n", shown.text),
            None => shown.text,
        };
        DeskResponse::with_data(text, shown.data)
    }

    fn tell(&self, activity: Activity) {
        // Nobody listens any more when the run is over; the report carries what counts.
        self.order.events.send(WorkerEvent::Activity(activity)).ok();
    }
}

/// Only what must be right before anything else is looked at.
#[derive(serde::Deserialize)]
struct Head {
    #[serde(default)]
    v: u32,
    #[serde(default)]
    token: String,
}

/// Takes the same time wherever the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (x, y)| different | (x ^ y)) == 0
}
