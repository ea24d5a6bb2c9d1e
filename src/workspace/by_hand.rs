//! Git operations for a person's commands: reading a repository's state, initialising one, putting a branch aside, reverting a merge.

use std::path::Path;

use git2::{Repository, RepositoryInitOptions};

use super::error::WorkspaceError;
use super::remote::{Deletion, RemoteError};
use super::repo::{self, RepoPlace};
use super::{Shared, Workspaces, commit_at, commit_id, oid};
use crate::domain::ids::CommitId;
use crate::domain::permit::Permit;

/// How a diff is shown to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffStyle {
    Lines,
    /// File names, and how much changed in each.
    Stat,
    /// In the diff tool that git is configured with.
    Tool,
}

/// Prefix of the refs that keep commits of abandoned branches.
const UNDONE_REFS: &str = "refs/dirigent/undone/";

impl Workspaces {
    /// Returns the address of `origin`, or of the first remote if there is no `origin`.
    pub fn remote_url(repo: &Path) -> Option<String> {
        let repo = RepoPlace::find(repo).ok()?.open().ok()?;
        let remotes = repo.remotes().ok()?;
        let names: Vec<String> = remotes.iter().flatten().flatten().map(str::to_owned).collect();
        let name = names.iter().find(|name| *name == "origin").or(names.first())?;
        repo.find_remote(name).ok()?.url().ok().map(str::to_owned)
    }

    /// Returns the default branch of `origin`, as git recorded it when the repository was cloned.
    pub fn default_branch_of_origin(repo: &Path) -> Option<String> {
        let repo = RepoPlace::find(repo).ok()?.open().ok()?;
        let head = repo.find_reference("refs/remotes/origin/HEAD").ok()?;
        let target = head.symbolic_target().ok().flatten()?;
        target.strip_prefix("refs/remotes/origin/").map(str::to_owned)
    }

    /// Returns environment variables that let a worker commit if git has no configured user. Empty if git has one.
    pub fn stand_in_identity(&self) -> Vec<(String, String)> {
        let known = self.shared.place.open().is_ok_and(|repo| repo.signature().is_ok());
        if known {
            return Vec::new();
        }
        let name = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|key| (key.to_owned(), repo::NAME.to_owned()));
        let email = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key.to_owned(), repo::EMAIL.to_owned()));
        name.into_iter().chain(email).collect()
    }

    /// Shows what `head` has beyond `base`, on this process's own terminal and with the user's own pager and colours. Returns whether git
    /// exited with success.
    pub fn show_diff(&self, base: &CommitId, head: &CommitId, style: DiffStyle) -> std::io::Result<bool> {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(self.shared.place.cwd());
        match style {
            DiffStyle::Lines => git.args(["diff"]),
            DiffStyle::Stat => git.args(["diff", "--stat"]),
            DiffStyle::Tool => git.args(["difftool", "--dir-diff"]),
        };
        git.arg(format!("{base}...{head}")).arg("--");
        Ok(git.status()?.success())
    }

    /// Returns the branch that is checked out in `repo`, which must be a git repository. Returns `main` for a detached HEAD.
    pub fn current_branch(repo: &Path) -> Result<String, WorkspaceError> {
        let place = RepoPlace::find(repo)?;
        let opened = place.open()?;
        let failed = |source| WorkspaceError::libgit("read HEAD", &place.git_dir, source);
        let head = opened.find_reference("HEAD").map_err(failed)?;
        let target = head.symbolic_target().ok().flatten().map(str::to_owned);
        Ok(target.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)).unwrap_or_else(|| "main".into()))
    }

    /// Makes `dir` a repository whose first commit contains everything in it.
    pub fn init_repository(dir: &Path, branch: &str, message: &str) -> Result<(), WorkspaceError> {
        let failed = |source| WorkspaceError::libgit("make the repository", dir, source);
        let mut options = RepositoryInitOptions::new();
        options.initial_head(branch);
        let repo = Repository::init_opts(dir, &options).map_err(failed)?;
        let mut index = repo.index().map_err(failed)?;
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).map_err(failed)?;
        index.write().map_err(failed)?;
        let tree = index.write_tree().and_then(|id| repo.find_tree(id)).map_err(failed)?;
        let author = repo::signature(&repo).map_err(failed)?;
        repo.commit(Some("HEAD"), &author, &author, message, &tree, &[]).map_err(failed)?;
        Ok(())
    }

    /// Deletes a branch that is still at `head`. Its commits stay reachable under the returned ref name.
    pub async fn set_aside(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<String, WorkspaceError> {
        let kept = self.keep_undone(branch, head).await?;
        self.delete_branch(permit, branch, head).await?;
        Ok(kept)
    }

    /// Deletes the branch on the forge. Its commits stay reachable under the returned ref name. `None` if the forge does not have the
    /// branch, or if merges happen in this repository.
    pub async fn set_aside_on_forge(&self, _permit: &Permit, branch: &str) -> Result<Option<String>, WorkspaceError> {
        let Some(remote) = &self.shared.config.remote else { return Ok(None) };
        let Some((_, head)) = remote.fetch(&[branch]).await?.into_iter().next() else {
            remote.forget_head(branch)?;
            return Ok(None);
        };
        let kept = self.keep_undone(branch, &head).await?;
        match remote.delete(branch, &head).await? {
            Deletion::Gone => Ok(Some(kept)),
            Deletion::Elsewhere(_) => Err(RemoteError::Moved.into()),
        }
    }

    async fn keep_undone(&self, branch: &str, head: &CommitId) -> Result<String, WorkspaceError> {
        let (branch, head) = (branch.to_owned(), head.clone());
        self.blocking("keeping the branch's commits", move |shared| keep(shared, &branch, &head)).await
    }

    /// Fetches `base` from the forge. Does nothing if the base is a branch of this repository.
    pub async fn fetch_base(&self, base: &str) -> Result<(), WorkspaceError> {
        if let Some(remote) = &self.shared.config.remote {
            remote.fetch(&[base]).await?;
        }
        Ok(())
    }

    /// Creates a branch from `base` with one commit that reverts `merged`. No work tree changes.
    pub async fn revert(
        &self,
        _permit: &Permit,
        merged: &CommitId,
        base: &str,
        branch: &str,
    ) -> Result<CommitId, WorkspaceError> {
        let (merged, base, branch) = (merged.clone(), base.to_owned(), branch.to_owned());
        self.blocking("taking the merge back", move |shared| revert(shared, &merged, &base, &branch)).await
    }
}

/// Makes the ref that keeps the commits of an abandoned branch, and returns its name.
fn keep(shared: &Shared, branch: &str, head: &CommitId) -> Result<String, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("keep the branch's commits", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let at = oid(head).map_err(failed)?;
    let name = format!("{UNDONE_REFS}{}", super::path::sanitise(branch));
    // The branch may have been abandoned before, and those commits stay reachable, too.
    let name = match commit_at(&repo, &name) {
        Some(kept) if kept != at => format!("{name}-{}", head.short()),
        _ => name,
    };
    repo.reference(&name, at, true, "dirigent: undone").map_err(failed)?;
    Ok(name)
}

fn revert(shared: &Shared, merged: &CommitId, base: &str, branch: &str) -> Result<CommitId, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("take the merge back", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    let tip = super::base::resolve(&repo, &shared.place, base, shared.config.base_side)?;
    let tip = repo.find_commit(tip).map_err(failed)?;
    let undone = repo.find_commit(oid(merged).map_err(failed)?).map_err(failed)?;
    if undone.parent_count() == 1 && !is_whole(&undone) {
        return Err(failed(git2::Error::from_str(&format!(
            "{} may be one of several commits that came of one merge by rebase; revert them by hand",
            merged.short()
        ))));
    }
    let mainline = if undone.parent_count() > 1 { 1 } else { 0 };
    let mut index = repo.revert_commit(&undone, &tip, mainline, None).map_err(failed)?;
    if index.has_conflicts() {
        let files = super::restore::conflicting_files(&index).map_err(failed)?;
        return Err(failed(git2::Error::from_str(&format!(
            "later commits changed the same lines in {}; revert {} by hand",
            files.join(", "),
            merged.short()
        ))));
    }
    let tree = index.write_tree_to(&repo).and_then(|id| repo.find_tree(id)).map_err(failed)?;
    let subject = String::from_utf8_lossy(undone.summary_bytes().unwrap_or_default()).into_owned();
    let message = format!("Revert \"{subject}\"\n\nThis takes commit {merged} back.\n");
    let name = repo::branch_ref(branch)?;
    let commit = shared.config.commits.write(&repo, None, &message, &tree, &[&tip]).map_err(failed)?;
    repo.reference(&name, commit, false, "dirigent: take a merge back").map_err(failed)?;
    Ok(commit_id(commit))
}

/// Whether a commit is the whole result of a merge. It is if it has the runner's trailer, or names its pull request in the subject as
/// GitHub's squash commits do. The single commits of a rebase have neither.
fn is_whole(commit: &git2::Commit<'_>) -> bool {
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let subject = message.lines().next().unwrap_or_default().trim_end();
    let names_a_pull_request = subject
        .rsplit_once(" (#")
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    names_a_pull_request || message.lines().any(|line| line.starts_with("Dirigent-Run: "))
}
