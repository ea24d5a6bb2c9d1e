//! Notes and finished runs go after their days, salvage and totals stay, and the file gets smaller again.

use std::path::Path;

use dirigent::domain::ids::{CommitId, PoolName, RunId, TicketId, TicketKey};
use dirigent::domain::run::{FinishedRun, Life, LiveRun, Progress, RunKind, RunOutcome, RunReport, Salvage};
use dirigent::domain::time::Timestamp;
use dirigent::engine::state::{Note, State};
use dirigent::ledger::{Ledger, LedgerReader, Pruned, SqliteLedger, open_for_reading};

use super::note;
use super::reading::ledger_of;
use crate::support::board::{Board, MUTATE};

const DAY: i64 = 86_400_000;
const TODAY: Timestamp = Timestamp(1000 * DAY);

/// The middle of a day so many days ago.
fn days_ago(days: i64) -> Timestamp {
    Timestamp(TODAY.0 - days * DAY + DAY / 2)
}

fn finished(id: &str, ended_at: Timestamp) -> FinishedRun {
    let run = LiveRun {
        id: RunId::new(id),
        ticket: TicketId::new("t"),
        key: TicketKey::new("t"),
        kind: RunKind::Implement,
        attempt: 1,
        pool: PoolName::new("p"),
        runtime: "exec".into(),
        branch: "b".into(),
        ticket_state: "open".into(),
        started_at: Timestamp(ended_at.0 - 1000),
        head_before: None,
        progress: Progress::at_start(ended_at),
        life: Life::Spawning,
    };
    FinishedRun { run, ended_at, report: RunReport::bare(RunOutcome::Done) }
}

fn salvaged(id: &str, ended_at: Timestamp) -> FinishedRun {
    let mut run = finished(id, ended_at);
    let reference = format!("refs/dirigent/salvage/{id}");
    run.report.salvage = Some(Salvage { reference, commit: CommitId::new("c"), files: 1, left_out: Vec::new() });
    run
}

fn commit(ledger: &mut SqliteLedger, notes: Vec<Note>, finished: Vec<FinishedRun>) {
    let mut state = State::new(ledger.load().unwrap().meta);
    state.changes.notes = notes;
    state.changes.finished = finished;
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();
}

/// Until there is nothing more; answers with the batches.
fn prune_all(ledger: &mut SqliteLedger, keep_days: u32) -> Vec<Pruned> {
    let mut batches = Vec::new();
    loop {
        batches.push(ledger.prune(TODAY, keep_days).unwrap());
        assert!(batches.len() < 10_000, "it never ends");
        if !batches.last().unwrap().more {
            return batches;
        }
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn what_is_older_goes_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = SqliteLedger::open(&folder.path().join("ledger.db")).unwrap();
    let mut kept_tree = finished("kept-tree", days_ago(400));
    kept_tree.report.kept_worktree = Some("/tree".into());
    let runs = vec![
        finished("old", days_ago(400)),
        salvaged("saved", days_ago(400)),
        kept_tree,
        finished("edge", days_ago(30)),
        finished("new", days_ago(1)),
    ];
    let notes = [400, 31, 30, 1].map(|days| note(days_ago(days).0, "t")).to_vec();
    commit(&mut ledger, notes, runs);
    let mut state = ledger.load().unwrap();
    (state.meta.total.output, state.meta.total_run_ms, state.changes.meta) = (77, 99, true);
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();

    assert_eq!(ledger.prune(TODAY, 1000).unwrap(), Pruned::default(), "nothing is that old");
    let pruned = ledger.prune(TODAY, 30).unwrap();
    assert_eq!((pruned.runs, pruned.notes), (vec![RunId::new("old")], 2));
    let left: Vec<String> =
        ledger.finished_runs(&TicketId::new("t")).unwrap().iter().map(|run| run.run.id.to_string()).collect();
    assert_eq!(left, ["kept-tree", "saved", "edge", "new"]);
    let left: Vec<i64> = ledger.notes(None, 10).unwrap().iter().map(|note| note.at.0).collect();
    assert_eq!(left, [days_ago(30).0, days_ago(1).0]);
    let meta = ledger.load().unwrap().meta;
    assert_eq!((meta.total.output, meta.total_run_ms), (77, 99));
    assert_eq!(ledger.prune(TODAY, 30).unwrap(), Pruned::default(), "once is enough");
}

#[test]
fn a_live_run_is_never_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = SqliteLedger::open(&folder.path().join("ledger.db")).unwrap();
    let run = finished("live", days_ago(900)).run;
    let mut state = ledger.load().unwrap();
    state.runs.insert(run.clone());
    state.changes.runs.insert(run.id.clone());
    let changes = state.take_changes();
    ledger.commit(&state, &changes).unwrap();
    assert_eq!(ledger.prune(TODAY, 1).unwrap(), Pruned::default());
    assert!(ledger.load().unwrap().runs.contains(&run.id));
}

#[test]
fn it_goes_in_small_batches_and_the_file_shrinks_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let long = |days: i64, n: i64| Note { text: "x".repeat(400), ..note(days_ago(days).0 + n, "t") };
    commit(&mut ledger, (0..12_000).map(|n| long(300, n)).collect(), Vec::new());
    let runs: Vec<_> = (0..1000).map(|n| finished(&format!("r-{n:04}"), days_ago(300))).collect();
    commit(&mut ledger, (0..100).map(|n| long(3, n)).collect(), runs);
    drop(ledger);
    let before = size(&path);
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let batches = prune_all(&mut ledger, 180);
    let most = batches.iter().map(|batch| batch.notes.max(batch.runs.len())).max().unwrap();
    assert!(most <= 500, "{most} rows in one transaction");
    assert_eq!(batches.iter().map(|batch| batch.notes).sum::<usize>(), 12_000);
    assert_eq!(batches.iter().map(|batch| batch.runs.len()).sum::<usize>(), 1000);
    assert_eq!(ledger.notes(None, 20_000).unwrap().len(), 100);
    ledger.check().unwrap();
    drop(ledger);
    let after = size(&path);
    assert!(after * 10 < before, "{before} bytes before, {after} after");
}

/// An old note and an old run, as the ledger of a long life has them.
fn add_what_is_old(board: &Board) {
    let mut ledger = SqliteLedger::open(&ledger_of(board)).unwrap();
    commit(&mut ledger, vec![note(1, "t-1")], vec![finished("old", Timestamp(1))]);
}

#[test]
fn a_start_drops_what_is_beyond_its_days() {
    let board = Board::new("echo work > work.txt\ngit add -A\ngit commit -qm Work\ntk done 'did it'\n", MUTATE);
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    add_what_is_old(&board);
    board.workflow(&format!("{MUTATE}ledger: {{keep_days: 100000}}\n"));
    board.ok(&["run", "--once"]);
    assert!(board.ok(&["explain", "t-1"]).contains("note 1\n"), "it was to be kept for longer");
    board.workflow(MUTATE);
    board.ok(&["run", "--once"]);
    let story = board.ok(&["explain", "t-1"]);
    assert!(!story.contains("note 1\n") && story.contains("came onto the board"), "{story}");
    let ledger = open_for_reading(&ledger_of(&board)).unwrap();
    assert!(ledger.finished_run(&RunId::new("old")).unwrap().is_none());
    assert_eq!(ledger.finished_runs(&TicketId::new("t-1")).unwrap().len(), 1);
}

#[test]
fn how_long_things_are_kept_is_said_in_whole_days() {
    let board = Board::new("", MUTATE);
    assert!(
        board.ok(&["config", "show"]).lines().any(|line| line.contains("ledger.keep_days") && line.contains("180"))
    );
    for wrong in ["0", "-3", "soon", "1.5"] {
        board.workflow(&format!("{MUTATE}ledger: {{keep_days: {wrong}}}\n"));
        let said = board.fails(&["run", "--once"], 3);
        assert!(said.contains("ledger.keep_days"), "{wrong}: {said}");
    }
}
