//! A ledger of the version before: opened, brought to this version once, and kept beside it as it was.
//!
//! `tests/fixtures/ledger/version-1.db` was written by that version; `make.sh` beside it tells how. `version-1-records.jsonl`
//! holds records out of millions of steps of that version's simulator, chosen so that every field, tag and empty value that
//! occurred is in one of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::TicketId;
use dirigent::domain::job::{CheckWait, Job, Stage, Wait};
use dirigent::domain::time::Timestamp;
use dirigent::engine::state::State;
use dirigent::ledger::{Holder, InstanceLock, LedgerError, LedgerReader, SqliteLedger, open_for_reading};
use rusqlite::Connection;
use serde_json::Value;

use super::reading::ledger_of;
use crate::support::board::{Board, MUTATE};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ledger/version-1.db")
}

struct Old {
    folder: tempfile::TempDir,
}

impl Old {
    fn new() -> Self {
        let old = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::copy(fixture(), old.path()).unwrap();
        old
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("ledger.db{ending}"))
    }

    /// What lies there, but for locks and what SQLite itself puts beside an open file.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| !name.starts_with('.') && !name.ends_with("-shm") && !name.ends_with("-wal")).collect();
        names.sort();
        names
    }

    fn sql(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Every row of every table, as text.
fn rows(path: &Path) -> BTreeMap<String, Vec<String>> {
    let db = Connection::open(path).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let tables: Vec<String> =
        db.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let read = |table: &String| {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|at| format!("{:?}", row.get::<_, rusqlite::types::Value>(at).unwrap()));
            Ok(values.collect::<Vec<_>>().join("|"))
        };
        statement.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    tables.iter().map(|table| (table.clone(), read(table))).collect()
}

fn job<'a>(state: &'a State, name: &str) -> &'a Job {
    &state.jobs[&TicketId::new(name)]
}

/// Everything that the fixture holds, with the names of today.
fn everything_is_there(ledger: &dyn LedgerReader) {
    let state = ledger.load().unwrap();
    let phases: Vec<(&str, &str)> =
        state.jobs.iter().map(|(id, job)| (id.as_str(), job.stage.phase().name())).collect();
    let expected = [
        ("t-after", "queued"),
        ("t-blocked", "blocked"),
        ("t-done", "done"),
        ("t-human", "waiting_for_human"),
        ("t-idle", "blocked"),
        ("t-messy", "queued"),
        ("t-opening", "waiting_for_checks"),
        ("t-question", "implementing"),
    ];
    assert_eq!(phases, expected);
    assert!(matches!(job(&state, "t-messy").stage, Stage::Queued { wait: Wait::Ready, .. }));
    assert!(matches!(job(&state, "t-after").stage, Stage::Queued { wait: Wait::Blockers { .. }, .. }));
    let opening = &job(&state, "t-opening").stage;
    assert!(matches!(opening, Stage::WaitingForChecks { on: CheckWait::Publishing { .. }, .. }), "{opening:?}");
    assert_eq!(job(&state, "t-question").people.undelivered()[0].text, "green, please");
    assert_eq!(job(&state, "t-done").ticket.author.as_ref().unwrap().trust, TrustLevel::Admin);
    let human = &job(&state, "t-human").delivery;
    assert_eq!(human.pr.as_ref().unwrap().number.0, 2);
    assert_eq!(human.branch.name, "dirigent/t-human-wait-for-a-person");
    assert!(job(&state, "t-messy").evidence.salvage.is_some());
    assert!(job(&state, "t-done").evidence.receipt.is_some());
    assert_eq!(job(&state, "t-idle").attempts, 1);
    assert_eq!(state.runs.len(), 1);
    let waits_for: Vec<&str> = state.outbox.values().map(|pending| pending.effect.action.kind().name()).collect();
    assert_eq!(waits_for, ["start_run", "push_branch"]);
    assert_eq!(state.meta.next_run, 9);
    assert_eq!(ledger.finished_runs(&TicketId::new("t-messy")).unwrap().len(), 1);
    assert!(ledger.notes(None, 1000).unwrap().len() > 30);
}

#[test]
fn a_ledger_of_the_version_before_is_brought_over_once_and_kept() {
    let old = Old::new();
    let before = rows(&old.path());
    everything_is_there(&SqliteLedger::open(&old.path()).unwrap());
    assert_eq!(old.files(), ["ledger.db", "ledger.db.v1"]);
    assert_eq!(version(&old.path()), 2);
    assert_eq!(
        (version(&old.beside(".v1")), rows(&old.beside(".v1"))),
        (1, before.clone()),
        "the old one is as it was"
    );
    let after = rows(&old.path());
    for table in ["local_prs", "local_checks", "local_landings", "notes", "preflight", "meta"] {
        assert_eq!(after[table], before[table], "{table}");
    }
    let kept = std::fs::read(old.beside(".v1")).unwrap();
    let ledger = SqliteLedger::open(&old.path()).unwrap();
    everything_is_there(&ledger);
    ledger.check().unwrap();
    assert_eq!(old.files(), ["ledger.db", "ledger.db.v1"], "once");
    assert_eq!(std::fs::read(old.beside(".v1")).unwrap(), kept);
}

/// The ledger of the version before, with every kind of record that it is known to have written.
fn with_every_kind_of_record() -> (Old, Vec<(String, Value)>) {
    let old = Old::new();
    let text = std::fs::read_to_string(fixture().with_file_name("version-1-records.jsonl")).unwrap();
    let db = Connection::open(old.path()).unwrap();
    db.execute_batch("DELETE FROM jobs; DELETE FROM runs; DELETE FROM outbox").unwrap();
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (table, mut record) = (line["table"].as_str().unwrap().to_owned(), line["record"].clone());
        // Many of them are of the same ticket.
        let id = format!("r-{number}");
        let insert = match table.as_str() {
            "jobs" => {
                record["ticket"]["id"] = id.clone().into();
                "INSERT INTO jobs (ticket, key, phase, updated_at, json) VALUES (?1, ?1, 'x', 1, ?2)"
            }
            "live" => {
                record["id"] = id.clone().into();
                "INSERT INTO runs (id, ticket, started_at, json) VALUES (?1, ?1, 1, ?2)"
            }
            "finished" => {
                record["run"]["id"] = id.clone().into();
                "INSERT INTO runs (id, ticket, started_at, ended_at, json) VALUES (?1, ?1, 1, 1, ?2)"
            }
            "outbox" => {
                record["effect"]["id"] = (number as u64).into();
                "INSERT INTO outbox (id, ticket, kind, json) VALUES (substr(?1, 3), ?1, 'x', ?2)"
            }
            "meta" => "INSERT OR REPLACE INTO meta (name, json) VALUES ('engine', ?2)",
            other => panic!("{other}"),
        };
        let mut insert = db.prepare(insert).unwrap();
        insert.execute(rusqlite::params![id, record.to_string()]).unwrap();
        records.push((id, record));
    }
    (old, records)
}

#[test]
fn every_kind_of_record_that_was_ever_written_can_be_read() {
    let (old, records) = with_every_kind_of_record();
    let state = SqliteLedger::open(&old.path()).unwrap().load().unwrap();
    for (id, job) in state.jobs.iter() {
        let before = &records.iter().find(|(known, _)| known == id.as_str()).unwrap().1;
        let job = serde_json::to_value(job).unwrap();
        // What a job is about, what it has cost and what people said stays, wherever it is kept now.
        for same in
            ["/ticket/key", "/ticket/title", "/ticket/labels", "/attempts", "/failures", "/session", "/created_at"]
        {
            assert_eq!(job.pointer(same), before.pointer(same), "{id}: {same}");
        }
        for (now, then) in [
            ("/delivery/branch", "/branch"),
            ("/delivery/head", "/head"),
            ("/delivery/pr/number", "/pr/number"),
            ("/delivery/pr/head", "/pr/head"),
            ("/spending/total", "/spent"),
            ("/spending/since_reset", "/budget_used"),
            ("/evidence/receipt", "/receipt"),
            ("/evidence/salvage", "/salvage"),
            ("/people/pause", "/pause"),
            ("/people/approval/head", "/approved_head"),
            ("/people/remarks/0/text", "/unheard/0/text"),
        ] {
            assert_eq!(
                job.pointer(now).unwrap_or(&Value::Null),
                before.pointer(then).unwrap_or(&Value::Null),
                "{id}: {then}"
            );
        }
    }
    let kinds = |table: &str| {
        std::fs::read_to_string(fixture().with_file_name("version-1-records.jsonl"))
            .unwrap()
            .matches(&format!("\"table\":\"{table}\""))
            .count()
    };
    assert_eq!(
        (state.jobs.len(), state.runs.len(), state.outbox.len()),
        (kinds("jobs"), kinds("live"), kinds("outbox"))
    );
}

#[test]
fn what_was_saved_before_is_spared_by_retention_after() {
    use dirigent::ledger::Ledger;
    let old = Old::new();
    let mut ledger = SqliteLedger::open(&old.path()).unwrap();
    let pruned = ledger.prune(Timestamp(i64::MAX), 1).unwrap();
    assert_eq!(pruned.runs.len(), 6, "{pruned:?}");
    assert_eq!(ledger.finished_runs(&TicketId::new("t-messy")).unwrap().len(), 1, "its work was salvaged");
    assert_eq!(ledger.finished_runs(&TicketId::new("t-idle")).unwrap().len(), 0);
}

#[test]
fn old_and_new_ledgers_can_shrink() {
    let old = Old::new();
    drop(SqliteLedger::open(&old.path()).unwrap());
    let new = old.beside("-new");
    drop(SqliteLedger::open(&new).unwrap());
    for path in [old.path(), new] {
        let db = Connection::open(&path).unwrap();
        let mode: i64 = db.query_row("PRAGMA auto_vacuum", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, 2, "{}", path.display());
    }
}

#[test]
fn whoever_only_looks_sees_it_as_it_would_be_and_leaves_it_as_it_is() {
    let old = Old::new();
    let before = std::fs::read(old.path()).unwrap();
    everything_is_there(open_for_reading(&old.path()).unwrap().as_ref());
    assert_eq!(old.files(), ["ledger.db"]);
    assert_eq!(std::fs::read(old.path()).unwrap(), before);
}

#[test]
fn a_try_that_was_cut_short_is_taken_up_and_no_other_copy_is_written_over() {
    let old = Old::new();
    // Cut short after the copy was made: the same copy serves.
    drop(SqliteLedger::open(&old.path()).unwrap());
    let kept = std::fs::read(old.beside(".v1")).unwrap();
    std::fs::copy(fixture(), old.path()).unwrap();
    // Cut short while it was being made.
    std::fs::write(old.beside(".v1.part"), "half").unwrap();
    everything_is_there(&SqliteLedger::open(&old.path()).unwrap());
    assert_eq!(old.files(), ["ledger.db", "ledger.db.v1"]);
    // Somebody went back to the old version, worked with it, and comes again.
    std::fs::copy(fixture(), old.path()).unwrap();
    old.sql("INSERT INTO preflight (hash, at) VALUES ('later', 1)");
    let ledger = SqliteLedger::open(&old.path()).unwrap();
    assert!(ledger.has_preflight("later").unwrap());
    assert_eq!(old.files(), ["ledger.db", "ledger.db.v1", "ledger.db.v1-2"]);
    assert_eq!(std::fs::read(old.beside(".v1")).unwrap(), kept);
    assert!(rows(&old.beside(".v1-2"))["preflight"].iter().any(|row| row.contains("later")));
}

#[test]
fn a_record_that_cannot_be_understood_leaves_the_old_ledger_working() {
    let old = Old::new();
    old.sql("UPDATE jobs SET json = json_remove(json, '$.stage') WHERE ticket = 't-idle'");
    let before = rows(&old.path());
    let error = SqliteLedger::open(&old.path()).unwrap_err();
    assert!(matches!(error, LedgerError::Record { .. }), "{error}");
    for part in ["job t-idle", "stage", "fix:"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!((version(&old.path()), rows(&old.path())), (1, before));
    old.sql("UPDATE jobs SET json = 'not even JSON' WHERE ticket = 't-idle'");
    let error = SqliteLedger::open(&old.path()).unwrap_err();
    assert!(matches!(error, LedgerError::Record { .. }), "{error}");
    assert_eq!(version(&old.path()), 1);
}

#[test]
fn where_no_copy_can_be_kept_nothing_is_changed() {
    let old = Old::new();
    std::fs::create_dir(old.beside(".v1.part")).unwrap();
    let before = rows(&old.path());
    let error = SqliteLedger::open(&old.path()).unwrap_err();
    assert!(matches!(error, LedgerError::NotKept { .. }), "{error}");
    assert!(error.to_string().contains("nothing was changed") && error.to_string().contains("fix:"), "{error}");
    assert_eq!((version(&old.path()), rows(&old.path())), (1, before));
}

#[test]
fn it_is_not_changed_under_the_hands_of_an_older_runner() {
    let old = Old::new();
    // In another container, a runner may have the same pid.
    for pid in [1, std::process::id()] {
        let holder = Holder { pid, started_at: Timestamp(0), brief: false, process: 0 };
        let lock = InstanceLock::take(&[old.folder.path()], &holder).unwrap();
        let error = SqliteLedger::open(&old.path()).unwrap_err();
        assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&format!("pid {pid}")) && error.to_string().contains("fix:"), "{error}");
        assert_eq!((version(&old.path()), old.files()), (1, vec!["ledger.db".to_owned()]));
        everything_is_there(open_for_reading(&old.path()).unwrap().as_ref());
        drop(lock);
    }
    let _ours = InstanceLock::take(&[old.folder.path()], &Holder::this_process(Timestamp(0), false)).unwrap();
    everything_is_there(&SqliteLedger::open(&old.path()).unwrap());
}

#[test]
fn several_programs_may_bring_it_over_at_once() {
    for _ in 0..5 {
        let old = Old::new();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| everything_is_there(&SqliteLedger::open(&old.path()).unwrap()));
            }
        });
        assert_eq!(old.files(), ["ledger.db", "ledger.db.v1"]);
    }
}

#[test]
fn the_program_shows_it_first_and_brings_it_over_when_it_writes() {
    let board = Board::new("", MUTATE);
    board.ok(&["run", "--once"]);
    let ledger = ledger_of(&board);
    std::fs::copy(fixture(), &ledger).unwrap();
    let phase = || board.phase("t-human");
    assert_eq!(phase(), "waiting_for_human");
    assert!(board.ok(&["explain", "t-question"]).contains("green, please"));
    assert_eq!(version(&ledger), 1, "looking changed it");
    board.ok(&["pause", "t-human"]);
    assert_eq!(version(&ledger), 2);
    assert_eq!(version(&PathBuf::from(format!("{}.v1", ledger.display()))), 1);
    assert_eq!(phase(), "waiting_for_human");
    board.ok(&["resume", "t-human"]);
}
