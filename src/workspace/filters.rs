//! Clean filters of the user (large files, encryption). libgit2 runs none, so an unchanged filtered file would look changed, and a changed
//! one would be stored unfiltered.
//!
//! The commands are read once, before any agent has run. A filter that is configured later under the same name does not count.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{AttrCheckFlags, Oid, Repository};

use super::git::Git;
use super::repo::{CheckedOut, RepoPlace};

/// The filters that may run, by name, and the git that runs them.
#[derive(Debug, Clone)]
pub struct Filters {
    clean: BTreeMap<String, String>,
    /// All `filter.*` settings that run something, as they were at the start.
    at_start: BTreeMap<String, String>,
    git: Git,
}

/// The settings of a filter that make git run a program, or fail without it.
const RUN: [&str; 4] = ["clean", "smudge", "process", "required"];

impl Filters {
    pub fn read(repo: &Repository, git: Git) -> Self {
        let mut clean = BTreeMap::new();
        let at_start = configured(repo);
        if let Ok(config) = repo.config()
            && let Ok(mut entries) = config.entries(Some("^filter\\..*\\.clean$"))
        {
            while let Some(Ok(entry)) = entries.next() {
                if !entry.has_value() {
                    continue;
                }
                let (Ok(name), Ok(command)) = (entry.name(), entry.value()) else { continue };
                let name = name.strip_prefix("filter.").and_then(|name| name.strip_suffix(".clean"));
                if let Some(name) = name.filter(|_| !command.trim().is_empty()) {
                    clean.insert(name.to_owned(), command.to_owned());
                }
            }
        }
        Self { clean, at_start, git }
    }

    /// Returns settings that restore the filters as they were at the start, to override the repository's configuration before files are
    /// written. A filter that was planted since then runs nothing.
    pub fn pinned(&self, repo: &Repository) -> Vec<(String, String)> {
        let now = configured(repo).into_iter().filter(|(key, value)| self.at_start.get(key) != Some(value));
        now.map(|(key, _)| {
            let neutral = if key.ends_with(".required") { "false" } else { "" };
            let value = self.at_start.get(&key).cloned().unwrap_or_else(|| neutral.to_owned());
            (key, value)
        })
        .collect()
    }

    /// Stores the filtered content of a file. Returns `None` if no filter applies or the filter fails; the content is then stored
    /// unfiltered, because losing it would be worse. Must be called from a blocking thread of the runtime.
    pub fn store(&self, repo: &Repository, place: &RepoPlace, tree: &CheckedOut, path: &Path) -> Option<Oid> {
        if self.clean.is_empty() {
            return None;
        }
        let name = repo.get_attr(path, "filter", AttrCheckFlags::FILE_THEN_INDEX).ok()??;
        let command = self.clean.get(name)?;
        let full = tree.path.join(path);
        if !full.symlink_metadata().ok()?.is_file() {
            return None;
        }
        let command = command.replace("%f", &quoted(path)?);
        let file = std::fs::File::open(&full).ok()?;
        let made = self.git.clean_filter(place, tree, &command, file);
        let bytes = tokio::runtime::Handle::current().block_on(made).ok()?;
        repo.blob(&bytes).ok()
    }
}

fn configured(repo: &Repository) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // A snapshot reads the files now, not as they were when the repository was opened.
    let Ok(config) = repo.config().and_then(|mut config| config.snapshot()) else { return found };
    let Ok(mut entries) = config.entries(Some("^filter\\.")) else { return found };
    while let Some(Ok(entry)) = entries.next() {
        let Ok(name) = entry.name() else { continue };
        if RUN.iter().any(|key| name.rsplit('.').next() == Some(key)) {
            let value = if entry.has_value() { entry.value().unwrap_or_default() } else { "true" };
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found
}

/// Quotes a path as one word for the shell.
fn quoted(path: &Path) -> Option<String> {
    Some(format!("'{}'", path.to_str()?.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_the_shell() {
        assert_eq!(quoted(Path::new("it's; rm -rf x")).unwrap(), r"'it'\''s; rm -rf x'");
    }
}
