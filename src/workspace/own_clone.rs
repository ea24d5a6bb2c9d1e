//! A clone of our own, for a repository that the workflow names by its address: bare, with the base branch in it, made whole or not at all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Repository;

use super::base::{DEFAULT_REMOTE, Fetcher, Upstream};
use super::error::WorkspaceError;
use super::git::Git;
use super::remote::Remote;
use super::repo::RepoPlace;

/// A clone that is being made beside its place.
pub struct NewClone {
    place: PathBuf,
    folder: PathBuf,
    url: String,
}

impl NewClone {
    /// Nothing where one is there already. What an earlier attempt left is made anew.
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

    /// The repository as it is so far.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Brings the base branch: with a credential of ours where there is one, else as the user's own git does.
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
