//! The lines of the public specification that only the whole program can show, and the table that lists them all.

use std::collections::BTreeSet;
use std::path::Path;

use super::support::board::{Board, MUTATE, text};

const QUICK: &str = "echo x > x.txt\ngit add -A\ngit commit -qm x\ntk done x\n";

#[test]
fn spec_17_7_the_workflow_is_a_positional_path_or_the_file_here() {
    let board = Board::new(QUICK, MUTATE);
    std::fs::rename(board.repo().join("WORKFLOW.md"), board.repo().join("other.md")).unwrap();
    let missing = board.fails(&["run", "--once"], 3);
    assert!(missing.contains("WORKFLOW.md") && missing.contains("missing_workflow_file"), "{missing}");
    board.ok(&["run", "other.md", "--once"]);
    board.ok(&["--workflow", "other.md", "status"]);
}

#[test]
fn spec_17_7_a_start_that_cannot_be_fails_with_a_sentence_and_changes_nothing() {
    let board = Board::new(QUICK, "");
    board.ticket("t-1", "Work");
    for (front_matter, says) in [
        (
            "tracker: {kind: tk}\nworkspace: {repo: \"https://example.invalid/a/b.git\"}\nworker: {runtime: exec}\nexec: {command: sh}\n",
            "workspace.repo is the address https://example.invalid/a/b.git",
        ),
        ("tracker: {kind: tk}\nagent: {max_turns: 0}\n", "agent.max_turns"),
        ("tracker: [tk]\n", "tracker"),
    ] {
        board.scratch.write("WORKFLOW.md", &format!("---\n{front_matter}---\n"));
        let output = board.run(&["run", "--once"]);
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains(says), "{says} is not in\n{said}");
    }
    assert!(!board.ticket_text("t-1").contains("Notes"));
    assert!(board.worktrees().is_empty());
}

#[test]
fn spec_13_logs_carry_the_ticket_and_snapshots_what_runs() {
    let board = Board::new(QUICK, MUTATE);
    board.ticket("t-1", "Work");
    let output = board.run(&["run", "--once", "--log", "full"]);
    let log = text(&output.stderr);
    assert!(
        log.contains("issue_id=\"t-1\"") && log.contains("issue_identifier=\"t-1\"") && log.contains("session_id="),
        "{log}"
    );
    let snapshot = board.status(&[]);
    for path in ["counts.running", "counts.retrying", "totals.seconds_running", "totals.usage", "pools"] {
        let found = path.split('.').fold(&snapshot, |value, part| &value[part]);
        assert!(!found.is_null(), "{path} is not in the snapshot");
    }
}

#[test]
fn spec_6_a_tick_that_does_not_pass_preflight_starts_nothing() {
    let board = Board::new(
        QUICK,
        &format!("{MUTATE}orchestration: {{states: {{}}}}\n")
            .replace("mode: mutate", "mode: mutate, preflight_required: true"),
    );
    board.ticket("t-1", "Work");
    board.ok(&["run", "--once"]);
    assert_eq!(board.ok(&["status", "t-1", "--field", "reason"]).trim(), "preflight");
    board.ok(&["doctor"]);
    board.ok(&["run", "--once"]);
    assert_ne!(board.ok(&["status", "t-1", "--field", "reason"]).trim(), "preflight");
}

#[test]
fn the_projects_own_workflow_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("WORKFLOW.md");
    let loaded = dirigent::workflow::load(&path, &dirigent::workflow::Env::of([("HOME", "/home/somebody")])).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(loaded.unavailable.is_empty(), "{:?}", loaded.unavailable);
}

/// Every test that is named after a line is in the table, and the table names no test that is not there.
#[test]
fn the_conformance_table_and_the_tests_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    // The last cell of each row.
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next());
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let listed: BTreeSet<&str> = named.filter(|name| !name.contains('/')).collect();
    let mut written = BTreeSet::new();
    let mut folders = vec![root.join("src"), root.join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let names = source
                    .split("fn ")
                    .skip(1)
                    .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>());
                written.extend(names);
            }
        }
    }
    let missing: Vec<_> = written
        .iter()
        .filter(|name| name.len() > 5 && name.starts_with("spec_") && !listed.contains(name.as_str()))
        .collect();
    let invented: Vec<_> = listed.iter().filter(|name| !written.contains(**name)).collect();
    assert!(missing.is_empty(), "not in docs/conformance.md: {missing:?}");
    assert!(invented.is_empty(), "no such test: {invented:?}");
}
