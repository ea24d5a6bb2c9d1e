//! Short-lived folders beside the worktrees. Their names contain the id of the process that made them: the next start removes those of dead
//! processes and leaves those of live ones alone.

use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::error::WorkspaceError;
use super::remove::remove_tree;

/// The directory that holds them. A sanitised key never begins with a dot.
const SCRATCH: &str = ".scratch";

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub fn make(root: &Path) -> Result<tempfile::TempDir, WorkspaceError> {
    let dir = root.join(SCRATCH);
    let failed = |source| WorkspaceError::io("make a scratch directory in", &dir, source);
    std::fs::create_dir_all(&dir).map_err(failed)?;
    tempfile::Builder::new().prefix(&format!("{}-", std::process::id())).tempdir_in(&dir).map_err(failed)
}

/// Removes folders of processes that no longer exist, and folders older than a day. Failures are ignored.
pub fn sweep(root: &Path) {
    for entry in std::fs::read_dir(root.join(SCRATCH)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_string_lossy().split('-').next().and_then(|pid| pid.parse().ok());
        let gone = maker.is_none_or(|pid| !is_alive(pid));
        // The process id may have been reused, so age counts, too.
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if gone || age.is_some_and(|age| age > A_DAY) {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Whether a process with this id exists.
pub fn is_alive(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}
