//! The ledger as a file: made by several at once, too new, damaged, somebody else's, reopened.

mod archive;
mod reading;
mod retention;
mod upgrade;

use std::path::Path;

use dirigent::domain::ids::TicketId;
use dirigent::domain::time::Timestamp;
use dirigent::engine::state::Note;
use dirigent::ledger::{
    Holder, InstanceLock, Ledger, LedgerError, LedgerReader, LockError, SqliteLedger, open_for_reading,
};

pub fn note(at: i64, ticket: &str) -> Note {
    Note {
        at: Timestamp(at),
        ticket: Some(TicketId::new(ticket)),
        run: None,
        code: "c".into(),
        text: format!("note {at}"),
    }
}

#[test]
fn many_programs_may_open_a_new_ledger_at_once() {
    for _ in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/ledger.db");
        let seeds: Vec<u64> = std::thread::scope(|scope| {
            let open = || SqliteLedger::open(&path).unwrap().load().unwrap().meta.seed;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seeds.iter().all(|seed| *seed == seeds[0] && *seed != 0), "{seeds:?}");
    }
}

#[test]
fn a_newer_ledger_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    drop(SqliteLedger::open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 999").unwrap();
    drop(db);
    let error = SqliteLedger::open(&path).unwrap_err();
    assert!(matches!(error, LedgerError::TooNew { found: 999, .. }), "{error}");
    assert!(error.to_string().contains("newer dirigent"));
}

#[test]
fn a_damaged_ledger_is_refused_kept_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for damage in [b"this was never a database, but it is long enough to look like a file".as_slice(), &[0x5a; 8192]] {
        let path = folder.path().join("ledger.db");
        std::fs::write(&path, damage).unwrap();
        let error = SqliteLedger::open(&path).unwrap_err();
        assert!(matches!(error, LedgerError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()));
        assert_eq!(std::fs::read(&path).unwrap(), damage, "the damaged file was changed");
    }
}

/// A ledger of some size with a hole in the middle of its notes.
fn with_a_hole(path: &Path) {
    let mut ledger = SqliteLedger::open(path).unwrap();
    let mut state = ledger.load().unwrap();
    state.changes.notes =
        (0..2000).map(|n| Note { text: format!("note {n} {}", "y".repeat(60)), ..note(n, "t") }).collect();
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();
    drop(ledger);
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 6000..middle + 6000].fill(0xff);
    std::fs::write(path, &bytes).unwrap();
}

#[test]
fn damage_is_named_by_a_check_and_by_whoever_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    with_a_hole(&path);
    let ledger = open_for_reading(&path).unwrap();
    for error in [ledger.check().unwrap_err(), ledger.notes(None, 5000).unwrap_err()] {
        assert!(matches!(error, LedgerError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()));
    }
    assert!(ledger.load().unwrap().jobs.is_empty(), "what is whole can be read");
}

#[test]
fn after_an_unclean_end_a_ledger_is_looked_through_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (path, killed) = (folder.path().join("ledger.db"), folder.path().join("killed.db"));
    with_a_hole(&path);
    let mut ledger = SqliteLedger::open(&path).unwrap();
    ledger.record_preflight("hash", Timestamp(1)).unwrap();
    // As it lies there when its writer is killed now.
    for ending in ["", "-wal"] {
        std::fs::copy(format!("{}{ending}", path.display()), format!("{}{ending}", killed.display())).unwrap();
    }
    let error = SqliteLedger::open(&killed).unwrap_err();
    assert!(matches!(error, LedgerError::Corrupt { .. }), "{error}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = SqliteLedger::open(&path).unwrap_err();
    assert!(matches!(error, LedgerError::Foreign { .. }), "{error}");
}

#[test]
fn notes_and_preflights_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let mut state = ledger.load().unwrap();
    state.changes.notes = vec![note(1, "a"), note(2, "b"), note(3, "a"), note(4, "a")];
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();
    ledger.record_preflight("hash", Timestamp(5)).unwrap();
    drop(ledger);
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let newest: Vec<i64> = ledger.notes(Some(&TicketId::new("a")), 2).unwrap().iter().map(|note| note.at.0).collect();
    assert_eq!(newest, [3, 4]);
    assert_eq!(ledger.notes(None, 10).unwrap().len(), 4);
    assert!(ledger.has_preflight("hash").unwrap());
    assert!(!ledger.has_preflight("other").unwrap());
    for number in 0..100 {
        ledger.record_preflight(&format!("later {number}"), Timestamp(6 + number)).unwrap();
    }
    assert!(ledger.has_preflight("later 0").unwrap() && ledger.has_preflight("later 99").unwrap());
    assert!(!ledger.has_preflight("hash").unwrap(), "versions of long ago are forgotten");
    assert!(ledger.load().unwrap().jobs.is_empty());
}

#[test]
fn a_place_is_locked_once_and_the_holder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let holder = Holder { pid: 4711, started_at: Timestamp(1_700_000_000_000), brief: false, process: 0 };
    let lock = InstanceLock::take(&[&a, &b], &holder).unwrap();
    let second = Holder { pid: 1, started_at: Timestamp(0), brief: false, process: 0 };
    let error = InstanceLock::take(&[&b], &second).unwrap_err();
    assert!(matches!(&error, LockError::Held { holder: Some(found), .. } if *found == holder), "{error}");
    assert!(error.to_string().contains("pid 4711, started 2023-11-14T22:13:20Z"), "{error}");
    drop(lock);
    InstanceLock::take(&[&b], &second).unwrap();
}

/// A child that a killed runner was just starting holds its locks until it becomes its program.
#[test]
fn a_command_that_writes_something_down_is_waited_for_and_a_runner_is_not() {
    let folder = tempfile::tempdir().unwrap();
    // A process that lives, and is not this one.
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let holder = |brief| Holder { pid: other.id(), started_at: Timestamp(0), brief, process: 0 };
    let runner = InstanceLock::take(&[folder.path()], &holder(false)).unwrap();
    let mine = Holder::this_process(Timestamp(0), false);
    assert!(matches!(InstanceLock::take(&[folder.path()], &mine), Err(LockError::Held { .. })));
    drop(runner);
    let command = InstanceLock::take(&[folder.path()], &holder(true)).unwrap();
    let waits = std::thread::scope(|scope| {
        let taken = scope.spawn(|| InstanceLock::take(&[folder.path()], &mine).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(command);
        taken.join().unwrap()
    });
    other.kill().unwrap();
    other.wait().unwrap();
    waits.unwrap();
}

#[test]
fn the_lock_of_a_runner_that_is_no_more_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let holder = Holder { pid: gone.id(), started_at: Timestamp(0), brief: false, process: 0 };
    gone.wait().unwrap();
    let lock = InstanceLock::take(&[folder.path()], &holder).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(lock);
        });
        InstanceLock::take(&[folder.path()], &Holder { pid: 1, started_at: Timestamp(0), brief: false, process: 0 })
            .unwrap();
    });
}
