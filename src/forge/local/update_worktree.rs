//! Updates the user's own work tree when the branch that it has checked out moves: as a fast-forward would, or not at all.
//!
//! Nothing of the user's is stashed, reset or overwritten, ignored files included.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{Delta, Oid, Repository};

use crate::forge::ForgeError;
use crate::workspace::git::{Git, GitError};
use crate::workspace::repo::{CheckedOut, RepoPlace, unfinished_operation};

/// A move from one commit to another.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub old: Oid,
    pub new: Oid,
}

impl Step {
    pub fn back(self) -> Self {
        Self { old: self.new, new: self.old }
    }
}

/// A path that differs between the two commits.
struct Touched {
    path: PathBuf,
    status: Delta,
    old_id: Oid,
    new_id: Oid,
    new_mode: u32,
}

/// How often, and at what interval, the index lock is looked at. A command of the user's holds it only briefly; one that holds it longer is
/// a long-running or a dead one.
const MOMENTS: u32 = 40;
const MOMENT: std::time::Duration = std::time::Duration::from_millis(50);

async fn is_free(lock: &Path) -> bool {
    for _ in 0..MOMENTS {
        if !lock.exists() {
            return true;
        }
        tokio::time::sleep(MOMENT).await;
    }
    !lock.exists()
}

/// Moves the files and the index of `tree`. Returns `NotNow` with the file that is in the way; then nothing was changed.
pub async fn follow(git: &Git, place: &RepoPlace, tree: &CheckedOut, step: Step) -> Result<(), ForgeError> {
    if let Some(operation) = unfinished_operation(&tree.git_dir) {
        let path = tree.path.display();
        return Err(ForgeError::NotNow(format!("a {operation} is unfinished in {path}; finish or abort it")));
    }
    let lock = tree.git_dir.join("index.lock");
    if !is_free(&lock).await {
        return Err(ForgeError::NotNow(format!(
            "git is at work in {}: {} exists",
            tree.path.display(),
            lock.display()
        )));
    }
    {
        let (place, tree) = (place.clone(), tree.clone());
        super::blocking(move || nothing_in_the_way(&place, &tree, step)).await?;
    }
    // Entries of which only the time stamp differs would count as changed.
    let _ = git.run_on(place, tree, ["update-index", "-q", "--refresh"], Vec::new()).await;
    let (old, new) = (step.old.to_string(), step.new.to_string());
    let args = ["read-tree", "-m", "-u", "--no-recurse-submodules", &old, &new];
    git.run_on(place, tree, args, Vec::new()).await.map(|_| ()).map_err(|error| refusal(&error, tree))
}

/// Prepares a retry of a step: files that an interrupted try has already written are entered in the index.
pub async fn resume(git: &Git, place: &RepoPlace, tree: &CheckedOut, step: Step) -> Result<(), ForgeError> {
    let lines = {
        let (place, tree) = (place.clone(), tree.clone());
        super::blocking(move || already_written(&place, &tree, step)).await?
    };
    if lines.is_empty() {
        return Ok(());
    }
    let args = ["update-index", "-z", "--add", "--index-info"];
    git.run_on(place, tree, args, lines).await.map(|_| ()).map_err(|error| refusal(&error, tree))
}

fn touched(repo: &Repository, step: Step) -> Result<Vec<Touched>, git2::Error> {
    let old = repo.find_commit(step.old)?.tree()?;
    let new = repo.find_commit(step.new)?.tree()?;
    let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), None)?;
    Ok(diff
        .deltas()
        .filter_map(|delta| {
            let file = delta.new_file();
            let path = file.path().or_else(|| delta.old_file().path())?.to_owned();
            let old_id = delta.old_file().id();
            Some(Touched { path, status: delta.status(), old_id, new_id: file.id(), new_mode: u32::from(file.mode()) })
        })
        .collect())
}

/// Returns the paths in the tree's index.
fn tracked(tree: &CheckedOut) -> BTreeSet<Vec<u8>> {
    git2::Index::open(&tree.git_dir.join("index"))
        .map(|index| index.iter().map(|entry| entry.path).collect())
        .unwrap_or_default()
}

/// Fails if the step would overwrite an untracked file. git itself protects changed and untracked files, but not ignored ones.
fn nothing_in_the_way(place: &RepoPlace, tree: &CheckedOut, step: Step) -> Result<(), ForgeError> {
    let repo = place.open().map_err(|error| ForgeError::Git(error.to_string()))?;
    let touched = touched(&repo, step).map_err(|error| super::libgit(&error))?;
    let added = touched.iter().filter(|touched| touched.status == Delta::Added);
    let mut known: Option<BTreeSet<Vec<u8>>> = None;
    for touched in added {
        for part in touched.path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            let full = tree.path.join(part);
            let Ok(found) = full.symlink_metadata() else { continue };
            let known = known.get_or_insert_with(|| tracked(tree));
            let in_the_way = if found.is_dir() {
                if part == touched.path { untracked_below(&tree.path, part, known) } else { None }
            } else if known.contains(part.as_os_str().as_bytes()) {
                None
            } else {
                Some(part.to_owned())
            };
            if let Some(file) = in_the_way {
                return Err(not_now(&file.display().to_string(), tree));
            }
        }
    }
    Ok(())
}

fn untracked_below(root: &Path, dir: &Path, known: &BTreeSet<Vec<u8>>) -> Option<PathBuf> {
    std::fs::read_dir(root.join(dir)).ok()?.flatten().find_map(|entry| {
        let path = dir.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return untracked_below(root, &path, known);
        }
        (!known.contains(path.as_os_str().as_bytes())).then_some(path)
    })
}

/// Returns lines for `update-index --index-info`: one for every touched path whose file already is what the step makes of it.
fn already_written(place: &RepoPlace, tree: &CheckedOut, step: Step) -> Result<Vec<u8>, ForgeError> {
    let repo = place.open().map_err(|error| ForgeError::Git(error.to_string()))?;
    let mut lines = Vec::new();
    let Ok(index) = git2::Index::open(&tree.git_dir.join("index")) else { return Ok(lines) };
    for touched in touched(&repo, step).map_err(|error| super::libgit(&error))? {
        // An entry that differs from the old commit was staged by the user.
        let entered = index.get_path(&touched.path, 0).map_or(Oid::ZERO_SHA1, |entry| entry.id);
        if entered != touched.old_id {
            continue;
        }
        let full = tree.path.join(&touched.path);
        let head = match (touched.status, full.symlink_metadata()) {
            (Delta::Deleted, Err(_)) => format!("0 {}\t", Oid::ZERO_SHA1),
            (Delta::Deleted, Ok(_)) | (_, Err(_)) => continue,
            (_, Ok(found)) => {
                let bytes = if found.file_type().is_symlink() {
                    std::fs::read_link(&full).map(|link| link.as_os_str().as_bytes().to_vec())
                } else if found.is_file() {
                    std::fs::read(&full)
                } else {
                    continue;
                };
                let same = bytes.ok().and_then(|bytes| Oid::hash_object(git2::ObjectType::Blob, &bytes).ok());
                if same != Some(touched.new_id) {
                    continue;
                }
                format!("{:o} {}\t", touched.new_mode, touched.new_id)
            }
        };
        lines.extend_from_slice(head.as_bytes());
        lines.extend_from_slice(touched.path.as_os_str().as_bytes());
        lines.push(0);
    }
    Ok(lines)
}

fn not_now(file: &str, tree: &CheckedOut) -> ForgeError {
    let path = tree.path.display();
    ForgeError::NotNow(format!(
        "`{file}` in {path} has changes of yours that the merge would touch; commit or move them"
    ))
}

/// Turns git's refusal into `NotNow`. git puts the name of the file in quotes.
fn refusal(error: &GitError, tree: &CheckedOut) -> ForgeError {
    let stderr = error.stderr();
    let line = stderr.lines().find(|line| line.starts_with("error:"));
    let file = line.and_then(|line| line.split_once('\'')).and_then(|(_, rest)| rest.rsplit_once('\''));
    match file {
        Some((file, _)) if !stderr.contains(".lock'") => not_now(file, tree),
        _ if stderr.contains("index.lock") => {
            ForgeError::NotNow(format!("git is at work in {}: its index is locked", tree.path.display()))
        }
        _ => ForgeError::NotNow(format!("the tree {} cannot move along: {error}", tree.path.display())),
    }
}
