//! What is done about a run that an earlier life of the runner left: its processes are ended, its work is salvaged, its
//! worktree removed.

use std::path::PathBuf;

use super::{Worker, Workplace};
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::run::{ProcessMark, Salvage};
use crate::launcher::Leftover;
use crate::workspace::{Workspaces, Worktree};

/// A run that nobody watched to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRun {
    pub run: RunId,
    pub key: TicketKey,
    pub branch: String,
    pub process: Option<ProcessMark>,
    pub worktree: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuriedRun {
    /// Processes that were still there.
    pub killed: usize,
    pub salvage: Option<Salvage>,
    /// The worktree is gone, or there was none.
    pub removed: bool,
    /// The branch's head as it is now.
    pub head: Option<CommitId>,
    /// Why something stays, for the log and the ticket.
    pub trouble: Option<String>,
}

impl Worker {
    /// Does it again without harm when it is called twice.
    pub async fn bury(&self, lost: &LostRun) -> BuriedRun {
        let swept = self.launcher.sweep(&[Leftover { run: lost.run.clone(), process: lost.process }]).await;
        // Its desk answers nobody any more.
        let _ = std::fs::remove_file(super::desk::socket_of(&self.sockets, &lost.run));
        let mut buried = BuriedRun { killed: swept.killed, ..BuriedRun::default() };
        let Workplace::Worktrees(workspaces) = &self.workplace else {
            // A ticket's directory lasts longer than its runs.
            return BuriedRun { removed: true, ..buried };
        };
        buried.head = workspaces.branch_head(&lost.branch).await.ok().flatten();
        // Saved already, by a life that ended before it could say so.
        buried.salvage = workspaces.salvaged(&lost.run).await.ok().flatten();
        let Some(path) = lost.worktree.clone().or(made_but_not_told(workspaces, &lost.run).await) else {
            return BuriedRun { removed: true, ..buried };
        };
        if !swept.survivors.is_empty() {
            buried.trouble = Some(format!("processes {:?} cannot be ended; {} stays", swept.survivors, path.display()));
            return buried;
        }
        let unknown = CommitId::new("");
        let worktree = Worktree {
            path,
            run: lost.run.clone(),
            key: lost.key.clone(),
            branch: lost.branch.clone(),
            base: buried.head.clone().unwrap_or_else(|| unknown.clone()),
            head_before: buried.head.clone().unwrap_or(unknown),
            warning: None,
        };
        match workspaces.remove(&worktree).await {
            Ok(removal) => {
                buried.salvage = removal.salvage.or(buried.salvage.take());
                buried.removed = true;
            }
            Err(error) => buried.trouble = Some(error.to_string()),
        }
        buried
    }
}

/// A run that died while its worktree was being made never told where it is; the workspace's own records know.
async fn made_but_not_told(workspaces: &Workspaces, run: &RunId) -> Option<PathBuf> {
    let listed = workspaces.list().await.ok()?;
    listed.into_iter().find(|listed| listed.worktree.run == *run).map(|listed| listed.worktree.path)
}
