//! Compares how many files this process may have open at once with what its workers need.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many files the runner has open without any worker: ledger, sockets, watches, a few git commands.
const RUNNER: u64 = 64;
/// How many files one worker needs: pipes, transcript, desk socket and pid, and the git commands around it.
const WORKER: u64 = 12;

/// How many files may be open, and how many the configured number of workers wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    pub allowed: u64,
    pub wanted: u64,
}

impl OpenFiles {
    pub fn enough_for_all(self) -> bool {
        self.allowed >= self.wanted
    }

    /// Whether the limit is enough for one worker. With less, runs fail with misleading errors.
    pub fn enough_for_one(self) -> bool {
        self.allowed >= RUNNER + WORKER
    }

    pub fn sentence(self) -> String {
        format!(
            "only {} files may be open at once, and agent.max_concurrent_agents wants {}",
            self.allowed, self.wanted
        )
    }

    pub fn fix(self) -> String {
        format!("`ulimit -n {}` before the start, or fewer agents at once", self.wanted)
    }
}

/// Raises the soft limit as far as needed and allowed, and returns the new limit and what the workers want. `None` if the limit cannot be
/// read. Connections of the server are added when raising but not to `wanted`: with fewer files the server turns some away.
pub fn allow_for(workers: usize, connections: usize) -> Option<OpenFiles> {
    let wanted = RUNNER + WORKER.saturating_mul(u64::try_from(workers).unwrap_or(u64::MAX));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // The limit is raised no further than needed: workers inherit it, and some programs cannot cope with a huge one.
    let raised = wanted.saturating_add(u64::try_from(connections).unwrap_or(u64::MAX)).min(hard);
    let allowed = if raised > soft && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() { raised } else { soft };
    Some(OpenFiles { allowed, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_needs_less_than_all() {
        let some = OpenFiles { allowed: RUNNER + WORKER, wanted: RUNNER + 10 * WORKER };
        assert!(some.enough_for_one() && !some.enough_for_all());
        assert!(!OpenFiles { allowed: RUNNER, ..some }.enough_for_one());
        assert!(some.sentence().contains("184") && some.fix().contains("ulimit -n 184"));
    }
}
