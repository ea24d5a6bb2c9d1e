//! The paths of the files that belong to one runner: ledger, control socket and the folders of its runs.

use std::path::{Path, PathBuf};

use crate::launcher::shield::Shield;
use crate::ledger::{Ledger, LedgerError, LedgerReader, SqliteLedger, open_for_reading};
use crate::worker::desk;
use crate::workflow::{self, Env};

/// A runner's folder for one repository. It lies outside of the repository.
#[derive(Debug, Clone)]
pub struct RunnerFolder {
    pub state_dir: PathBuf,
    pub ledger: PathBuf,
    pub socket: PathBuf,
}

/// The longest path of a socket in bytes. The kernel's limit is a little higher and includes the terminator.
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
            // If that directory cannot be made either, binding the socket reports it.
            desk::socket_directory(runtime_dir.as_deref()).map_or(socket, |folder| folder.join(short))
        };
        Self { ledger: state_dir.join("ledger.db"), socket, state_dir }
    }

    /// Returns the shield that keeps runs from writing to this folder and to the folders of other boards.
    pub fn shield(&self, program: &Path) -> Shield {
        let boards = self.state_dir.parent().unwrap_or(&self.state_dir);
        Shield { program: program.to_owned(), folder: workflow::resolve::canonical(boards) }
    }

    /// Opens the ledger for writing. Makes it if it is missing, and migrates an older version.
    pub fn open_ledger(&self) -> Result<Box<dyn Ledger>, LedgerError> {
        Ok(Box::new(SqliteLedger::open(&self.ledger)?))
    }

    /// Opens the ledger for reading only.
    pub fn read_ledger(&self) -> Result<Box<dyn LedgerReader>, LedgerError> {
        open_for_reading(&self.ledger)
    }
}
