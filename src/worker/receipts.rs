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

/// Keeps a receipt and its signature with a run. The signature of an earlier receipt goes first and the new one comes last, so that no
/// receipt ever stands beside the signature of another one, wherever this is interrupted.
fn keep(state_dir: &Path, run: &RunId, payload: &str, signed: Option<&str>) -> std::io::Result<()> {
    let (receipt, signature) = receipt_files(state_dir, run);
    match std::fs::remove_file(&signature) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write(&receipt, payload)?;
    signed.map_or(Ok(()), |signed| write(&signature, signed))
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
            keep(&self.state_dir, run, payload, signed.as_ref().ok().and_then(Option::as_deref))?;
        }
        Ok(signed.map_err(|error| error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_that_could_not_be_signed_does_not_stand_beside_the_signature_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunId::new("r-1");
        let kept = || kept_receipt(dir.path(), &run).unwrap();
        assert_eq!(kept(), None);
        keep(dir.path(), &run, "A", Some("signature of A")).unwrap();
        assert_eq!(kept(), Some(("A".to_owned(), Some("signature of A".to_owned()))));
        keep(dir.path(), &run, "B", None).unwrap();
        assert_eq!(kept(), Some(("B".to_owned(), None)));
        keep(dir.path(), &run, "B", Some("signature of B")).unwrap();
        assert_eq!(kept(), Some(("B".to_owned(), Some("signature of B".to_owned()))));
    }
}
