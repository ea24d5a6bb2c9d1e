//! Removes lock files that a killed process left on refs that only the runner writes. Git itself never removes them, so a branch or a
//! salvage would stay locked.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::error::WorkspaceError;

/// Time between the two looks at a lock. A live process holds the lock of a ref for some milliseconds.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Removes the ref's lock if it did not change between two looks. Blocks the thread while it waits, which happens only if there is a lock.
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
