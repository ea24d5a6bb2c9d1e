//! Finds what is not committed in a tree, and stores it as a git tree object. It works on a copy of the index in a scratch directory, runs
//! no hooks and only the user's own filters, and leaves the tree's own index untouched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use git2::{Delta, DiffOptions, FileMode, Index, IndexEntry, Oid, Repository};

use super::Shared;
use super::error::WorkspaceError;
use super::repo::CheckedOut;
use super::scratch;

const ASSUME_UNCHANGED: u16 = 0x8000;
const SKIP_WORKTREE: u16 = 1 << 14;

/// What to do with a repository inside the tree, or with a submodule that has changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Embedded {
    /// Its files become part of the stored tree.
    TakeFiles,
    /// It is left out and listed.
    Name,
}

/// One look at one tree.
pub struct Look<'a> {
    tree_dir: &'a Path,
    head: Option<Oid>,
    repo: Repository,
    index: Index,
    /// The index was lost and checkout is sparse: deleted files cannot be told from files that were never checked out.
    sparse_unknown: bool,
    scratch: tempfile::TempDir,
    shared: &'a Shared,
    git_dir: &'a Path,
}

/// The current content of a tree, stored as git objects.
#[derive(Debug)]
pub struct Taken {
    pub tree: Oid,
    /// The staged tree. `None` if it equals the head's tree or the stored tree.
    pub staged: Option<Oid>,
    pub files: u32,
    pub left_out: Vec<String>,
}

/// An uncommitted path.
struct Change {
    path: PathBuf,
    what: What,
    /// The content after the user's filter, already stored. `None` if no filter applies.
    cleaned: Option<Oid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Content,
    Conflict,
    Deleted,
    Submodule,
    Unreadable,
}

impl<'a> Look<'a> {
    /// Opens a look. `git_dir` is the tree's own administrative directory; its index is copied, never changed.
    pub fn at(
        shared: &'a Shared,
        tree_dir: &'a Path,
        git_dir: &'a Path,
        head: Option<Oid>,
    ) -> Result<Self, WorkspaceError> {
        let failed = |source| WorkspaceError::libgit("read the index", tree_dir, source);
        let repo = shared.place.open_on(tree_dir)?;
        let scratch = scratch::make(&shared.root)?;
        let (mut index, own) = match copy_of_index(git_dir, scratch.path()) {
            Some(index) => (index, true),
            None => (index_of_head(&repo, head, scratch.path()).map_err(failed)?, false),
        };
        let sparse = git_dir.join("info/sparse-checkout").exists()
            || repo.config().and_then(|config| config.get_bool("core.sparseCheckout")).unwrap_or(false);
        let hidden: Vec<IndexEntry> = index.iter().filter(|entry| is_hidden(tree_dir, entry)).collect();
        for mut entry in hidden {
            entry.flags &= !ASSUME_UNCHANGED;
            if is_in_tree(tree_dir, &entry) {
                entry.flags_extended &= !SKIP_WORKTREE;
            }
            index.add(&entry).map_err(failed)?;
        }
        repo.set_index(&mut index).map_err(failed)?;
        Ok(Self { tree_dir, head, repo, index, sparse_unknown: sparse && !own, scratch, shared, git_dir })
    }

    /// Lists the paths that differ from the head, staged or not. Ignored files are not included.
    pub fn dirty(&self) -> Result<Vec<PathBuf>, WorkspaceError> {
        let mut paths: Vec<PathBuf> = self.unstaged()?.into_iter().map(|change| change.path).collect();
        let failed = |source| WorkspaceError::libgit("compare the index", self.tree_dir, source);
        let head_tree = self.head_tree().map_err(failed)?;
        let staged = self.repo.diff_tree_to_index(head_tree.as_ref(), Some(&self.index), None).map_err(failed)?;
        paths.extend(staged.deltas().filter_map(|delta| delta.new_file().path().map(Path::to_owned)));
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Stores the current content of the tree. Files over `limit` bytes are left out and listed.
    pub fn take(mut self, limit: u64, embedded: Embedded) -> Result<(Taken, ScratchIndex), WorkspaceError> {
        let tree_dir = self.tree_dir;
        let failed = |source| WorkspaceError::libgit("write the tree", tree_dir, source);
        let changes = self.unstaged()?;
        let staged = if self.index.has_conflicts() { None } else { self.index.write_tree_to(&self.repo).ok() };
        let mut left_out = Vec::new();
        for change in changes {
            self.take_change(&change, limit, embedded, &mut left_out)?;
        }
        let tree = self.index.write_tree_to(&self.repo).map_err(failed)?;
        let head_tree = self.head_tree().map_err(failed)?;
        let new_tree = self.repo.find_tree(tree).map_err(failed)?;
        let diff = self.repo.diff_tree_to_tree(head_tree.as_ref(), Some(&new_tree), None).map_err(failed)?;
        let files = u32::try_from(diff.deltas().len()).unwrap_or(u32::MAX);
        let head_id = head_tree.as_ref().map(git2::Tree::id);
        drop((diff, new_tree, head_tree));
        let staged = staged.filter(|staged| *staged != tree && Some(*staged) != head_id);
        left_out.sort();
        self.index.write().map_err(failed)?;
        let scratch = ScratchIndex { path: self.index.path().map(Path::to_owned), _dir: self.scratch };
        Ok((Taken { tree, staged, files, left_out }, scratch))
    }

    fn head_tree(&self) -> Result<Option<git2::Tree<'_>>, git2::Error> {
        self.head.map(|head| self.repo.find_commit(head).and_then(|commit| commit.tree())).transpose()
    }

    fn unstaged(&self) -> Result<Vec<Change>, WorkspaceError> {
        let mut options = DiffOptions::new();
        options
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_typechange(true)
            .include_unreadable(true)
            .include_unreadable_as_untracked(true);
        let diff = self
            .repo
            .diff_index_to_workdir(Some(&self.index), Some(&mut options))
            .map_err(|source| WorkspaceError::libgit("compare the files", self.tree_dir, source))?;
        let mut changes = Vec::new();
        for delta in diff.deltas() {
            let Some(path) = delta.new_file().path().or_else(|| delta.old_file().path()) else { continue };
            let was_submodule = delta.old_file().mode() == FileMode::Commit;
            let what = match delta.status() {
                Delta::Unmodified | Delta::Ignored => continue,
                Delta::Deleted if self.never_checked_out(path) => continue,
                Delta::Conflicted => What::Conflict,
                Delta::Deleted => What::Deleted,
                Delta::Unreadable => What::Unreadable,
                _ if was_submodule => What::Submodule,
                _ => What::Content,
            };
            changes.push(Change { path: path.to_owned(), what, cleaned: None });
        }
        Ok(self.through_filters(changes))
    }

    /// Drops changes that only exist because libgit2 does not run the user's filters.
    fn through_filters(&self, mut changes: Vec<Change>) -> Vec<Change> {
        let tree = CheckedOut { path: self.tree_dir.to_owned(), git_dir: self.git_dir.to_owned(), head: None };
        for change in changes.iter_mut().filter(|change| change.what == What::Content) {
            change.cleaned = self.shared.filters.store(&self.repo, &self.shared.place, &tree, &change.path);
        }
        changes.retain(|change| {
            let entered = self.index.get_path(&change.path, 0);
            match (change.cleaned, entered) {
                (Some(cleaned), Some(entry)) => cleaned != entry.id || self.mode_of(&change.path) != Some(entry.mode),
                _ => true,
            }
        });
        changes
    }

    fn mode_of(&self, path: &Path) -> Option<u32> {
        let found = self.tree_dir.join(path).symlink_metadata().ok()?;
        let executable = found.permissions().mode() & 0o100 != 0;
        Some(if executable { 0o100_755 } else { 0o100_644 })
    }

    fn never_checked_out(&self, path: &Path) -> bool {
        self.sparse_unknown
            || self.index.get_path(path, 0).is_some_and(|entry| entry.flags_extended & SKIP_WORKTREE != 0)
    }

    fn take_change(
        &mut self,
        change: &Change,
        limit: u64,
        embedded: Embedded,
        left_out: &mut Vec<String>,
    ) -> Result<(), WorkspaceError> {
        let failed = |source| WorkspaceError::libgit("write the tree", self.tree_dir, source);
        let shown = change.path.display();
        match change.what {
            What::Unreadable => left_out.push(format!("{shown} (cannot be read)")),
            What::Deleted => self.index.remove_path(&change.path).map_err(failed)?,
            What::Submodule if embedded == Embedded::Name => {
                left_out.push(format!("{shown} (a submodule with changes)"))
            }
            What::Submodule => {
                self.index.remove_path(&change.path).map_err(failed)?;
                left_out.push(format!("{shown}/.git (a submodule: its files are here, its own history is not)"));
                self.take_directory(&change.path, limit, left_out);
            }
            What::Conflict => {
                self.index.conflict_remove(&change.path).map_err(failed)?;
                self.take_path(&change.path, limit, embedded, left_out);
            }
            What::Content => match (change.cleaned, self.mode_of(&change.path)) {
                (Some(cleaned), Some(mode)) => {
                    self.index.add(&filtered_entry(&change.path, cleaned, mode)).map_err(failed)?;
                }
                _ => self.take_path(&change.path, limit, embedded, left_out),
            },
        }
        Ok(())
    }

    /// Adds one path. A path that cannot be added is listed in `left_out`, so that one bad file does not cost the others.
    fn take_path(&mut self, path: &Path, limit: u64, embedded: Embedded, left_out: &mut Vec<String>) {
        let full = self.tree_dir.join(path);
        let shown = path.display().to_string();
        let shown = shown.trim_end_matches('/');
        let found = match full.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let _ = self.index.remove_path(path);
                return;
            }
            Err(error) => return left_out.push(format!("{shown} ({error})")),
        };
        if found.is_dir() {
            if embedded == Embedded::Name {
                return left_out.push(format!("{shown} (a repository of its own)"));
            }
            left_out.push(format!("{shown}/.git (a repository of its own: its files are here, its history is not)"));
            return self.take_directory(path, limit, left_out);
        }
        if !found.is_file() && !found.file_type().is_symlink() {
            return left_out.push(format!("{shown} (not a regular file)"));
        }
        if found.len() > limit {
            return left_out.push(format!("{shown} ({} bytes, over the limit of {limit})", found.len()));
        }
        if let Err(error) = self.index.add_path(path) {
            left_out.push(format!("{shown} ({})", error.message()));
        }
    }

    fn take_directory(&mut self, path: &Path, limit: u64, left_out: &mut Vec<String>) {
        let full = self.tree_dir.join(path);
        let entries = match std::fs::read_dir(&full) {
            Ok(entries) => entries,
            Err(error) => return left_out.push(format!("{} ({error})", path.display())),
        };
        for entry in entries.flatten() {
            let inner = path.join(entry.file_name());
            if entry.file_name().as_bytes().eq_ignore_ascii_case(b".git")
                || self.repo.is_path_ignored(&inner).unwrap_or(false)
            {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.take_directory(&inner, limit, left_out);
            } else {
                self.take_path(&inner, limit, Embedded::TakeFiles, left_out);
            }
        }
    }
}

/// Whether git was told not to look at a file, although it is there: with `update-index --assume-unchanged` or `--skip-worktree`. In a
/// sparse checkout the second mark means that the file is not there, which is no change.
pub fn is_hidden(tree_dir: &Path, entry: &IndexEntry) -> bool {
    entry.flags & ASSUME_UNCHANGED != 0 || (entry.flags_extended & SKIP_WORKTREE != 0 && is_in_tree(tree_dir, entry))
}

fn is_in_tree(tree_dir: &Path, entry: &IndexEntry) -> bool {
    tree_dir.join(OsStr::from_bytes(&entry.path)).symlink_metadata().is_ok()
}

/// The index that matches a stored tree. Its file is deleted when this is dropped.
pub struct ScratchIndex {
    path: Option<PathBuf>,
    _dir: tempfile::TempDir,
}

impl ScratchIndex {
    /// Replaces the tree's own index with this one, unless another process has locked it.
    pub fn install(&self, git_dir: &Path) -> Result<(), WorkspaceError> {
        let target = git_dir.join("index");
        let lock = git_dir.join("index.lock");
        let Some(path) = &self.path else { return Ok(()) };
        let mut held = match std::fs::File::create_new(&lock) {
            Ok(held) => held,
            // The tree is removed soon; an index that is behind the branch does no harm.
            Err(_) => return Ok(()),
        };
        let moved = std::fs::File::open(path)
            .and_then(|mut from| std::io::copy(&mut from, &mut held))
            .and_then(|_| std::fs::rename(&lock, &target));
        moved.map_err(|source| {
            let _ = std::fs::remove_file(&lock);
            WorkspaceError::io("write", &target, source)
        })
    }
}

fn filtered_entry(path: &Path, id: Oid, mode: u32) -> IndexEntry {
    let never = git2::IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_os_str().as_bytes().to_vec(),
    }
}

fn copy_of_index(git_dir: &Path, scratch: &Path) -> Option<Index> {
    let from = git_dir.join("index");
    if !from.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let to = scratch.join("index");
    std::fs::copy(&from, &to).ok()?;
    let index = Index::open(&to).ok()?;
    (!index.is_empty()).then_some(index)
}

fn index_of_head(repo: &Repository, head: Option<Oid>, scratch: &Path) -> Result<Index, git2::Error> {
    let mut index = Index::open(&scratch.join("index-of-head"))?;
    if let Some(head) = head {
        index.read_tree(&repo.find_commit(head)?.tree()?)?;
    }
    Ok(index)
}
