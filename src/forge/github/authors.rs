//! `Co-authored-by` lines for squash merges: the authors of the commits that a squash turns into one. GitHub adds these lines itself only
//! if the runner sends no commit message of its own.

use git2::Repository;

use super::{Inner, blocking};
use crate::domain::ids::CommitId;
use crate::forge::ForgeError;

/// Limit of `Co-authored-by` lines; nobody reads a longer list.
const MOST: usize = 20;

impl Inner {
    /// Returns one line per author besides the account that merges. On an error it returns no lines: the merge does not wait for them.
    pub(super) async fn co_authors(&self, head: &CommitId, base: &str) -> Vec<String> {
        let found = self.authors_between(base, head).await;
        let found = found.inspect_err(|error| tracing::debug!(%error, "the authors of a squash are not known"));
        found.unwrap_or_default()
    }

    async fn authors_between(&self, base: &str, head: &CommitId) -> Result<Vec<String>, ForgeError> {
        let base = self.base_here(base, head).await?;
        let (place, head, shared) = (self.remote.place().clone(), head.clone(), !self.settings.own_account);
        blocking(move || {
            let repo = place.open()?;
            // With a person's own account the squash commit has that person as its author already.
            let ourselves = repo.signature().ok().filter(|_| shared);
            let mail = ourselves.as_ref().and_then(|who| who.email().ok()).map(str::to_owned);
            authors(&repo, &base, &head, mail.as_deref()).map_err(|error| super::errors::libgit(&error))
        })
        .await
    }
}

fn authors(repo: &Repository, base: &CommitId, head: &CommitId, but: Option<&str>) -> Result<Vec<String>, git2::Error> {
    let mut walk = repo.revwalk()?;
    walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE)?;
    walk.push(git2::Oid::from_str(head.as_str())?)?;
    walk.hide(git2::Oid::from_str(base.as_str())?)?;
    let mut lines: Vec<String> = Vec::new();
    for commit in walk {
        let commit = repo.find_commit(commit?)?;
        if commit.parent_count() > 1 {
            continue;
        }
        let author = commit.author();
        let plain =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(['<', '>', '\n', '\r'], " ").trim().to_owned();
        let (name, mail) = (plain(author.name_bytes()), plain(author.email_bytes()));
        if name.is_empty() || mail.is_empty() || but.is_some_and(|but| but.eq_ignore_ascii_case(&mail)) {
            continue;
        }
        let line = format!("Co-authored-by: {name} <{mail}>");
        if lines.len() < MOST && !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(lines)
}
