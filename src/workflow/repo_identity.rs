//! Which of the runner's folders belongs to a repository. The name is kept in the repository's git directory, so that a repository
//! that was moved finds its state again; a copy carries the same name and does not get what is the original's.

use std::io;
use std::path::{Path, PathBuf};

use super::resolve::{Env, dirigent_home, path_mark};

/// In the git directory: the name of the runner's folder.
const IDENTITY: &str = "dirigent-id";
/// In the runner's folder: where the repository is.
const PLACE: &str = "repo";

/// A name for a repository's own folders. Two repositories of the same name do not share one.
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

/// Only a name: whatever else stands there does not lead anywhere.
fn named_in(repo: &Path) -> Option<String> {
    let text = std::fs::read_to_string(repo.join(".git").join(IDENTITY)).ok()?;
    let mark = text.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '@');
    (!mark.is_empty() && !mark.starts_with('.') && mark.chars().all(plain)).then(|| mark.to_owned())
}

/// Writes down that `state_dir` is this repository's. A linked worktree or a bare repository is known by its path alone.
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
