//! The ticket store and the tracker over it, on real directories.

mod adapter;
mod incremental;
mod races;

use std::fs;
use std::path::{Path, PathBuf};

use dirigent::config::policy::RolloutMode;
use dirigent::domain::permit::Permit;
use dirigent::engine::permit::{Circumstances, EffectKind, permit};

pub(crate) fn allowed(kind: EffectKind) -> Permit {
    permit(kind, &Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true })
        .unwrap()
}

/// A store with these files.
pub(crate) fn store_with(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("my-app").join(".tickets");
    fs::create_dir_all(&dir).unwrap();
    for (id, text) in files {
        put(&dir, id, text);
    }
    (temp, dir)
}

pub(crate) fn put(dir: &Path, id: &str, text: &str) {
    fs::write(dir.join(format!("{id}.md")), text).unwrap();
}

pub(crate) fn ticket_text(id: &str, status: &str, more: &str) -> String {
    format!("---\nid: {id}\nstatus: {status}\n{more}---\n# Title of {id}\n\n")
}
