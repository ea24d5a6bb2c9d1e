//! Receipts that are kept with their run: the statement, and its signature in a file beside it.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Worker, Workplace, run_directory};
use crate::domain::ids::RunId;

/// Returns the files of a run that hold its receipt and the receipt's signature.
pub fn receipt_files(state_dir: &Path, run: &RunId) -> (PathBuf, PathBuf) {
    let folder = run_directory(state_dir, run);
    (folder.join("receipt.json"), folder.join("receipt.json.sig"))
}

/// Returns the receipt that is kept with a run, and its signature. `None` if there is no receipt.
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

/// Writes a file atomically.
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
    /// Signs a receipt with the user's key, if git has one, and keeps both with the run. Returns the signature, `None` if git has no key,
    /// or, as the inner error, why signing failed. A receipt that is already kept with a signature is not signed again.
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
