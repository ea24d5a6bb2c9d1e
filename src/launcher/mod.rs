//! Starts, signals and waits for worker processes, and owns the whole process tree of each: nothing that a run started outlives it. Knows
//! nothing of tickets, protocols or git.

pub mod adopted;
pub mod child;
mod containment;
pub mod environment;
mod gh;
pub mod local;
pub mod login;
mod orphans;
mod procfs;
pub mod run_mark;
mod secrets;
pub mod shield;
pub mod sockets;
mod spawner;
mod sweep;
pub mod worker_git;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use thiserror::Error;

use crate::domain::ids::RunId;
use crate::domain::permit::Permit;
use crate::domain::run::ProcessMark;

pub use child::{Child, Exit};
pub use containment::{Containment, find_program};
pub use gh::gh_token;
pub use local::LocalLauncher;
pub use orphans::Orphans;
pub use worker_git::readable_logins;

/// The variable by which a run's processes are recognised.
pub const RUN_ID_VARIABLE: &str = "DIRIGENT_RUN_ID";

/// A place where workers run.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Returns how process trees are held together here, for `doctor`.
    fn how(&self) -> &'static str;

    async fn launch(&self, permit: &Permit, order: LaunchOrder) -> Result<Child, LaunchError>;

    /// Returns the words before a command that other code starts and waits for, so that it is held together as a worker is. Empty where
    /// only a process group is available.
    fn holder(&self) -> Vec<OsString>;

    /// Whether the marked process is alive; a later process with the same id does not count.
    fn probe(&self, mark: ProcessMark) -> bool;

    /// Kills whatever is left of runs that are no longer watched.
    async fn sweep(&self, leftovers: &[Leftover]) -> Swept;
}

/// A command with its complete environment. Nothing is inherited.
#[derive(Debug, Clone)]
pub struct LaunchOrder {
    pub run: RunId,
    /// The program (an absolute path, or a name looked up in the `PATH` of `env`) and its arguments.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment. The run's id is added.
    pub env: BTreeMap<String, String>,
    /// What the command may write of the runner's own state (see `shield`).
    pub writable: Vec<PathBuf>,
}

impl LaunchOrder {
    /// Makes an order for a shell's command line. It is not a login shell: the user's login environment is read once (`login`), so that no
    /// start has to wait for a profile and no kill interrupts one.
    pub fn shell(run: RunId, command: &str, cwd: PathBuf, env: BTreeMap<String, String>) -> Self {
        let shell = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists())
            .unwrap_or("/bin/sh");
        Self { run, argv: vec![shell.into(), "-c".into(), command.into()], cwd, env, writable: Vec::new() }
    }
}

/// A run of which an earlier process of the runner may have left processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub run: RunId,
    pub process: Option<ProcessMark>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    pub killed: usize,
    /// Processes that are still there: they belong to another user, or are stuck in the kernel.
    pub survivors: Vec<i32>,
}

#[derive(Debug, Error)]
pub enum LaunchError {
    #[error("`{program}` was not found in PATH; install it, or give its full path in WORKFLOW.md")]
    NotFound { program: String },
    #[error("the command is empty; set it in WORKFLOW.md")]
    EmptyCommand,
    #[error("the working directory {} cannot be used: {source}", .path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error("`{program}` could not be started: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("the directory {} for exit statuses cannot be used: {source}", .path.display())]
    StatusFile { path: PathBuf, source: io::Error },
    #[error("the thread that starts processes is gone")]
    SpawnerGone,
}

impl LaunchError {
    /// Whether trying again cannot help.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::EmptyCommand => true,
            Self::Spawn { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
            }
            Self::WorkingDirectory { .. } | Self::StatusFile { .. } | Self::SpawnerGone => false,
        }
    }
}
