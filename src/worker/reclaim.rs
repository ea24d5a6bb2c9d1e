//! Reclaims a run that an earlier process of the runner left: stops its processes, salvages its work and removes its worktree.

use std::path::PathBuf;

use super::{Worker, Workplace};
use crate::agent::spent_file;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::run::{ProcessMark, Salvage};
use crate::domain::usage::Usage;
use crate::launcher::Leftover;
use crate::workspace::{Workspaces, Worktree};

/// A run that was not watched to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimOrder {
    pub run: RunId,
    pub key: TicketKey,
    pub branch: String,
    pub process: Option<ProcessMark>,
    pub worktree: Option<PathBuf>,
}

/// What was found of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// How many processes were still there.
    pub killed: usize,
    pub salvage: Option<Salvage>,
    /// Whether the worktree is gone, or there was none.
    pub removed: bool,
    /// Everything that the run spent, whether it was reported before or not.
    pub spent: Option<Usage>,
    /// The branch's head as it is now.
    pub head: Option<CommitId>,
    /// Why something stays, for the log and the ticket.
    pub trouble: Option<String>,
}

impl Worker {
    /// Reclaims what is left of a run. It can be called again without harm.
    pub async fn reclaim(&self, order: &ReclaimOrder) -> Reclaimed {
        let swept = self.launcher.sweep(&[Leftover { run: order.run.clone(), process: order.process }]).await;
        // Its desk is not served any more.
        let _ = std::fs::remove_file(super::desk::socket_of(&self.sockets, &order.run));
        let spent = spent_file::spent(&super::spent_path(&self.state_dir, &order.run));
        let mut reclaimed = Reclaimed { killed: swept.killed, spent, ..Reclaimed::default() };
        let workspaces = match &self.workplace {
            Workplace::Worktrees(workspaces) => workspaces,
            // A ticket's directory lasts longer than its runs.
            Workplace::Directories(directories) => {
                reclaimed.removed = true;
                if !swept.survivors.is_empty() {
                    let path = directories.path_of(&order.key);
                    let kept_in_mind = directories.occupy(&order.key, &order.run).err();
                    let but = kept_in_mind.map(|error| format!(", and that cannot be noted: {error}"));
                    reclaimed.trouble = Some(format!(
                        "processes {:?} cannot be ended; {} waits for them{}",
                        swept.survivors,
                        path.display(),
                        but.unwrap_or_default()
                    ));
                }
                return reclaimed;
            }
        };
        reclaimed.head = workspaces.branch_head(&order.branch).await.ok().flatten();
        // An earlier process may have saved the work and stopped before it could record that.
        reclaimed.salvage = workspaces.salvaged(&order.run).await.ok().flatten();
        let Some(path) = order.worktree.clone().or(made_but_not_told(workspaces, &order.run).await) else {
            return Reclaimed { removed: true, ..reclaimed };
        };
        if !swept.survivors.is_empty() {
            let trouble = format!("processes {:?} cannot be ended; {} stays", swept.survivors, path.display());
            reclaimed.trouble = Some(trouble);
            return reclaimed;
        }
        let unknown = CommitId::new("");
        let worktree = Worktree {
            path,
            run: order.run.clone(),
            key: order.key.clone(),
            branch: order.branch.clone(),
            base: reclaimed.head.clone().unwrap_or_else(|| unknown.clone()),
            head_before: reclaimed.head.clone().unwrap_or(unknown),
            warning: None,
        };
        if workspaces.is_detached(&worktree) {
            // The worktree of a review; nothing in it is to be kept.
            match workspaces.discard_detached(&worktree).await {
                Ok(()) => reclaimed.removed = true,
                Err(error) => reclaimed.trouble = Some(error.to_string()),
            }
            return reclaimed;
        }
        match workspaces.remove(&worktree).await {
            Ok(removal) => {
                reclaimed.salvage = removal.salvage.or(reclaimed.salvage.take());
                reclaimed.removed = true;
            }
            Err(error) => reclaimed.trouble = Some(error.to_string()),
        }
        reclaimed
    }
}

/// Finds the worktree of a run that stopped while its worktree was being made, before it could report the path.
async fn made_but_not_told(workspaces: &Workspaces, run: &RunId) -> Option<PathBuf> {
    let listed = workspaces.list().await.ok()?;
    listed.into_iter().find(|listed| listed.worktree.run == *run).map(|listed| listed.worktree.path)
}
