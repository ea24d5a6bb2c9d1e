//! Runs `gates.task` on an exact commit, in a fresh tree of it that goes afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::config::gates::{GateCommand, GatesSettings};
use crate::domain::evidence::GateResult;
use crate::domain::ids::{CommitId, RunId, TicketKey};
use crate::domain::permit::Permit;
use crate::launcher::{Child, Exit, LaunchError, LaunchOrder, Launcher, Leftover};
use crate::workspace::{WorkspaceError, Workspaces, Worktree};

/// What is kept of a command's output: its end.
const TAIL: usize = 8 << 10;
/// Pipes that somebody else still holds are not read longer than this after the end.
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
    /// Complete, scrubbed like a worker's.
    pub environment: BTreeMap<String, String>,
}

impl Gates {
    /// The result of every command, in order. An error is about us, not about the work. Whatever runs ends when `stopped`
    /// resolves.
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

    /// Ends and removes what gates of an earlier life left. For the start of the runner, before any gate runs.
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
            let order = LaunchOrder {
                run: run.clone(),
                argv: vec!["/bin/sh".into(), "-c".into(), gate.run.clone()],
                cwd: worktree.path.clone(),
                env,
                writable: Vec::new(),
            };
            let child = self
                .launcher
                .launch(permit, order)
                .await
                .map_err(|source| GateError::Launch { gate: gate.title().to_owned(), source })?;
            results.push(watch(gate, child, self.settings.timeout_of(gate)).await);
        }
        Ok(results)
    }
}

/// Reads to the end or to the limit, whichever comes first.
async fn watch(gate: &GateCommand, mut child: Child, limit: Duration) -> GateResult {
    let start = Instant::now();
    child.stdin = None;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut tail = Tail::default();
    let (exit, timed_out) = {
        let mut reading = std::pin::pin!(tail.read(stdout, stderr));
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
        tail.push(format!("\n(ended by signal {signal})").as_bytes());
    }
    if timed_out {
        tail.push(format!("\n(still running after {} ms; stopped)", limit.as_millis()).as_bytes());
    }
    GateResult {
        name: gate.title().to_owned(),
        command: gate.run.clone(),
        passed: exit_code == Some(0),
        exit_code,
        timed_out,
        output_tail: tail.text(),
        duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// The last bytes of both streams, as they came.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    dropped: bool,
}

impl Tail {
    /// Both pipes until both are closed.
    async fn read(&mut self, out: Option<impl AsyncRead + Unpin>, err: Option<impl AsyncRead + Unpin>) {
        let (mut out, mut err) = (out, err);
        let (mut out_buffer, mut err_buffer) = ([0_u8; 4096], [0_u8; 1024]);
        while out.is_some() || err.is_some() {
            tokio::select! {
                count = piece(&mut out, &mut out_buffer), if out.is_some() => match count {
                    0 => out = None,
                    count => self.push(out_buffer.get(..count).unwrap_or_default()),
                },
                count = piece(&mut err, &mut err_buffer), if err.is_some() => match count {
                    0 => err = None,
                    count => self.push(err_buffer.get(..count).unwrap_or_default()),
                },
            }
        }
    }

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
