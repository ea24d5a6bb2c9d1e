//! The end of a ticket's lasting directory: runs `before_remove` and removes the directory, unless it holds work that exists nowhere else.

use super::{Worker, Workplace};
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::permit::Permit;
use crate::workspace::WorkspaceError;
use crate::workspace::directory::DirectoryRemoval;
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
}
