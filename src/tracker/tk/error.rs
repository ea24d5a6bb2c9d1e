//! Everything that can go wrong with a ticket store. Messages contain the path and, where possible, a remedy.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error(
        "no .tickets directory found (searched parent directories)\nRun 'tk create' to initialize, or set TICKETS_DIR env var"
    )]
    NoStore,
    #[error("tickets directory '{}' does not exist", .0.display())]
    Missing(PathBuf),
    #[error("'{}' is not a directory; a ticket store is a directory of .md files", .0.display())]
    NotADirectory(PathBuf),
    #[error("ticket '{0}' not found")]
    NotFound(String),
    #[error("ambiguous ID '{id}' matches multiple tickets")]
    Ambiguous { id: String, matches: Vec<String> },
    #[error("invalid ticket id '{id}': {why}")]
    InvalidId { id: String, why: &'static str },
    #[error("{}: broken ticket file: {why}", .path.display())]
    Broken { path: PathBuf, why: String },
    #[error("{0}")]
    Invalid(String),
    #[error("could not lock {} within {seconds} s; another program holds it", .path.display())]
    Locked { path: PathBuf, seconds: u64 },
    #[error("{}: another program keeps rewriting this file; nothing was changed, try again", .0.display())]
    Contended(PathBuf),
    #[error("could not {action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl StoreError {
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_path_buf();
        move |source| StoreError::Io { action, path, source }
    }
}
