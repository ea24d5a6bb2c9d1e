//! The state at one moment, cheap to take and to keep. The views of jobs are made only when they are asked for.

use std::sync::Arc;

use super::conditions;
use super::hindrance;
use super::state::State;
use super::view;
use crate::config::policy::Policy;
use crate::domain::condition::Condition;
use crate::domain::job::{Hindrance, Job};
use crate::domain::run::LiveRun;
use crate::domain::snapshot::{JobView, Snapshot};
use crate::domain::time::Timestamp;

#[derive(Debug)]
pub struct Picture {
    /// Everything except the jobs.
    pub general: Snapshot,
    jobs: Vec<JobShot>,
}

/// A job with what is true of it besides its own record.
#[derive(Debug)]
pub struct JobShot {
    pub job: Arc<Job>,
    /// Shared by consecutive jobs that wait for the same thing.
    pub hindrance: Option<Arc<Hindrance>>,
    pub run: Option<Box<LiveRun>>,
    pub conditions: Vec<Condition>,
}

impl Picture {
    pub fn of(state: &State, policy: &Policy, now: Timestamp) -> Self {
        let mut last: Option<Arc<Hindrance>> = None;
        let mut shared = |hindrance: Hindrance| match &last {
            Some(last) if **last == hindrance => Arc::clone(last),
            _ => Arc::clone(last.insert(Arc::new(hindrance))),
        };
        let shot = |job: &Arc<Job>| JobShot {
            hindrance: hindrance::of_job(state, policy, job, now).map(&mut shared),
            run: job.stage.run().and_then(|run| state.runs.get(run)).map(|run| Box::new(run.clone())),
            conditions: conditions::of_job(state, policy, job),
            job: Arc::clone(job),
        };
        Self { jobs: state.jobs.shared().map(shot).collect(), general: view::general(state, policy, now) }
    }

    /// Returns the views of the jobs, one after the other. `policy` is the one under which the picture was taken.
    pub fn views(&self, policy: &Policy) -> impl Iterator<Item = JobView> {
        self.jobs.iter().map(|shot| view::job_view(shot, policy, self.general.at))
    }

    /// Returns the complete snapshot.
    pub fn snapshot(&self, policy: &Policy) -> Snapshot {
        Snapshot { jobs: self.views(policy).collect(), ..self.general.clone() }
    }
}

/// Returns the state as views see it.
pub fn snapshot(state: &State, policy: &Policy, now: Timestamp) -> Snapshot {
    Picture::of(state, policy, now).snapshot(policy)
}
