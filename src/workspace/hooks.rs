//! Runs the four workspace hooks. Each is a shell script that runs in the workspace with a time limit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::command::{self, CommandError, tail};
use super::error::WorkspaceError;

/// Limit of kept output per stream, in bytes.
const OUTPUT_LIMIT: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// Runs once, in a new workspace. Its failure is fatal to the run.
    AfterCreate,
    /// Runs before each run. Its failure is fatal to the run.
    BeforeRun,
    /// Runs after each run. Its failure is logged.
    AfterRun,
    /// Runs before the workspace is removed. Its failure is logged.
    BeforeRemove,
}

impl Hook {
    pub fn name(self) -> &'static str {
        match self {
            Self::AfterCreate => "after_create",
            Self::BeforeRun => "before_run",
            Self::AfterRun => "after_run",
            Self::BeforeRemove => "before_remove",
        }
    }

    pub fn is_fatal(self) -> bool {
        matches!(self, Self::AfterCreate | Self::BeforeRun)
    }
}

/// The output of a hook that succeeded, truncated to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutput {
    pub stdout: String,
    pub stderr: String,
}

/// Runs `script` with `sh -c` in `workspace`. `holder` is a command prefix that keeps the hook's processes together, so that none outlives
/// the hook or a killed runner. `env` is the hook's whole environment. A timeout stops the whole process group.
pub async fn run_hook(
    hook: Hook,
    script: &str,
    workspace: &Path,
    env: &BTreeMap<OsString, OsString>,
    timeout: Duration,
    holder: &[OsString],
) -> Result<HookOutput, WorkspaceError> {
    let failed = |detail: String| WorkspaceError::Hook { hook: hook.name(), detail };
    let env = env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut invocation = command::shell(script, workspace, env, timeout, OUTPUT_LIMIT);
    if let Some((first, rest)) = holder.split_first() {
        let shell = std::mem::replace(&mut invocation.program, first.clone());
        invocation.args.splice(0..0, rest.iter().cloned().chain([shell]));
        invocation.leads_group = false;
    }
    let finished = match command::run(invocation).await {
        Ok(finished) => finished,
        Err(CommandError::TimedOut { limit, stderr, .. }) => {
            let limit = limit.as_millis();
            return Err(failed(format!(
                "ran longer than hooks.timeout_ms ({limit}) and was stopped: {}",
                tail(&stderr)
            )));
        }
        Err(error) => return Err(failed(format!("could not be run: {error}"))),
    };
    let output = HookOutput { stdout: finished.stdout.text(), stderr: finished.stderr.text() };
    if finished.status.success() {
        return Ok(output);
    }
    let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    Err(failed(format!("failed in {} ({}): {}", workspace.display(), finished.status, tail(said))))
}
