//! The board of a ticket store, as the engine sees it. Blocking file work happens on tokio's blocking threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::discovery::DIRECTORY;
use super::draft::Draft;
use super::error::StoreError;
use super::index::Index;
use super::names;
use super::notes;
use super::record::{DIRIGENT_KEY, Record};
use super::store::{Store, is_readme, timestamp_now};
use super::ticket::{comment, priority_for_file, ticket};
use super::watch::Watch;
use crate::domain::comment::Comment;
use crate::domain::comment::TrustLevel;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::ticket::{NewTicket, Ticket, same_state, state_in};
use crate::domain::time::Timestamp;
use crate::tracker::{
    Account, Acknowledgement, BoardAnswer, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move,
    Tracker, TrackerError, Written,
};

/// The states this tracker can move a ticket to.
const STATES: [&str; 4] = ["open", "in_progress", "closed", "failed"];

/// git and some editors replace a file by removing it first. A ticket is gone if it is missing now and after this.
const SECOND_LOOK: Duration = Duration::from_millis(500);

/// The tracker over one ticket directory.
pub struct TkTracker {
    board: Arc<Board>,
    watch: OnceLock<Option<Watch>>,
}

struct Board {
    store: Store,
    index: Mutex<Index>,
    left_out: Mutex<Vec<String>>,
}

impl TkTracker {
    /// `dir` is the directory of `.md` files; it may come into being later.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let store = Store::at(dir);
        let index = Mutex::new(Index::new(store.clone()));
        Self { board: Arc::new(Board { store, index, left_out: Mutex::default() }), watch: OnceLock::new() }
    }

    async fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Board) -> Result<T, TrackerError> + Send + 'static,
    ) -> Result<T, TrackerError> {
        let board = Arc::clone(&self.board);
        let joined = tokio::task::spawn_blocking(move || job(&board)).await;
        joined
            .unwrap_or_else(|error| Err(TrackerError::Request(format!("reading the tickets was interrupted: {error}"))))
    }
}

#[async_trait]
impl Tracker for TkTracker {
    fn kind(&self) -> &'static str {
        "tk"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { labels: true, reactions: false, links: false }
    }

    /// Whoever writes the files is the account, and so are we.
    async fn whoami(&self) -> Result<Account, TrackerError> {
        Ok(Account { login: "tk".to_owned(), shared_with_person: true })
    }

    async fn permission(&self, _login: &str) -> Result<TrustLevel, TrackerError> {
        Ok(TrustLevel::Admin)
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let states = states.to_vec();
        self.work(move |board| {
            let mut index = board.refreshed()?;
            Ok(board.in_states(&mut index, &states).0)
        })
        .await
    }

    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        let (states, since) = (states.to_vec(), since.cloned());
        self.work(move |board| {
            let mut index = board.refreshed()?;
            let mark = Mark(index.version().to_string());
            if since.as_ref() == Some(&mark) {
                return Ok(BoardReading { asked_at: None, answer: BoardAnswer::Unchanged });
            }
            let (tickets, complete) = board.in_states(&mut index, &states);
            Ok(BoardReading { asked_at: None, answer: BoardAnswer::Listed { tickets, mark: complete.then_some(mark) } })
        })
        .await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids = ids.to_vec();
        self.work(move |board| board.by_ids(&ids)).await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        let id = id.clone();
        self.work(move |board| {
            let doc = board.store.document(id.as_str()).map_err(|error| tracker_error(&id, error))?;
            let is_new = |comment: &Comment| comment.created_at >= since || since.is_none();
            Ok(doc.notes().into_iter().map(comment).filter(is_new).collect())
        })
        .await
    }

    async fn find_comment(&self, id: &TicketId, wanted: &CommentId) -> Result<CommentFound, TrackerError> {
        let there = self.comments(id, None).await?.iter().any(|comment| comment.id == *wanted);
        Ok(if there { CommentFound::There } else { CommentFound::Gone })
    }

    async fn comment(
        &self,
        _permit: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        _decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        let (id, key, body) = (id.clone(), notes::safe_key(key), body.replace('\0', ""));
        self.work(move |board| {
            board.update(&id, |doc| {
                let existed = doc.notes().iter().any(|note| note.key.as_deref() == Some(&key));
                if !existed {
                    doc.add_keyed_note(&timestamp_now(), &body, &key);
                }
                Ok(Written { id: CommentId::new(format!("key:{key}")), existed })
            })
        })
        .await
    }

    async fn edit_comment(
        &self,
        _permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        let (id, comment, body) = (id.clone(), comment.clone(), body.replace('\0', ""));
        self.work(move |board| {
            board.update(&id, |doc| {
                let note = doc.notes().into_iter().find(|note| note.id == comment.as_str());
                match note {
                    Some(note) if note.key.is_some() => {
                        doc.reword_note(&note, &body);
                        Ok(Edited::Done)
                    }
                    Some(_) => Err(StoreError::Invalid(format!("note {comment} is not ours to change"))),
                    None => Ok(Edited::Gone),
                }
            })
        })
        .await
    }

    async fn move_ticket(
        &self,
        _permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        let (id, state, expected) = (id.clone(), state.trim().to_lowercase(), expected_from.to_vec());
        self.work(move |board| {
            board.update(&id, |doc| {
                let record = Record::read(id.as_str(), doc);
                let is_there = same_state(&record.status, &state) || (state == "failed" && record.has_failed());
                if is_there {
                    return Ok(Move::Already);
                }
                // The file is locked: what is read here is what is written over.
                if !expected.is_empty() && !state_in(&record.status, &expected) {
                    return Ok(Move::Elsewhere(record.status.clone()));
                }
                match state.as_str() {
                    "failed" => {
                        doc.set_failed();
                        doc.add_keyed_note(&timestamp_now(), "FAILED: closed without success", "moved:failed");
                        Ok(Move::Moved(None))
                    }
                    "open" | "in_progress" | "closed" => {
                        doc.set_status(&state);
                        Ok(Move::Moved(None))
                    }
                    other => {
                        Err(StoreError::Invalid(format!("tk has no state `{other}`; it has {}", STATES.join(", "))))
                    }
                }
            })
        })
        .await
    }

    async fn label(
        &self,
        _permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError> {
        let (id, add, remove) = (id.clone(), add.to_vec(), remove.to_vec());
        self.work(move |board| {
            board.update(&id, |doc| {
                // Tags are spelt by people; labels compare trimmed and lower case.
                for tag in doc.list("tags") {
                    if state_in(&tag, &remove) {
                        doc.list_remove("tags", &tag);
                    }
                }
                for label in &add {
                    if !state_in(label, &doc.list("tags")) {
                        doc.list_add("tags", &tag_of(label));
                    }
                }
                Ok(())
            })
        })
        .await
    }

    async fn react(
        &self,
        _permit: &Permit,
        _id: &TicketId,
        _comment: &CommentId,
        _reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        Err(TrackerError::Refused("tk has no reactions".to_owned()))
    }

    async fn attach_link(
        &self,
        _permit: &Permit,
        _id: &TicketId,
        _url: &str,
        _title: &str,
    ) -> Result<(), TrackerError> {
        Err(TrackerError::Refused("tk has no attachments".to_owned()))
    }

    async fn create_ticket(&self, _permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        let (draft, key) = (draft(new, key), notes::safe_key(key));
        self.work(move |board| board.create(&draft, &key)).await
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        let watch = self.watch.get_or_init(|| Watch::start(self.board.store.dir().to_path_buf()));
        watch.as_ref().map(Watch::receiver)
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.work(|board| {
            let listing = board.store.list().map_err(|error| TrackerError::Request(error.to_string()))?;
            let index = board.refreshed()?;
            board.note_what_is_left_out(&index, &[]);
            drop(index);
            Ok(format!("{} tickets in {}", listing.records.len(), board.store.dir().display()))
        })
        .await
    }

    fn left_out(&self) -> Vec<String> {
        self.board.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What was found, and the ids of what was not.
type Looked = (Vec<(TicketId, Found)>, Vec<TicketId>);

impl Board {
    /// The tickets, and whether that is all of them: one that could not be read just now may be readable in a moment.
    fn in_states(&self, index: &mut Index, states: &[String]) -> (Vec<Ticket>, bool) {
        let wanted: Vec<String> = index
            .ids()
            .filter(|id| {
                matches!(index.record(id), Ok(Some(record))
                    if record.malformed().is_none() && state_in(&record.status, states))
            })
            .map(str::to_owned)
            .collect();
        self.note_what_is_left_out(index, states);
        let mut tickets = Vec::with_capacity(wanted.len());
        let mut complete = true;
        for id in wanted {
            match self.ticket(index, &id) {
                Ok(Some(ticket)) if state_in(&ticket.state, states) => tickets.push(ticket),
                Ok(_) => {}
                Err(error) => {
                    complete = false;
                    tracing::warn!(ticket = id, "ticket left out: {error}");
                }
            }
        }
        (tickets, complete)
    }

    /// `states` are the ones that somebody is interested in, besides the usual ones.
    fn note_what_is_left_out(&self, index: &Index, states: &[String]) {
        let unread = index.ids().filter(|id| !is_readme(id)).filter_map(|id| {
            let why = match index.record(id) {
                Ok(record) => {
                    let record = record?;
                    let status = record.status.as_str();
                    let known = STATES.contains(&status) || state_in(status, states);
                    let odd = || format!("its status `{status}` is none of {}", STATES.join(", "));
                    record.malformed().map(str::to_owned).or_else(|| (!known).then(odd))?
                }
                Err(why) => why.to_owned(),
            };
            let path = self.store.path(id).display().to_string();
            Some(if why.starts_with(&path) { why } else { format!("{path}: {why}") })
        });
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = unread.collect();
    }

    fn by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        let (mut found, mut missing) = self.look_for(ids)?;
        if !missing.is_empty() {
            std::thread::sleep(SECOND_LOOK);
            let (late, gone) = self.look_for(&missing)?;
            found.extend(late);
            missing = gone;
        }
        let gone = |id: TicketId| (id, Found::Gone("its file is not there any more".to_owned()));
        found.extend(missing.into_iter().map(gone));
        Ok(found)
    }

    /// What is there, and the ids of what is not.
    fn look_for(&self, ids: &[TicketId]) -> Result<Looked, TrackerError> {
        let mut index = self.refreshed()?;
        let (mut found, mut missing) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            if names::check_id(id.as_str()).is_err() {
                found.push((id.clone(), Found::Gone("it is not the id of a ticket".to_owned())));
                continue;
            }
            index.look_at(id.as_str(), false).map_err(|error| tracker_error(id, error))?;
            let malformed = match index.record(id.as_str()) {
                Ok(None) => {
                    missing.push(id.clone());
                    continue;
                }
                Ok(Some(record)) => record.malformed(),
                Err(why) => Some(why),
            };
            if let Some(why) = malformed {
                let path = self.store.path(id.as_str());
                found.push((id.clone(), Found::Unreadable(format!("{}: {why}", path.display()))));
                continue;
            }
            match self.ticket(&mut index, id.as_str()) {
                Ok(Some(ticket)) => found.push((id.clone(), Found::Ticket(ticket))),
                Ok(None) => missing.push(id.clone()),
                Err(TrackerError::Response(why)) => found.push((id.clone(), Found::Unreadable(why))),
                Err(error) => return Err(error),
            }
        }
        Ok((found, missing))
    }

    fn ticket(&self, index: &mut Index, id: &str) -> Result<Option<Ticket>, TrackerError> {
        let full = index.full(id).map_err(|error| tracker_error(&TicketId::new(id), error))?;
        let Some((record, body)) = full else { return Ok(None) };
        let look_up = |dep: &str| index.record(dep).ok().flatten().map(Arc::as_ref);
        Ok(Some(ticket(&record, &body, &self.store.path(id), look_up)))
    }

    fn create(&self, draft: &Draft, key: &str) -> Result<TicketId, TrackerError> {
        let failed = |error: StoreError| tracker_error(&TicketId::new(""), error);
        let locked = self.store.lock().map_err(failed)?;
        let index = self.refreshed()?;
        let same =
            |id: &&str| matches!(index.record(id), Ok(Some(record)) if record.dirigent_key.as_deref() == Some(key));
        if let Some(id) = index.ids().find(same) {
            return Ok(TicketId::new(id));
        }
        let dir = std::path::absolute(self.store.dir()).unwrap_or_else(|_| self.store.dir().to_path_buf());
        let named = if dir.ends_with(DIRECTORY) { dir.parent().unwrap_or(&dir) } else { &dir };
        locked.create(&names::prefix_for(named), draft).map(TicketId::new).map_err(failed)
    }

    fn update<T>(
        &self,
        id: &TicketId,
        edit: impl FnMut(&mut super::Document) -> Result<T, StoreError>,
    ) -> Result<T, TrackerError> {
        failpoint!("ticket.before_edit");
        let edited = self.store.update(id.as_str(), edit).map_err(|error| tracker_error(id, error));
        failpoint!("ticket.edited");
        edited
    }

    fn refreshed(&self) -> Result<std::sync::MutexGuard<'_, Index>, TrackerError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.refresh().map_err(|error| TrackerError::Request(error.to_string()))?;
        Ok(index)
    }
}

fn tracker_error(id: &TicketId, error: StoreError) -> TrackerError {
    match error {
        StoreError::NotFound(_) | StoreError::InvalidId { .. } => TrackerError::NotFound(id.clone()),
        StoreError::Broken { .. } => TrackerError::Response(error.to_string()),
        StoreError::Invalid(sentence) => TrackerError::Refused(sentence),
        other => TrackerError::Request(other.to_string()),
    }
}

/// A label as a tag of the format.
fn tag_of(label: &str) -> String {
    label.chars().filter(|c| !c.is_control()).map(|c| if ",[]\"'#".contains(c) { '-' } else { c }).collect()
}

/// Text from a worker or a gate, made harmless for the format: no field, list or note can be smuggled in.
fn draft(new: &NewTicket, key: &str) -> Draft {
    let title = new.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let description = notes::escaped_section(&notes::escaped(&new.description.replace('\0', ""), "\n"));
    Draft {
        priority: priority_for_file(new.priority),
        deps: new.blocked_by.iter().map(|id| id.to_string()).filter(|id| names::check_id(id).is_ok()).collect(),
        parent: new
            .parent
            .as_ref()
            .map(TicketId::to_string)
            .filter(|id| names::check_id(id).is_ok())
            .unwrap_or_default(),
        tags: new.labels.iter().map(|label| tag_of(label)).collect::<Vec<_>>().join(", "),
        extra: vec![(DIRIGENT_KEY, notes::safe_key(key))],
        description,
        ..Draft::new(if title.trim().is_empty() { "Untitled" } else { title.trim() }, timestamp_now())
    }
}
