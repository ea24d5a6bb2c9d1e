//! Lock files that a killed process left on refs that only we write. Git itself never removes them: without this a branch
//! or a salvage would be stuck for good.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::error::WorkspaceError;

/// A living process holds the lock of a ref for some milliseconds.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Removes the ref's lock if nobody has touched it between two looks. Blocks while it waits; only when there is one.
pub(super) fn release_stale(git_dir: &Path, reference: &str) -> Result<(), WorkspaceError> {
    let lock = git_dir.join(format!("{reference}.lock"));
    let look = || match lock.symlink_metadata() {
        Ok(found) => Ok(Some((found.ino(), found.mtime(), found.mtime_nsec()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(WorkspaceError::io("look at", &lock, source)),
    };
    let Some(first) = look()? else { return Ok(()) };
    std::thread::sleep(LOOK_AGAIN_AFTER);
    if look()? != Some(first) {
        return Ok(());
    }
    tracing::warn!(path = %lock.display(), "a lock that a killed process left is removed");
    match fs::remove_file(&lock) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(WorkspaceError::io("remove", &lock, source)),
        _ => Ok(()),
    }
}
