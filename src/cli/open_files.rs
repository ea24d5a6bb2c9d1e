//! How many files this process may have open at once, held against what its workers need.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What the runner has open without any worker: ledger, sockets, watches, a git command or two.
const RUNNER: u64 = 64;
/// Pipes, transcript, desk and pid of one worker, and the git commands around it.
const WORKER: u64 = 12;

/// A limit, and what `workers` at once want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    pub allowed: u64,
    pub wanted: u64,
}

impl OpenFiles {
    pub fn enough_for_all(self) -> bool {
        self.allowed >= self.wanted
    }

    /// With less than this not even one worker gets through, and what fails first blames something else.
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

/// Raises the soft limit as far as is needed and allowed, and says what came of it. `None` where nobody can tell. Connections of
/// the server get what there is: where it is less, some are turned away.
pub fn allow_for(workers: usize, connections: usize) -> Option<OpenFiles> {
    let wanted = RUNNER + WORKER.saturating_mul(u64::try_from(workers).unwrap_or(u64::MAX));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // No further than needed: workers inherit it, and some programs do not cope with a huge one.
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
