//! How quick and how small the core is, as ratios against the same thing done by hand in the same run.
//!
//! `cargo bench --bench core`. Prints figures; judges nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use dirigent::config::Settings;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{TicketId, TicketKey};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::Event;
use dirigent::engine::{next_due, step};
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger};
use dirigent::tracker::tk::TkTracker;
use dirigent::tracker::{BoardAnswer, Mark, Tracker};
use support::{Board, git, median, nanos};

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    start_latency();
    quiet_ticks();
    ledger_reopening();
}

/// From a ticket file appearing to its agent running, against a worktree and a shell by hand.
fn start_latency() {
    const ROUNDS: usize = 15;
    let stamps = tempfile::tempdir().unwrap();
    let agent = format!("date +%s%N > {}/$DIRIGENT_TICKET_KEY\ntk blocked enough\n", stamps.path().display());
    let board = Board::new(&agent, 4);
    let runner = board.run();
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let id = format!("b-{round}");
        let began = nanos();
        board.ticket(&id);
        let stamp = stamps.path().join(&id);
        let gives_up = Instant::now() + Duration::from_secs(60);
        let seen = loop {
            assert!(Instant::now() < gives_up, "no agent was started for {id} within a minute");
            match std::fs::read_to_string(&stamp).ok().and_then(|text| text.trim().parse::<u128>().ok()) {
                Some(seen) => break seen,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        ours.push((seen - began) as f64 / 1e6);
        std::thread::sleep(Duration::from_millis(700));
        let began = Instant::now();
        let path = board.dir.path().join(format!("by-hand-{round}"));
        git(
            &board.repo(),
            &["worktree", "add", "-q", "-b", &format!("by-hand-{round}"), path.to_str().unwrap(), "main"],
        );
        assert!(Command::new("sh").args(["-c", "true"]).status().unwrap().success());
        by_hand.push(began.elapsed().as_secs_f64() * 1e3);
    }
    drop(runner);
    let (ours, by_hand) = (median(ours), median(by_hand));
    println!(
        "ticket file to agent process: {ours:.1} ms; git worktree add + sh by hand: {by_hand:.1} ms; ratio {:.2}",
        ours / by_hand
    );
}

/// A poll of 10,000 tickets with nothing changed, against reading a tenth of them.
fn quiet_ticks() {
    const TICKETS: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    for n in 0..TICKETS {
        let text = format!(
            "---\nid: t-{n}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# Ticket {n}\n\n{}\n",
            "A line of the description.\n".repeat(20)
        );
        std::fs::write(dir.path().join(format!("t-{n}.md")), text).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tracker = TkTracker::new(dir.path());
    let states = ["open".to_owned(), "in_progress".to_owned()];
    let poll = |since: Option<&Mark>| runtime.block_on(tracker.poll(&states, since)).unwrap().answer;
    let BoardAnswer::Listed { tickets, mark } = poll(None) else { panic!("the first answer is a list") };
    let basis = Basis::default();
    assert_eq!(tickets.len(), TICKETS);
    let mut state = dirigent::engine::state::State::default();
    let policy = Settings::default().policy("hash", false);
    let _ = step(&mut state, &policy, Timestamp(0), Event::Recovered { lost: Vec::new() });
    let _ = step(&mut state, &policy, Timestamp(1), Event::Polled { tickets, base: None, basis });
    let (mut asking, mut whole, mut reading) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..15 {
        state.take_changes();
        let began = Instant::now();
        assert_eq!(poll(mark.as_ref()), BoardAnswer::Unchanged);
        asking.push(began.elapsed().as_secs_f64() * 1e3);
        let _ = step(&mut state, &policy, Timestamp(2 + round), Event::PolledUnchanged { base: None, basis });
        std::hint::black_box(next_due(&state, &policy));
        whole.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        for n in 0..TICKETS / 10 {
            std::hint::black_box(std::fs::read(dir.path().join(format!("t-{n}.md"))).unwrap());
        }
        reading.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let (asking, whole, reading) = (median(asking), median(whole), median(reading));
    println!(
        "10,000 tickets, nothing changed: asking {asking:.1} ms, with the engine's tick {whole:.1} ms; reading 1,000 files: {reading:.1} ms; ratio {:.2}",
        whole / reading
    );
}

fn ledger_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let mut state = ledger.load().unwrap();
    let policy = Settings::default().policy("hash", false);
    let tickets = (0..10_000).map(ticket).collect();
    let _ = step(&mut state, &policy, Timestamp(0), Event::Recovered { lost: Vec::new() });
    let _ = step(&mut state, &policy, Timestamp(1), Event::Polled { tickets, base: None, basis: Basis::default() });
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();
    drop(ledger);
    let began = Instant::now();
    let jobs = SqliteLedger::open(&path).unwrap().load().unwrap().jobs.len();
    println!("reopening a ledger with {jobs} jobs: {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
}

fn ticket(n: usize) -> Ticket {
    Ticket {
        id: TicketId::new(format!("t-{n}")),
        key: TicketKey::new(format!("t-{n}")),
        title: format!("Ticket number {n}"),
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
