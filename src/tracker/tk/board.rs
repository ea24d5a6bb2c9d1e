//! The ticket store as a board: which tickets are in which states, the fate of an id, and one change at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::discovery::DIRECTORY;
use super::draft::Draft;
use super::error::StoreError;
use super::index::Index;
use super::names;
use super::notes;
use super::record::DIRIGENT_KEY;
use super::store::{Store, is_readme, timestamp_now};
use super::ticket::{priority_for_file, ticket};
use crate::domain::ids::TicketId;
use crate::domain::ticket::{NewTicket, Ticket, state_in};
use crate::tracker::{Found, TrackerError};

/// The states that this tracker can move a ticket to.
pub(super) const STATES: [&str; 4] = ["open", "in_progress", "closed", "failed"];

/// git and some editors replace a file by removing it first. So a ticket counts as gone only if it is still missing after this
/// time.
const SECOND_LOOK: Duration = Duration::from_millis(500);

pub(super) struct Board {
    pub store: Store,
    index: Mutex<Index>,
    pub left_out: Mutex<Vec<String>>,
}

/// The tickets that were found, and the ids of those that were not.
type Looked = (Vec<(TicketId, Found)>, Vec<TicketId>);

impl Board {
    pub fn new(store: Store) -> Self {
        Self { index: Mutex::new(Index::new(store.clone())), store, left_out: Mutex::default() }
    }

    /// Returns the tickets in these states, and whether the list is complete. A ticket that cannot be read now may be readable in a
    /// moment.
    pub fn in_states(&self, index: &mut Index, states: &[String]) -> (Vec<Ticket>, bool) {
        let wanted: Vec<String> = index
            .states()
            .filter(|(_, state)| state.is_ok_and(|state| state_in(state, states)))
            .map(|(id, _)| id.to_owned())
            .collect();
        self.note_what_is_left_out(index, states);
        // Done before the tickets are built, so that the long-lived bodies are not scattered in memory between short-lived tickets.
        index.keep_bodies(&wanted);
        let mut tickets = Vec::with_capacity(wanted.len());
        let mut complete = true;
        for id in wanted {
            match self.ticket(index, &id) {
                // The path of the file is only part of a ticket that is read alone, to keep lists of thousands small.
                Ok(Some(ticket)) if state_in(&ticket.state, states) => {
                    tickets.push(Ticket { native_ref: None, ..ticket });
                }
                Ok(_) => {}
                Err(error) => {
                    complete = false;
                    tracing::warn!(ticket = id, "ticket left out: {error}");
                }
            }
        }
        (tickets, complete)
    }

    /// Records which files are left out, and why. A status is accepted if it is one of `STATES` or of `states`.
    pub fn note_what_is_left_out(&self, index: &Index, states: &[String]) {
        let unread = index.states().filter(|(id, _)| !is_readme(id)).filter_map(|(id, state)| {
            let why = match state {
                Ok(status) if STATES.contains(&status) || state_in(status, states) => return None,
                Ok(status) => format!("its status `{status}` is none of {}", STATES.join(", ")),
                Err(why) => why.to_owned(),
            };
            let path = self.store.path(id).display().to_string();
            Some(if why.starts_with(&path) { why } else { format!("{path}: {why}") })
        });
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = unread.collect();
    }

    pub fn by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
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

    /// Returns the tickets that exist, and the ids of those that do not.
    fn look_for(&self, ids: &[TicketId]) -> Result<Looked, TrackerError> {
        let mut index = self.refreshed()?;
        let (mut found, mut missing) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            if names::check_id(id.as_str()).is_err() {
                found.push((id.clone(), Found::Gone("it is not the id of a ticket".to_owned())));
                continue;
            }
            index.look_at(id.as_str(), false).map_err(|error| tracker_error(id, error))?;
            let Some(state) = index.state(id.as_str()) else {
                missing.push(id.clone());
                continue;
            };
            if let Err(why) = state {
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
        let look_up = |dep: &str| index.record(dep).ok().flatten();
        Ok(Some(ticket(&record, &body, &self.store.path(id), look_up)))
    }

    pub fn create(&self, draft: &Draft, key: &str) -> Result<TicketId, TrackerError> {
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

    pub fn update<T>(
        &self,
        id: &TicketId,
        edit: impl FnMut(&mut super::Document) -> Result<T, StoreError>,
    ) -> Result<T, TrackerError> {
        failpoint!("ticket.before_edit");
        let edited = self.store.update(id.as_str(), edit).map_err(|error| tracker_error(id, error));
        failpoint!("ticket.edited");
        edited
    }

    pub fn refreshed(&self) -> Result<MutexGuard<'_, Index>, TrackerError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.refresh().map_err(|error| TrackerError::Request(error.to_string()))?;
        Ok(index)
    }
}

pub(super) fn tracker_error(id: &TicketId, error: StoreError) -> TrackerError {
    match error {
        StoreError::NotFound(_) | StoreError::InvalidId { .. } => TrackerError::NotFound(id.clone()),
        StoreError::Broken { .. } => TrackerError::Response(error.to_string()),
        StoreError::Invalid(sentence) => TrackerError::Refused(sentence),
        other => TrackerError::Request(other.to_string()),
    }
}

/// Turns a label into a valid tag of the format.
pub(super) fn tag_of(label: &str) -> String {
    label.chars().filter(|c| !c.is_control()).map(|c| if ",[]\"'#".contains(c) { '-' } else { c }).collect()
}

/// Makes a draft from the text of a worker or a gate, escaped so that it cannot add a field, a list element or a note.
pub(super) fn draft(new: &NewTicket, key: &str) -> Draft {
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
