//! Keeps the runner's own files in a repository out of git, through `info/exclude`. No tracked file is changed for it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use super::repo::RepoPlace;

/// Excludes `.dirigent/`, except for templates, hooks and reviewers: these belong to the team and are meant to be committed.
const OURS: [&str; 4] = ["/.dirigent/*", "!/.dirigent/templates/", "!/.dirigent/hooks/", "!/.dirigent/agents/"];

/// Adds the missing lines to `info/exclude`. `state_file` is excluded, too, if it lies in the repository.
pub fn keep_out_of_git(repo: &Path, state_file: Option<&Path>) -> io::Result<()> {
    // Without a repository there is nothing to exclude.
    let Ok(place) = RepoPlace::find(repo) else { return Ok(()) };
    let mut wanted: Vec<String> = OURS.map(str::to_owned).to_vec();
    wanted.extend(place.work_tree.as_deref().and_then(|tree| state_patterns(tree, state_file?)).into_iter().flatten());
    let folder = place.git_dir.join("info");
    let path = folder.join("exclude");
    let known = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let missing: Vec<String> =
        wanted.into_iter().filter(|line| !known.lines().any(|known| known.trim() == line)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    let begin = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    file.write_all(format!("{begin}{}\n", missing.join("\n")).as_bytes())
}

/// Returns the lines for the state file: its whole folder if that is `.bkit`, else the file and its temporary files.
fn state_patterns(tree: &Path, file: &Path) -> Option<Vec<String>> {
    let tree = tree.canonicalize().ok()?;
    let inside = file.strip_prefix(&tree).ok()?;
    let folder = inside.parent()?.to_str()?;
    if folder == ".bkit" {
        return Some(vec!["/.bkit/".into()]);
    }
    let under = if folder.is_empty() { String::new() } else { format!("/{folder}") };
    Some(vec![format!("/{}", inside.to_str()?), format!("{under}/.agent-state.*")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude_of(repo: &Path) -> String {
        std::fs::read_to_string(repo.join(".git/info/exclude")).unwrap()
    }

    #[test]
    fn the_lines_are_added_once_behind_what_people_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().canonicalize().unwrap();
        git2::Repository::init(&repo).unwrap();
        std::fs::write(repo.join(".git/info/exclude"), "mine").unwrap();
        for _ in 0..2 {
            keep_out_of_git(&repo, Some(&repo.join(".bkit/agent-state.json"))).unwrap();
        }
        let text = exclude_of(&repo);
        assert!(text.starts_with("mine\n/.dirigent/*\n"), "{text}");
        assert_eq!(text.matches("/.bkit/").count(), 1, "{text}");
        let git = git2::Repository::open(&repo).unwrap();
        let ignored = |path: &str| git.is_path_ignored(path).unwrap();
        assert!(ignored(".bkit/agent-state.json") && ignored(".dirigent/pause"));
        assert!(!ignored(".dirigent/templates/prompt.md") && !ignored(".dirigent/hooks/on_idle.sh"));
    }

    #[test]
    fn a_state_file_elsewhere_does_not_hide_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().canonicalize().unwrap();
        git2::Repository::init(&repo).unwrap();
        keep_out_of_git(&repo, Some(&repo.join("ops/state.json"))).unwrap();
        let git = git2::Repository::open(&repo).unwrap();
        assert!(git.is_path_ignored("ops/state.json").unwrap() && git.is_path_ignored("ops/.agent-state.x").unwrap());
        assert!(!git.is_path_ignored("ops/other").unwrap());
    }

    #[test]
    fn a_folder_without_a_repository_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        keep_out_of_git(folder.path(), None).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
