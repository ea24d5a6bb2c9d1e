//! Tests of the cost of opening, looking up and writing, counted in steps of SQLite's virtual machine and in rows: years of
//! finished work must not slow anything down.

use rusqlite::StatementStatus;

use super::sqlite::{JOBS_BY_ID, LIVE_JOBS, LIVE_RUNS};
use super::{Ledger, LedgerReader, SqliteLedger};
use crate::domain::ids::{TicketId, TicketKey};
use crate::domain::job::{BranchName, Job, TicketFacts};
use crate::domain::ticket::{Dispatchable, Ticket};
use crate::domain::time::Timestamp;
use crate::engine::state::{Changes, State};

fn job(name: &str) -> Job {
    let ticket = Ticket {
        id: TicketId::new(name),
        key: TicketKey::new(name),
        title: "A ticket".into(),
        description: None,
        priority: None,
        state: "open".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: None,
        labels: Vec::new(),
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
    let branch = BranchName { name: name.into(), generation: 0 };
    Job::new(TicketFacts::of(&ticket), branch, Timestamp(1))
}

/// Makes a ledger with five live jobs and `over` finished ones, each with a run and three notes.
fn ledger(over: usize) -> (tempfile::TempDir, SqliteLedger) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = SqliteLedger::open(&folder.path().join("ledger.db")).unwrap();
    let jobs = (0..5).map(|n| job(&format!("live-{n}"))).collect();
    let state = State { jobs, ..State::new(ledger.load().unwrap().meta) };
    let changes = Changes { jobs: state.jobs.keys().cloned().collect(), ..Changes::default() };
    ledger.commit(&state, &changes).unwrap();
    let fill = format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {over})
         INSERT INTO jobs (ticket, key, phase, updated_at, archived, json)
         SELECT 'over-' || n, 'over-' || n, 'done', n, 1,
           json_set(json, '$.ticket.id', 'over-' || n, '$.ticket.key', 'over-' || n)
         FROM n, (SELECT json FROM jobs WHERE ticket = 'live-0') WHERE {over} > 0;
         INSERT INTO runs (id, ticket, started_at, ended_at, outcome, json)
         SELECT 'run-' || ticket, ticket, updated_at, updated_at, 'done', '{{}}' FROM jobs WHERE archived = 1;
         INSERT INTO notes (at, ticket, code, text)
         SELECT updated_at, ticket, 'c', 'a note' FROM jobs, (SELECT 1 UNION SELECT 2 UNION SELECT 3) WHERE archived = 1;"
    );
    ledger.database.batch(&fill).unwrap();
    (folder, ledger)
}

/// Returns the number of steps that SQLite's virtual machine takes for a query.
fn steps(ledger: &SqliteLedger, sql: &str, parameters: impl rusqlite::Params) -> i32 {
    let mut statement = ledger.database.db.prepare(sql).unwrap();
    let mut rows = statement.query(parameters).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(StatementStatus::VmStep)
}

#[test]
fn opening_costs_what_is_live_however_much_is_over() {
    let (_small, small) = ledger(0);
    let (_large, large) = ledger(100_000);
    for sql in [LIVE_JOBS, LIVE_RUNS] {
        assert_eq!(steps(&large, sql, []), steps(&small, sql, []), "{sql}");
    }
    assert_eq!(large.load().unwrap(), State { meta: large.load().unwrap().meta, ..small.load().unwrap() });
    assert_eq!(large.archived_count().unwrap(), 100_000);
}

#[test]
fn a_job_is_looked_up_among_many_as_among_few() {
    let (_small, small) = ledger(100);
    let (_large, large) = ledger(100_000);
    let asked = r#"["over-7", "live-1", "nobody"]"#;
    assert_eq!(steps(&large, JOBS_BY_ID, [asked]), steps(&small, JOBS_BY_ID, [asked]));
    let ids = ["over-7", "live-1", "nobody"].map(TicketId::new);
    assert_eq!(large.jobs(&ids).unwrap().len(), 2);
    // A board of ten thousand tickets without a job is looked up in one query.
    let many: Vec<TicketId> = (0..10_000).map(|n| TicketId::new(format!("foreign-{n}"))).collect();
    assert_eq!(large.jobs(&many).unwrap(), []);
    assert_eq!(large.notes(Some(&TicketId::new("over-7")), 10).unwrap().len(), 3);
}

#[test]
fn a_global_pause_writes_one_row_however_many_jobs_there_are() {
    let (_folder, mut ledger) = ledger(0);
    let jobs = (0..10_000).map(|n| job(&format!("t-{n}"))).collect();
    let state = State { jobs, ..State::new(ledger.load().unwrap().meta) };
    let all = Changes { jobs: state.jobs.keys().cloned().collect(), ..Changes::default() };
    ledger.commit(&state, &all).unwrap();
    let before = ledger.database.db.total_changes();
    ledger.commit(&state, &Changes { meta: true, ..Changes::default() }).unwrap();
    assert_eq!(ledger.database.db.total_changes() - before, 1);
}
