//! The driver's bookkeeping around the real `step` and `permit`: commit, perform in order per ticket, feed results back,
//! die between any two of these and come back with what was written.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::config::policy::Policy;
use dirigent::domain::basis::Basis;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::{RunId, TicketId};
use dirigent::domain::job::{Job, Stage, SwitchSource, TicketFacts, Work};
use dirigent::domain::run::{RunOutcome, StopReason};
use dirigent::domain::ticket::{Ticket, state_in};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Effect, Steering};
use dirigent::engine::event::{EffectError, Event, Lookup, LostRun};
use dirigent::engine::permit::{Circumstances, Reach, permit};
use dirigent::engine::state::{Changes, Meta, State};
use dirigent::engine::{circumstances, next_due, select, step, unknown_tickets};

use super::agents::{Agent, Temper, salvage_of};
use super::chance::Chance;
use super::engine::fixtures::{commit, failed, report};
use super::engine::{broken, newly_broken};
use super::ledger::Ledger;
use super::people;
use super::policies::policy_of;
use super::promises;
use super::world::World;

const START: Timestamp = Timestamp(1_700_000_000_000);
/// More steps than this between two disturbances is a loop without an end.
const SPIN: u64 = 200_000;
/// So many wake-ups in a row, each right after the other, that changed nothing: the runner burns a processor.
const IDLE_WAKES: u32 = 50;
/// Every so many steps the complete state is checked, not only what changed.
const COMPLETE_EVERY: u64 = 256;
/// Usage and last activity reach the ledger this often.
const CHECKPOINT: i64 = 1000;

enum Scheduled {
    Perform(Effect),
    EndGate(Effect),
    Deliver(Event),
}

/// Where in the next step the runner dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Death {
    /// Decided, neither written nor performed: the last transaction is missing.
    BeforeCommit,
    /// Written, nothing performed.
    AfterCommit,
    /// One effect reached the world, its answer did not come back.
    AfterFirstEffect,
    Now,
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
    pub missing_reads: bool,
    pub peaceful: bool,
    /// How far the runner's clock has jumped away from everybody else's.
    jumped: i64,
    pub times_blocked: BTreeMap<TicketId, usize>,
    pub ledger: Ledger,
    /// Prints every event and what followed from it.
    pub trace: bool,
    blocked_since: BTreeMap<TicketId, Timestamp>,
    unwritten: Changes,
    unperformed: Vec<Effect>,
    soft_since: Option<i64>,
    death: Option<Death>,
    lives: u32,
    changed: bool,
    idle_wakes: u32,
    queue: BTreeMap<(i64, u64), Scheduled>,
    sequence: u64,
    busy_until: BTreeMap<TicketId, i64>,
    stopped_before_start: BTreeSet<RunId>,
    /// What the engine was last told of the whole board.
    last_list: Option<Vec<Ticket>>,
    list_basis: Basis,
    next_poll: i64,
    next_timer: i64,
    chance: Chance,
    broken: Option<String>,
}

impl Simulation {
    pub fn new(seed: u64, trace: bool) -> Self {
        let meta = Meta { seed, ..Meta::default() };
        let mut simulation = Self {
            ledger: Ledger::new(meta.clone()),
            state: State::new(meta),
            policy: policy_of(seed),
            now: START,
            world: World::new(2 + (seed % 3) as usize, seed % 6 == 5),
            agents: BTreeMap::new(),
            steps: 0,
            story: Vec::new(),
            stale_reads: false,
            missing_reads: false,
            peaceful: false,
            jumped: 0,
            times_blocked: BTreeMap::new(),
            trace,
            blocked_since: BTreeMap::new(),
            unwritten: Changes::default(),
            unperformed: Vec::new(),
            soft_since: None,
            death: None,
            lives: 0,
            changed: false,
            idle_wakes: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            busy_until: BTreeMap::new(),
            stopped_before_start: BTreeSet::new(),
            last_list: None,
            list_basis: Basis::default(),
            next_poll: START.0,
            next_timer: START.0,
            chance: Chance::new(seed, 1),
            broken: None,
        };
        simulation.tell(Event::Recovered { lost: Vec::new() });
        simulation
    }

    /// What the clocks of tracker and forge show.
    pub fn outside_now(&self) -> Timestamp {
        Timestamp(self.now.0 - self.jumped)
    }

    pub fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    fn must(&mut self, held: Result<(), String>) {
        if let Err(what) = held {
            self.fail(what);
        }
    }

    pub fn print(&self, line: &str) {
        if self.trace {
            println!("{:>12.3} s  {line}", (self.now.0 - START.0) as f64 / 1000.0);
        }
    }

    /// Lets some time pass, then does something bad, unless it is left out.
    pub fn disturb(&mut self, seed: u64, number: usize, left_out: bool) {
        let mut chance = Chance::new(seed, 1000 + number as u64);
        let span = chance.below(90_000) as i64;
        self.run_until(Timestamp(self.now.0 + span));
        if !left_out && self.broken.is_none() {
            let told = people::disturb(self, &mut chance);
            self.print(&format!("** {told}"));
            self.story.push(format!("{number}: {told}"));
        }
    }

    /// People and faults stop; within bounded time everything comes to rest. Then people answer what was asked of them, and
    /// what is active is finished.
    pub fn calm_down(&mut self) {
        if self.broken.is_some() {
            return;
        }
        self.print("** everybody goes home");
        people::make_peace(self);
        self.come_to_rest();
        if let Err(what) = promises::settled(self) {
            self.fail(what);
        }
        for _ in 0..people::ROUNDS {
            if self.broken.is_some() || promises::finished(self).is_ok() {
                break;
            }
            self.print("** people answer what was asked of them");
            people::answer(self);
            self.come_to_rest();
        }
        self.must(promises::finished(self));
        self.must(promises::salvage_is_told(self));
        self.check_everything();
    }

    fn come_to_rest(&mut self) {
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
        self.jumped += millis;
        self.next_poll += millis;
        self.next_timer += millis;
        self.soft_since = self.soft_since.map(|at| at + millis);
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
            let agent = self.agents.values().filter_map(|agent| Some((agent.due()?.0, &agent.run))).min();
            let queued = self.queue.keys().next().copied();
            // The driver looks at the clock at least once a minute, and never more often than every 20 ms.
            let due = next_due(&self.state, &self.policy).map_or(self.next_timer + 60_000, |at| at.0);
            let timer = due.max(self.next_timer).min(self.next_timer + 60_000);
            let next = [Some(self.next_poll), Some(timer), agent.as_ref().map(|a| a.0), queued.map(|q| q.0)];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= end.0) else { break };
            let agent = agent.filter(|(due, _)| *due == at).map(|(_, run)| run.clone());
            self.now = Timestamp(at.max(self.now.0));
            self.checkpoint();
            if let Some(key) = queued.filter(|key| key.0 == at) {
                match self.queue.remove(&key) {
                    Some(Scheduled::Perform(effect)) => self.perform(effect),
                    Some(Scheduled::EndGate(effect)) => self.end_gate(&effect),
                    Some(Scheduled::Deliver(event)) => self.tell(event),
                    None => {}
                }
            } else if let Some(run) = agent {
                self.agent_acts(&run);
            } else if at == self.next_poll {
                self.poll();
            } else {
                let soon = self.now.0 - self.next_timer < 1000;
                self.next_timer = self.now.0 + 20;
                self.changed = false;
                self.tell(Event::TimerFired);
                self.idle_wakes = if soon && !self.changed { self.idle_wakes + 1 } else { 0 };
                if self.idle_wakes > IDLE_WAKES {
                    self.fail("the runner wakes up again and again and does nothing".into());
                }
            }
        }
        self.now = self.now.max(end);
    }

    fn checkpoint(&mut self) {
        if self.soft_since.is_some_and(|since| since + CHECKPOINT <= self.now.0) && !self.ledger.full {
            self.unwritten.runs.extend(self.state.runs.keys().cloned());
            self.unwritten.jobs.extend(self.state.runs.values().map(|run| run.ticket.clone()));
            self.write();
        }
    }

    fn write(&mut self) {
        self.ledger.commit(&self.state, &self.unwritten);
        self.unwritten = Changes::default();
        self.soft_since = None;
    }

    /// One step, its transaction, and its effects on their way.
    /// A tracker that can tell says only that nothing changed, now and then.
    fn told_of_the_board(&mut self, event: Event) -> Event {
        match event {
            Event::Polled { tickets, base, basis } => {
                if self.last_list.as_ref() == Some(&tickets) && self.chance.one_in(2) {
                    return Event::PolledUnchanged { base, basis: self.list_basis };
                }
                self.last_list = Some(tickets.clone());
                self.list_basis = basis;
                Event::Polled { tickets, base, basis }
            }
            Event::PollFailed { .. } | Event::PolicyReloaded => {
                self.last_list = None;
                event
            }
            // A board that is known to have gone on since lists anew.
            Event::TicketsRefreshed { ref found, .. } => {
                let listed = |list: &mut Vec<Ticket>, lookup: &Lookup| match lookup {
                    Lookup::Found { ticket } => list.contains(ticket),
                    _ => true,
                };
                self.last_list.take_if(|list| found.iter().any(|(_, lookup)| !listed(list, lookup)));
                event
            }
            _ => event,
        }
    }

    pub fn tell(&mut self, event: Event) {
        if self.broken.is_some() {
            return;
        }
        if self.trace {
            self.print(&format!("{event:?}"));
        }
        let event = self.told_of_the_board(event);
        let unknown = unknown_tickets(&self.state, &event);
        if !unknown.is_empty() {
            let jobs = self.recall(&unknown);
            step(&mut self.state, &self.policy, self.now, Event::Recalled { jobs });
        }
        let spends = matches!(event, Event::RunProgress { .. } | Event::RunFinished { .. });
        let effects = step(&mut self.state, &self.policy, self.now, event);
        self.steps += 1;
        if self.trace {
            for effect in &effects {
                self.print(&format!("    -> {} {:?}", effect.id.0, effect.action));
            }
        }
        let changes = self.state.take_changes();
        self.changed |= changes.is_hard() || !effects.is_empty();
        self.count_blocks(&changes);
        if let Some(first) = newly_broken(&self.state, &self.policy, self.now, &effects, &changes).into_iter().next() {
            self.fail(first);
        }
        if spends {
            self.must(promises::budget_holds(self));
        }
        if self.steps.is_multiple_of(COMPLETE_EVERY)
            && let Some(first) = broken(&self.state, &self.policy, self.now, &effects).into_iter().next()
        {
            self.fail(first);
        }
        self.keep(changes, effects);
        if self.steps.is_multiple_of(COMPLETE_EVERY) {
            self.check_ledger();
        }
    }

    /// Writes, then performs. What cannot be written is not performed.
    /// What was archived and may not be written yet comes first.
    fn recall(&self, ids: &[TicketId]) -> Vec<Job> {
        let (mut jobs, mut rest) = (Vec::new(), Vec::new());
        for id in ids {
            match self.unwritten.archived.get(id) {
                Some(job) => jobs.push(job.clone()),
                None => rest.push(id.clone()),
            }
        }
        jobs.extend(self.ledger.archived(&rest));
        jobs
    }

    fn keep(&mut self, changes: Changes, effects: Vec<Effect>) {
        if changes.soft && !changes.is_hard() {
            self.soft_since.get_or_insert(self.now.0);
        }
        // Reading and stopping wait for nobody, not even for a full disk.
        let (harmless, writes): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| effect.action.kind().reach() == Reach::Harmless);
        for effect in harmless {
            self.schedule(self.now.0 + 1, Scheduled::Perform(effect));
        }
        let hard = changes.is_hard();
        self.unwritten.add(changes);
        self.unperformed.extend(writes);
        if hard && self.death == Some(Death::BeforeCommit) {
            self.die();
            return;
        }
        if !self.ledger.full && (hard || !self.unperformed.is_empty()) {
            self.write();
        }
        if hard && self.death == Some(Death::AfterCommit) {
            self.die();
            return;
        }
        if self.ledger.full {
            return;
        }
        for effect in std::mem::take(&mut self.unperformed) {
            if self.death == Some(Death::AfterFirstEffect) {
                self.perform(effect);
                self.die();
                return;
            }
            self.put_in_order(effect);
        }
    }

    /// What writes to a ticket keeps its order; starts and gates go beside it.
    fn put_in_order(&mut self, effect: Effect) {
        let at = match (&effect.ticket, &effect.action) {
            (Some(ticket), action) if !matches!(action, Action::StartRun { .. } | Action::RunGate { .. }) => {
                let free = self.busy_until.get(ticket).copied().unwrap_or(0).max(self.now.0) + 1;
                let over = free + 10 + self.chance.below(1500) as i64;
                self.busy_until.insert(ticket.clone(), over);
                free
            }
            _ => self.now.0 + 1,
        };
        self.schedule(at, Scheduled::Perform(effect));
    }

    fn count_blocks(&mut self, changes: &Changes) {
        for id in &changes.jobs {
            let since = match self.state.jobs.get(id).map(|job| &job.stage) {
                Some(Stage::Blocked { since, .. }) => *since,
                _ => {
                    self.blocked_since.remove(id);
                    continue;
                }
            };
            if self.blocked_since.insert(id.clone(), since) != Some(since) {
                *self.times_blocked.entry(id.clone()).or_default() += 1;
            }
        }
    }

    fn check_everything(&mut self) {
        if let Some(first) = broken(&self.state, &self.policy, self.now, &[]).into_iter().next() {
            self.fail(first);
        }
        self.check_ledger();
    }

    fn check_ledger(&mut self) {
        let up_to_date = !self.ledger.full && !self.unwritten.is_hard();
        if let Some(what) = self.ledger.lacks(&self.state).filter(|_| up_to_date) {
            self.fail(what);
        }
    }

    fn refused(&mut self, effect: &Effect) -> bool {
        let known = circumstances(&self.state, &self.policy, effect.ticket.as_ref());
        let file = self.world.kill_file.then_some(SwitchSource::File);
        let now = Circumstances { switch: file.or(known.switch), ..known };
        let Err(refusal) = permit(effect.action.kind(), &now) else { return false };
        let error = EffectError::Refused { refusal };
        self.later(5, Event::EffectFailed { effect: effect.id, error });
        true
    }

    fn perform(&mut self, effect: Effect) {
        let kind = effect.action.kind();
        if self.refused(&effect) {
            return;
        }
        if let Some(ticket) = &effect.ticket
            && kind.reach() != Reach::Harmless
            && !matches!(effect.action, Action::StartRun { .. })
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
            (Action::Steer { .. } | Action::Notify { .. } | Action::CheckRemark { .. }, _) => {}
            (Action::RefreshTickets { ids }, _) => self.refresh(ids.clone()),
            (Action::InspectPr { .. }, Some(_)) if self.world.forge_down => {}
            (Action::InspectPr { number }, Some(ticket)) => {
                let stale = self.reads_old();
                let pr = self.world.look(number.0, stale, &mut self.chance);
                let latency = self.latency(2000);
                let basis = self.basis();
                if let Some(pr) = pr {
                    self.deliver(latency, Event::PrObserved { ticket, pr, basis });
                }
            }
            (Action::RunGate { .. }, Some(_)) => {
                let at = self.now.0 + 500 + self.chance.below(60_000) as i64;
                self.schedule(at, Scheduled::EndGate(effect));
            }
            (_, Some(ticket)) => self.write_to_world(&effect, &ticket),
            _ => {}
        }
    }

    /// Most answers are quick; some are overtaken by later ones.
    fn latency(&mut self, usual: u64) -> i64 {
        let slow = !self.peaceful && self.chance.one_in(25);
        5 + self.chance.below(if slow { 30_000 } else { usual }) as i64
    }

    /// Whether this reading shows the world as it was a while ago. Trackers and forges do, but not for long.
    fn reads_old(&mut self) -> bool {
        if self.outside_now().since(self.world.old_since).as_secs() > 50 {
            self.world.remember();
            self.world.old_since = self.outside_now();
        }
        self.stale_reads && self.chance.one_in(2)
    }

    /// Some answers come twice, the second time late.
    fn deliver(&mut self, latency: i64, event: Event) {
        if !self.peaceful && self.chance.one_in(20) {
            let late = latency + 1 + self.chance.below(30_000) as i64;
            self.later(late, event.clone());
        }
        self.later(latency, event);
    }

    fn write_to_world(&mut self, effect: &Effect, ticket: &TicketId) {
        let mut result = self.world.write(effect, ticket, self.outside_now());
        self.must(promises::world_holds(self, ticket));
        // The write took effect, its answer did not arrive.
        if !self.peaceful && self.chance.one_in(12) {
            result = Err(EffectError::Transient { detail: "timed out".into(), retry_after: None });
        }
        let event = match result {
            Ok(result) => Event::EffectDone { effect: effect.id, result },
            Err(error) => Event::EffectFailed { effect: effect.id, error },
        };
        self.deliver(9, event);
    }

    fn end_gate(&mut self, effect: &Effect) {
        if self.refused(effect) {
            return;
        }
        let Action::RunGate { head, .. } = &effect.action else { return };
        let broke_down = !self.peaceful && self.chance.one_in(15);
        let result = if broke_down {
            Err(EffectError::Transient { detail: "no space left".into(), retry_after: None })
        } else {
            self.world.gate(head)
        };
        let event = match result {
            Ok(result) => Event::EffectDone { effect: effect.id, result },
            Err(error) => Event::EffectFailed { effect: effect.id, error },
        };
        self.deliver(1, event);
    }

    fn start_agent(&mut self, effect: &Effect, ticket: TicketId) {
        let Action::StartRun { run, branch, work, undelivered, .. } = &effect.action else { return };
        let run_is_over = |report| Event::RunFinished { run: run.clone(), report };
        if self.world.tracker_down {
            self.later(5, run_is_over(failed(RunFailure::Tracker { detail: "500".into() })));
            return;
        }
        // The ticket is read once more right before the start.
        let reading: Vec<_> = self.world.board(false).into_iter().filter(|shown| shown.id == ticket).collect();
        let facts = reading.first().map(TicketFacts::of);
        let life = self.lives;
        let (found, basis) = (lookups(std::slice::from_ref(&ticket), reading), self.basis());
        self.tell(Event::TicketsRefreshed { found, basis });
        if life != self.lives || self.broken.is_some() {
            return;
        }
        if let Some(reason) = select::too_late(facts.as_ref(), &self.policy) {
            self.later(5, run_is_over(report(RunOutcome::Killed { reason })));
            return;
        }
        if self.stopped_before_start.remove(run) {
            self.later(5, run_is_over(report(RunOutcome::Killed { reason: StopReason::Operator })));
            return;
        }
        if self.refused(effect) {
            return;
        }
        if let Err(what) = promises::may_be_written(self, &ticket, &effect.action) {
            self.fail(what);
            return;
        }
        if !self.peaceful && self.chance.one_in(40) {
            let failure = RunFailure::Workspace { detail: "no space left".into(), permanent: false };
            self.later(5, run_is_over(failed(failure)));
            return;
        }
        let temper = if self.peaceful { Temper::Good } else { Agent::temper(&mut self.chance) };
        let review = match work {
            Work::Review { head } => Some(head.clone()),
            _ => None,
        };
        let agent = Agent {
            run: run.clone(),
            ticket,
            branch: branch.clone(),
            review,
            temper,
            undelivered: undelivered.iter().filter_map(|message| message.key.clone()).collect(),
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
        agent.next_at = Timestamp(self.now.0 + agent.pause(&mut self.chance));
        let (event, over) = agent.act(&mut self.world, self.now);
        if over {
            self.agents.remove(run);
            // The end is told twice now and then, and late words follow it.
            if !self.peaceful && self.chance.one_in(10) {
                self.later(700, event.clone());
            }
        }
        self.tell(event);
    }

    fn poll(&mut self) {
        self.next_poll = self.now.0 + self.policy.polling_interval.as_millis() as i64;
        let latency = self.latency(3000);
        if self.world.tracker_down {
            self.later(latency, Event::PollFailed { error: "500".into() });
            return;
        }
        let states = select::states_of_interest(&self.policy);
        let stale = self.reads_old();
        let mut tickets = self.world.board(stale);
        tickets.retain(|ticket| state_in(&ticket.state, &states));
        // A tracker that pages can miss one, or show it twice, while somebody reorders the board.
        if self.missing_reads && !tickets.is_empty() {
            let at = self.chance.below(tickets.len() as u64) as usize;
            if self.chance.one_in(2) {
                tickets.remove(at);
            } else {
                tickets.push(tickets[at].clone());
            }
        }
        let basis = self.basis();
        self.deliver(latency, Event::Polled { tickets, base: Some(commit("base")), basis });
        // The watcher of the kill-switch file tells what it sees from time to time, also when nothing changed.
        let file = self.world.kill_file;
        self.later(5, Event::SwitchesChanged { file });
    }

    /// What a question that leaves now rests on.
    fn basis(&self) -> Basis {
        Basis { asked_at: self.now, after: self.state.moment() }
    }

    fn refresh(&mut self, asked: Vec<TicketId>) {
        let latency = self.latency(2000);
        if self.world.tracker_down {
            self.later(latency, Event::PollFailed { error: "500".into() });
            return;
        }
        let stale = self.reads_old();
        let tickets = self.world.board(stale).into_iter().filter(|ticket| asked.contains(&ticket.id)).collect();
        let (found, basis) = (lookups(&asked, tickets), self.basis());
        self.deliver(latency, Event::TicketsRefreshed { found, basis });
    }

    /// `kill -9`, now or inside the next step that decides something.
    pub fn crash(&mut self, death: Death) {
        if death == Death::Now {
            self.die();
        } else {
            self.death = Some(death);
        }
    }

    /// Agents and everything in memory are gone; what the ledger holds comes back.
    fn die(&mut self) {
        self.print("** the runner is dead and comes back");
        self.death = None;
        self.lives += 1;
        self.queue.clear();
        self.busy_until.clear();
        self.stopped_before_start.clear();
        self.last_list = None;
        self.unwritten = Changes::default();
        self.unperformed.clear();
        self.soft_since = None;
        self.ledger.full = false;
        self.state = self.ledger.reopened();
        let agents = std::mem::take(&mut self.agents);
        // Whoever buries a run saves its work, or finds what was saved before its end could be written down.
        for agent in agents.values().filter(|agent| agent.is_dirty()) {
            self.world.salvaged.insert(agent.run.clone(), agent.ticket.clone());
        }
        let salvage = |run: &RunId| self.world.salvaged.get(run).map(|_| salvage_of(run));
        let runs = self.state.runs.keys();
        let lost = runs.map(|run| LostRun { run: run.clone(), salvage: salvage(run), head: None }).collect();
        self.tell(Event::Recovered { lost });
        let file = self.world.kill_file;
        self.later(250, Event::SwitchesChanged { file });
        self.next_poll = self.now.0 + 100;
    }
}

/// What became of each id: one that is missing is gone.
fn lookups(asked: &[TicketId], tickets: Vec<Ticket>) -> Vec<(TicketId, Lookup)> {
    let found = |id: &TicketId| match tickets.iter().find(|ticket| ticket.id == *id) {
        Some(ticket) => Lookup::Found { ticket: ticket.clone() },
        None => Lookup::Gone { because: "nobody has it".into() },
    };
    asked.iter().map(|id| (id.clone(), found(id))).collect()
}
