//! The environment of the user's login shell, read once: agents, gates and hooks get what profiles set, and none of them starts a login
//! shell of its own. A profile may hold a lock or write a file, so it is interrupted only if necessary: the shell is left alone until it
//! exits, gets a TERM when it takes too long, and is killed only if that does not help.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, User, getuid};
use thiserror::Error;
use tokio::process::{Child, Command};

use super::adopted::Awaited;
use super::environment::Secrets;
use super::{find_program, procfs};
use crate::domain::run::ProcessMark;

/// The pause between two looks at a shell that got a TERM.
const LOOK: Duration = Duration::from_millis(20);

/// The most bytes that are read of the shell's output, including what a profile prints.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// The shells that support `-l` and `-c`, with the files that they read at a login: the system's, and the first of the user's that exists.
const SHELLS: [(&str, &[&str], &[&str]); 6] = [
    ("bash", &["/etc/profile"], &[".bash_profile", ".bash_login", ".profile"]),
    ("zsh", &["/etc/zsh/zprofile", "/etc/zprofile"], &[".zprofile", ".zshenv", ".zlogin"]),
    ("ksh", &["/etc/profile"], &[".profile"]),
    ("dash", &["/etc/profile"], &[".profile"]),
    ("ash", &["/etc/profile"], &[".profile"]),
    ("sh", &["/etc/profile"], &[".profile"]),
];

/// Variables of the shell itself, which mean nothing to other programs.
const OF_THE_SHELL: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

/// How long a login may take, and how long a shell may take to exit after a TERM.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub login: Duration,
    pub farewell: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { login: Duration::from_secs(10), farewell: Duration::from_secs(5) }
    }
}

#[derive(Debug, Error)]
pub enum LoginError {
    #[error("the login shell {} could not be started: {source}", .shell.display())]
    Start { shell: PathBuf, source: io::Error },
    #[error(
        "the login shell {} was not ready after {} s and was ended; it reads {}", .shell.display(), .after.as_secs(), list(.profiles)
    )]
    Hangs { shell: PathBuf, after: Duration, profiles: Vec<PathBuf> },
    #[error("the login shell {} ended ({how}) before it could tell its environment; it reads {}", .shell.display(), list(.profiles))]
    Fails { shell: PathBuf, how: String, profiles: Vec<PathBuf> },
}

impl LoginError {
    pub fn fix(&self) -> String {
        match self {
            Self::Start { .. } => "set SHELL to a shell that is there".into(),
            Self::Hangs { shell, .. } | Self::Fails { shell, .. } => {
                format!("try `{} -lc true </dev/null`, and mend the profile", shell.display())
            }
        }
    }
}

fn list(profiles: &[PathBuf]) -> String {
    match profiles {
        [] => "no profile".to_owned(),
        many => many.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// The result of a login.
#[derive(Debug, Clone)]
pub struct Login {
    pub shell: PathBuf,
    pub took: Duration,
    pub environment: BTreeMap<String, String>,
}

/// The user's environment, kept for as long as the runner runs: read at its start and at every reload, shared by everything that it starts.
#[derive(Debug, Clone)]
pub struct LoginEnvironment {
    own: Arc<BTreeMap<String, String>>,
    read: Arc<BTreeMap<String, String>>,
}

impl LoginEnvironment {
    /// Makes one. `own` is the environment of this process, which is used until a login was read.
    pub fn of(own: &BTreeMap<String, String>) -> Self {
        let own = Arc::new(own.clone());
        Self { read: own.clone(), own }
    }

    pub fn get(&self) -> Arc<BTreeMap<String, String>> {
        self.read.clone()
    }

    /// Reads the login environment again. Without a usable login shell, uses this process's environment and logs the reason.
    pub async fn read(&mut self, secrets: &Secrets) {
        self.read = match read(&self.own, secrets, Patience::default()).await {
            Ok(login) => {
                let took = u64::try_from(login.took.as_millis()).unwrap_or(u64::MAX);
                tracing::debug!(shell = %login.shell.display(), took_ms = took, "the login environment is read");
                Arc::new(login.environment)
            }
            Err(error) => {
                tracing::warn!("{error}; going on with the runner's own environment; fix: {}", error.fix());
                self.own.clone()
            }
        };
    }
}

/// Starts the user's login shell once, without Dirigent's secrets, and returns the environment that it ends up with. The folders of this
/// process's `PATH` stay first.
pub async fn read(own: &BTreeMap<String, String>, secrets: &Secrets, patience: Patience) -> Result<Login, LoginError> {
    let home = own.get("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let (shell, profiles) = shell_of(own.get("SHELL").map(String::as_str), home.as_deref());
    let began = Instant::now();
    let started = |source| LoginError::Start { shell: shell.clone(), source };
    let mark = format!("environment-{}", ulid::Ulid::generate());
    // A file and not a pipe: if the runner were killed, a pipe without a reader would interrupt the profile.
    let mut output = tempfile::tempfile().map_err(started)?;
    let handed: BTreeMap<_, _> = own.iter().filter(|(name, value)| !secrets.hide(name, value)).collect();
    let mut command = command(&shell, &mark, own);
    command
        .env_clear()
        .envs(&handed)
        .current_dir(home.as_deref().unwrap_or(Path::new("/")))
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(started)?)
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(started)?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
    let _awaited = Awaited::new(pid);
    let status = match tokio::time::timeout(patience.login, child.wait()).await {
        Ok(status) => status.map_err(started)?,
        Err(_) => {
            end(&mut child, pid, patience.farewell).await;
            return Err(LoginError::Hangs { shell, after: patience.login, profiles });
        }
    };
    let Some(mut environment) = told(&mut output, &mark) else {
        return Err(LoginError::Fails { shell, how: status.to_string(), profiles });
    };
    if let Some(path) = joined(own.get("PATH"), environment.get("PATH")) {
        environment.insert("PATH".into(), path);
    }
    Ok(Login { shell, took: began.elapsed(), environment })
}

/// Returns the command that starts the shell in a session of its own, so that neither the terminal nor its keys reach a profile.
fn command(shell: &Path, mark: &str, own: &BTreeMap<String, String>) -> Command {
    let env = ["/usr/bin/env", "/bin/env"].into_iter().find(|path| Path::new(path).exists()).unwrap_or("env");
    let script = format!("printf '\\0{mark}\\0'; {env} -0; printf '\\0{mark}\\0'");
    let setsid = find_program("setsid", own.get("PATH").map_or("", String::as_str));
    let mut command = match setsid {
        Some(setsid) => {
            let mut command = Command::new(setsid);
            command.arg(shell);
            command
        }
        None => {
            let mut command = Command::new(shell);
            command.process_group(0);
            command
        }
    };
    command.args(["-l", "-c", &script]);
    command
}

/// Sends TERM to everything that the shell started, and kills what is left after `farewell`.
async fn end(child: &mut Child, pid: i32, farewell: Duration) {
    if pid <= 1 {
        return;
    }
    let marks = |pids: Vec<i32>| pids.into_iter().filter_map(procfs::mark).collect::<Vec<ProcessMark>>();
    let mut family = marks(procfs::descendants(pid));
    let signal_all = |family: &[ProcessMark], signal: Signal| {
        for mark in family.iter().filter(|mark| procfs::alive(**mark)) {
            kill(Pid::from_raw(mark.pid), signal).ok();
        }
    };
    killpg(Pid::from_raw(pid), Signal::SIGTERM).ok();
    signal_all(&family, Signal::SIGTERM);
    let asked = Instant::now();
    let mut ended = false;
    while asked.elapsed() < farewell {
        ended = ended || tokio::time::timeout(LOOK, child.wait()).await.is_ok();
        if ended && !family.iter().any(|mark| procfs::alive(*mark)) {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    if !ended {
        family.extend(marks(procfs::descendants(pid)));
        killpg(Pid::from_raw(pid), Signal::SIGKILL).ok();
    }
    signal_all(&family, Signal::SIGKILL);
    child.wait().await.ok();
}

/// Returns the environment that the shell printed between the last two marks. `None` if they are missing.
fn told(output: &mut File, mark: &str) -> Option<BTreeMap<String, String>> {
    let mut bytes = Vec::new();
    output.rewind().ok()?;
    output.take(OUTPUT_LIMIT).read_to_end(&mut bytes).ok()?;
    let mark = format!("\0{mark}\0");
    let text = String::from_utf8_lossy(&bytes);
    let (before, _) = text.rsplit_once(&mark)?;
    let (_, entries) = before.rsplit_once(&mark)?;
    let entries = entries.split('\0').filter_map(|entry| entry.split_once('='));
    let kept = entries.filter(|(name, value)| {
        // Values that are not UTF-8 are left out, as in this process's own environment.
        !name.is_empty() && !OF_THE_SHELL.contains(name) && !value.contains(char::REPLACEMENT_CHARACTER)
    });
    Some(kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Joins two `PATH`s: first this process's folders, then those that the profile added.
fn joined(own: Option<&String>, login: Option<&String>) -> Option<String> {
    let mut folders: Vec<&str> = Vec::new();
    for folder in [own, login].into_iter().flatten().flat_map(|path| path.split(':')) {
        if !folder.is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    (!folders.is_empty()).then(|| folders.join(":"))
}

/// Returns the user's shell if it is a known one, else bash or `sh`; and the profiles that it reads.
fn shell_of(wanted: Option<&str>, home: Option<&Path>) -> (PathBuf, Vec<PathBuf>) {
    let by_account = || User::from_uid(getuid()).ok().flatten().map(|user| user.shell);
    let wanted = wanted.filter(|shell| !shell.is_empty()).map(PathBuf::from).or_else(by_account);
    let others = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"].map(PathBuf::from);
    let known = |shell: &PathBuf| {
        let name = shell.file_name()?.to_str()?;
        let known = SHELLS.iter().find(|(known, ..)| *known == name)?;
        find_program(shell.to_str()?, "")?;
        Some((shell.clone(), known))
    };
    let Some((shell, (_, system, personal))) = wanted.iter().chain(&others).find_map(known) else {
        return ("/bin/sh".into(), Vec::new());
    };
    let system = system.iter().map(PathBuf::from).filter(|path| path.exists());
    let personal = personal.iter().filter_map(|name| Some(home?.join(name))).find(|path| path.exists());
    (shell, system.chain(personal).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_marks_count_and_noise_of_profiles_does_not() {
        let mut file = tempfile::tempfile().unwrap();
        let text = "welcome\n\0m\0A=no\0\0m\0 hello \0m\0A=1\0B=two\nlines\0_=/usr/bin/env\0SHLVL=1\0\0m\0bye";
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        let told = told(&mut file, "m").unwrap();
        assert_eq!(told, BTreeMap::from([("A", "1"), ("B", "two\nlines")].map(|(n, v)| (n.to_owned(), v.to_owned()))));
    }

    #[test]
    fn our_folders_stay_first_and_none_comes_twice() {
        let (own, login) = ("/own:/usr/bin".to_owned(), "/usr/bin:/profile:/own".to_owned());
        assert_eq!(joined(Some(&own), Some(&login)).as_deref(), Some("/own:/usr/bin:/profile"));
        assert_eq!(joined(None, Some(&login)).as_deref(), Some("/usr/bin:/profile:/own"));
        assert_eq!(joined(None, None), None);
    }

    #[test]
    fn a_shell_that_cannot_be_asked_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".profile"), "").unwrap();
        let (shell, profiles) = shell_of(Some("/usr/sbin/nologin"), Some(home.path()));
        assert!(SHELLS.iter().any(|(name, ..)| shell.file_name().unwrap() == *name), "{}", shell.display());
        assert_eq!(profiles.last(), Some(&home.path().join(".profile")));
    }
}
