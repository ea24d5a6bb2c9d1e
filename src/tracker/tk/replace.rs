//! Replaces a file atomically and under a lock. A version that was saved meanwhile by a program that does not take the lock is
//! kept, where the system can exchange two files.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::error::StoreError;

const LOCK_FILE: &str = ".lock";
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// The store's lock, held until dropped.
#[derive(Debug)]
pub(super) struct StoreLock {
    _file: File,
}

impl StoreLock {
    pub fn acquire(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::io("open the lock file", &path))?;
        let started = Instant::now();
        let mut pause = Duration::from_micros(500);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(8));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Locked { path, seconds: LOCK_PATIENCE.as_secs() });
                }
                Err(TryLockError::Error(source)) => return Err(StoreError::Io { action: "lock", path, source }),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    Done,
    /// The file no longer holds the version that the new one was made from. It was left unchanged.
    Changed,
}

/// Writes `new` to `path` if the file still holds `base`.
pub(super) fn replace(path: &Path, base: &[u8], new: &[u8]) -> Result<Replaced, StoreError> {
    let path = &real_path(path)?;
    let mode = fs::metadata(path).map_err(StoreError::io("read", path))?.permissions();
    let temp = written_beside(path, new, Some(mode))?;
    if read(path)? != base {
        return Ok(Replaced::Changed);
    }
    if !exchange(temp.path(), path)? {
        temp.persist(path).map_err(|error| StoreError::io("replace", path)(error.error))?;
        sync_directory(path);
        return Ok(Replaced::Done);
    }
    if read(temp.path())? == base {
        sync_directory(path);
        return Ok(Replaced::Done);
    }
    // Another program saved between the comparison and the exchange, so its version is put back. If there is yet another version by
    // then, that one is the newest and stays.
    exchange(temp.path(), path)?;
    if read(temp.path())? != new {
        exchange(temp.path(), path)?;
    }
    Ok(Replaced::Changed)
}

/// Creates `path` with `content`. `false` if there is a file already.
pub(super) fn create(path: &Path, content: &[u8]) -> Result<bool, StoreError> {
    let temp = written_beside(path, content, None)?;
    match temp.persist_noclobber(path) {
        Ok(_) => {
            sync_directory(path);
            Ok(true)
        }
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(StoreError::io("create", path)(error.error)),
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(StoreError::io("read", path))
}

fn written_beside(path: &Path, content: &[u8], mode: Option<Permissions>) -> Result<NamedTempFile, StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temp = tempfile::Builder::new()
        .prefix(".tk-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .map_err(StoreError::io("write in", dir))?;
    let file = temp.as_file_mut();
    let written = file.write_all(content).and_then(|()| match mode {
        Some(mode) => file.set_permissions(mode),
        None => Ok(()),
    });
    written.and_then(|()| file.sync_all()).map_err(StoreError::io("write", path))?;
    Ok(temp)
}

/// Follows a symbolic link, so that the link stays and its target is replaced.
fn real_path(path: &Path) -> Result<PathBuf, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => fs::canonicalize(path).map_err(StoreError::io("follow", path)),
        _ => Ok(path.to_path_buf()),
    }
}

/// Syncs the file's directory: only then is the new content durable under this name. Errors are ignored, because a file system that
/// cannot sync a directory has nothing to lose.
fn sync_directory(path: &Path) {
    if let Some(Ok(dir)) = path.parent().map(File::open) {
        let _ = dir.sync_all();
    }
}

/// Exchanges two files in one step. `false` if the system cannot do that; then a version that another program saves between the
/// comparison and the replacement is overwritten. docs/trackers/tk.md says so.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn exchange(one: &Path, other: &Path) -> Result<bool, StoreError> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(false),
        Err(errno) => Err(StoreError::io("replace", other)(errno.into())),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn exchange(_one: &Path, _other: &Path) -> Result<bool, StoreError> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_saved_in_between_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.md");
        fs::write(&path, "theirs").unwrap();
        assert_eq!(replace(&path, b"base", b"ours").unwrap(), Replaced::Changed);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(replace(&path, b"theirs", b"ours").unwrap(), Replaced::Done);
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "no temp file stays");
    }

    #[test]
    fn mode_and_links_stay_and_create_never_overwrites() {
        let temp = tempfile::tempdir().unwrap();
        let (real, link) = (temp.path().join("real.md"), temp.path().join("link.md"));
        assert!(create(&real, b"1").unwrap());
        assert!(!create(&real, b"2").unwrap());
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(replace(&link, b"1", b"2").unwrap(), Replaced::Done);
        assert_eq!(fs::read(&real).unwrap(), b"2");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn the_lock_is_exclusive_and_freed() {
        let temp = tempfile::tempdir().unwrap();
        let held = StoreLock::acquire(temp.path()).unwrap();
        let other = File::open(temp.path().join(LOCK_FILE)).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().unwrap();
    }
}
