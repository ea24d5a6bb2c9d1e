//! Reads from the ledger what views need besides the published picture: stories, finished runs, tickets that are over. Each query opens the
//! ledger for reading, which waits for no lock.

use std::path::PathBuf;
use std::sync::Arc;

use super::clean::Clean;
use super::error::ApiError;
use crate::config::exec::ExecEvents;
use crate::config::policy::Policy;
use crate::domain::ids::TicketId;
use crate::domain::run::FinishedRun;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::engine;
use crate::engine::state::{Note, State};
use crate::ledger::{LedgerError, LedgerReader, open_for_reading};
use crate::runtime::now;
use crate::workspace::Workspaces;

/// How many notes of one ticket are returned.
const NEWEST_NOTES: usize = 500;

/// What is needed to read records.
#[derive(Debug, Clone)]
pub struct RunRecords {
    pub ledger: PathBuf,
    /// The runner's folder.
    pub state_dir: PathBuf,
    pub policy: Arc<Policy>,
    /// The worktrees. `None` if runs have none (`workspace.mode: directory`).
    pub workspaces: Option<Workspaces>,
    pub base_branch: String,
    /// How lines of an `exec` agent are interpreted.
    pub exec_events: ExecEvents,
    pub clean: Arc<Clean>,
}

/// A ticket with its notes and finished runs.
#[derive(Debug, Clone)]
pub struct TicketRecord {
    pub job: JobView,
    /// The notes, oldest first.
    pub notes: Vec<Note>,
    pub runs: Vec<FinishedRun>,
}

impl RunRecords {
    /// Finds a ticket by its exact key or id, also one that is over and archived.
    pub async fn ticket(&self, picture: Arc<Snapshot>, name: &str) -> Result<TicketRecord, ApiError> {
        let (records, wanted) = (self.clone(), name.to_owned());
        self.ask(move |ledger| {
            let known = find(&picture, &wanted).cloned();
            let Some(job) = known.map_or_else(|| records.archived(ledger, &wanted), |job| Ok(Some(job)))? else {
                return Ok(None);
            };
            let id = TicketId::new(job.id.clone());
            let (notes, runs) = (ledger.notes(Some(&id), NEWEST_NOTES)?, ledger.finished_runs(&id)?);
            Ok(Some(TicketRecord { job, notes, runs }))
        })
        .await?
        .ok_or_else(|| ApiError::unknown_ticket(&self.clean.text(name)))
    }

    fn archived(&self, ledger: &dyn LedgerReader, name: &str) -> Result<Option<JobView>, LedgerError> {
        let found = ledger.archived_named(name)?;
        let exactly = found.into_iter().filter(|job| job.ticket.key.as_str() == name || job.ticket.id.as_str() == name);
        let state = State { jobs: exactly.collect(), ..State::default() };
        Ok(engine::snapshot(&state, &self.policy, now()).jobs.pop())
    }

    /// Runs a query on the ledger, on a thread where it does not block the async runtime.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn LedgerReader) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let path = self.ledger.clone();
        let asked = tokio::task::spawn_blocking(move || question(open_for_reading(&path)?.as_ref())).await;
        asked.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    tracing::warn!(%error, "the API could not look something up");
    ApiError::internal("it could not be looked up")
}

/// Finds a ticket of the picture by its exact key or id.
pub fn find<'a>(picture: &'a Snapshot, name: &str) -> Option<&'a JobView> {
    picture.jobs.iter().find(|job| job.key == name || job.id == name)
}
