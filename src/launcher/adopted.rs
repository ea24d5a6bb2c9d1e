//! Makes orphans below the runner its children, so that no process leaves its tree by losing its parent, and collects the dead ones.
//! Without PID namespaces, this is what ties a process to the runner that has given up its session and its environment.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};

use super::procfs;

/// The pause between two looks for dead children. Code that waits for a child of its own collects it long before that.
const PAUSE: Duration = Duration::from_secs(30);

/// Children that some code of this process waits for.
static AWAITED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Registers a child as one that is waited for, until this is dropped.
#[derive(Debug)]
pub struct Awaited(i32);

impl Awaited {
    pub fn new(pid: i32) -> Self {
        AWAITED.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        Self(pid)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        AWAITED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Makes orphans below this process its children, instead of those of the system's first process.
pub fn adopt_orphans() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Collects dead orphans for as long as it is polled. Sleeps while no child exits.
pub async fn collect_the_dead() {
    let Ok(mut child_ended) = signal(SignalKind::child()) else { return };
    let mut seen = Vec::new();
    loop {
        if seen.is_empty() && child_ended.recv().await.is_none() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
        seen = collect(&seen);
    }
}

/// Collects the children that were dead already at the last look. Returns those that are dead now for the first time.
fn collect(seen: &[i32]) -> Vec<i32> {
    let awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let dead = procfs::dead_children().into_iter().filter(|pid| !awaited.contains(pid));
    let (old, new): (Vec<i32>, Vec<i32>) = dead.partition(|pid| seen.contains(pid));
    for pid in old {
        // Other code may have collected it in between, which is fine.
        let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_look_collects_and_never_a_child_that_is_awaited() {
        let start = || std::process::Command::new("true").spawn().unwrap();
        let (mut waited_for, left) = (start(), start());
        let pids = [waited_for.id(), left.id()].map(|pid| i32::try_from(pid).unwrap());
        let _awaited = Awaited::new(pids[0]);
        let dead = |pid| procfs::stat(pid).is_some_and(|stat| stat.dead);
        while !pids.iter().all(|pid| dead(*pid)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Other tests of this process have children of their own: only these two are looked at.
        let first: Vec<i32> = collect(&[]).into_iter().filter(|pid| pids.contains(pid)).collect();
        assert_eq!(first, [pids[1]]);
        assert!(dead(pids[1]), "nobody is collected at first sight");
        collect(&first);
        assert!(!dead(pids[1]));
        assert!(waited_for.wait().unwrap().success());
    }
}
