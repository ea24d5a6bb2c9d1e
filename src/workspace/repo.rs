//! The repository that worktrees are made from, and its administrative entries of worktrees.
//!
//! An agent may have rewritten a worktree's own `.git` file and `commondir`, so nothing here follows them. The repository's directory is
//! found once, at the start, and every worktree is read through it.

use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use super::error::WorkspaceError;

/// Where the repository keeps its objects and refs.
#[derive(Debug, Clone)]
pub struct RepoPlace {
    /// The common git directory, canonical.
    pub git_dir: PathBuf,
    /// The main work tree, canonical. `None` for a bare repository.
    pub work_tree: Option<PathBuf>,
}

/// Where a worktree's `HEAD` points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A full ref name. `commit` is `None` while the ref does not exist.
    Ref {
        name: String,
        commit: Option<Oid>,
    },
    Detached(Oid),
}

impl Head {
    pub fn commit(&self) -> Option<Oid> {
        match self {
            Self::Ref { commit, .. } => *commit,
            Self::Detached(commit) => Some(*commit),
        }
    }

    pub fn is_branch(&self, branch: &str) -> bool {
        matches!(self, Self::Ref { name, .. } if name.strip_prefix("refs/heads/") == Some(branch))
    }

    /// Returns a description for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Ref { name, .. } => format!("`{}`", name.strip_prefix("refs/heads/").unwrap_or(name)),
            Self::Detached(commit) => format!("the detached commit {commit}"),
        }
    }
}

/// One checked-out tree of the repository: the main one or a linked one.
#[derive(Debug, Clone)]
pub struct CheckedOut {
    pub path: PathBuf,
    /// The tree's own git directory with its index, HEAD and unfinished operations.
    pub git_dir: PathBuf,
    pub head: Option<Head>,
}

impl RepoPlace {
    /// Finds the repository at `path`. It may be bare, shallow, or a linked worktree of another one.
    pub fn find(path: &Path) -> Result<Self, WorkspaceError> {
        let not_a_repository =
            |detail: String| WorkspaceError::NotARepository { path: path.to_owned(), detail: detail.trim().to_owned() };
        let repo = Repository::discover(path)
            .and_then(|found| Repository::open(found.commondir()))
            .map_err(|error| not_a_repository(error.message().to_owned()))?;
        let git_dir = repo
            .commondir()
            .canonicalize()
            .map_err(|source| WorkspaceError::io("resolve", repo.commondir(), source))?;
        let work_tree = repo.workdir().and_then(|dir| dir.canonicalize().ok());
        Ok(Self { git_dir, work_tree })
    }

    /// Opens the repository for objects and refs, without a work tree.
    pub fn open(&self) -> Result<Repository, WorkspaceError> {
        Repository::open_bare(&self.git_dir)
            .map_err(|source| WorkspaceError::libgit("open the repository", &self.git_dir, source))
    }

    /// Opens the repository with `tree` as its work tree, no matter what the tree's own `.git` file says.
    pub fn open_on(&self, tree: &Path) -> Result<Repository, WorkspaceError> {
        let repo = self.open()?;
        repo.set_workdir(tree, false).map_err(|source| WorkspaceError::libgit("open the work tree", tree, source))?;
        Ok(repo)
    }

    /// Returns a directory in which git commands about the repository can run.
    pub fn cwd(&self) -> &Path {
        self.work_tree.as_deref().unwrap_or(&self.git_dir)
    }

    /// Returns the administrative entry of the linked worktree called `name`.
    pub fn admin_dir(&self, name: &str) -> PathBuf {
        self.git_dir.join("worktrees").join(name)
    }

    /// Lists every tree that has something checked out, the main one first.
    pub fn checked_out(&self, repo: &Repository) -> Vec<CheckedOut> {
        let mut trees = Vec::new();
        if let Some(path) = &self.work_tree {
            let head = read_head(repo, &self.git_dir);
            trees.push(CheckedOut { path: path.clone(), git_dir: self.git_dir.clone(), head });
        }
        let Ok(entries) = std::fs::read_dir(self.git_dir.join("worktrees")) else { return trees };
        for entry in entries.flatten() {
            let git_dir = entry.path();
            let Some(path) = linked_path(&git_dir) else { continue };
            let head = read_head(repo, &git_dir);
            trees.push(CheckedOut { path, git_dir, head });
        }
        trees
    }

    /// Lists the trees in which `branch` is checked out or being rebased.
    pub fn users_of_branch(&self, repo: &Repository, branch: &str) -> Vec<CheckedOut> {
        let uses = |tree: &CheckedOut| {
            tree.head.as_ref().is_some_and(|head| head.is_branch(branch))
                || rebased_branch(&tree.git_dir).as_deref() == Some(branch)
        };
        self.checked_out(repo).into_iter().filter(uses).collect()
    }

    /// Returns the first of [`RepoPlace::users_of_branch`].
    pub fn user_of_branch(&self, repo: &Repository, branch: &str) -> Option<CheckedOut> {
        self.users_of_branch(repo, branch).into_iter().next()
    }
}

/// Reads a small regular file. Anything else gives `None`: a planted pipe would block the reader forever.
fn read_small(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    if !found.is_file() || found.len() > 64 * 1024 {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// Returns the work tree that an administrative entry belongs to.
pub fn linked_path(git_dir: &Path) -> Option<PathBuf> {
    let text = read_small(&git_dir.join("gitdir"))?;
    let dot_git = PathBuf::from(text.trim_end_matches(['\n', '\r']));
    let dot_git = if dot_git.is_absolute() { dot_git } else { git_dir.join(dot_git) };
    dot_git.parent().map(Path::to_owned)
}

/// Reads a worktree's `HEAD` file. The commit of a branch is looked up in the repository.
pub fn read_head(repo: &Repository, git_dir: &Path) -> Option<Head> {
    let text = read_small(&git_dir.join("HEAD"))?;
    let text = text.trim();
    match text.strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim().to_owned();
            let commit = repo.find_reference(&name).ok().and_then(|found| found.peel_to_commit().ok()).map(|c| c.id());
            Some(Head::Ref { name, commit })
        }
        None => Oid::from_str(text).ok().map(Head::Detached),
    }
}

/// Returns the branch that an unfinished rebase in this tree will write to.
fn rebased_branch(git_dir: &Path) -> Option<String> {
    ["rebase-merge/head-name", "rebase-apply/head-name"].iter().find_map(|file| {
        let text = read_small(&git_dir.join(file))?;
        text.trim().strip_prefix("refs/heads/").map(str::to_owned)
    })
}

/// Returns the name of a git operation that was begun in this tree and not finished, such as a merge.
pub fn unfinished_operation(git_dir: &Path) -> Option<&'static str> {
    const MARKS: [(&str, &str); 5] = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ];
    MARKS.iter().find(|(mark, _)| git_dir.join(mark).exists()).map(|(_, name)| *name)
}

/// Points a linked worktree at a branch without touching its files.
pub fn set_head_to_branch(git_dir: &Path, branch: &str) -> Result<(), WorkspaceError> {
    write_head(git_dir, &format!("ref: refs/heads/{branch}\n"))
}

/// Points a linked worktree at a commit, so that its branch is free for others.
pub fn detach_head(git_dir: &Path, commit: Oid) -> Result<(), WorkspaceError> {
    write_head(git_dir, &format!("{commit}\n"))
}

fn write_head(git_dir: &Path, text: &str) -> Result<(), WorkspaceError> {
    let path = git_dir.join("HEAD");
    let failed = |source| WorkspaceError::io("write", &path, source);
    let mut file = tempfile::NamedTempFile::new_in(git_dir).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns the full ref name of a branch, or an error if `branch` is not a valid name.
pub fn branch_ref(branch: &str) -> Result<String, WorkspaceError> {
    let name = format!("refs/heads/{branch}");
    if git2::Branch::name_is_valid(branch).unwrap_or(false) && git2::Reference::is_valid_name(&name) {
        Ok(name)
    } else {
        Err(WorkspaceError::BadBranch { branch: branch.to_owned() })
    }
}

pub const NAME: &str = "Dirigent";
pub const EMAIL: &str = "dirigent@localhost";

/// Returns the identity for the runner's commits: the repository's own user, else Dirigent.
pub fn signature(repo: &Repository) -> Result<git2::Signature<'static>, git2::Error> {
    match repo.signature() {
        Ok(found) => Ok(found),
        Err(_) => git2::Signature::now(NAME, EMAIL),
    }
}
