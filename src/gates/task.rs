//! Runs the gates of `gates.task` and the repository's own script on an exact commit, in a fresh worktree that is removed
//! afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::hook::HookCall;
use crate::config::gates::{GatesSettings, TASK_COMPLETED};
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;
use crate::launcher::{Child, Exit, LaunchError, LaunchOrder, Launcher, Leftover};
use crate::workspace::{WorkspaceError, Workspaces, Worktree};

/// The most bytes that are kept of a command's output. The end of the output is kept.
const TAIL: usize = 8 << 10;
/// How long pipes are still read after the command has exited, in case another process holds them open.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
pub enum GateError {
    #[error("the commit could not be checked out for its gates: {0}")]
    Workspace(#[from] WorkspaceError),
    #[error("gate `{gate}` could not be started: {source}")]
    Launch { gate: String, source: LaunchError },
    #[error("the gates were stopped before their end")]
    Stopped,
}

pub struct Gates {
    pub settings: GatesSettings,
    pub workspaces: Workspaces,
    pub launcher: Arc<dyn Launcher>,
    /// The complete environment, scrubbed like a worker's.
    pub environment: BTreeMap<String, String>,
    /// The repository's own script. `None` if there is none.
    pub hook: Option<HookCall>,
}

/// The command being run, with its time limit.
struct Started {
    name: String,
    command: String,
    limit: Duration,
}

impl Gates {
    /// Runs every command and returns the results in order. An error means that Dirigent could not run a gate; it says nothing
    /// about the work. When `stopped` resolves, the running command is stopped and the result is `GateError::Stopped`.
    pub async fn run_task(
        &self,
        permit: &Permit,
        key: &TicketKey,
        branch: &str,
        commit: &CommitId,
        stopped: impl Future<Output = ()>,
    ) -> Result<Vec<GateResult>, GateError> {
        let run = RunId::new(format!("gate-{}", ulid::Ulid::generate()));
        let worktree = self.workspaces.prepare_detached(permit, &run, key, branch, commit).await?;
        failpoint!("gate.tree_made");
        let results = tokio::select! {
            results = self.run_all(permit, &run, &worktree, commit) => results,
            () = stopped => Err(GateError::Stopped),
        };
        failpoint!("gate.ran");
        self.launcher.sweep(&[Leftover { run, process: None }]).await;
        if let Err(error) = self.workspaces.discard_detached(&worktree).await {
            tracing::warn!(path = %worktree.path.display(), error = %error, "a gate's tree could not be removed");
        }
        results
    }

    /// Stops processes and removes worktrees that gates of an earlier life of the runner left behind, and returns the number of
    /// worktrees. Called when the runner starts, before any gate runs.
    pub async fn clear_leftovers(&self) -> Result<usize, GateError> {
        let left = self.workspaces.detached().await?;
        for worktree in &left {
            self.launcher.sweep(&[Leftover { run: worktree.run.clone(), process: None }]).await;
            self.workspaces.discard_detached(worktree).await?;
        }
        Ok(left.len())
    }

    async fn run_all(
        &self,
        permit: &Permit,
        run: &RunId,
        worktree: &Worktree,
        commit: &CommitId,
    ) -> Result<Vec<GateResult>, GateError> {
        let mut results = Vec::with_capacity(self.settings.task.len());
        for gate in &self.settings.task {
            let mut env = self.environment.clone();
            env.insert("DIRIGENT_GATE".into(), gate.title().to_owned());
            env.insert("DIRIGENT_COMMIT".into(), commit.to_string());
            let argv = vec!["/bin/sh".into(), "-c".into(), gate.run.clone()];
            let limit = self.settings.timeout_of(gate);
            let started = Started { name: gate.title().to_owned(), command: gate.run.clone(), limit };
            results.push(self.judge(permit, run, worktree, started, argv, env).await?.0);
        }
        if let Some(hook) = &self.hook {
            let mut env = self.environment.clone();
            env.extend(hook.context.variables());
            env.insert("DIRIGENT_COMMIT".into(), commit.to_string());
            let (name, argv, limit) = (TASK_COMPLETED.to_owned(), hook.script.argv(), self.settings.timeout);
            let started = Started { name, command: argv.join(" "), limit };
            let (result, streams) = self.judge(permit, run, worktree, started, argv, env).await?;
            hook.keep(&result, &streams.out.text(), &streams.err.text());
            results.push(result);
        }
        Ok(results)
    }

    async fn judge(
        &self,
        permit: &Permit,
        run: &RunId,
        worktree: &Worktree,
        started: Started,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
    ) -> Result<(GateResult, Streams), GateError> {
        let order = LaunchOrder { run: run.clone(), argv, cwd: worktree.path.clone(), env, writable: Vec::new() };
        let launched = self.launcher.launch(permit, order).await;
        let child = launched.map_err(|source| GateError::Launch { gate: started.name.clone(), source })?;
        Ok(watch(started, child).await)
    }
}

/// Reads the command's output until it exits or reaches its time limit, whichever comes first.
async fn watch(started: Started, mut child: Child) -> (GateResult, Streams) {
    let Started { name, command, limit } = started;
    let start = Instant::now();
    child.stdin = None;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut streams = Streams::default();
    let (exit, timed_out) = {
        let mut reading = std::pin::pin!(streams.read(stdout, stderr));
        let mut read = false;
        let ended = tokio::time::timeout(limit, async {
            loop {
                tokio::select! {
                    () = &mut reading, if !read => read = true,
                    exit = child.wait() => break exit,
                }
            }
        })
        .await;
        let ended = match ended {
            Ok(exit) => (exit, false),
            Err(_) => {
                child.kill();
                (child.wait().await, true)
            }
        };
        if !read {
            tokio::time::timeout(DRAIN_LIMIT, reading).await.ok();
        }
        ended
    };
    let exit_code = match exit {
        Ok(Exit::Code(code)) if !timed_out => Some(code),
        Ok(Exit::Code(_) | Exit::Signal(_)) | Err(_) => None,
    };
    if let (Ok(Exit::Signal(signal)), false) = (&exit, timed_out) {
        streams.both.push(format!("\n(ended by signal {signal})").as_bytes());
    }
    if timed_out {
        streams.both.push(format!("\n(still running after {} ms; stopped)", limit.as_millis()).as_bytes());
    }
    let result = GateResult {
        name,
        command,
        passed: exit_code == Some(0),
        exit_code,
        timed_out,
        output_tail: streams.both.text(),
        duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    (result, streams)
}

/// The output of a command: each stream separately, and both in the order in which they arrived.
#[derive(Default)]
struct Streams {
    out: Tail,
    err: Tail,
    both: Tail,
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    dropped: bool,
}

impl Streams {
    /// Reads both pipes until both are closed.
    async fn read(&mut self, out: Option<impl AsyncRead + Unpin>, err: Option<impl AsyncRead + Unpin>) {
        let (mut out, mut err) = (out, err);
        let (mut out_buffer, mut err_buffer) = ([0_u8; 4096], [0_u8; 1024]);
        while out.is_some() || err.is_some() {
            tokio::select! {
                count = piece(&mut out, &mut out_buffer), if out.is_some() => match count {
                    0 => out = None,
                    count => take(&mut self.both, &mut self.out, out_buffer.get(..count)),
                },
                count = piece(&mut err, &mut err_buffer), if err.is_some() => match count {
                    0 => err = None,
                    count => take(&mut self.both, &mut self.err, err_buffer.get(..count)),
                },
            }
        }
    }
}

fn take(both: &mut Tail, one: &mut Tail, piece: Option<&[u8]>) {
    for tail in [both, one] {
        tail.push(piece.unwrap_or_default());
    }
}

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let excess = self.bytes.len().saturating_sub(TAIL);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.dropped = true;
        }
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        if self.dropped { format!("[...]\n{text}") } else { text.into_owned() }
    }
}

async fn piece(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
