//! Runs the user's own `git` as a subprocess: for the network (credential helpers, SSH agent) and for what libgit2 cannot do.
//!
//! An agent may have changed trees and repositories. So every call has a fixed configuration that runs no hook and no file-system monitor,
//! and inherits no environment variable that would point git to another repository.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::command::{self, CommandError, Input, Invocation, tail};
use super::repo::{CheckedOut, RepoPlace};

const FIXED: [&str; 14] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "core.quotePath=false",
];

const STDOUT_LIMIT: usize = 8 * 1024 * 1024;
const FILTERED_LIMIT: usize = 256 * 1024 * 1024;
const STDERR_LIMIT: usize = 64 * 1024;

/// The git program, and the time limit of each call.
#[derive(Debug, Clone)]
pub struct Git {
    program: OsString,
    timeout: Duration,
}

#[derive(Debug, Error)]
pub enum GitError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("`git {what}` in {cwd} failed ({status}): {}", tail(stderr))]
    Failed { what: String, cwd: PathBuf, status: String, code: Option<i32>, stderr: String },
}

impl GitError {
    /// Returns git's standard error, for callers that look for a path in it.
    pub fn stderr(&self) -> &str {
        match self {
            Self::Failed { stderr, .. } | Self::Command(CommandError::TimedOut { stderr, .. }) => stderr,
            Self::Command(_) => "",
        }
    }
}

impl Git {
    /// `timeout` limits each call.
    pub fn new(timeout: Duration) -> Self {
        Self { program: "git".into(), timeout }
    }

    /// Runs `git -C cwd args…` and returns its standard output.
    pub async fn run<I, S>(&self, cwd: &Path, args: I) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.invoke(cwd, args, Vec::new(), Vec::new()).await
    }

    /// Like [`Git::run`], with settings that override the repository's configuration.
    pub async fn run_with<I, S>(&self, cwd: &Path, args: I, settings: &[(String, String)]) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut env = vec![("GIT_CONFIG_COUNT".into(), settings.len().to_string().into())];
        for (at, (key, value)) in settings.iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
            env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        self.invoke(cwd, args, Vec::new(), env).await
    }

    /// Runs git on one checked-out tree of `place`, no matter what the tree's own `.git` file and `commondir` say.
    pub async fn run_on<I, S>(
        &self,
        place: &RepoPlace,
        tree: &CheckedOut,
        args: I,
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.invoke(&tree.path, args, stdin, pinned_to(place, tree)).await
    }

    /// Runs one of the user's clean filters on a file, as git would, and returns the filtered content.
    pub async fn clean_filter(
        &self,
        place: &RepoPlace,
        tree: &CheckedOut,
        command: &str,
        file: std::fs::File,
    ) -> Result<Vec<u8>, GitError> {
        let mut env = environment(std::env::vars_os());
        env.extend(pinned_to(place, tree));
        // The git that a filter calls must not run an agent's hook or file-system monitor either.
        let settings = [("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null")];
        env.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
        for (at, (key, value)) in settings.iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
            env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        let finished = command::run(Invocation {
            program: "sh".into(),
            leads_group: true,
            args: vec!["-c".into(), command.into()],
            cwd: tree.path.clone(),
            env,
            stdin: Input::File(file),
            timeout: self.timeout,
            stdout_limit: FILTERED_LIMIT,
            stderr_limit: STDERR_LIMIT,
        })
        .await?;
        if finished.status.success() && finished.stdout.dropped == 0 {
            return Ok(finished.stdout.bytes);
        }
        Err(GitError::Failed {
            what: format!("clean filter: {command}"),
            cwd: tree.path.clone(),
            status: finished.status.to_string(),
            code: finished.status.code(),
            stderr: finished.stderr.text(),
        })
    }

    /// Makes a commit with the user's signature. No person is there for a passphrase, so the signing program gets no display or terminal.
    pub async fn commit(
        &self,
        git_dir: &Path,
        args: Vec<String>,
        message: &str,
        mut env: Vec<(OsString, OsString)>,
    ) -> Result<Vec<u8>, GitError> {
        env.push(("GIT_DIR".into(), git_dir.into()));
        env.extend(["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY"].map(|name| (name.into(), OsString::new())));
        env.push(("SSH_ASKPASS_REQUIRE".into(), "never".into()));
        self.invoke(git_dir, args, message.as_bytes().to_vec(), env).await
    }

    async fn invoke<I, S>(
        &self,
        cwd: &Path,
        args: I,
        stdin: Vec<u8>,
        more_env: Vec<(OsString, OsString)>,
    ) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let what = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
        let mut env = environment(std::env::vars_os());
        env.extend(more_env);
        let finished = command::run(Invocation {
            program: self.program.clone(),
            leads_group: true,
            args: FIXED.iter().map(OsString::from).chain(args).collect(),
            cwd: cwd.to_owned(),
            env,
            stdin: if stdin.is_empty() { Input::Nothing } else { Input::Bytes(stdin) },
            timeout: self.timeout,
            stdout_limit: STDOUT_LIMIT,
            stderr_limit: STDERR_LIMIT,
        })
        .await?;
        if finished.status.success() {
            return Ok(finished.stdout.bytes);
        }
        Err(GitError::Failed {
            what,
            cwd: cwd.to_owned(),
            status: finished.status.to_string(),
            code: finished.status.code(),
            stderr: finished.stderr.text(),
        })
    }
}

fn pinned_to(place: &RepoPlace, tree: &CheckedOut) -> Vec<(OsString, OsString)> {
    let there = [("GIT_DIR", &tree.git_dir), ("GIT_COMMON_DIR", &place.git_dir), ("GIT_WORK_TREE", &tree.path)];
    there.map(|(name, path)| (OsString::from(name), path.as_os_str().to_owned())).to_vec()
}

/// Returns the runner's environment without variables that redirect git, plus variables that turn off git's prompts and translations.
pub(super) fn environment(ours: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    const KEPT: [&str; 7] = [
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_ASKPASS",
        "GIT_SSL_CAINFO",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
    ];
    const REPLACED: [&str; 3] = ["LC_ALL", "LANGUAGE", "LANG"];
    let mut env: Vec<_> = ours
        .filter(|(name, _)| match name.to_str() {
            Some(name) if name.starts_with("GIT_") => KEPT.contains(&name),
            Some(name) => !REPLACED.contains(&name) && !holds_a_secret(name),
            None => true,
        })
        .collect();
    env.push(("LC_ALL".into(), "C".into()));
    env.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
    env.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
    env.push(("GIT_EDITOR".into(), "true".into()));
    env
}

/// Whether a variable's name suggests a secret. A filter or helper planted in the repository must not find a token in its environment.
fn holds_a_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "API_KEY", "PRIVATE_KEY"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_redirect_git_are_not_inherited() {
        let ours = [
            ("GIT_DIR", "/x"),
            ("GIT_INDEX_FILE", "/y"),
            ("GIT_SSH_COMMAND", "ssh -v"),
            ("HOME", "/h"),
            ("LANG", "de"),
            ("GITHUB_TOKEN", "s3cret"),
        ];
        let env = environment(ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
        let has = |name: &str| env.iter().any(|(found, _)| found == name);
        assert!(!has("GIT_DIR") && !has("GIT_INDEX_FILE") && !has("LANG") && !has("GITHUB_TOKEN"));
        assert!(has("GIT_SSH_COMMAND") && has("HOME") && has("GIT_TERMINAL_PROMPT"));
    }

    #[tokio::test]
    async fn a_failure_keeps_what_git_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = Git::new(Duration::from_secs(60)).run(dir.path(), ["rev-parse", "HEAD"]).await.unwrap_err();
        assert!(error.to_string().contains("not a git repository"), "{error}");
        assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
    }
}
