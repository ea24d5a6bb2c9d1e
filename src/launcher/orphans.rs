//! Processes of a live run that lost their parent. An agent that ends its shell command may reach only the upper end of it: what
//! hangs below lives on, and nobody but the tree's first process is above it. Ended here, without touching the agent.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Child, RUN_ID_VARIABLE, procfs};
use crate::domain::run::ProcessMark;

/// Between asking and killing.
const GRACE: Duration = Duration::from_secs(2);

/// What is looked for, and who was asked to end already.
#[derive(Debug, Default)]
pub struct Orphans {
    /// In ticks since boot; later ones belong to other work.
    born_before: Option<u64>,
    asked: Vec<(ProcessMark, Instant)>,
}

impl Orphans {
    /// From now on only those that are already there.
    pub fn no_newer(&mut self) {
        if self.born_before.is_none() {
            self.born_before = procfs::ticks_now();
        }
    }

    fn concerns(&self, mark: ProcessMark) -> bool {
        self.born_before.is_none_or(|limit| mark.started_ticks <= limit)
    }

    /// Asks at first sight, kills when that did not help.
    fn end(&mut self, orphan: ProcessMark) {
        let asked = self.asked.iter().find(|(mark, _)| *mark == orphan).map(|(_, at)| *at);
        let signal = match asked {
            None => {
                self.asked.push((orphan, Instant::now()));
                Signal::SIGTERM
            }
            Some(at) if at.elapsed() < GRACE => return,
            Some(_) => Signal::SIGKILL,
        };
        for pid in procfs::descendants(orphan.pid).into_iter().chain([orphan.pid]) {
            kill(Pid::from_raw(pid), signal).ok();
        }
    }
}

impl Child {
    /// One look for orphans of this tree: each is asked to end, or killed when it was asked before. Answers how many there are.
    pub fn end_orphans(&mut self, orphans: &mut Orphans) -> usize {
        let found: Vec<ProcessMark> = self.orphans().into_iter().filter(|mark| orphans.concerns(*mark)).collect();
        for orphan in &found {
            orphans.end(*orphan);
        }
        found.len()
    }

    fn orphans(&mut self) -> Vec<ProcessMark> {
        if self.exit.is_some() {
            return Vec::new();
        }
        if self.containment.is_namespace() {
            let Some(first) = self.first_process() else { return Vec::new() };
            // The oldest is the command itself; whoever else hangs here came later.
            let mut children = procfs::children(first.pid);
            children.sort_by_key(|mark| (mark.started_ticks, mark.pid));
            return children.into_iter().skip(1).filter(|mark| procfs::alive(*mark)).collect();
        }
        let family = procfs::descendants(self.mark.pid);
        let strays: Vec<i32> = procfs::with_environ(&[format!("{RUN_ID_VARIABLE}={}", self.run)])
            .into_iter()
            .filter(|pid| *pid != self.mark.pid && !family.contains(pid))
            .collect();
        let below: Vec<i32> = strays.iter().flat_map(|pid| procfs::descendants(*pid)).collect();
        strays.into_iter().filter(|pid| !below.contains(pid)).filter_map(procfs::mark).collect()
    }
}
