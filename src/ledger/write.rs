//! What a step changed, as rows.

use rusqlite::{Connection, params};

use super::LedgerError;
use super::database::Database;
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::run::{FinishedRun, LiveRun};
use crate::engine::state::{Changes, Note, Pending, State};

/// One row to be written, its record already encoded.
pub enum Write<'a> {
    Job { job: &'a Job, archived: bool, json: String },
    LiveRun(&'a LiveRun, String),
    NoLiveRun(&'a RunId),
    FinishedRun(&'a FinishedRun, String),
    Effect(EffectId, &'a Pending, String),
    NoEffect(EffectId),
    Note(&'a Note),
    Meta(String),
}

impl Database {
    /// The records to be written, encoded before the transaction begins. Only what changed is looked at.
    pub fn writes<'a>(&self, state: &'a State, changes: &'a Changes) -> Result<Vec<Write<'a>>, LedgerError> {
        let mut writes = Vec::new();
        // What is in the state is not archived, whatever happened on the way.
        let archived = changes.archived.iter().filter(|(id, _)| !state.jobs.contains(id));
        for job in archived.map(|(_, job)| job) {
            writes.push(Write::Job { job, archived: true, json: self.encode("job", job)? });
        }
        let taken_back = changes.archived.keys().filter(|id| !changes.jobs.contains(*id));
        for job in changes.jobs.iter().chain(taken_back).filter_map(|id| state.jobs.get(id)) {
            writes.push(Write::Job { job, archived: false, json: self.encode("job", job)? });
        }
        for id in &changes.runs {
            match state.runs.get(id) {
                Some(run) => writes.push(Write::LiveRun(run, self.encode("run", run)?)),
                None => writes.push(Write::NoLiveRun(id)),
            }
        }
        for finished in &changes.finished {
            writes.push(Write::FinishedRun(finished, self.encode("run", finished)?));
        }
        for id in &changes.outbox {
            match state.outbox.get(id) {
                Some(pending) => writes.push(Write::Effect(*id, pending, self.encode("effect", pending)?)),
                None => writes.push(Write::NoEffect(*id)),
            }
        }
        writes.extend(changes.notes.iter().map(Write::Note));
        if changes.meta || changes.soft {
            writes.push(Write::Meta(self.encode("meta", &state.meta)?));
        }
        Ok(writes)
    }
}

impl Write<'_> {
    pub fn apply(&self, db: &Connection) -> Result<(), rusqlite::Error> {
        let execute = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> Result<(), rusqlite::Error> {
            db.prepare_cached(sql)?.execute(parameters).map(|_| ())
        };
        match self {
            Self::Job { job, archived, json } => execute(
                "INSERT INTO jobs (ticket, key, phase, updated_at, archived, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (ticket) DO UPDATE SET
                   key = excluded.key, phase = excluded.phase, updated_at = excluded.updated_at,
                   archived = excluded.archived, json = excluded.json",
                params![
                    job.ticket.id.as_str(),
                    job.ticket.key.as_str(),
                    job.stage.phase().name(),
                    job.updated_at.0,
                    archived,
                    json
                ],
            ),
            Self::LiveRun(run, json) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, json) VALUES (?1, ?2, ?3, NULL, NULL, ?4)",
                params![run.id.as_str(), run.ticket.as_str(), run.started_at.0, json],
            ),
            // A run that never was leaves no trace; a finished one is written over right after.
            Self::NoLiveRun(id) => execute("DELETE FROM runs WHERE id = ?1 AND ended_at IS NULL", params![id.as_str()]),
            Self::FinishedRun(finished, json) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, spared, json)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    finished.run.id.as_str(),
                    finished.run.ticket.as_str(),
                    finished.run.started_at.0,
                    finished.ended_at.0,
                    finished.report.outcome.code(),
                    is_referred_to(finished),
                    json
                ],
            ),
            Self::Effect(id, pending, json) => execute(
                "INSERT OR REPLACE INTO outbox (id, ticket, kind, json) VALUES (?1, ?2, ?3, ?4)",
                params![
                    id.0 as i64,
                    pending.effect.ticket.as_ref().map(TicketId::as_str),
                    pending.effect.action.kind().name(),
                    json
                ],
            ),
            Self::NoEffect(id) => execute("DELETE FROM outbox WHERE id = ?1", params![id.0 as i64]),
            Self::Note(note) => execute(
                "INSERT INTO notes (at, ticket, run, code, text) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    note.at.0,
                    note.ticket.as_ref().map(TicketId::as_str),
                    note.run.as_ref().map(RunId::as_str),
                    note.code,
                    note.text
                ],
            ),
            Self::Meta(json) => {
                execute("INSERT OR REPLACE INTO meta (name, json) VALUES ('engine', ?1)", params![json])
            }
        }
    }
}

/// Saved work is found by its run, and a worktree of a run that nobody knows is taken for a stray.
fn is_referred_to(finished: &FinishedRun) -> bool {
    finished.report.salvage.is_some() || finished.report.kept_worktree.is_some()
}
