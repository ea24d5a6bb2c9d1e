//! Receipts as they are kept with their run: the statement, and its signature beside it.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Worker, Workplace, run_directory};
use crate::domain::ids::RunId;

/// The files of a run that hold its receipt and the receipt's signature.
pub fn receipt_files(state_dir: &Path, run: &RunId) -> (PathBuf, PathBuf) {
    let folder = run_directory(state_dir, run);
    (folder.join("receipt.json"), folder.join("receipt.json.sig"))
}

/// The receipt that was kept with a run, and its signature.
pub fn kept_receipt(state_dir: &Path, run: &RunId) -> std::io::Result<Option<(String, Option<String>)>> {
    let (receipt, signature) = receipt_files(state_dir, run);
    Ok(read(&receipt)?.map(|text| (text, read(&signature).ok().flatten())))
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

impl Worker {
    /// Signs it with the user's key, where git has one, and keeps both. The signature, or why there is none although there is a key.
    pub async fn keep_receipt(
        &self,
        run: Option<&RunId>,
        payload: &str,
    ) -> std::io::Result<Result<Option<String>, String>> {
        let before = run.map(|run| kept_receipt(&self.state_dir, run)).transpose()?.flatten();
        if let Some((text, Some(signature))) = before
            && text == payload
        {
            return Ok(Ok(Some(signature)));
        }
        let signed = match &self.workplace {
            Workplace::Worktrees(workspaces) => workspaces.sign_receipt(payload).await,
            Workplace::Directories(_) => Ok(None),
        };
        if let Some(run) = run {
            let (receipt, signature) = receipt_files(&self.state_dir, run);
            if let Ok(Some(signed)) = &signed {
                write(&signature, signed)?;
            }
            write(&receipt, payload)?;
        }
        Ok(signed.map_err(|error| error.to_string()))
    }
}
