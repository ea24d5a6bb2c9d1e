//! What a head changes beyond its base, as text for people, limited in size.

use git2::{DiffFormat, DiffOptions};

use super::Workspaces;
use super::error::WorkspaceError;

/// A diff between two commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    pub base: String,
    pub head: String,
    pub files: Vec<PatchedFile>,
    /// The diff in the format of `git diff`.
    pub text: String,
    /// Whether the text was truncated at the limit.
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}

impl Workspaces {
    /// Returns the diff from the commit where `head` left `base`. Both are names that git resolves; `limit` is in bytes of text.
    pub async fn patch(&self, base: &str, head: &str, limit: usize) -> Result<Patch, WorkspaceError> {
        let (base, head) = (base.to_owned(), head.to_owned());
        self.blocking("comparing commits", move |shared| {
            let failed = |source| WorkspaceError::libgit("compare commits", &shared.place.git_dir, source);
            let repo = shared.place.open()?;
            let commit = |name: &str| repo.revparse_single(name).and_then(|found| found.peel_to_commit());
            let (base, head) = (commit(&base).map_err(failed)?, commit(&head).map_err(failed)?);
            let fork = repo.merge_base(base.id(), head.id()).unwrap_or(base.id());
            let old = repo.find_commit(fork).and_then(|fork| fork.tree()).map_err(failed)?;
            let new = head.tree().map_err(failed)?;
            let mut options = DiffOptions::new();
            options.max_size(i64::try_from(limit).unwrap_or(i64::MAX));
            let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options)).map_err(failed)?;
            let mut patch = Patch { base: base.id().to_string(), head: head.id().to_string(), ..Patch::default() };
            let printed = diff.print(DiffFormat::Patch, |delta, _, line| {
                if patch.text.len() + line.content().len() > limit {
                    patch.cut = true;
                    return false;
                }
                let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default();
                let path = String::from_utf8_lossy(path);
                if patch.files.last().is_none_or(|last| last.path != path) {
                    patch.files.push(PatchedFile { path: path.into_owned(), added: 0, removed: 0 });
                }
                if let Some(file) = patch.files.last_mut() {
                    file.added += usize::from(line.origin() == '+');
                    file.removed += usize::from(line.origin() == '-');
                }
                if matches!(line.origin(), '+' | '-' | ' ') {
                    patch.text.push(line.origin());
                }
                patch.text.push_str(&String::from_utf8_lossy(line.content()));
                true
            });
            // libgit2 reports an error when the callback stops the output.
            printed.or_else(|error| if patch.cut { Ok(()) } else { Err(failed(error)) })?;
            Ok(patch)
        })
        .await
    }
}
