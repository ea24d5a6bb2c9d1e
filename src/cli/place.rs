//! Where things are: the workflow file, the repository, and the runner's own folder for it.

use std::path::{Path, PathBuf};

use crate::ledger::{Ledger, LedgerReader, SqliteLedger, open_for_reading};
use crate::worker::desk;
use crate::workflow::{self, Env, Loaded};

use super::Failure;

const USUAL_NAME: &str = "WORKFLOW.md";

/// What every command starts from.
pub struct Context {
    pub env: Env,
    pub cwd: PathBuf,
    workflow: Option<PathBuf>,
}

impl Context {
    pub fn new(workflow: Option<PathBuf>) -> Result<Self, Failure> {
        let cwd =
            std::env::current_dir().map_err(|error| Failure::plain(format!("the current folder is gone: {error}")))?;
        Ok(Self { env: Env::of_process(), cwd, workflow })
    }

    /// `--workflow`, else the positional path, else `WORKFLOW.md` here or in the nearest folder above, up to the
    /// repository's top.
    pub fn workflow_path(&self, positional: Option<&Path>) -> PathBuf {
        match self.workflow.as_deref().or(positional) {
            Some(path) => self.cwd.join(path),
            None => self.found_above().unwrap_or_else(|| self.cwd.join(USUAL_NAME)),
        }
    }

    fn found_above(&self) -> Option<PathBuf> {
        let top = workflow::resolve::usual_repo(&self.cwd);
        let inside = self.cwd.ancestors().take_while(|folder| folder.starts_with(&top));
        inside.map(|folder| folder.join(USUAL_NAME)).find(|file| file.is_file())
    }

    /// Where a new one belongs: what `--workflow` says, else the repository's top.
    pub fn new_workflow_path(&self) -> PathBuf {
        match &self.workflow {
            Some(path) => self.cwd.join(path),
            None => self.found_above().unwrap_or_else(|| workflow::resolve::usual_repo(&self.cwd).join(USUAL_NAME)),
        }
    }

    pub fn load(&self, positional: Option<&Path>) -> Result<Loaded, Failure> {
        Ok(workflow::load(&self.workflow_path(positional), &self.env)?)
    }

    /// Where a workflow that says nothing else puts things.
    pub fn usual_place(&self) -> Place {
        let file = self.workflow_path(None);
        Place::of(&workflow::resolve::usual_repo(file.parent().unwrap_or(&self.cwd)), &self.env)
    }

    pub fn place(&self, loaded: &Loaded) -> Place {
        Place::of(&loaded.settings.workspace.repo, &self.env)
    }
}

/// The runner's folder for one repository. Nothing of it lies in the repository.
#[derive(Debug, Clone)]
pub struct Place {
    pub state_dir: PathBuf,
    pub ledger: PathBuf,
    pub socket: PathBuf,
}

/// The kernel's limit for a socket's path, with room for its terminator.
const LONGEST_SOCKET_PATH: usize = 100;

impl Place {
    pub fn of(repo: &Path, env: &Env) -> Self {
        let mark = workflow::resolve::repo_mark(repo);
        let state_dir = workflow::resolve::dirigent_home(env).join("repos").join(&mark);
        let socket = state_dir.join("control.sock");
        let socket = if socket.as_os_str().len() <= LONGEST_SOCKET_PATH {
            socket
        } else {
            let short = format!("{}.sock", &mark[mark.len().saturating_sub(8)..]);
            let runtime_dir = env.vars().get("XDG_RUNTIME_DIR").map(PathBuf::from);
            // Where even that cannot be made, binding says so.
            desk::socket_directory(runtime_dir.as_deref()).map_or(socket, |folder| folder.join(short))
        };
        Self { ledger: state_dir.join("ledger.db"), socket, state_dir }
    }

    /// For whoever writes: made if it is not there, brought to this version.
    pub fn open_ledger(&self) -> Result<Box<dyn Ledger>, Failure> {
        Ok(Box::new(SqliteLedger::open(&self.ledger)?))
    }

    /// For whoever only looks.
    pub fn read_ledger(&self) -> Result<Box<dyn LedgerReader>, Failure> {
        Ok(open_for_reading(&self.ledger)?)
    }
}
