//! What years of finished work cost: opening, looking up, retention, and bringing a ledger of the version before over.
//!
//! `cargo bench --bench ledger`. Prints figures; judges nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use dirigent::domain::ids::{TicketId, TicketKey};
use dirigent::domain::job::{BranchName, Job, TicketFacts};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::state::{Changes, State};
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger, open_for_reading};

const OVER: usize = 100_000;
const DAY: i64 = 86_400_000;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (small, large) = (folder.path().join("small.db"), folder.path().join("large.db"));
    fill(&small, 0);
    fill(&large, OVER);
    opening(&small, &large);
    looking_up(&large);
    checking(&large);
    // The largest one that is looked through as a whole then.
    let medium = folder.path().join("medium.db");
    fill(&medium, 9_000);
    after_a_kill(&medium);
    after_a_kill(&large);
    pruning(&large);
    bringing_over(&large);
}

fn job(name: &str) -> Job {
    let ticket = Ticket {
        id: TicketId::new(name),
        key: TicketKey::new(name),
        title: "A ticket with a title of the usual length".into(),
        description: None,
        priority: Some(2),
        state: "open".into(),
        branch_name: None,
        url: Some("https://example.invalid/tickets/1".into()),
        assignee: None,
        author: None,
        labels: vec!["agent".into()],
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: None,
        updated_at: None,
        native_ref: None,
        comments: None,
        state_changed: None,
        history: Default::default(),
    };
    let branch = BranchName { name: format!("dirigent/{name}-a-ticket-with-a-title"), generation: 0 };
    Job::new(TicketFacts::of(&ticket), branch, Timestamp(1))
}

/// Five live jobs, and so many that are over, one a day for each 500: a run of 2 KB and ten notes each.
fn fill(path: &Path, over: usize) {
    let mut ledger = SqliteLedger::open(path).unwrap();
    let jobs = (0..5).map(|n| job(&format!("live-{n}"))).collect();
    let state = State { jobs, ..State::new(ledger.load().unwrap().meta) };
    let changes = Changes { jobs: state.jobs.keys().cloned().collect(), ..Changes::default() };
    ledger.commit(&state, &changes).unwrap();
    drop(ledger);
    if over == 0 {
        return;
    }
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(&format!(
        "PRAGMA synchronous = OFF; BEGIN;
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {over})
         INSERT INTO jobs (ticket, key, phase, updated_at, archived, json)
         SELECT 'over-' || n, 'over-' || n, 'done', n / 500 * {DAY}, 1,
           json_set(json, '$.ticket.id', 'over-' || n, '$.ticket.key', 'over-' || n)
         FROM n, (SELECT json FROM jobs WHERE ticket = 'live-0');
         INSERT INTO runs (id, ticket, started_at, ended_at, outcome, json)
         SELECT 'run-' || ticket, ticket, updated_at, updated_at, 'done', json_object('text', printf('%.2000c', 'x'))
         FROM jobs WHERE archived = 1;
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10)
         INSERT INTO notes (at, ticket, code, text)
         SELECT updated_at, ticket, 'working', 'queued -> implementing: a run implements it, as it says here'
         FROM jobs, n WHERE archived = 1 ORDER BY updated_at;
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"
    ))
    .unwrap();
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn megabytes(path: &Path) -> f64 {
    std::fs::metadata(path).unwrap().len() as f64 / 1e6
}

/// What a start and what a command that looks pay, with and without a past.
fn opening(small: &Path, large: &Path) {
    let time = |open: &dyn Fn() -> usize| {
        let round = |_| {
            let began = Instant::now();
            assert_eq!(open(), 5);
            ms(began)
        };
        median((0..51).map(round).collect())
    };
    let write = |path: &Path| time(&|| SqliteLedger::open(path).unwrap().load().unwrap().jobs.len());
    let read = |path: &Path| time(&|| open_for_reading(path).unwrap().load().unwrap().jobs.len());
    for (what, few, many) in [("to write", write(small), write(large)), ("to read", read(small), read(large))] {
        println!(
            "opening {what} with 5 live jobs: {few:.2} ms; with {OVER} more that are over ({:.0} MB): {many:.2} ms; ratio {:.2}",
            megabytes(large),
            many / few
        );
    }
}

fn looking_up(large: &Path) {
    let ledger = open_for_reading(large).unwrap();
    let ids: Vec<TicketId> = (1..=1000).map(|n| TicketId::new(format!("over-{}", n * 97))).collect();
    let began = Instant::now();
    assert_eq!(ledger.jobs(&ids).unwrap().len(), 1000);
    println!("looking an archived job up among {OVER}: {:.1} µs", ms(began));
    let began = Instant::now();
    assert_eq!(ledger.notes(Some(&ids[0]), 500).unwrap().len(), 10);
    println!("the notes of a ticket among {}: {:.2} ms", OVER * 10, ms(began));
}

/// What every command paid before, and `doctor` pays now.
fn checking(large: &Path) {
    let ledger = open_for_reading(large).unwrap();
    let began = Instant::now();
    ledger.check().unwrap();
    println!("looking through all of it, as doctor does: {:.0} ms", ms(began));
}

/// The first start after `kill -9`.
fn after_a_kill(path: &Path) {
    let mut ledger = SqliteLedger::open(path).unwrap();
    ledger.record_preflight("hash", Timestamp(1)).unwrap();
    let killed = path.with_file_name("killed.db");
    for ending in ["", "-wal"] {
        std::fs::copy(beside(path, ending), beside(&killed, ending)).unwrap();
        std::fs::File::open(beside(&killed, ending)).unwrap().sync_all().unwrap();
    }
    let began = Instant::now();
    assert_eq!(SqliteLedger::open(&killed).unwrap().load().unwrap().jobs.len(), 5);
    println!("opening {:.0} MB after a kill -9, the bounded check included: {:.1} ms", megabytes(&killed), ms(began));
    std::fs::remove_file(killed).unwrap();
}

/// Half of the past goes.
fn pruning(large: &Path) {
    let before = megabytes(large);
    let mut ledger = SqliteLedger::open(large).unwrap();
    let now = Timestamp((OVER as i64 / 500) * DAY);
    let (mut batches, mut notes, mut runs) = (Vec::new(), 0, 0);
    loop {
        let began = Instant::now();
        let pruned = ledger.prune(now, 100).unwrap();
        batches.push(ms(began));
        notes += pruned.notes;
        runs += pruned.runs.len();
        if !pruned.more {
            break;
        }
    }
    let began = Instant::now();
    ledger.prune(now, 100).unwrap();
    let nothing = ms(began);
    drop(ledger);
    let slowest = batches.iter().copied().fold(0.0, f64::max);
    println!(
        "pruning {notes} notes and {runs} runs: {} batches, {:.1} ms each, the slowest {slowest:.0} ms; with nothing to prune {nothing:.2} ms",
        batches.len(),
        median(batches)
    );
    println!("the file: {before:.0} MB before, {:.0} MB after", megabytes(large));
}

/// As the version before would have left it.
fn bringing_over(large: &Path) {
    let db = rusqlite::Connection::open(large).unwrap();
    db.execute_batch(
        "DELETE FROM runs; DROP INDEX notes_by_age; DROP INDEX runs_by_age; DROP INDEX jobs_archived; DROP INDEX jobs_live;
         ALTER TABLE runs DROP COLUMN spared; ALTER TABLE jobs DROP COLUMN archived;
         PRAGMA auto_vacuum = NONE; PRAGMA user_version = 1; VACUUM;",
    )
    .unwrap();
    drop(db);
    let size = megabytes(large);
    let began = Instant::now();
    let jobs = open_for_reading(large).unwrap().load().unwrap().jobs.len();
    let looking = ms(began);
    let began = Instant::now();
    drop(SqliteLedger::open(large).unwrap());
    println!(
        "a ledger of the version before with {jobs} jobs ({size:.0} MB): brought over in {:.1} s, shown without that in {:.1} s",
        ms(began) / 1e3,
        looking / 1e3
    );
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    format!("{}{ending}", path.display()).into()
}
