//! Jobs that are over: out of what a start reads, still there for whoever asks, and back when their ticket is.

use std::collections::BTreeMap;
use std::path::Path;

use dirigent::domain::ids::TicketId;
use dirigent::domain::job::{BranchName, Job, TicketFacts};
use dirigent::domain::time::Timestamp;
use dirigent::engine::state::{Changes, State};
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger, open_for_reading};
use serde_json::json;

use super::reading::ledger_of;
use crate::support::board::{Board, MERGE, MUTATE};

fn id(name: &str) -> TicketId {
    TicketId::new(name)
}

fn facts(name: &str) -> TicketFacts {
    let plain = json!({
        "id": name, "key": name, "title": format!("Do {name}"), "state": "open", "priority": null, "labels": [],
        "blocked_by": [], "parent": null, "author": null, "assignee": null, "url": null,
        "dispatchable": {"is": "yes"}, "created_at": null, "updated_at": null,
    });
    serde_json::from_value(plain).unwrap()
}

/// A state with jobs of these names.
fn state_with(names: &[&str]) -> State {
    let job = |name: &&str| {
        let branch = BranchName { name: format!("dirigent/{name}"), generation: 0 };
        Job::new(facts(name), branch, Timestamp(0))
    };
    State { jobs: names.iter().map(job).collect(), ..State::default() }
}

/// Changes the job in a way that can be seen.
fn touch(state: &mut State, name: &str, at: i64) {
    state.jobs.edit(&id(name), |job| job.updated_at = Timestamp(at));
}

/// As the engine does it: the job leaves the state with its last content.
fn archive(state: &mut State, name: &str) -> Changes {
    let job = state.jobs.remove(&id(name)).unwrap();
    Changes { archived: BTreeMap::from([(id(name), std::sync::Arc::unwrap_or_clone(job))]), ..Changes::default() }
}

fn changed(names: &[&str]) -> Changes {
    Changes { jobs: names.iter().map(|name| id(name)).collect(), ..Changes::default() }
}

fn opened(path: &Path, state: &State) -> SqliteLedger {
    let mut ledger = SqliteLedger::open(path).unwrap();
    let names: Vec<&str> = state.jobs.keys().map(TicketId::as_str).collect();
    ledger.commit(state, &changed(&names)).unwrap();
    ledger
}

fn loaded(ledger: &dyn LedgerReader) -> Vec<String> {
    ledger.load().unwrap().jobs.keys().map(|id| id.as_str().to_owned()).collect()
}

#[test]
fn an_archived_job_is_not_loaded_and_is_found_with_its_last_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut state = state_with(&["a", "b", "c"]);
    let mut ledger = opened(&path, &state);
    // Changed in the very step in which it is archived.
    touch(&mut state, "b", 7);
    let changes = archive(&mut state, "b");
    assert!(changes.is_hard(), "the record has to be written before anything goes on");
    ledger.commit(&state, &changes).unwrap();
    drop(ledger);
    let ledger = open_for_reading(&path).unwrap();
    assert_eq!(loaded(ledger.as_ref()), ["a", "c"]);
    let touched = |jobs: Vec<Job>| jobs.iter().map(|job| (job.ticket.id.clone(), job.updated_at.0)).collect::<Vec<_>>();
    let mut both = touched(ledger.jobs(&[id("b"), id("nobody"), id("a")]).unwrap());
    both.sort();
    assert_eq!(both, [(id("a"), 0), (id("b"), 7)]);
    assert_eq!(ledger.jobs(&[]).unwrap(), []);
    assert_eq!(touched(ledger.archived(10).unwrap()), [(id("b"), 7)]);
    assert_eq!(ledger.archived_count().unwrap(), 1);
}

#[test]
fn a_job_that_comes_back_is_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = state_with(&["a", "b"]);
    let mut ledger = opened(&folder.path().join("ledger.db"), &state);
    let changes = archive(&mut state, "b");
    ledger.commit(&state, &changes).unwrap();
    let job = ledger.jobs(&[id("b")]).unwrap().pop().unwrap();
    state.jobs.insert(job);
    ledger.commit(&state, &changed(&["b"])).unwrap();
    assert_eq!(loaded(&ledger), ["a", "b"]);
    assert_eq!(ledger.archived_count().unwrap(), 0);
}

/// One transaction may cover many steps: what counts is how it ended.
#[test]
fn in_a_batch_the_last_word_about_a_job_counts() {
    let folder = tempfile::tempdir().unwrap();
    let start = state_with(&["a", "b"]);

    let (mut state, mut ledger) = (start.clone(), opened(&folder.path().join("archived.db"), &start));
    touch(&mut state, "b", 3);
    let mut batch = changed(&["a", "b"]);
    batch.add(archive(&mut state, "b"));
    ledger.commit(&state, &batch).unwrap();
    assert_eq!(loaded(&ledger), ["a"]);
    assert_eq!(
        ledger.jobs(&[id("b")]).unwrap()[0].updated_at,
        Timestamp(3),
        "what was changed before it left was lost"
    );

    let (mut state, mut ledger) = (start.clone(), opened(&folder.path().join("back.db"), &start));
    let mut batch = archive(&mut state, "b");
    let job = Job { updated_at: Timestamp(5), ..batch.archived[&id("b")].clone() };
    state.jobs.insert(job);
    batch.add(changed(&["b"]));
    ledger.commit(&state, &batch).unwrap();
    assert_eq!(loaded(&ledger), ["a", "b"]);
    assert_eq!(ledger.jobs(&[id("b")]).unwrap()[0].updated_at, Timestamp(5));

    // Handed in again, and not changed: what is in the state is not archived.
    let (mut state, mut ledger) = (start.clone(), opened(&folder.path().join("unchanged.db"), &start));
    let batch = archive(&mut state, "b");
    state.jobs.insert(batch.archived[&id("b")].clone());
    ledger.commit(&state, &batch).unwrap();
    assert_eq!(loaded(&ledger), ["a", "b"]);
}

#[test]
fn an_archived_job_is_found_by_what_people_call_it() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["web-1", "web-12", "api-3", "live"];
    let mut state = state_with(&names);
    let mut ledger = opened(&folder.path().join("ledger.db"), &state);
    for name in &names[..3] {
        let changes = archive(&mut state, name);
        ledger.commit(&state, &changes).unwrap();
    }
    let found = |name: &str| -> Vec<String> {
        ledger.archived_named(name).unwrap().iter().map(|job| job.ticket.id.as_str().to_owned()).collect()
    };
    assert_eq!(found("web-1"), ["web-1"], "the whole name is meant");
    assert_eq!(found("web"), ["web-1", "web-12"]);
    assert_eq!(found("i-3"), ["api-3"]);
    for nothing in ["", "live", "nobody", "%", "WEB-1"] {
        assert_eq!(found(nothing), [""; 0], "{nothing:?}");
    }
}

/// Archives by hand what the engine would.
fn archive_by_hand(board: &Board, ticket: &str) {
    let db = rusqlite::Connection::open(ledger_of(board)).unwrap();
    let archived = db.execute("UPDATE jobs SET archived = 1 WHERE ticket = ?1", [ticket]).unwrap();
    assert_eq!(archived, 1);
}

#[test]
fn commands_that_look_find_tickets_that_are_over() {
    let agent = "echo work > \"$DIRIGENT_TICKET_KEY.txt\"\ngit add -A\ngit commit -qm Work\ntk done 'did it'\n";
    let board = Board::new(agent, MERGE);
    board.ticket("t-1", "Over");
    board.ok(&["run", "--once"]);
    board.workflow(MUTATE);
    board.ticket("t-2", "Not over");
    board.ok(&["run", "--once"]);
    archive_by_hand(&board, "t-1");
    assert!(!board.ok(&["status"]).contains("t-1"));
    let all = board.ok(&["status", "--all"]);
    assert!(all.contains("t-1") && all.contains("t-2"), "{all}");
    assert_eq!(board.phase("t-1"), "done");
    let story = board.ok(&["explain", "t-1"]);
    assert!(story.contains("merged as") && story.contains("The story so far") && story.contains("Runs:"), "{story}");
    board.ok(&["logs", "t-1"]);
    let known = board.ok(&["doctor"]);
    assert!(known.contains("1 tickets known, 1 more are over and archived"), "{known}");
    assert!(board.ok(&["undo", "t-1"]).contains("takes it back"));
    let said = board.fails(&["explain", "t-3"], 6);
    assert!(said.contains("no ticket `t-3` is known here"), "{said}");
}
