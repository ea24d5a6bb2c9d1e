//! One small file per worktree, under the workspace root: its run, ticket, branch and base.
//!
//! It is written before the worktree is made and deleted after the worktree is gone, so that the next start can account for everything that
//! a crash left. It lies outside the directories that agents work in.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::WorkspaceError;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::time::Timestamp;

/// The directory under the root that holds the records. A sanitised key never begins with a dot.
const RECORDS: &str = ".records";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    pub run: RunId,
    pub key: TicketKey,
    pub branch: String,
    pub base: CommitId,
    pub head_before: CommitId,
    pub made_at: Timestamp,
    /// The id of the process that made it.
    #[serde(default)]
    pub made_by: Option<u32>,
}

fn place(root: &Path, name: &str) -> PathBuf {
    root.join(RECORDS).join(format!("{name}.json"))
}

pub fn write(root: &Path, name: &str, record: &WorktreeRecord) -> Result<(), WorkspaceError> {
    let dir = root.join(RECORDS);
    fs::create_dir_all(&dir).map_err(|source| WorkspaceError::io("make", &dir, source))?;
    let path = place(root, name);
    let failed = |source: io::Error| WorkspaceError::io("write", &path, source);
    let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(failed)?;
    serde_json::to_writer(&mut file, record).map_err(|error| failed(error.into()))?;
    file.flush().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

pub fn read(root: &Path, name: &str) -> Option<WorktreeRecord> {
    serde_json::from_slice(&fs::read(place(root, name)).ok()?).ok()
}

pub fn remove(root: &Path, name: &str) -> Result<(), WorkspaceError> {
    let path = place(root, name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WorkspaceError::io("remove", &path, error)),
        _ => Ok(()),
    }
}

/// Reads all records, sorted by worktree name.
pub fn all(root: &Path) -> Vec<(String, WorktreeRecord)> {
    let Ok(entries) = fs::read_dir(root.join(RECORDS)) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
        .filter_map(|name| Some((name.clone(), read(root, &name)?)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
