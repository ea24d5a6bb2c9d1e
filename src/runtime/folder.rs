//! Where a runner keeps what is its own: ledger, control socket, the folders of its runs.

use std::path::{Path, PathBuf};

use crate::launcher::shield::Shield;
use crate::ledger::{Ledger, LedgerError, LedgerReader, SqliteLedger, open_for_reading};
use crate::worker::desk;
use crate::workflow::{self, Env};

/// The runner's folder for one repository. Nothing of it lies in the repository.
#[derive(Debug, Clone)]
pub struct RunnerFolder {
    pub state_dir: PathBuf,
    pub ledger: PathBuf,
    pub socket: PathBuf,
}

/// The kernel's limit for a socket's path, with room for its terminator.
const LONGEST_SOCKET_PATH: usize = 100;

impl RunnerFolder {
    pub fn of(repo: &Path, env: &Env) -> Self {
        let mark = workflow::repo_identity::repo_mark(repo, env);
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

    /// Keeps runs from writing here, and to the folders of other boards.
    pub fn shield(&self, program: &Path) -> Shield {
        let boards = self.state_dir.parent().unwrap_or(&self.state_dir);
        Shield { program: program.to_owned(), folder: workflow::resolve::canonical(boards) }
    }

    /// For whoever writes: made if it is not there, brought to this version.
    pub fn open_ledger(&self) -> Result<Box<dyn Ledger>, LedgerError> {
        Ok(Box::new(SqliteLedger::open(&self.ledger)?))
    }

    /// For whoever only looks.
    pub fn read_ledger(&self) -> Result<Box<dyn LedgerReader>, LedgerError> {
        open_for_reading(&self.ledger)
    }
}
