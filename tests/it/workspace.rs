//! Worktrees, salvage, removal, hooks and directories against real git.

mod collect;
mod directory;
mod filters;
mod hooks;
mod hostile;
mod prepare;
mod remove;
mod salvage;
mod work_status;

use dirigent::domain::ids::{RunId, TicketKey};
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::{WorkspaceConfig, WorkspaceError, Workspaces, Worktree};

use crate::support::{Scratch, allowed};

impl Scratch {
    fn config(&self) -> WorkspaceConfig {
        WorkspaceConfig::new(self.repo(), self.root(), "main")
    }

    fn workspaces(&self) -> Workspaces {
        Workspaces::open(self.config()).unwrap()
    }
}

async fn try_prepare(workspaces: &Workspaces, run: &str, branch: &str) -> Result<Worktree, WorkspaceError> {
    let permit = allowed(EffectKind::StartRun);
    workspaces.prepare(&permit, &RunId::from(run), &TicketKey::from("ENG-1"), branch, "main").await
}

async fn prepare(workspaces: &Workspaces, run: &str) -> Worktree {
    try_prepare(workspaces, run, "dirigent/ENG-1-x").await.unwrap()
}
