//! Finds out which clients are installed on this machine, and in which version.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::launcher::find_program;
use crate::workspace::command::{self, Input, Invocation};

/// How long to wait for a client's version.
const PATIENCE: Duration = Duration::from_secs(20);
const OUTPUT_LIMIT: usize = 4096;

/// The variables that a client gets when it is called with `--version`: enough to find its interpreter and home, but no keys.
const VARIABLES: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR", "SHELL", "XDG_CONFIG_HOME"];

#[derive(Debug, Clone, Serialize)]
pub struct Installed {
    pub path: PathBuf,
    /// The version; `None` if the client printed none.
    pub version: Option<String>,
}

/// Searches the `PATH` for the program and asks it for its version. `None` if it is not installed.
pub async fn find(program: &str, env: &BTreeMap<String, String>) -> Option<Installed> {
    let path = find_program(program, env.get("PATH").map_or("", String::as_str))?;
    let known = |name: &&str| env.get(*name).map(|value| (OsString::from(*name), OsString::from(value)));
    let invocation = Invocation {
        program: path.clone().into(),
        leads_group: true,
        args: vec!["--version".into()],
        cwd: std::env::temp_dir(),
        env: VARIABLES.iter().filter_map(known).collect(),
        stdin: Input::Nothing,
        timeout: PATIENCE,
        stdout_limit: OUTPUT_LIMIT,
        stderr_limit: OUTPUT_LIMIT,
    };
    let finished = command::run(invocation).await.ok().filter(|finished| finished.status.success());
    let version = finished.and_then(|finished| version_in(&finished.stdout.text(), &finished.stderr.text()));
    Some(Installed { path, version })
}

/// Returns the first word that begins with a digit and contains a dot. Clients print their name before or after it.
fn version_in(stdout: &str, stderr: &str) -> Option<String> {
    let version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let words = stdout.split_whitespace().chain(stderr.split_whitespace());
    words.map(|word| word.trim_start_matches('v')).find(version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_wherever_it_stands() {
        assert_eq!(version_in("codex-cli 0.166.0\n", "").as_deref(), Some("0.166.0"));
        assert_eq!(version_in("2.1.3 (Claude Code)", "").as_deref(), Some("2.1.3"));
        assert_eq!(version_in("", "v1.2.3\n").as_deref(), Some("1.2.3"));
        assert_eq!(version_in("usage: agent", ""), None);
    }
}
