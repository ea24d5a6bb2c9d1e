//! Finds work in a directory that exists nowhere else: uncommitted changes, and commits that are not pushed. What cannot be determined
//! counts as such work.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use git2::{Oid, Repository, StatusOptions};

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
    if dot_git.symlink_metadata().is_ok() {
        match in_repository(dir, &dot_git, pushed) {
            Ok(None) => {}
            Ok(found) => return found,
            Err(error) => {
                return Some(Unsaved::plain(format!("git cannot read {}: {}", dir.display(), error.message())));
            }
        }
    }
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return Some(Unsaved::plain(format!("{} cannot be read: {error}", dir.display()))),
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git")
        .find_map(|entry| look(&entry.path(), pushed, depth - 1))
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
    let mut known: Vec<Oid> = tips(&repo, "refs/remotes/*")?.into_iter().map(|(_, tip)| tip).collect();
    known.extend(pushed.iter().copied().filter(|commit| repo.find_commit(*commit).is_ok()));
    let mut own = tips(&repo, "refs/heads/*")?;
    own.extend(tips(&repo, "refs/stash")?);
    own.extend(repo.head().ok().and_then(|head| head.target()).map(|head| ("HEAD".to_owned(), head)));
    if own.iter().all(|(_, tip)| known.contains(tip)) {
        return Ok(None);
    }
    let saved = history(&repo, &known);
    for (name, tip) in own {
        if !saved.contains(&tip) {
            let name = name.strip_prefix("refs/heads/").unwrap_or(&name);
            let because = format!("{} has commits on `{name}` that are not pushed", dir.display());
            return Ok(Some(Unsaved { because, remotes: remotes(&repo) }));
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

fn tips(repo: &Repository, glob: &str) -> Result<Vec<(String, Oid)>, git2::Error> {
    let found = repo.references_glob(glob)?.flatten();
    Ok(found
        .filter_map(|reference| Some((reference.name().ok()?.to_owned(), reference.peel_to_commit().ok()?.id())))
        .collect())
}
