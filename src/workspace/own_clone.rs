//! Makes the runner's own bare clone of a repository that the workflow file gives by its address. The clone appears complete or not at all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Repository;

use super::base::{DEFAULT_REMOTE, Fetcher, Upstream};
use super::error::WorkspaceError;
use super::git::Git;
use super::remote::Remote;
use super::repo::RepoPlace;

/// A clone in progress, in a folder beside its final place.
pub struct NewClone {
    place: PathBuf,
    folder: PathBuf,
    url: String,
}

impl NewClone {
    /// Starts a clone. Returns `None` if there is one already. What an interrupted attempt left is removed first.
    pub fn begin(place: &Path, url: &str) -> Result<Option<Self>, WorkspaceError> {
        if place.join("HEAD").is_file() {
            return Ok(None);
        }
        let folder = place.with_extension("new");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|source| WorkspaceError::io("remove", &folder, source))?;
        }
        std::fs::create_dir_all(&folder).map_err(|source| WorkspaceError::io("make", &folder, source))?;
        let failed = |source| WorkspaceError::libgit("make a clone", &folder, source);
        let repo = Repository::init_bare(&folder).map_err(failed)?;
        repo.remote(DEFAULT_REMOTE, url).map_err(failed)?;
        Ok(Some(Self { place: place.to_owned(), folder, url: url.to_owned() }))
    }

    /// Returns the folder of the unfinished clone.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Fetches the base branch and moves the clone to its place. Uses the runner's credential if there is a `remote`, else the user's git.
    pub async fn fill(self, base: &str, remote: Option<&Remote>, timeout: Duration) -> Result<(), WorkspaceError> {
        let upstream = Upstream::on_forge(base);
        let trouble = match remote {
            Some(remote) => {
                let found = remote.fetch(&[&upstream.branch]).await?;
                found.is_empty().then(|| format!("{} has no such branch", self.url))
            }
            None => {
                let place = RepoPlace::find(&self.folder)?;
                Fetcher::default().fetch(&Git::new(timeout), &place, &upstream, "").await
            }
        };
        if let Some(warning) = trouble {
            return Err(WorkspaceError::BaseNotFetched { path: self.place, base: base.to_owned(), warning });
        }
        std::fs::rename(&self.folder, &self.place).map_err(|source| WorkspaceError::io("rename", &self.folder, source))
    }
}
