//! What a person's own commands need of git: where a repository stands, a new one, a branch put aside, a merge taken back.

use std::path::Path;

use git2::{Repository, RepositoryInitOptions};

use super::error::WorkspaceError;
use super::repo::{self, RepoPlace};
use super::{Shared, Workspaces, commit_id, oid};
use crate::domain::ids::CommitId;
use crate::domain::permit::Permit;

/// How a person looks at a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffStyle {
    Lines,
    /// Files and how much of each.
    Stat,
    /// With the tool that git is set up with.
    Tool,
}

/// Commits of branches that were given up.
const UNDONE_REFS: &str = "refs/dirigent/undone/";

impl Workspaces {
    /// The address of `origin` (or of the only remote), if there is one.
    pub fn remote_url(repo: &Path) -> Option<String> {
        let repo = RepoPlace::find(repo).ok()?.open().ok()?;
        let remotes = repo.remotes().ok()?;
        let names: Vec<String> = remotes.iter().flatten().flatten().map(str::to_owned).collect();
        let name = names.iter().find(|name| *name == "origin").or(names.first())?;
        repo.find_remote(name).ok()?.url().ok().map(str::to_owned)
    }

    /// The branch that `origin` calls its own, as git noted it when the repository was cloned.
    pub fn default_branch_of_origin(repo: &Path) -> Option<String> {
        let repo = RepoPlace::find(repo).ok()?.open().ok()?;
        let head = repo.find_reference("refs/remotes/origin/HEAD").ok()?;
        let target = head.symbolic_target().ok().flatten()?;
        target.strip_prefix("refs/remotes/origin/").map(str::to_owned)
    }

    /// What a worker's git needs to commit where nobody has told git who they are; nothing where somebody has.
    pub fn stand_in_identity(&self) -> Vec<(String, String)> {
        let known = self.shared.place.open().is_ok_and(|repo| repo.signature().is_ok());
        if known {
            return Vec::new();
        }
        let name = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|key| (key.to_owned(), repo::NAME.to_owned()));
        let email = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key.to_owned(), repo::EMAIL.to_owned()));
        name.into_iter().chain(email).collect()
    }

    /// Shows what `head` has beyond `base`, on this process's own terminal and with the user's own pager and colours. Answers
    /// whether git was content.
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

    /// The branch that is checked out in `repo`, which must be a git repository.
    pub fn current_branch(repo: &Path) -> Result<String, WorkspaceError> {
        let place = RepoPlace::find(repo)?;
        let opened = place.open()?;
        let failed = |source| WorkspaceError::libgit("read HEAD", &place.git_dir, source);
        let head = opened.find_reference("HEAD").map_err(failed)?;
        let target = head.symbolic_target().ok().flatten().map(str::to_owned);
        Ok(target.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)).unwrap_or_else(|| "main".into()))
    }

    /// Makes `dir` a repository whose first commit holds everything in it.
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

    /// Deletes a branch that is still at `head`; its commits stay reachable under the answered name.
    pub async fn set_aside(&self, permit: &Permit, branch: &str, head: &CommitId) -> Result<String, WorkspaceError> {
        let (name, at) = (format!("{UNDONE_REFS}{}", super::path::sanitise(branch)), head.clone());
        let kept = name.clone();
        self.blocking("keeping the branch's commits", move |shared| keep(shared, &name, &at)).await?;
        self.delete_branch(permit, branch, head).await?;
        Ok(kept)
    }

    /// Brings `base` here as the forge has it. Nothing to do where the base is a branch of this repository.
    pub async fn fetch_base(&self, base: &str) -> Result<(), WorkspaceError> {
        if let Some(remote) = &self.shared.config.remote {
            remote.fetch(&[base]).await?;
        }
        Ok(())
    }

    /// A new branch from `base` with one commit that takes `merged` back. Nothing that is checked out changes.
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

fn keep(shared: &Shared, name: &str, head: &CommitId) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("keep the branch's commits", &shared.place.git_dir, source);
    let repo = shared.place.open()?;
    repo.reference(name, oid(head).map_err(failed)?, true, "dirigent: undone").map(|_| ()).map_err(failed)
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
    let author = repo::signature(&repo).map_err(failed)?;
    let subject = String::from_utf8_lossy(undone.summary_bytes().unwrap_or_default()).into_owned();
    let message = format!("Revert \"{subject}\"\n\nThis takes commit {merged} back.\n");
    let name = repo::branch_ref(branch)?;
    let commit = repo.commit(Some(&name), &author, &author, &message, &tree, &[&tip]).map_err(failed)?;
    Ok(commit_id(commit))
}

/// Whether one commit is all that came of a merge: it ends as ours do, or says which pull request it is, as GitHub's own do. One by one they
/// keep their own words.
fn is_whole(commit: &git2::Commit<'_>) -> bool {
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let subject = message.lines().next().unwrap_or_default().trim_end();
    let names_a_pull_request = subject
        .rsplit_once(" (#")
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    names_a_pull_request || message.lines().any(|line| line.starts_with("Dirigent-Run: "))
}
