//! Reading never waits for writing: beside a writer that was stopped in the middle, after one that was killed, and where
//! nothing may be written. And it makes nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use dirigent::engine::state::{Note, State};
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger, open_for_reading};
use nix::sys::signal::Signal;

use super::note;
use crate::resources::Mount;
use crate::support::board::{Board, MUTATE, text};

const AGENT: &str = "echo work > work.txt\ngit add -A\ngit commit -qm Work\ntk done 'did it'\n";

pub fn ledger_of(board: &Board) -> PathBuf {
    let repos = board.home().join("repos");
    std::fs::read_dir(repos).unwrap().flatten().next().unwrap().path().join("ledger.db")
}

fn beside(ledger: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", ledger.display()))
}

/// A board with one ticket that waits for a person, and no runner.
fn worked() -> Board {
    let board = Board::new(AGENT, MUTATE);
    work(&board);
    board
}

fn work(board: &Board) {
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
}

/// Every command that only looks.
fn every_look_works(board: &Board) {
    let looks: [&[&str]; 7] = [
        &["status"],
        &["status", "t-1"],
        &["status", "--all"],
        &["explain", "t-1"],
        &["logs", "t-1"],
        &["salvage", "list"],
        &["gc", "--dry-run"],
    ];
    for look in looks {
        let output = board.run(look);
        assert!(output.status.success(), "{look:?}: {}", text(&output.stderr));
    }
    assert_eq!(board.phase("t-1"), "waiting_for_human");
}

#[test]
fn a_writer_that_was_stopped_in_its_transaction_holds_nobody_up() {
    let board = worked();
    let writer = rusqlite::Connection::open(ledger_of(&board)).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO notes (at, code, text) VALUES (1, 'x', 'half a step')").unwrap();
    every_look_works(&board);
    assert!(!board.ok(&["explain", "t-1"]).contains("half a step"));
    writer.execute_batch("ROLLBACK").unwrap();
}

/// As while the first one after a crash reads the log, or the last one closes: nobody else may even read.
#[test]
fn a_writer_that_was_stopped_while_it_had_the_file_to_itself_holds_nobody_up() {
    let board = worked();
    let writer = rusqlite::Connection::open(ledger_of(&board)).unwrap();
    let whole = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;
        INSERT INTO notes (at, ticket, code, text) VALUES (1, 't-1', 'x', 'a whole step'); COMMIT;
        BEGIN EXCLUSIVE; INSERT INTO notes (at, ticket, code, text) VALUES (2, 't-1', 'x', 'half a step');";
    writer.execute_batch(whole).unwrap();
    let said = board.ok(&["explain", "t-1"]);
    assert!(said.contains("a whole step") && !said.contains("half a step"), "{said}");
    assert_eq!(board.phase("t-1"), "waiting_for_human");
}

#[test]
fn a_runner_that_was_stopped_or_killed_leaves_a_ledger_that_can_be_read() {
    let board = worked();
    let runner = board.start();
    board.until("it is up", || board.ok(&["status"]).starts_with("runner up"));
    runner.signal(Signal::SIGSTOP);
    let said = board.ok(&["status"]);
    assert!(said.contains("does not answer") && said.contains("waiting for approval"), "{said}");
    runner.signal(Signal::SIGKILL);
    drop(runner);
    let ledger = ledger_of(&board);
    assert!(beside(&ledger, "-wal").exists() && beside(&ledger, "-shm").exists(), "it was killed");
    every_look_works(&board);
    std::fs::remove_file(beside(&ledger, "-shm")).unwrap();
    every_look_works(&board);
}

/// What there is to read in a folder where SQLite can make nothing, after a clean end and after the other kind.
#[test]
fn a_ledger_in_a_folder_where_nothing_can_be_written_can_be_read() {
    let board = Board::new(AGENT, MUTATE);
    let Some(mount) = Mount::new(board.home()) else { return };
    work(&board);
    let ledger = ledger_of(&board);
    let all_read = || {
        mount.remount("ro");
        every_look_works(&board);
        mount.remount("rw");
    };
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&ledger, ending));
    }
    all_read();
    let runner = board.start();
    board.until("it is up", || board.ok(&["status"]).starts_with("runner up"));
    runner.signal(Signal::SIGKILL);
    drop(runner);
    all_read();
    std::fs::remove_file(beside(&ledger, "-shm")).unwrap();
    all_read();
}

#[test]
fn looking_makes_no_ledger_and_no_folder() {
    let board = Board::new(AGENT, MUTATE);
    board.ticket("t-1", "Work");
    assert!(board.ok(&["status"]).contains("t-1"), "it is on the board");
    board.ok(&["salvage", "list"]);
    board.ok(&["gc", "--dry-run"]);
    board.ok(&["explain", "t-1"]);
    board.fails(&["explain", "t-2"], 6);
    assert!(!board.home().join("repos").exists(), "somebody looked, and a folder was made");
}

#[test]
fn many_readers_beside_a_busy_writer_that_comes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut state = SqliteLedger::open(&path).unwrap().load().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let (mut looks, mut last) = (0, 0);
            while !over.load(Ordering::Relaxed) {
                let ledger = open_for_reading(&path).unwrap();
                let meta = ledger.load().unwrap().meta;
                let notes = ledger.notes(None, 10_000).unwrap().len() as u64;
                assert!(meta.next_run <= notes + 1, "{} of {notes}: a half-written step was seen", meta.next_run);
                assert!(meta.next_run >= last, "time went back");
                last = meta.next_run;
                looks += 1;
            }
            looks
        };
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        for _ in 0..60 {
            let mut ledger = SqliteLedger::open(&path).unwrap();
            for _ in 0..5 {
                step(&mut ledger, &mut state);
            }
        }
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0, "a reader never came to read");
        }
    });
    assert_eq!(open_for_reading(&path).unwrap().load().unwrap().meta.next_run, 301);
}

/// One note, and its number in the meta record.
fn step(ledger: &mut SqliteLedger, state: &mut State) {
    state.changes.notes = vec![Note { ..note(1, "t-1") }];
    state.meta.next_run += 1;
    state.changes.meta = true;
    let changes = state.take_changes();
    ledger.commit(state, &changes).unwrap();
}
