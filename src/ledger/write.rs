//! Turns the changes of a step into rows.

use rusqlite::params;

use super::LedgerError;
use super::database::Database;
use crate::domain::ids::{EffectId, RunId, TicketId};
use crate::domain::job::Job;
use crate::domain::run::{FinishedRun, LiveRun};
use crate::engine::state::{Changes, Meta, Note, Pending, State};

/// One row to be written or deleted.
pub enum Write<'a> {
    Job { job: &'a Job, archived: bool },
    LiveRun(&'a LiveRun),
    NoLiveRun(&'a RunId),
    FinishedRun(&'a FinishedRun),
    Effect(EffectId, &'a Pending),
    NoEffect(EffectId),
    Note(&'a Note),
    Meta(&'a Meta),
}

/// Returns the rows to write for `changes`. Only what changed is read from the state.
pub fn writes<'a>(state: &'a State, changes: &'a Changes) -> Vec<Write<'a>> {
    let mut writes = Vec::new();
    // A job that is in the state is not archived, even if it was archived earlier in the same step.
    let archived = changes.archived.iter().filter(|(id, _)| !state.jobs.contains(id));
    writes.extend(archived.map(|(_, job)| Write::Job { job, archived: true }));
    let taken_back = changes.archived.keys().filter(|id| !changes.jobs.contains(*id));
    let jobs = changes.jobs.iter().chain(taken_back).filter_map(|id| state.jobs.get(id));
    writes.extend(jobs.map(|job| Write::Job { job, archived: false }));
    writes.extend(changes.runs.iter().map(|id| state.runs.get(id).map_or(Write::NoLiveRun(id), Write::LiveRun)));
    writes.extend(changes.finished.iter().map(Write::FinishedRun));
    let effect = |id: &EffectId| state.outbox.get(id).map_or(Write::NoEffect(*id), |known| Write::Effect(*id, known));
    writes.extend(changes.outbox.iter().map(effect));
    writes.extend(changes.notes.iter().map(Write::Note));
    if changes.meta || changes.soft {
        writes.push(Write::Meta(&state.meta));
    }
    writes
}

impl Write<'_> {
    /// Writes the row. The caller has a transaction open. Each record is encoded only now, because there may be thousands.
    pub fn apply(&self, database: &Database) -> Result<(), LedgerError> {
        let execute = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> Result<(), LedgerError> {
            let written = database.db.prepare_cached(sql).and_then(|mut statement| statement.execute(parameters));
            written.map(|_| ()).map_err(|source| database.sql("written", source))
        };
        match self {
            Self::Job { job, archived } => execute(
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
                    database.encode("job", job)?
                ],
            ),
            Self::LiveRun(run) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, json) VALUES (?1, ?2, ?3, NULL, NULL, ?4)",
                params![run.id.as_str(), run.ticket.as_str(), run.started_at.0, database.encode("run", run)?],
            ),
            // A run that never started leaves no trace; a run that finished is inserted again right after this.
            Self::NoLiveRun(id) => execute("DELETE FROM runs WHERE id = ?1 AND ended_at IS NULL", params![id.as_str()]),
            Self::FinishedRun(finished) => execute(
                "INSERT OR REPLACE INTO runs (id, ticket, started_at, ended_at, outcome, spared, json)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    finished.run.id.as_str(),
                    finished.run.ticket.as_str(),
                    finished.run.started_at.0,
                    finished.ended_at.0,
                    finished.report.outcome.code(),
                    is_referred_to(finished),
                    database.encode("run", finished)?
                ],
            ),
            Self::Effect(id, pending) => execute(
                "INSERT OR REPLACE INTO outbox (id, ticket, kind, json) VALUES (?1, ?2, ?3, ?4)",
                params![
                    id.0 as i64,
                    pending.effect.ticket.as_ref().map(TicketId::as_str),
                    pending.effect.action.kind().name(),
                    database.encode("effect", pending)?
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
            Self::Meta(meta) => {
                let json = database.encode("meta", meta)?;
                execute("INSERT OR REPLACE INTO meta (name, json) VALUES ('engine', ?1)", params![json])
            }
        }
    }
}

/// Whether something outside the ledger refers to the run. Salvaged work is found by its run, and a kept worktree of an unknown run
/// would be treated as a stray one.
fn is_referred_to(finished: &FinishedRun) -> bool {
    finished.report.salvage.is_some() || finished.report.kept_worktree.is_some()
}
