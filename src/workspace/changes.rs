//! Lists the files that a branch changes since it left its base.

use git2::Delta;

use super::error::WorkspaceError;
use super::{Workspaces, oid};
use crate::domain::evidence::FileAction;
use crate::domain::ids::CommitId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub action: FileAction,
}

impl Workspaces {
    pub async fn changes(&self, base: &CommitId, head: &CommitId) -> Result<Vec<Change>, WorkspaceError> {
        let (base, head) = (base.clone(), head.clone());
        self.blocking("comparing commits", move |shared| {
            let failed = |source| WorkspaceError::libgit("compare commits", &shared.place.git_dir, source);
            let repo = shared.place.open()?;
            let (base, head) = (oid(&base).map_err(failed)?, oid(&head).map_err(failed)?);
            let fork = repo.merge_base(base, head).unwrap_or(base);
            let tree = |commit| repo.find_commit(commit).and_then(|commit| commit.tree());
            let (old, new) = (tree(fork).map_err(failed)?, tree(head).map_err(failed)?);
            let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(failed)?;
            Ok(diff.deltas().filter_map(|delta| change(&delta)).collect())
        })
        .await
    }
}

fn change(delta: &git2::DiffDelta<'_>) -> Option<Change> {
    let action = match delta.status() {
        Delta::Added | Delta::Copied | Delta::Renamed => FileAction::Created,
        Delta::Deleted => FileAction::Deleted,
        _ => FileAction::Modified,
    };
    let file = if action == FileAction::Deleted { delta.old_file() } else { delta.new_file() };
    Some(Change { path: String::from_utf8_lossy(file.path_bytes()?).into_owned(), action })
}
