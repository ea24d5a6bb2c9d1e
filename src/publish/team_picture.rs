//! Shows the runs as a team of agents: translates the runner's published snapshots and news into the terms of `agent-state.json`.

use std::collections::BTreeMap;

use super::carried_over::TeammateReport;
use super::team_state::{PdcaPhase, TeamProgress, TeamState, Teammate, TeammateStatus, time_text};
use crate::config::observability::{ModelTier, OrchestrationPattern};
use crate::domain::hash::stable_hash;
use crate::domain::phase::Phase;
use crate::domain::snapshot::{JobView, RunView};
use crate::domain::time::Timestamp;
use crate::runtime::News;

const ROLE_LABEL: &str = "role:";
const CONTENT_LIMIT: usize = 500;

/// What `agent-state.json` says about the team as a whole.
#[derive(Debug, Clone)]
pub struct TeamIdentity {
    pub team_name: String,
    pub session_id: String,
    pub cto_agent: ModelTier,
    pub pattern: OrchestrationPattern,
}

#[derive(Debug)]
pub struct TeamPicture {
    state: TeamState,
    /// The last known phase of each ticket and the round in which it was last seen, by a hash of the ticket's id. The hash keeps the map
    /// small: there may be ten thousand tickets.
    phases: BTreeMap<u64, (Phase, u32)>,
    round: u32,
    /// The name of the worker of each live run, by run id.
    workers: BTreeMap<String, String>,
    /// Whether each run ended well, by run id, for runs that the last snapshot still showed as live.
    ended: BTreeMap<String, bool>,
    seen_before: bool,
}

impl TeamPicture {
    pub fn begun(identity: &TeamIdentity, now: Timestamp) -> Self {
        let mut state = TeamState::begun(&identity.team_name, &identity.session_id, now);
        state.cto_agent = identity.cto_agent.name().into();
        state.orchestration_pattern = identity.pattern;
        Self {
            state,
            phases: BTreeMap::new(),
            round: 0,
            workers: BTreeMap::new(),
            ended: BTreeMap::new(),
            seen_before: false,
        }
    }

    pub fn state(&self) -> &TeamState {
        &self.state
    }

    /// Returns the id and the worker's name of each live run.
    pub fn workers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.workers.iter().map(|(run, name)| (run.as_str(), name.as_str()))
    }

    /// Takes in a snapshot, job by job. `last_words` returns the last reports of a run's hooks; it is called for each run that is over.
    pub fn see(
        &mut self,
        at: Timestamp,
        jobs: impl Iterator<Item = JobView>,
        mut last_words: impl FnMut(&str) -> Vec<TeammateReport>,
    ) {
        let mut live = BTreeMap::new();
        let mut progress = TeamProgress::default();
        let mut newest: Option<JobView> = None;
        self.round = self.round.wrapping_add(1);
        let mut there = 0;
        for job in jobs {
            there += 1;
            self.see_phase(&job, at);
            count(&mut progress, job.phase);
            if let Some(run) = &job.run {
                let name = worker_name(&job, run);
                live.insert(run.id.clone(), teammate(name, &job, run));
            }
            if newest.as_ref().is_none_or(|known| (known.since, &known.key) <= (job.since, &job.key)) {
                newest = Some(job);
            }
        }
        if self.phases.len() > there {
            let round = self.round;
            self.phases.retain(|_, (_, seen)| *seen == round);
        }
        let over: Vec<String> = self.workers.keys().filter(|run| !live.contains_key(run.as_str())).cloned().collect();
        for run in over {
            let name = self.workers.get(&run).cloned().unwrap_or_default();
            last_words(&run).into_iter().for_each(|report| self.report(&name, report, at));
            self.run_over(&run, at);
        }
        // New teammates are added in the order in which they were started: run ids sort by time.
        for (run, mate) in live {
            self.workers.insert(run, mate.name.clone());
            self.state.add(mate);
        }
        if let Some(newest) = newest {
            self.state.feature = newest.title;
            self.state.pdca_phase = pdca(newest.phase);
        }
        self.state.progress = progress;
        self.seen_before = true;
    }

    fn see_phase(&mut self, job: &JobView, at: Timestamp) {
        let ticket = stable_hash(&[&job.id]);
        let before = match self.phases.get_mut(&ticket) {
            Some((phase, seen)) => {
                *seen = self.round;
                Some(std::mem::replace(phase, job.phase))
            }
            None => {
                self.phases.insert(ticket, (job.phase, self.round));
                None
            }
        };
        let moved = before.filter(|before| *before != job.phase);
        let content = match moved {
            Some(before) => format!("{} → {}", before.words(), job.phase.words()),
            None if before.is_none() && self.seen_before => format!("new on the board: {}", job.title),
            None => return,
        };
        self.state.say(&job.key, "all", &clip(&content), at);
    }

    fn run_over(&mut self, run: &str, at: Timestamp) {
        let Some(name) = self.workers.remove(run) else { return };
        // If the news about the end of this run was missed, the run counts as ended well.
        let well = self.ended.remove(run).unwrap_or(true);
        let status = if well { TeammateStatus::Completed } else { TeammateStatus::Failed };
        self.state.set_status(&name, status, None, at);
        let helpers = format!("{name}/");
        let orphans: Vec<String> = self
            .state
            .teammates
            .iter()
            .filter(|mate| mate.name.starts_with(&helpers) && mate.status != TeammateStatus::Failed)
            .map(|mate| mate.name.clone())
            .collect();
        for orphan in orphans {
            self.state.set_status(&orphan, TeammateStatus::Completed, None, at);
        }
    }

    pub fn hear(&mut self, news: &News) {
        match news {
            News::RunOver { run, well } => {
                self.ended.insert(run.clone(), *well);
            }
            News::WorkerSaid { key, attempt, text, at } => {
                self.state.say(&format!("{key}#{attempt}"), "leader", &clip(text), *at);
            }
        }
    }

    /// Takes in a report of a worker's hooks.
    pub fn report(&mut self, worker: &str, report: TeammateReport, now: Timestamp) {
        if let Some(report) = report.of_worker(worker) {
            report.apply(&mut self.state, now);
        }
    }

    pub fn end(&mut self) {
        self.state.end();
    }
}

fn worker_name(job: &JobView, run: &RunView) -> String {
    format!("{}#{}", job.key, run.attempt)
}

fn teammate(name: String, job: &JobView, run: &RunView) -> Teammate {
    let role = job.labels.iter().find_map(|label| label.strip_prefix(ROLE_LABEL)).map(str::trim);
    Teammate {
        name,
        role: role.filter(|role| !role.is_empty()).unwrap_or("worker").to_owned(),
        model: ModelTier::of(run.model.as_deref().unwrap_or_default()),
        status: match (run.pid, run.quiet_since) {
            (None, _) => TeammateStatus::Spawning,
            (Some(_), Some(_)) => TeammateStatus::Idle,
            (Some(_), None) => TeammateStatus::Working,
        },
        current_task: Some(clip(&job.title)),
        task_id: Some(job.key.clone()),
        started_at: time_text(run.started_at),
        last_activity_at: time_text(run.last_event_at),
    }
}

fn pdca(phase: Phase) -> PdcaPhase {
    match phase {
        Phase::Queued => PdcaPhase::Plan,
        Phase::Implementing | Phase::Rework => PdcaPhase::Do,
        Phase::Reviewing | Phase::WaitingForChecks | Phase::WaitingForHuman | Phase::Blocked => PdcaPhase::Check,
        Phase::ReadyToMerge | Phase::Merging | Phase::Done | Phase::Released => PdcaPhase::Act,
    }
}

/// Counts one ticket. A released ticket (given back, or closed by a person) is not counted: it is no longer a task of the team.
fn count(progress: &mut TeamProgress, phase: Phase) {
    let counter = match phase {
        Phase::Released => return,
        Phase::Done => &mut progress.completed_tasks,
        Phase::Blocked => &mut progress.failed_tasks,
        Phase::Queued => &mut progress.pending_tasks,
        _ => &mut progress.in_progress_tasks,
    };
    *counter += 1;
    progress.total_tasks += 1;
}

fn clip(text: &str) -> String {
    text.chars().take(CONTENT_LIMIT).collect()
}
