//! Finds the directory of the ticket store: `TICKETS_DIR` if set, otherwise the nearest `.tickets` in this directory or above it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::StoreError;

pub const DIRECTORY: &str = ".tickets";

/// Finds an existing store. `explicit` is the value of `TICKETS_DIR`; an empty value counts as unset.
pub fn find(explicit: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, StoreError> {
    if let Some(dir) = explicit.filter(|dir| !dir.is_empty()) {
        let dir = cwd.join(dir);
        return match std::fs::metadata(&dir) {
            Ok(meta) if meta.is_dir() => Ok(dir),
            Ok(_) => Err(StoreError::NotADirectory(dir)),
            Err(_) => Err(StoreError::Missing(PathBuf::from(explicit.unwrap_or_default()))),
        };
    }
    let found = cwd.ancestors().map(|dir| dir.join(DIRECTORY)).find(|dir| dir.is_dir());
    match found {
        Some(dir) => Ok(dir),
        None => match cwd.ancestors().map(|dir| dir.join(DIRECTORY)).find(|dir| dir.is_file()) {
            Some(file) => Err(StoreError::NotADirectory(file)),
            None => Err(StoreError::NoStore),
        },
    }
}

/// Finds a store. If there is none, creates it at `TICKETS_DIR`, or as `.tickets` in `cwd`.
pub fn find_or_init(explicit: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, StoreError> {
    match find(explicit, cwd) {
        Err(StoreError::NoStore | StoreError::Missing(_)) => {
            let dir = match explicit.filter(|dir| !dir.is_empty()) {
                Some(dir) => cwd.join(dir),
                None => cwd.join(DIRECTORY),
            };
            std::fs::create_dir_all(&dir).map_err(StoreError::io("create the directory", &dir))?;
            Ok(dir)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_then_the_nearest_store_upwards() {
        let temp = tempfile::tempdir().unwrap();
        let sub = temp.path().join("a/b");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::create_dir(temp.path().join("a/.tickets")).unwrap();
        std::fs::create_dir(temp.path().join("elsewhere")).unwrap();
        assert_eq!(find(None, &sub).unwrap(), temp.path().join("a/.tickets"));
        assert_eq!(find(Some(OsStr::new("")), &sub).unwrap(), temp.path().join("a/.tickets"));
        assert_eq!(find(Some(OsStr::new("../../elsewhere")), &sub).unwrap(), sub.join("../../elsewhere"));
        assert!(matches!(find(Some(OsStr::new("none")), &sub), Err(StoreError::Missing(_))));
    }

    #[test]
    fn a_file_is_no_store() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(".tickets"), "").unwrap();
        assert!(matches!(find_or_init(None, temp.path()), Err(StoreError::NotADirectory(_))));
        assert!(matches!(find(Some(OsStr::new(".tickets")), temp.path()), Err(StoreError::NotADirectory(_))));
    }

    #[test]
    fn create_may_make_one() {
        let temp = tempfile::tempdir().unwrap();
        let named = find_or_init(Some(OsStr::new("x/y")), temp.path()).unwrap();
        assert!(named.ends_with("x/y") && named.is_dir());
        assert_eq!(find_or_init(None, temp.path()).unwrap(), temp.path().join(".tickets"));
    }
}
