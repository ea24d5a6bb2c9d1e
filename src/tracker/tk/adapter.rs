//! The board of a ticket store, as the engine sees it. Blocking file access happens on tokio's blocking threads.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::board::{Board, STATES, draft, tag_of, tracker_error};
use super::error::StoreError;
use super::notes;
use super::record::Record;
use super::store::{Store, timestamp_now};
use super::ticket::comment;
use super::watch::Watch;
use crate::domain::comment::Comment;
use crate::domain::comment::TrustLevel;
use crate::domain::hint::Hint;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::ticket::{NewTicket, Ticket, same_state, state_in};
use crate::domain::time::Timestamp;
use crate::tracker::below::renewed;
use crate::tracker::{
    Account, Acknowledgement, BoardAnswer, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move,
    Tracker, TrackerError, Written,
};

/// The tracker for one directory of ticket files.
pub struct TkTracker {
    board: Arc<Board>,
    watch: OnceLock<Option<Watch>>,
}

impl TkTracker {
    /// Makes a tracker for `dir`, the directory of `.md` files. The directory may be created later.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { board: Arc::new(Board::new(Store::at(dir))), watch: OnceLock::new() }
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

    /// Every person who writes the files uses the same account as the runner.
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
            let mark = Mark(index.mark());
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

    /// Returns all comments: the format does not date edits, and a person may give a note any date.
    async fn comments(&self, id: &TicketId, _since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        let id = id.clone();
        self.work(move |board| {
            let doc = board.store.document(id.as_str()).map_err(|error| tracker_error(&id, error))?;
            Ok(doc.notes().into_iter().map(comment).collect())
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
                        doc.reword_note(&note, &renewed(&note.text, &body));
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
                // The store is locked: no `tk` writes between this reading and the write.
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
                // People spell tags freely; labels are compared trimmed and in lower case.
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

    fn changes(&self) -> Option<broadcast::Receiver<Hint>> {
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
