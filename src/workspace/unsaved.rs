//! Finds work in a directory that exists nowhere else: uncommitted changes, and commits that are not pushed. What cannot be determined
//! counts as such work.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Repository, StatusOptions};

use super::uncommitted::is_hidden;

/// How many levels deep repositories are looked for. A deeper tree is kept, because it was not looked at.
const DEEPEST: usize = 32;

/// Why a directory must be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsaved {
    pub because: String,
    /// Addresses of the repository's remotes, to which the commits may have been pushed without the repository recording it.
    pub remotes: Vec<String>,
}

impl Unsaved {
    fn plain(because: String) -> Self {
        Self { because, remotes: Vec::new() }
    }
}

/// Returns why `dir` must be kept, or `None`. `pushed` lists commits that some remote is known to have.
pub(super) fn unsaved_work(dir: &Path, pushed: &[Oid]) -> Option<Unsaved> {
    look(dir, pushed, DEEPEST)
}

fn look(dir: &Path, pushed: &[Oid], depth: usize) -> Option<Unsaved> {
    if depth == 0 {
        return Some(Unsaved::plain(format!("{} is too deep to be looked at", dir.display())));
    }
    let dot_git = dir.join(".git");
    let found = if dot_git.symlink_metadata().is_ok() {
        in_repository(dir, &dot_git, pushed)
    } else if is_bare(dir) {
        Repository::open_bare(dir).and_then(|repo| not_pushed(&repo, dir, pushed))
    } else {
        Ok(None)
    };
    match found {
        Ok(None) => {}
        Ok(found) => return found,
        Err(error) => {
            return Some(Unsaved::plain(format!("git cannot read {}: {}", dir.display(), error.message())));
        }
    }
    match directories(dir) {
        Ok(inner) => inner.iter().find_map(|inner| look(inner, pushed, depth - 1)),
        Err(error) => Some(Unsaved::plain(format!("{} cannot be read: {error}", dir.display()))),
    }
}

/// Whether a directory is a repository without a work tree. Git itself tells by these names, too.
fn is_bare(dir: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| dir.join(name).symlink_metadata().is_ok())
}

/// Lists the directories in `dir`, except `.git`.
fn directories(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn in_repository(dir: &Path, dot_git: &Path, pushed: &[Oid]) -> Result<Option<Unsaved>, git2::Error> {
    // The directory itself is the work tree, no matter what the repository's configuration says.
    let repo = if dot_git.is_dir() { Repository::open_bare(dot_git)? } else { Repository::open(dir)? };
    repo.set_workdir(dir, false)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).include_ignored(false);
    if let Some(entry) = repo.statuses(Some(&mut options))?.iter().next() {
        let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
        return Ok(Some(Unsaved::plain(format!("{} has uncommitted work ({path})", dir.display()))));
    }
    if let Some(entry) = repo.index()?.iter().find(|entry| is_hidden(dir, entry)) {
        let path = String::from_utf8_lossy(&entry.path).into_owned();
        let because = format!("git was told not to look at {path} in {}, which may be changed", dir.display());
        return Ok(Some(Unsaved::plain(because)));
    }
    not_pushed(&repo, dir, pushed)
}

/// Returns the first branch with commits that no remote is known to have.
fn not_pushed(repo: &Repository, dir: &Path, pushed: &[Oid]) -> Result<Option<Unsaved>, git2::Error> {
    // What a remote's branch is at may be unknown: then its commits do not count as pushed.
    let mut known: Vec<Oid> = tips(repo, "refs/remotes/*")?.into_iter().filter_map(|(_, tip)| tip.ok()).collect();
    known.extend(pushed.iter().copied().filter(|commit| repo.find_commit(*commit).is_ok()));
    let own = tips(repo, "refs/heads/*")?.into_iter().chain(tips(repo, "refs/stash")?);
    let mut own: Vec<(String, Oid)> = own.map(|(name, tip)| Ok((name, tip?))).collect::<Result<_, git2::Error>>()?;
    match repo.head() {
        Ok(head) => own.extend(head.target().map(|head| ("HEAD".to_owned(), head))),
        Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {}
        Err(error) => return Err(error),
    }
    if own.iter().all(|(_, tip)| known.contains(tip)) {
        return Ok(None);
    }
    let saved = history(repo, &known);
    for (name, tip) in own {
        if !saved.contains(&tip) {
            let name = name.strip_prefix("refs/heads/").unwrap_or(&name);
            let because = format!("{} has commits on `{name}` that are not pushed", dir.display());
            return Ok(Some(Unsaved { because, remotes: remotes(repo) }));
        }
    }
    Ok(None)
}

/// Returns these commits and all their ancestors that the repository contains. A shallow clone lacks some parents, which libgit2's own walk
/// reports as an error.
pub(super) fn history(repo: &Repository, from: &[Oid]) -> HashSet<Oid> {
    let mut seen: HashSet<Oid> = HashSet::new();
    let mut next = from.to_vec();
    while let Some(id) = next.pop() {
        if let Ok(commit) = repo.find_commit(id)
            && seen.insert(id)
        {
            next.extend(commit.parent_ids().filter(|parent| !seen.contains(parent)));
        }
    }
    seen
}

fn remotes(repo: &Repository) -> Vec<String> {
    let Ok(names) = repo.remotes() else { return Vec::new() };
    let names = names.iter().filter_map(|name| name.ok().flatten());
    names.filter_map(|name| repo.find_remote(name).ok()?.url().ok().map(str::to_owned)).collect()
}

/// The name of a ref, and its commit or why that cannot be read.
type Tip = (String, Result<Oid, git2::Error>);

/// Returns these refs, each with its commit or why that cannot be read.
fn tips(repo: &Repository, glob: &str) -> Result<Vec<Tip>, git2::Error> {
    let mut found = Vec::new();
    for reference in repo.references_glob(glob)? {
        let reference = reference?;
        let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
        found.push((name, reference.peel_to_commit().map(|commit| commit.id())));
    }
    Ok(found)
}
