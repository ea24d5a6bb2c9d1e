//! What an event costs by the number of jobs that there are, and what a pause of everything writes.
//!
//! `cargo bench --bench scale`. Prints figures; judges nothing. An event is a step of the engine, its commit to a ledger in
//! memory-backed files, and the next due time; the same events are played on each board in turn, so that a busy machine hits
//! all of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::Instant;

use dirigent::config::Settings;
use dirigent::config::policy::Policy;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{RunId, TicketId, TicketKey};
use dirigent::domain::run::{Life, ProcessMark, RunOutcome, RunReport};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectResult, Event, Lookup, OperatorCommand};
use dirigent::engine::state::{Changes, State};
use dirigent::engine::{next_due, step};
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger};

const ROUNDS: usize = 300;
const START: i64 = 1_700_000_000_000;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let mut small = Board::new(1_000);
    let mut large = Board::new(10_000);
    for (what, play) in [
        ("a ticket was edited", Board::edit_ticket as fn(&mut Board, usize) -> f64),
        ("an effect is done", Board::effect_done),
        ("a run has ended, and the next one starts", Board::run_ended),
    ] {
        let (mut few, mut many) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            few.push(play(&mut small, round));
            many.push(play(&mut large, round));
        }
        let (few, many) = (support::median(few), support::median(many));
        println!("{what}: {few:.1} µs at 1,000 jobs, {many:.1} µs at 10,000; ratio {:.2}", many / few);
    }
    let (paused, resumed) = (large.operate(OperatorCommand::PauseAll), large.operate(OperatorCommand::ResumeAll));
    println!("pause and resume of everything at 10,000 jobs write {paused} and {resumed} rows");
}

/// A board of which one job in a hundred is at work.
struct Board {
    state: State,
    policy: Policy,
    ledger: SqliteLedger,
    jobs: usize,
    now: i64,
    _folder: tempfile::TempDir,
}

impl Board {
    fn new(jobs: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger.db")).unwrap();
        let mut policy = Settings::default().policy("hash", false);
        policy.agent.max_concurrent = jobs / 100;
        policy.rollout.mode = dirigent::config::policy::RolloutMode::Mutate;
        let state = ledger.load().unwrap();
        let mut board = Self { state, policy, ledger, jobs, now: START, _folder: folder };
        board.play(Event::Recovered { lost: Vec::new() });
        let tickets = (0..jobs).map(|n| ticket(n, 0)).collect();
        board.play(Event::Polled { tickets, base: None, basis: board.basis() });
        let runs: Vec<RunId> = board.state.runs.keys().cloned().collect();
        assert_eq!(runs.len(), jobs / 100);
        for run in runs {
            board.started(run);
        }
        board
    }

    fn basis(&self) -> Basis {
        Basis { asked_at: Timestamp(self.now), after: self.state.moment() }
    }

    fn started(&mut self, run: RunId) {
        let process = ProcessMark { pid: 1, started_ticks: 1 };
        self.play(Event::RunStarted { run, process, worktree: "/w".into(), head: None });
    }

    /// How long it took, in microseconds.
    fn play(&mut self, event: Event) -> f64 {
        self.now += 1;
        let began = Instant::now();
        let effects = step(&mut self.state, &self.policy, Timestamp(self.now), event);
        let changes = self.state.take_changes();
        self.ledger.commit(&self.state, &changes).unwrap();
        std::hint::black_box(next_due(&self.state, &self.policy));
        let took = began.elapsed();
        drop(effects);
        took.as_secs_f64() * 1e6
    }

    fn edit_ticket(&mut self, round: usize) -> f64 {
        let changed = ticket(self.jobs / 2 + round, round + 1);
        let found = vec![(changed.id.clone(), Lookup::Found { ticket: changed })];
        self.play(Event::TicketsRefreshed { found, basis: self.basis() })
    }

    /// A comment on a ticket was posted.
    fn effect_done(&mut self, _round: usize) -> f64 {
        let is_comment = |action: &Action| matches!(action, Action::Comment { .. } | Action::MoveTicket { .. });
        let pending = self.state.outbox.iter().find(|(_, pending)| is_comment(&pending.effect.action));
        let Some((effect, action)) = pending.map(|(id, pending)| (*id, pending.effect.action.clone())) else {
            // Whoever starts says so, which is another effect.
            self.run_ended(0);
            return self.effect_done(0);
        };
        let result = match action {
            Action::MoveTicket { .. } => EffectResult::Moved { version: None },
            _ => EffectResult::Commented { comment: "c".into() },
        };
        self.play(Event::EffectDone { effect, result })
    }

    fn run_ended(&mut self, _round: usize) -> f64 {
        let run = self.state.runs.keys().next().unwrap().clone();
        let report = RunReport::bare(RunOutcome::Done);
        let took = self.play(Event::RunFinished { run, report });
        let is_new = |run: &&RunId| self.state.runs.get(run).is_some_and(|live| live.life == Life::Spawning);
        let new: Vec<RunId> = self.state.runs.keys().filter(is_new).cloned().collect();
        new.into_iter().for_each(|run| self.started(run));
        took
    }

    /// How many rows a command writes.
    fn operate(&mut self, command: OperatorCommand) -> usize {
        self.now += 1;
        let event = Event::Operator { command, by: "somebody".into() };
        let effects = step(&mut self.state, &self.policy, Timestamp(self.now), event);
        // Running workers stop, and that is written of them alone.
        drop(effects);
        let changes = self.state.take_changes();
        self.ledger.commit(&self.state, &changes).unwrap();
        rows(&changes)
    }
}

fn rows(changes: &Changes) -> usize {
    changes.jobs.len()
        + changes.archived.len()
        + changes.runs.len()
        + changes.finished.len()
        + changes.outbox.len()
        + changes.notes.len()
        + usize::from(changes.meta)
}

fn ticket(n: usize, edits: usize) -> Ticket {
    Ticket {
        id: TicketId::new(format!("t-{n}")),
        key: TicketKey::new(format!("t-{n}")),
        title: format!("Ticket number {n}, as it was after {edits} edits"),
        description: None,
        priority: Some(3),
        state: "open".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: None,
        labels: vec!["agent".into()],
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: Some(Timestamp(n as i64)),
        updated_at: None,
        native_ref: None,
        comments: Some(Vec::new()),
        state_changed: None,
        history: Default::default(),
    }
}
