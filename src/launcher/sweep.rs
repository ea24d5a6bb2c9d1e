//! Kills processes by the run id in their environment, until none is left.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Leftover, RUN_ID_VARIABLE, Swept, procfs};
use crate::domain::ids::RunId;

const ROUNDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Kills the marked processes and all that carry one of the run ids.
pub async fn leftovers(leftovers: &[Leftover]) -> Swept {
    let mut swept = Swept::default();
    for mark in leftovers.iter().filter_map(|leftover| leftover.process) {
        if procfs::alive(mark) && kill(Pid::from_raw(mark.pid), Signal::SIGKILL).is_ok() {
            swept.killed += 1;
        }
    }
    let runs: Vec<&RunId> = leftovers.iter().map(|leftover| &leftover.run).collect();
    let strays = strays(&runs).await;
    Swept { killed: swept.killed + strays.killed, survivors: strays.survivors }
}

/// Kills every process that carries one of the run ids. New ones may appear meanwhile, so the search is repeated.
pub async fn strays(runs: &[&RunId]) -> Swept {
    let entries: Vec<String> = runs.iter().map(|run| format!("{RUN_ID_VARIABLE}={run}")).collect();
    let mut swept = Swept::default();
    if entries.is_empty() {
        return swept;
    }
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let found = procfs::with_environ(&entries);
        if found.is_empty() {
            swept.killed = seen.len();
            return swept;
        }
        for pid in &found {
            kill(Pid::from_raw(*pid), Signal::SIGKILL).ok();
            if !seen.contains(pid) {
                seen.push(*pid);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    swept.survivors = procfs::with_environ(&entries);
    swept.killed = seen.len().saturating_sub(swept.survivors.len());
    swept
}
