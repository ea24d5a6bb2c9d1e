//! Stops processes of a live run that lost their parent. An agent that stops its shell command may reach only the top of that process tree.
//! The processes below live on, with only the first process of the run's tree above them. They are stopped here, without touching the
//! agent.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Child, RUN_ID_VARIABLE, procfs};
use crate::domain::run::ProcessMark;

/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// The limits of the search, and the orphans that got a TERM already.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Only processes that began by then, in ticks since boot, are stopped. `None` means all.
    born_before: Option<u64>,
    asked: Vec<(ProcessMark, Instant)>,
}

impl Orphans {
    /// Limits the search to processes that exist now; later ones belong to other work.
    pub fn no_newer(&mut self) {
        if self.born_before.is_none() {
            self.born_before = procfs::ticks_now();
        }
    }

    fn concerns(&self, mark: ProcessMark) -> bool {
        self.born_before.is_none_or(|limit| mark.started_ticks <= limit)
    }

    /// Sends TERM the first time, and KILL after the grace period.
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
    /// Looks once for orphans of this tree and sends each TERM, or KILL if it got TERM before. Returns how many there are.
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
            // The oldest child is the command itself; all others were adopted later.
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
