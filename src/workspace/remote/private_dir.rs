//! The private git directory that a network call runs in. It shares the repository's objects and nothing else of it.

use std::path::PathBuf;

use super::{RemoteError, settings};
use crate::workspace::repo::RepoPlace;

/// An empty git directory with a configuration of the runner's. It is deleted after the call.
pub struct PrivateGitDir {
    pub folder: tempfile::TempDir,
    pub git_dir: PathBuf,
}

impl PrivateGitDir {
    pub fn make(place: &RepoPlace, settings: &[(String, String)]) -> Result<Self, RemoteError> {
        let failed = |source: std::io::Error| RemoteError::Local(format!("no folder for git: {source}"));
        let folder = tempfile::Builder::new().prefix("dirigent-git-").tempdir().map_err(failed)?;
        let git_dir = folder.path().join("git");
        for sub in ["refs/heads", "objects"] {
            std::fs::create_dir_all(git_dir.join(sub)).map_err(failed)?;
        }
        std::fs::write(git_dir.join("HEAD"), "ref: refs/heads/none\n").map_err(failed)?;
        std::fs::write(git_dir.join("config"), settings::private(settings)).map_err(failed)?;
        std::fs::write(git_dir.join("packed-refs"), tips(place)?).map_err(failed)?;
        Ok(Self { folder, git_dir })
    }
}

/// Returns the repository's branch heads as packed refs for the private directory, so that git fetches only new commits.
fn tips(place: &RepoPlace) -> Result<String, RemoteError> {
    const MOST: usize = 64;
    let repo = place.open().map_err(|error| RemoteError::Local(error.to_string()))?;
    let mut commits = std::collections::BTreeSet::new();
    for glob in ["refs/remotes/*", "refs/heads/*"] {
        let Ok(found) = repo.references_glob(glob) else { continue };
        let found = found.flatten().filter_map(|one| one.peel_to_commit().ok()).map(|commit| commit.id());
        commits.extend(found.take(MOST));
    }
    let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
    for (at, commit) in commits.into_iter().enumerate() {
        text.push_str(&format!("{commit} refs/tips/{at:04}\n"));
    }
    Ok(text)
}
