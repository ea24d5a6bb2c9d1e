//! What a run has spent so far, in a small file beside its transcript. After the runner was killed, its next start reads there what the
//! ledger had not been told. Files of the same form hold what conversations have used that are resumed by a new process.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::domain::hash::stable_hash;
use crate::domain::ids::SessionId;
use crate::domain::usage::Usage;

/// The length of the one record in bytes. It is fixed, so that a new record overwrites the old one completely.
const LENGTH: usize = 320;

#[derive(Debug)]
pub struct SpentFile {
    file: File,
    total: Usage,
}

impl SpentFile {
    /// Opens the file and continues from what an earlier conversation of the same run spent.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let total = spent(path).unwrap_or_default();
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        Ok(Self { file, total })
    }

    /// Adds usage, with one short write that a killed process has either made or not.
    pub fn add(&mut self, usage: Usage) -> std::io::Result<()> {
        self.total += usage;
        let text = serde_json::to_string(&self.total).map_err(std::io::Error::other)?;
        self.file.write_all_at(format!("{text:<width$}\n", width = LENGTH - 1).as_bytes(), 0)
    }
}

/// Returns the file of a conversation in the folder of these files. The agent chose the id, so it is no part of the path.
pub fn of_conversation(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{:016x}.json", stable_hash(&[id.as_str()])))
}

/// Returns what the file says; `None` if it is missing or cannot be read.
pub fn spent(path: &Path) -> Option<Usage> {
    serde_json::from_str(std::fs::read_to_string(path).ok()?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_record_counts_and_a_second_conversation_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("spent.json");
        assert_eq!(spent(&path), None);
        let usage = |output| Usage { output, fresh_input: u64::MAX / 4, ..Usage::default() };
        let mut file = SpentFile::open(&path).unwrap();
        file.add(usage(u64::MAX / 2)).unwrap();
        file.add(usage(3)).unwrap();
        drop(file);
        let mut again = SpentFile::open(&path).unwrap();
        again.add(Usage { output: 1, turns: u32::MAX, ..Usage::default() }).unwrap();
        let found = spent(&path).unwrap();
        assert_eq!((found.output, found.fresh_input), (u64::MAX / 2 + 4, u64::MAX / 4 * 2));
        assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, LENGTH);
        std::fs::write(&path, "{\"output\":").unwrap();
        assert_eq!(spent(&path), None);
    }
}
