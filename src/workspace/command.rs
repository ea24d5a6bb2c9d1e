//! Runs one child process until it exits: own process group, time limit, bounded output. Used for git and for the workspace hooks.
//!
//! It knows nothing of what the child is for, and never leaves a child running after its time limit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// How long the output of a finished child is still read if a process that it left behind keeps the pipes open.
const DRAIN_AFTER_EXIT: Duration = Duration::from_secs(2);

/// What to run, and with which limits.
#[derive(Debug)]
pub struct Invocation {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Whether the child is made the leader of a process group. `false` for a program that starts its own session: that would fail.
    pub leads_group: bool,
    pub cwd: PathBuf,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub stdin: Input,
    pub timeout: Duration,
    pub stdout_limit: usize,
    pub stderr_limit: usize,
}

/// The child's standard input.
#[derive(Debug)]
pub enum Input {
    Nothing,
    Bytes(Vec<u8>),
    File(std::fs::File),
}

/// The exit status and output of a child.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Captured,
    pub stderr: Captured,
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// Number of bytes before these that were read and dropped.
    pub dropped: u64,
}

impl Captured {
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match self.dropped {
            0 => text.into_owned(),
            dropped => format!("[{dropped} bytes before this were left out]\n{text}"),
        }
    }
}

#[derive(Debug, Error)]
pub enum CommandError {
    #[error("`{program}` could not be started in {cwd}: {source}")]
    Start { program: String, cwd: PathBuf, source: std::io::Error },
    #[error("`{program}` could not be waited for: {source}")]
    Wait { program: String, source: std::io::Error },
    #[error("`{program}` was still running after {} ms and was stopped: {}", limit.as_millis(), tail(stderr))]
    TimedOut { program: String, limit: Duration, stderr: String },
}

/// Returns the end of a message, at most 600 characters.
pub fn tail(text: &str) -> String {
    const KEEP: usize = 600;
    let text = text.trim();
    if text.is_empty() {
        return "it printed nothing".to_owned();
    }
    let start = text.char_indices().rev().nth(KEEP - 1).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text).to_owned()
}

/// Runs the child until it exits. Dropping the future kills the whole process group.
pub async fn run(invocation: Invocation) -> Result<Finished, CommandError> {
    run_and_tell(invocation, |_| {}).await
}

/// Like [`run`], and calls `started` with the process id as soon as it is known.
pub async fn run_and_tell(invocation: Invocation, started: impl FnOnce(i32)) -> Result<Finished, CommandError> {
    let program = invocation.program.to_string_lossy().into_owned();
    let (stdin, bytes) = match invocation.stdin {
        Input::Nothing => (Stdio::null(), Vec::new()),
        Input::Bytes(bytes) => (Stdio::piped(), bytes),
        Input::File(file) => (Stdio::from(file), Vec::new()),
    };
    let mut command = Command::new(&invocation.program);
    command
        .args(&invocation.args)
        .current_dir(&invocation.cwd)
        .env_clear()
        .envs(invocation.env.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if invocation.leads_group {
        command.process_group(0);
    }
    let child = command.spawn().map_err(|source| CommandError::Start {
        program: program.clone(),
        cwd: invocation.cwd.clone(),
        source,
    })?;
    let mut group = Group { child };
    if let Some(pid) = group.child.id().and_then(|pid| i32::try_from(pid).ok()) {
        started(pid);
    }
    let stdin = group.child.stdin.take();
    let mut stdout = Tail::new(invocation.stdout_limit);
    let mut stderr = Tail::new(invocation.stderr_limit);
    let out_pipe = group.child.stdout.take();
    let err_pipe = group.child.stderr.take();

    let ended = {
        let feed = async {
            if let Some(mut pipe) = stdin {
                // A child that closes its input early is judged by its exit status.
                let _ = pipe.write_all(&bytes).await;
            }
        };
        let talk = async { tokio::join!(feed, stdout.drain(out_pipe), stderr.drain(err_pipe)) };
        tokio::pin!(talk);
        let deadline = tokio::time::sleep(invocation.timeout);
        tokio::pin!(deadline);
        let mut talking = true;
        loop {
            tokio::select! {
                status = group.child.wait() => {
                    if talking {
                        let _ = tokio::time::timeout(DRAIN_AFTER_EXIT, &mut talk).await;
                    }
                    break Some(status);
                }
                _ = &mut talk, if talking => talking = false,
                () = &mut deadline => break None,
            }
        }
    };
    match ended {
        Some(status) => {
            let status = status.map_err(|source| CommandError::Wait { program, source })?;
            Ok(Finished { status, stdout: stdout.into(), stderr: stderr.into() })
        }
        None => {
            group.kill();
            let _ = group.child.wait().await;
            let stderr = Captured::from(stderr).text();
            Err(CommandError::TimedOut { program, limit: invocation.timeout, stderr })
        }
    }
}

/// The child and everything in its process group.
struct Group {
    child: Child,
}

impl Group {
    /// Kills the group. Does so only while the child is not reaped, because its pid could belong to another process later.
    fn kill(&mut self) {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps the last `limit` bytes of a stream while reading all of it.
struct Tail {
    limit: usize,
    bytes: Vec<u8>,
    dropped: u64,
}

impl Tail {
    fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), dropped: 0 }
    }

    async fn drain(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0_u8; 16 * 1024];
        while let Ok(count) = pipe.read(&mut chunk).await {
            if count == 0 {
                break;
            }
            self.push(chunk.get(..count).unwrap_or_default());
        }
    }

    fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        // Trimmed only at twice the limit, so that a long stream does not move the buffer at every read.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..excess);
        self.dropped = self.dropped.saturating_add(excess as u64);
    }
}

impl From<Tail> for Captured {
    fn from(mut tail: Tail) -> Self {
        tail.trim();
        Self { bytes: tail.bytes, dropped: tail.dropped }
    }
}

/// Returns an invocation of `sh -c script`. `cwd` must be absolute: the child would resolve a relative one against the runner's directory.
pub fn shell(script: &str, cwd: &Path, env: Vec<(OsString, OsString)>, timeout: Duration, limit: usize) -> Invocation {
    Invocation {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        leads_group: true,
        cwd: cwd.to_owned(),
        env,
        stdin: Input::Nothing,
        timeout,
        stdout_limit: limit,
        stderr_limit: limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Vec<(OsString, OsString)> {
        std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect()
    }

    fn script(text: &str, timeout: Duration) -> Invocation {
        shell(text, Path::new("/"), environment(), timeout, 64)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn output_is_cut_to_its_tail() {
        let finished = run(script("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done", LONG)).await.unwrap();
        assert!(finished.status.success());
        assert!(finished.stdout.text().ends_with("line 499\n"));
        assert_eq!(finished.stdout.bytes.len(), 64);
        assert!(finished.stdout.dropped > 0);
    }

    #[tokio::test]
    async fn a_timeout_ends_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let text = format!("sleep 300 & echo $! > {}; wait", pid_file.display());
        let error = run(script(&text, Duration::from_millis(1500))).await.unwrap_err();
        assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
        let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        let gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => nix::sys::signal::kill(Pid::from_raw(pid), None).is_err(),
        };
        for _ in 0..200 {
            if gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the grandchild {pid} lives on");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let mut invocation = script("", LONG);
        invocation.program = "no-such-program".into();
        let error = run(invocation).await.unwrap_err();
        assert!(error.to_string().contains("`no-such-program` could not be started in /"), "{error}");
    }

    #[test]
    fn the_tail_is_cut_at_a_character() {
        assert_eq!(tail("  "), "it printed nothing");
        assert_eq!(tail(&"ä".repeat(1000)), "ä".repeat(600));
    }
}
