//! The end of a ticket's lasting directory: runs `before_remove` and removes the directory, unless it holds work that exists nowhere else.

use super::{Worker, Workplace};
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::launcher::Leftover;
use crate::workspace::WorkspaceError;
use crate::workspace::directory::{Directories, DirectoryRemoval};
use crate::workspace::hooks::Hook;

impl Worker {
    /// Removes the directory of a ticket that is over. It can be called again without harm.
    pub async fn leave(
        &self,
        permit: &Permit,
        id: &TicketId,
        key: &TicketKey,
    ) -> Result<DirectoryRemoval, WorkspaceError> {
        let Workplace::Directories(directories) = &self.workplace else { return Ok(DirectoryRemoval::Absent) };
        if let Err(because) = self.vacate(directories, key).await {
            return Ok(DirectoryRemoval::Kept { because });
        }
        let workspace = match directories.leave(key).await? {
            Ok(Some(workspace)) => workspace,
            Ok(None) => return Ok(DirectoryRemoval::Absent),
            Err(because) => return Ok(DirectoryRemoval::Kept { because }),
        };
        let about = [("DIRIGENT_TICKET_ID", id.to_string()), ("DIRIGENT_TICKET_KEY", key.to_string())];
        tracing::info!(issue_id = %id, issue_identifier = %key, hook = "before_remove", "the directory is to be removed");
        if let Err(error) = self.hook_about(Hook::BeforeRemove, &about, &workspace.path).await {
            tracing::warn!(issue_id = %id, issue_identifier = %key, error = %error, "a hook failed");
        }
        directories.remove(permit, &workspace).await
    }

    /// Ends what earlier runs left at work in a ticket's directory. The error says what cannot be ended, so that the directory is neither
    /// used nor removed.
    pub(super) async fn vacate(&self, directories: &Directories, key: &TicketKey) -> Result<(), String> {
        let runs = directories.occupants(key).map_err(|error| error.to_string())?;
        if runs.is_empty() {
            return Ok(());
        }
        let leftovers: Vec<Leftover> = runs.into_iter().map(|run| Leftover { run, process: None }).collect();
        let swept = self.launcher.sweep(&leftovers).await;
        if swept.survivors.is_empty() {
            return directories.vacated(key).map_err(|error| error.to_string());
        }
        let path = directories.path_of(key);
        Err(format!(
            "processes {:?} of an earlier run are still at work in {} and cannot be ended; end them",
            swept.survivors,
            path.display()
        ))
    }
}
