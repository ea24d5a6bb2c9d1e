//! The driver's bookkeeping around the real `step` and `permit`: commit, perform in order per ticket, feed results back,
//! die between any two of these and come back with what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dirigent::config::policy::{Caps, ClosedPrPolicy, Policy};
use dirigent::domain::ids::{RunId, TicketId};
use dirigent::domain::job::SwitchSource;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{RunKind, RunOutcome, StopReason};
use dirigent::domain::ticket::{Ticket, state_in};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Steering};
use dirigent::engine::event::{EffectError, Event, LostRun};
use dirigent::engine::permit::{Circumstances, Reach, permit};
use dirigent::engine::state::{Meta, State};
use dirigent::engine::{circumstances, next_due, select, step};

use super::agents::{Agent, Temper};
use super::chance::Chance;
use super::people;
use super::promises;
use super::world::World;
use crate::engine::fixtures::{commit, policy, report};
use crate::engine::machine::{START, apply};

/// More steps than this between two disturbances is a loop without an end.
const SPIN: u64 = 200_000;

enum Scheduled {
    Perform(Effect),
    Deliver(Event),
}

pub struct Simulation {
    pub state: State,
    pub policy: Policy,
    pub now: Timestamp,
    pub world: World,
    pub agents: BTreeMap<RunId, Agent>,
    pub steps: u64,
    pub story: Vec<String>,
    pub stale_reads: bool,
    pub peaceful: bool,
    kept: State,
    queue: BTreeMap<(i64, u64), Scheduled>,
    sequence: u64,
    busy_until: BTreeMap<TicketId, i64>,
    stopped_before_start: BTreeSet<RunId>,
    next_poll: i64,
    next_timer: i64,
    chance: Chance,
    broken: Option<String>,
}

impl Simulation {
    pub fn new(seed: u64) -> Self {
        let state = State::new(Meta { seed, ..Meta::default() });
        let mut simulation = Self {
            kept: state.clone(),
            state,
            policy: policy_of(seed),
            now: START,
            world: World::new(2 + (seed % 3) as usize),
            agents: BTreeMap::new(),
            steps: 0,
            story: Vec::new(),
            stale_reads: false,
            peaceful: false,
            queue: BTreeMap::new(),
            sequence: 0,
            busy_until: BTreeMap::new(),
            stopped_before_start: BTreeSet::new(),
            next_poll: START.0,
            next_timer: START.0,
            chance: Chance::new(seed, 1),
            broken: None,
        };
        simulation.tell(Event::Recovered { lost: Vec::new() });
        simulation
    }

    pub fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// Lets some time pass, then does something bad, unless it is left out.
    pub fn disturb(&mut self, seed: u64, number: usize, left_out: bool) {
        let mut chance = Chance::new(seed, 1000 + number as u64);
        let span = chance.below(90_000) as i64;
        self.run_until(Timestamp(self.now.0 + span));
        if !left_out && self.broken.is_none() {
            let told = people::disturb(self, &mut chance);
            self.story.push(format!("{number}: {told}"));
        }
    }

    /// People and faults stop; within bounded time everything comes to rest.
    pub fn calm_down(&mut self) {
        if self.broken.is_some() {
            return;
        }
        people::make_peace(self);
        for agent in self.agents.values_mut() {
            agent.temper = Temper::Good;
        }
        let end = people::long_after(self.now);
        while self.now < end && self.broken.is_none() {
            self.run_until(Timestamp(self.now.0 + people::DAY / 24));
            if self.agents.is_empty() && self.queue.is_empty() && promises::settled(self).is_ok() {
                return;
            }
        }
        if let Err(what) = promises::settled(self) {
            self.fail(what);
        }
    }

    pub fn later(&mut self, millis: i64, event: Event) {
        self.schedule(self.now.0 + millis, Scheduled::Deliver(event));
    }

    fn schedule(&mut self, at: i64, what: Scheduled) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), what);
    }

    /// The wall clock jumps; everything that is under way does not notice.
    pub fn jump(&mut self, millis: i64) {
        self.now = Timestamp(self.now.0 + millis);
        self.next_poll += millis;
        self.next_timer += millis;
        self.queue = std::mem::take(&mut self.queue).into_iter().map(|((at, n), s)| ((at + millis, n), s)).collect();
        self.busy_until.values_mut().for_each(|at| *at += millis);
        for agent in self.agents.values_mut() {
            agent.next_at = Timestamp(agent.next_at.0 + millis);
            if let Some((at, _)) = &mut agent.stopping {
                *at = Timestamp(at.0 + millis);
            }
        }
    }

    fn run_until(&mut self, end: Timestamp) {
        let first = self.steps;
        while self.broken.is_none() {
            if self.steps - first > SPIN {
                self.fail("the runner spins".into());
                return;
            }
            let agent = self.agents.values().filter_map(|agent| Some((agent.due()?.0, agent.run.clone()))).min();
            let queued = self.queue.keys().next().copied();
            // The driver looks at the clock at least once a minute, and never more often than every 20 ms.
            let due = next_due(&self.state, &self.policy, self.now).map_or(self.next_timer + 60_000, |at| at.0);
            let timer = due.max(self.next_timer).min(self.next_timer + 60_000);
            let next = [Some(self.next_poll), Some(timer), agent.as_ref().map(|a| a.0), queued.map(|q| q.0)];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= end.0) else { break };
            self.now = Timestamp(at.max(self.now.0));
            if let Some(key) = queued.filter(|key| key.0 == at) {
                match self.queue.remove(&key) {
                    Some(Scheduled::Perform(effect)) => self.perform(effect),
                    Some(Scheduled::Deliver(event)) => self.tell(event),
                    None => {}
                }
            } else if let Some((_, run)) = agent.filter(|(due, _)| *due == at) {
                self.agent_acts(&run);
            } else if at == self.next_poll {
                self.poll();
            } else {
                self.next_timer = self.now.0 + 20;
                self.tell(Event::TimerFired);
            }
        }
        self.now = self.now.max(end);
    }

    /// One step, its transaction, and its effects on their way.
    pub fn tell(&mut self, event: Event) {
        if self.broken.is_some() {
            return;
        }
        let told = format!("{event:?}");
        let effects = step(&mut self.state, &self.policy, self.now, event);
        self.steps += 1;
        let changes = self.state.take_changes();
        apply(&mut self.kept, &self.state, &changes);
        for (id, run) in &self.state.runs {
            self.kept.runs.insert(id.clone(), run.clone());
            if let Some(job) = self.state.jobs.get(&run.ticket) {
                self.kept.jobs.insert(run.ticket.clone(), job.clone());
            }
        }
        let wrong = crate::engine::broken(&self.state, &self.policy, self.now, &effects);
        if let Some(first) = wrong.first() {
            self.fail(format!("{first} (after {told})"));
        }
        if let Err(what) = promises::hold(self) {
            self.fail(format!("{what} (after {told})"));
        }
        for effect in effects {
            let at = match &effect.ticket {
                // What writes to a ticket keeps its order; looks and stops wait for nobody.
                Some(ticket) if effect.action.kind().reach() != Reach::Harmless => {
                    let free = self.busy_until.get(ticket).copied().unwrap_or(0).max(self.now.0) + 1;
                    let over = free + 10 + self.chance.below(1500) as i64;
                    self.busy_until.insert(ticket.clone(), over);
                    free
                }
                _ => self.now.0 + 1,
            };
            self.schedule(at, Scheduled::Perform(effect));
        }
    }

    fn perform(&mut self, effect: Effect) {
        let kind = effect.action.kind();
        let known = circumstances(&self.state, &self.policy, effect.ticket.as_ref());
        let file = self.world.kill_file.then_some(SwitchSource::File);
        let now = Circumstances { switch: file.or(known.switch), ..known };
        if let Err(refusal) = permit(kind, &now) {
            let error = EffectError::Refused { refusal };
            self.later(5, Event::EffectFailed { effect: effect.id, error });
            return;
        }
        if let Some(ticket) = &effect.ticket
            && kind.reach() != Reach::Harmless
            && let Err(what) = promises::may_be_written(self, ticket, &effect.action)
        {
            self.fail(what);
            return;
        }
        match (&effect.action, effect.ticket.clone()) {
            (Action::StartRun { .. }, Some(ticket)) => self.start_agent(&effect, ticket),
            (Action::StopRun { run, reason }, _) => self.stop_agent(run, reason.clone(), 10_000),
            (Action::Steer { run, how: Steering::StopAfterTurn }, _) => {
                self.stop_agent(&run.clone(), StopReason::Quota, 5_000);
            }
            (Action::Steer { .. } | Action::Notify { .. }, _) => {}
            (Action::RefreshTickets { ids }, _) => self.refresh(ids.clone()),
            (Action::InspectPr { .. }, Some(_)) if self.world.forge_down => {}
            (Action::InspectPr { number }, Some(ticket)) => {
                let pr = self.world.look(number.0);
                let latency = 5 + self.chance.below(2000) as i64;
                self.later(latency, Event::PrObserved { ticket, pr });
            }
            (action, Some(ticket)) => self.write(&effect, &ticket, action),
            _ => {}
        }
    }

    fn write(&mut self, effect: &Effect, ticket: &TicketId, action: &Action) {
        let mut result = self.world.write(ticket, action, self.now);
        // The write took effect, its answer did not arrive.
        if !self.peaceful && self.chance.one_in(12) {
            result = Err(EffectError::Transient { detail: "timed out".into(), retry_after: None });
        }
        let event = match result {
            Ok(result) => Event::EffectDone { effect: effect.id, result },
            Err(error) => Event::EffectFailed { effect: effect.id, error },
        };
        // Some answers come twice.
        if !self.peaceful && self.chance.one_in(20) {
            self.later(900, event.clone());
        }
        self.later(9, event);
    }

    fn start_agent(&mut self, effect: &Effect, ticket: TicketId) {
        let Action::StartRun { run, branch, .. } = &effect.action else { return };
        if self.stopped_before_start.remove(run) {
            let report = report(RunOutcome::Killed { reason: StopReason::Operator });
            self.later(5, Event::RunFinished { run: run.clone(), report });
            return;
        }
        let Some(live) = self.state.runs.get(run) else { return };
        let temper = if self.peaceful { Temper::Good } else { Agent::temper(&mut self.chance) };
        let agent = Agent {
            run: run.clone(),
            ticket,
            branch: branch.clone(),
            review: live.kind == RunKind::Review,
            temper,
            next_at: Timestamp(self.now.0 + 200 + self.chance.below(3000) as i64),
            beats: 0,
            started: false,
            head_before: None,
            stopping: None,
        };
        self.agents.insert(run.clone(), agent);
    }

    fn stop_agent(&mut self, run: &RunId, reason: StopReason, grace: u64) {
        let at = Timestamp(self.now.0 + 50 + self.chance.below(grace) as i64);
        match self.agents.get_mut(run) {
            Some(agent) => drop(agent.stopping.get_or_insert((at, reason))),
            None => drop(self.stopped_before_start.insert(run.clone())),
        }
    }

    fn agent_acts(&mut self, run: &RunId) {
        let Some(agent) = self.agents.get_mut(run) else { return };
        agent.next_at = Timestamp(self.now.0 + 2000 + self.chance.below(40_000) as i64);
        let (event, over) = agent.act(&mut self.world, self.now);
        if over {
            self.agents.remove(run);
        }
        self.tell(event);
    }

    fn board(&mut self) -> Vec<Ticket> {
        let stale = self.stale_reads && self.chance.one_in(2);
        let board = if stale { &self.world.old_tickets } else { &self.world.tickets };
        board.values().cloned().collect()
    }

    fn poll(&mut self) {
        self.next_poll = self.now.0 + self.policy.polling_interval.as_millis() as i64;
        let latency = 5 + self.chance.below(3000) as i64;
        if self.world.tracker_down {
            self.later(latency, Event::PollFailed { error: "500".into() });
            return;
        }
        let states = select::states_of_interest(&self.policy);
        let tickets = self.board().into_iter().filter(|ticket| state_in(&ticket.state, &states)).collect();
        self.later(latency, Event::Polled { tickets, base: Some(commit("base")) });
    }

    fn refresh(&mut self, asked: Vec<TicketId>) {
        if self.world.tracker_down {
            return;
        }
        let tickets = self.board().into_iter().filter(|ticket| asked.contains(&ticket.id)).collect();
        let latency = 5 + self.chance.below(2000) as i64;
        self.later(latency, Event::TicketsRefreshed { asked, tickets });
    }

    /// `kill -9`: agents and everything in memory are gone; what the ledger holds comes back.
    pub fn crash(&mut self, in_the_middle_of_a_step: bool) {
        if in_the_middle_of_a_step {
            // Decided, neither written nor performed.
            let tickets = self.board();
            let _ = step(&mut self.state, &self.policy, self.now, Event::Polled { tickets, base: None });
        }
        self.agents.clear();
        self.queue.clear();
        self.busy_until.clear();
        self.stopped_before_start.clear();
        let mut state = State::new(self.kept.meta.clone());
        state.jobs = self.kept.jobs.clone();
        state.runs = self.kept.runs.clone();
        state.outbox = self.kept.outbox.clone();
        self.state = state;
        let lost = self.state.runs.values().map(|run| LostRun { run: run.id.clone(), salvage: None, head: None });
        let lost = lost.collect();
        self.tell(Event::Recovered { lost });
        let file = self.world.kill_file;
        self.later(250, Event::SwitchesChanged { file });
        self.next_poll = self.now.0 + 100;
    }
}

fn policy_of(seed: u64) -> Policy {
    let mut policy = policy();
    policy.polling_interval = Duration::from_secs(60);
    policy.agent.max_concurrent = 1 + (seed % 3) as usize;
    policy.agent.max_retries = 3;
    policy.gates.has_task_gates = seed.is_multiple_of(2);
    policy.merge.require_human_approval = seed % 5 == 1;
    policy.review.enabled = seed % 7 == 3;
    policy.orchestration.workpad = seed % 3 == 1;
    if seed.is_multiple_of(3) {
        policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
        policy.orchestration.states.insert(Phase::WaitingForChecks, "In Review".into());
        policy.orchestration.states.insert(Phase::Blocked, "Stuck".into());
    }
    if seed % 4 == 2 {
        policy.budget.ticket = Caps { max_tokens: Some(1000), ..Caps::default() };
        policy.budget.daily = Caps { max_tokens: Some(3000), ..Caps::default() };
    }
    policy.pr.closed_pr =
        [ClosedPrPolicy::Stop, ClosedPrPolicy::Reopen, ClosedPrPolicy::NewBranch][(seed % 3) as usize];
    policy
}
