//! The reviewer's profile: a file of the user's that says how to review. `review.agent` gives its name.
//!
//! It is read from the user's own work tree and home, never from the tree under review, because a change must not choose its own reviewer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::worker::Runtime;

/// The size limit of a profile in bytes. Longer files are ignored.
const LONGEST: u64 = 256 << 10;

/// Returns the files that may hold the profile, in the order of preference: the repository's first, then those in the user's home.
pub fn places(runtime: Runtime, name: &str, repo: &Path, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = |rest: &str| variable("HOME").map(|home| home.join(rest));
    let theirs = match runtime {
        Runtime::Codex => {
            vec![
                Some(repo.join(".codex/prompts")),
                variable("CODEX_HOME").or(home(".codex")).map(|at| at.join("prompts")),
            ]
        }
        Runtime::Claude => vec![
            Some(repo.join(".claude/agents")),
            variable("CLAUDE_CONFIG_DIR").or(home(".claude")).map(|at| at.join("agents")),
        ],
        Runtime::Pi => vec![
            Some(repo.join(".pi/agents")),
            variable("PI_CODING_AGENT_DIR").or(home(".pi/agent")).map(|at| at.join("agents")),
        ],
        Runtime::Acp | Runtime::Exec => Vec::new(),
    };
    let own = repo.join(".dirigent/agents");
    [Some(own)].into_iter().chain(theirs).flatten().map(|place| place.join(format!("{name}.md"))).collect()
}

/// Returns the first of these files that exists and is not too long.
pub fn file(runtime: Runtime, name: &str, repo: &Path, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    // Only a plain name is accepted, not a path.
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    let readable = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    places(runtime, name, repo, environment).into_iter().find(readable)
}

/// Returns the text of the profile without its front matter. `None` if there is no such file or it is empty.
pub fn profile(
    runtime: Runtime,
    name: Option<&str>,
    repo: &Path,
    environment: &BTreeMap<String, String>,
) -> Option<String> {
    let name = name?;
    let text = file(runtime, name, repo, environment).and_then(|path| fs::read_to_string(path).ok());
    if text.is_none() {
        tracing::info!(agent = name, runtime = runtime.name(), "no such reviewer is there; the built-in one reviews");
    }
    text.map(|text| body(&text).to_owned()).filter(|text| !text.is_empty())
}

fn body(text: &str) -> &str {
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).map(|(_, body)| body);
    body.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_the_users_file_and_not_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, home) = (dir.path().join("repo"), dir.path().join("home"));
        let environment = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        let asked = |name| profile(Runtime::Claude, Some(name), &repo, &environment);
        assert_eq!(asked("strict"), None);
        fs::create_dir_all(home.join(".claude/agents")).unwrap();
        fs::write(home.join(".claude/agents/strict.md"), "---\nname: strict\n---\n\nBe strict.\n").unwrap();
        assert_eq!(asked("strict").as_deref(), Some("Be strict."));
        fs::create_dir_all(repo.join(".claude/agents")).unwrap();
        fs::write(repo.join(".claude/agents/strict.md"), "Be strict here.").unwrap();
        assert_eq!(asked("strict").as_deref(), Some("Be strict here."), "the repository's own comes first");
        assert_eq!(asked("../agents/strict"), None);
        assert_eq!(profile(Runtime::Pi, Some("strict"), &repo, &environment), None);
    }
}
