//! Gets the snapshot that commands show: from the running instance, or from the ledger if no runner answers.

use std::path::Path;

use crate::config::policy::Policy;
use crate::domain::job::SwitchSource;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;
use crate::engine;
use crate::engine::state::State;
use crate::ledger::{Holder, LedgerReader};
use crate::runtime::{self, Client, ControlError, Reply, Request, RunnerFolder, assembly, find_ticket};
use crate::workflow::{Loaded, in_force};

use super::Failure;
use super::connect::{self, Connection};
use super::context::Context;
use super::unseen;

/// A snapshot and where it comes from.
pub struct SnapshotSource {
    pub snapshot: Snapshot,
    pub behind: Behind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behind {
    Live,
    Nobody,
    /// A runner is up but does not answer: it was suspended by a signal, or is busy.
    Silent {
        pid: Option<u32>,
    },
}

impl Behind {
    /// Returns `Silent` with the pid of the process that holds the runner's lock.
    pub fn silent(place: &RunnerFolder) -> Self {
        Self::Silent { pid: Holder::named_in(&place.state_dir).map(|holder| holder.pid) }
    }

    pub fn is_live(&self) -> bool {
        *self == Self::Live
    }

    pub fn name(&self) -> String {
        match self {
            Self::Live => "runner up".into(),
            Self::Nobody => "no runner up".into(),
            Self::Silent { pid: Some(pid) } => format!("the runner (pid {pid}) does not answer"),
            Self::Silent { pid: None } => "the runner does not answer".into(),
        }
    }

    pub fn words(&self) -> String {
        match self {
            Self::Live => self.name(),
            Self::Nobody | Self::Silent { .. } => format!("{} (from the ledger)", self.name()),
        }
    }

    /// Returns what a person has to do so that the tickets of this snapshot move on. `None` if a runner is up.
    pub fn what_to_do(&self) -> Option<String> {
        match self {
            Self::Live => None,
            Self::Nobody => Some("start a runner with `dirigent run`".into()),
            Self::Silent { pid: Some(pid) } => {
                Some(format!("if it was suspended, `kill -CONT {pid}` lets it go on; else end it and start another"))
            }
            Self::Silent { pid: None } => Some("let it go on, or end it and start another".into()),
        }
    }
}

/// Returns the current snapshot. Works with a broken workflow file, too, if a runner is up.
pub fn now(context: &Context) -> Result<SnapshotSource, Failure> {
    match connect::ask(context, &Request::Snapshot)? {
        Connection::Live(reply) => live(reply),
        Connection::Nobody(loaded, place) => written(&loaded, &place, Behind::Nobody),
        Connection::Silent(loaded, place) => written(&loaded, &place, Behind::silent(&place)),
    }
}

pub fn look(loaded: &Loaded, place: &RunnerFolder) -> Result<SnapshotSource, Failure> {
    match Client::new(&place.socket).ask(&Request::Snapshot) {
        Ok(reply) => live(reply),
        Err(ControlError::NobodyThere { .. }) => written(loaded, place, Behind::Nobody),
        Err(ControlError::NoAnswer { .. }) => written(loaded, place, Behind::silent(place)),
        Err(error) => Err(error.into()),
    }
}

fn live(reply: Reply) -> Result<SnapshotSource, Failure> {
    match reply {
        Reply::Snapshot { snapshot } => Ok(SnapshotSource { snapshot: *snapshot, behind: Behind::Live }),
        Reply::Refused { error } => Err(Failure::Plain(error)),
        Reply::Done { .. } => Err(Failure::plain("the runner gave an unexpected answer; is it of another version?")),
    }
}

/// Returns the snapshot from the ledger. Where no runner is up, the texts promise nothing that only a runner could do.
pub fn written(loaded: &Loaded, place: &RunnerFolder, behind: Behind) -> Result<SnapshotSource, Failure> {
    let (now, file) = (runtime::now(), &loaded.settings.rollout.kill_switch_file);
    let (mut state, policy) = as_of_now(loaded, &*place.read_ledger()?)?;
    // Whether the kill switch is pulled is not in the ledger: only the file shows it.
    state.switch_file = pulled_since(file, now);
    let mut snapshot = engine::snapshot(&state, &policy, now);
    for switch in snapshot.switches.iter_mut().filter(|switch| switch.source == SwitchSource::File) {
        switch.subject = file.display().to_string();
    }
    snapshot.workflow.warnings = loaded.brief_warnings();
    snapshot.workflow.policies = in_force::policies(&loaded.settings);
    if behind == Behind::Nobody {
        let jobs = snapshot.jobs.iter_mut().zip(state.jobs.values());
        for (shown, job) in jobs {
            let hindrance = engine::hindrance::of_job(&state, &policy, job, now);
            let reason = job.in_comments_too(job.reason_offline(hindrance.as_ref(), now), &policy.tracker.mention);
            (shown.sentence, shown.next) = (reason.sentence, reason.next);
        }
    }
    Ok(SnapshotSource { snapshot, behind })
}

fn pulled_since(file: &Path, now: Timestamp) -> Option<Timestamp> {
    let found = std::fs::symlink_metadata(file).ok()?;
    let since = found.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok());
    Some(since.map_or(now, |at| Timestamp(at.as_millisecond())))
}

pub fn from_ledger(loaded: &Loaded, ledger: &dyn LedgerReader) -> Result<Snapshot, Failure> {
    let (state, policy) = as_of_now(loaded, ledger)?;
    Ok(engine::snapshot(&state, &policy, runtime::now()))
}

/// Returns the state in the ledger, and the policy that would apply if a runner started now.
fn as_of_now(loaded: &Loaded, ledger: &dyn LedgerReader) -> Result<(State, Policy), Failure> {
    let mut state = ledger.load()?;
    // Counts the board as just read; otherwise tickets would be shown as waiting for a poll.
    state.tracker.last_ok = Some(runtime::now());
    let policy = assembly::policy(loaded, ledger)?;
    unseen::take_in(&mut state, &policy, loaded, ledger);
    Ok((state, policy))
}

pub fn job<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a JobView, Failure> {
    let id = find_ticket(snapshot, name).map_err(Failure::NotFound)?;
    snapshot
        .jobs
        .iter()
        .find(|job| job.id == id.as_str())
        .ok_or_else(|| Failure::NotFound(format!("no ticket `{name}` is known here")))
}
