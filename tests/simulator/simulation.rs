//! One story: the clock, what is under way, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use dirigent::config::policy::Policy;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{EffectId, RunId, TicketId};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Effect;
use dirigent::engine::event::Event;
use dirigent::engine::next_due;
use dirigent::engine::state::{Changes, Meta, State};

use super::agents::{Agent, Temper};
use super::chance::Chance;
use super::ledger::Ledger;
use super::peace;
use super::people;
use super::policies::policy_of;
use super::promises;
use super::witness::Witness;
use super::world::World;

const START: Timestamp = Timestamp(1_700_000_000_000);
/// More steps than this between two disturbances is a loop without an end.
const SPIN: u64 = 200_000;
/// So many wake-ups in a row, each right after the other, that changed nothing: the runner burns a processor.
const IDLE_WAKES: u32 = 50;
/// How long the others may take while one ticket is held up.
const PATIENCE: i64 = peace::DAY / 2;

pub enum Scheduled {
    Perform(Effect),
    EndGate(Effect),
    /// With the step after which its question left, where it answers one.
    Deliver(Event, Option<u64>),
    /// The whole board as it was read.
    Board {
        board: Vec<Ticket>,
        basis: Basis,
    },
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

/// What is wrong with readings for now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Replicas show what was before.
    pub lag: bool,
    /// A page lacks a ticket, or has one twice.
    pub pages: bool,
    /// Not everything was read to the last page.
    pub partial: bool,
    pub nobodys_head: bool,
    /// A ticket that is asked for is not visible, or cannot be understood.
    pub hides: bool,
}

pub struct Simulation {
    pub state: State,
    pub policy: Policy,
    pub now: Timestamp,
    pub world: World,
    pub agents: BTreeMap<RunId, Agent>,
    pub steps: u64,
    pub story: Vec<String>,
    pub faults: Faults,
    pub peaceful: bool,
    /// How far the runner's clock has jumped away from everybody else's.
    jumped: i64,
    pub times_blocked: BTreeMap<TicketId, usize>,
    pub ledger: Ledger,
    pub witness: Witness,
    /// Prints every event and what followed from it.
    pub trace: bool,
    pub unwritten: Changes,
    pub unperformed: Vec<Effect>,
    pub soft_since: Option<i64>,
    pub death: Option<Death>,
    pub lives: u32,
    pub changed: bool,
    idle_wakes: u32,
    pub queue: BTreeMap<(i64, u64), Scheduled>,
    sequence: u64,
    pub busy_until: BTreeMap<TicketId, i64>,
    pub stopped_before_start: BTreeSet<RunId>,
    /// What the engine was last told of the whole board.
    pub told: Option<BTreeMap<TicketId, Ticket>>,
    pub list_basis: Basis,
    /// Whether the ledger knows how far the board was read.
    pub mark_is_kept: bool,
    /// What was pending when our access was refused.
    pub owed: BTreeMap<EffectId, TicketId>,
    pub next_poll: i64,
    next_timer: i64,
    pub server_tells_time: bool,
    pub chance: Chance,
    /// What webhooks and marks are drawn from, apart from the story itself.
    pub hints: Chance,
    broken: Option<String>,
}

impl Simulation {
    pub fn new(seed: u64, trace: bool) -> Self {
        let meta = Meta { seed, ..Meta::default() };
        let mut world = World::new(2 + (seed % 3) as usize, seed % 6 == 5);
        world.dates_moves = seed % 4 < 2;
        let mut simulation = Self {
            ledger: Ledger::new(meta.clone()),
            state: State::new(meta),
            policy: policy_of(seed),
            now: START,
            world,
            agents: BTreeMap::new(),
            steps: 0,
            story: Vec::new(),
            faults: Faults::default(),
            peaceful: false,
            jumped: 0,
            times_blocked: BTreeMap::new(),
            witness: Witness::default(),
            trace,
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
            told: None,
            list_basis: Basis::default(),
            mark_is_kept: true,
            owed: BTreeMap::new(),
            next_poll: START.0,
            next_timer: START.0,
            server_tells_time: seed.is_multiple_of(2),
            chance: Chance::new(seed, 1),
            hints: Chance::new(seed, 3),
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

    pub fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    pub fn must(&mut self, held: Result<(), String>) {
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
    /// what is active is finished. Now and then one ticket is held up before, and the others are finished without it.
    pub fn calm_down(&mut self, seed: u64) {
        if self.broken.is_some() {
            return;
        }
        self.print("** everybody goes home");
        peace::make_peace(self);
        if seed % 4 == 3 {
            peace::hold_one_up(self, &mut Chance::new(seed, 2));
            self.print(&format!("** {:?} is held up", self.world.stuck));
            self.finish_the_others();
            self.world.stuck = None;
        }
        self.come_to_rest();
        if let Err(what) = promises::settled(self) {
            self.fail(what);
        }
        for _ in 0..peace::ROUNDS {
            if self.broken.is_some() || promises::finished(self).is_ok() {
                break;
            }
            self.print("** people answer what was asked of them");
            peace::answer(self);
            self.come_to_rest();
        }
        self.must(promises::finished(self));
        self.must(promises::salvage_is_told(self));
        self.must(promises::debts_are_paid(self));
        self.check_everything();
    }

    fn finish_the_others(&mut self) {
        let end = self.now.0 + PATIENCE;
        while self.now.0 < end && self.broken.is_none() {
            self.run_until(Timestamp(self.now.0 + PATIENCE / 12));
            self.agents.values_mut().for_each(|agent| agent.temper = Temper::Good);
            if promises::finished(self).is_ok() {
                return;
            }
            peace::answer(self);
        }
        if self.broken.is_none()
            && let Err(what) = promises::finished(self)
        {
            let stuck = &self.world.stuck;
            self.fail(format!("one ticket ({stuck:?}) holds up another: {what}"));
        }
    }

    fn come_to_rest(&mut self) {
        for agent in self.agents.values_mut() {
            agent.temper = Temper::Good;
        }
        let end = peace::long_after(self.now);
        while self.now < end && self.broken.is_none() {
            self.run_until(Timestamp(self.now.0 + peace::DAY / 24));
            peace::resume_all(self);
            if self.agents.is_empty() && self.queue.is_empty() && promises::settled(self).is_ok() {
                return;
            }
        }
    }

    pub fn later(&mut self, millis: i64, event: Event) {
        self.schedule(self.now.0 + millis, Scheduled::Deliver(event, None));
    }

    pub fn schedule(&mut self, at: i64, what: Scheduled) {
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

    pub fn run_until(&mut self, end: Timestamp) {
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
                    Some(Scheduled::Deliver(event, asked)) => self.tell_answer(event, asked),
                    Some(Scheduled::Board { board, basis }) => self.hear_of_the_board(board, basis),
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
}
