//! Implements `Tracker` for the board in memory.

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::MemoryTracker;
use super::past::Known;
use crate::domain::comment::{Comment, TrustLevel};
use crate::domain::hint::Hint;
use crate::domain::ids::{CommentId, TicketId};
use crate::domain::permit::Permit;
use crate::domain::ticket::{NewTicket, Ticket, same_state, state_in};
use crate::domain::time::Timestamp;
use crate::tracker::below::{is_end, renewed};
use crate::tracker::{
    Account, Acknowledgement, BoardAnswer, BoardReading, Capabilities, CommentFound, Edited, Found, Mark, Move,
    Tracker, TrackerError, Written,
};

const MARKER: &str = "<!-- dirigent:";

#[async_trait]
impl Tracker for MemoryTracker {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { labels: true, reactions: true, links: true }
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        self.read(|replica| replica.board.account()).await
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        self.read(|replica| replica.board.permissions.get(login).copied().unwrap_or(TrustLevel::Stranger)).await
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|replica| replica.listing(states)).await
    }

    async fn poll(&self, states: &[String], since: Option<&Mark>) -> Result<BoardReading, TrackerError> {
        self.read(|replica| {
            let asked_at = replica.board.tells_time.then_some(replica.board.clock);
            let now = replica.mark();
            let answer = match since {
                Some(since) if *since == now => BoardAnswer::Unchanged,
                Some(since) if replica.board.reports_changes => match replica.changed_since(since) {
                    (_, mark) if mark == *since => BoardAnswer::Unchanged,
                    (tickets, mark) => BoardAnswer::Changed { tickets, mark },
                },
                _ => BoardAnswer::Listed { tickets: replica.listing(states), mark: Some(now) },
            };
            BoardReading { asked_at, answer }
        })
        .await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|replica| {
            let found = |id: &TicketId| match (replica.board.unreadable.get(id), replica.known(id)) {
                (Some(why), _) => Found::Unreadable(why.clone()),
                (None, Known::Ticket(ticket)) if replica.is_listed(id) => Found::Ticket(replica.shown(ticket)),
                (None, Known::Deleted) => Found::Gone("somebody deleted it".to_owned()),
                (None, _) => Found::NotVisible,
            };
            ids.iter().map(|id| (id.clone(), found(id))).collect()
        })
        .await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        self.read(|replica| {
            let Known::Ticket(ticket) = replica.known(id) else { return Err(TrackerError::NotFound(id.clone())) };
            let changed = |comment: &&Comment| comment.updated_at.max(comment.created_at) >= since;
            Ok(ticket.known_comments().iter().filter(|comment| since.is_none() || changed(comment)).cloned().collect())
        })
        .await?
    }

    async fn find_comment(&self, id: &TicketId, wanted: &CommentId) -> Result<CommentFound, TrackerError> {
        self.read(|replica| {
            let Known::Ticket(ticket) = replica.known(id) else { return Err(TrackerError::NotFound(id.clone())) };
            Ok(match ticket.known_comments().iter().any(|comment| comment.id == *wanted) {
                true => CommentFound::There,
                false if replica.was_unsaid(wanted) => CommentFound::Gone,
                false => CommentFound::NotVisible,
            })
        })
        .await?
    }

    async fn comment(
        &self,
        _: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        _decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.write(|board| {
            let marker = format!("{MARKER}{key} -->");
            let known = board.find(id)?.known_comments().iter().find(|comment| comment.body.contains(&marker));
            if let Some(known) = known {
                return Ok(Written { id: known.id.clone(), existed: true });
            }
            let author = board.ourselves();
            Ok(Written { id: board.post(id, author, &format!("{body}\n{marker}")), existed: false })
        })
        .await
    }

    async fn edit_comment(
        &self,
        _: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.write(|board| {
            let Some(known) = board.find(id)?.known_comments().iter().find(|known| known.id == *comment) else {
                return Ok(Edited::Gone);
            };
            // With a shared account a server would allow the runner to change a person's comment, so the key in it is checked too.
            let marker = known.body.lines().rfind(|line| line.starts_with(MARKER) && !is_end(line));
            let Some(marker) = marker.filter(|_| known.author.name == board.ourselves().name) else {
                return Err(TrackerError::Refused(format!("comment {comment} is not ours to edit")));
            };
            let text = format!("{}\n{marker}", renewed(&known.body, body));
            board.reword(id, comment, text);
            Ok(Edited::Done)
        })
        .await
    }

    async fn move_ticket(
        &self,
        _: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.write(|board| {
            let actual = board.find(id)?.state.clone();
            if same_state(&actual, state) {
                return Ok(Move::Already);
            }
            if !expected_from.is_empty() && !state_in(&actual, expected_from) {
                return Ok(Move::Elsewhere(actual));
            }
            let by = board.ourselves();
            let moved = board.change(id, &by, |ticket, at| {
                state.trim().clone_into(&mut ticket.state);
                at
            });
            Ok(Move::Moved(moved))
        })
        .await
    }

    async fn label(&self, _: &Permit, id: &TicketId, add: &[String], remove: &[String]) -> Result<(), TrackerError> {
        self.write(|board| {
            board.find(id)?;
            let by = board.ourselves();
            board.change(id, &by, |ticket, _| {
                ticket.labels.retain(|label| !state_in(label, remove));
                ticket.labels.extend(add.iter().cloned());
            });
            Ok(())
        })
        .await
    }

    async fn react(
        &self,
        _: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Acknowledgement,
    ) -> Result<(), TrackerError> {
        self.write(|board| {
            if !board.find(id)?.known_comments().iter().any(|known| known.id == *comment) {
                return Err(TrackerError::Refused(format!("comment {comment} is not there to react to")));
            }
            let known = (comment.clone(), reaction);
            if !board.reactions.contains(&known) {
                board.reactions.push(known);
            }
            Ok(())
        })
        .await
    }

    async fn attach_link(&self, _: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        self.write(|board| {
            board.find(id)?;
            board.links.insert((id.clone(), url.to_owned()), title.to_owned());
            Ok(())
        })
        .await
    }

    async fn create_ticket(&self, _: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.write(|board| {
            if let Some(made) = board.keys.get(key) {
                return Ok(made.clone());
            }
            let id = board.create(new);
            board.keys.insert(key.to_owned(), id.clone());
            Ok(id)
        })
        .await
    }

    fn changes(&self) -> Option<broadcast::Receiver<Hint>> {
        Some(self.changes.subscribe())
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.read(|replica| format!("a board in memory, written to as {}", replica.board.account().login)).await
    }
}
