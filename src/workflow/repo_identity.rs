//! Finds the runner's folder for a repository. Its name is kept in the repository's git directory, so that a repository that was moved
//! finds its state again. A copy of a repository contains the same name but does not get the original's folder.

use std::io;
use std::path::{Path, PathBuf};

use super::resolve::{Env, dirigent_home, path_mark};

/// The file in the git directory that holds the name of the runner's folder.
const IDENTITY: &str = "dirigent-id";
/// The file in the runner's folder that holds the path of the repository.
const PLACE: &str = "repo";

/// Returns a name for a repository's own folders: the kept one, else one made from its path. Two repositories with the same folder name do
/// not share it.
pub fn repo_mark(repo: &Path, env: &Env) -> String {
    kept(repo, env).unwrap_or_else(|| path_mark(repo))
}

fn kept(repo: &Path, env: &Env) -> Option<String> {
    let mark = named_in(repo)?;
    let place = std::fs::read_to_string(dirigent_home(env).join("repos").join(&mark).join(PLACE)).ok()?;
    let place = PathBuf::from(place.trim_end_matches('\n'));
    let original_is_elsewhere = place != repo && named_in(&place).is_some_and(|other| other == mark);
    (!original_is_elsewhere).then_some(mark)
}

/// Returns the name kept in the repository. Only a plain name is accepted, so the file cannot point elsewhere.
fn named_in(repo: &Path) -> Option<String> {
    let text = std::fs::read_to_string(repo.join(".git").join(IDENTITY)).ok()?;
    let mark = text.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '@');
    (!mark.is_empty() && !mark.starts_with('.') && mark.chars().all(plain)).then(|| mark.to_owned())
}

/// Records that `state_dir` belongs to this repository. Does nothing for a linked worktree or a bare repository; those are known by their
/// path alone.
pub fn keep(repo: &Path, state_dir: &Path) -> io::Result<()> {
    let Some(mark) = state_dir.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    let git_dir = repo.join(".git");
    if !git_dir.is_dir() {
        return Ok(());
    }
    std::fs::write(state_dir.join(PLACE), format!("{}\n", repo.display()))?;
    let file = git_dir.join(IDENTITY);
    if std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == mark) {
        return Ok(());
    }
    std::fs::write(file, format!("{mark}\n"))
}
