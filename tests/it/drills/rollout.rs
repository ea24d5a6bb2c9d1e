//! Rollout: what `observe` says that it would do is what `mutate` then does; a preflight counts for the very configuration that passed.

use super::{Board, GOOD, merges, sentence};

const OBSERVE: &str = "pr: {forge: local}\nmerge: {no_checks: pass}\n";

fn would(board: &Board, id: &str) -> Vec<String> {
    let told = board.status_of(&["explain", id, "--json"]);
    told["would"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn observe_says_per_ticket_exactly_what_mutate_then_does() {
    let slots = "{max_concurrent_agents: 1, max_retry_backoff_ms: 100}";
    let board = Board::new(GOOD, "");
    let front = |mode: &str| {
        format!(
            "---\ntracker: {{kind: tk}}\npolling: {{interval_ms: 500}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {slots}\nrollout: {{mode: {mode}}}\n{OBSERVE}---\n"
        )
    };
    board.scratch.write("WORKFLOW.md", &front("observe"));
    board.ticket_with("t-2", "Second", "");
    board.ticket_with("t-1", "First", "");
    board.ticket_with("t-3", "Waits", "");
    board.ok(&["tk", "dep", "t-3", "t-1"]);
    board.ok(&["run", "--once"]);
    assert!(sentence(&board, "t-1").contains("rollout.mode is observe"), "{}", sentence(&board, "t-1"));
    let before = ["t-1", "t-2", "t-3"].map(|id| board.ticket_text(id));
    let first = would(&board, "t-1");
    assert!(first[0].starts_with("start a run (implement) with exec on branch dirigent/t-1"), "{first:?}");
    assert!(would(&board, "t-2")[0].contains("nothing yet") && would(&board, "t-2")[0].contains("slot"));
    assert!(would(&board, "t-3")[0].contains("t-1"), "{:?}", would(&board, "t-3"));
    let shown = board.ok(&["status", "t-1"]);
    assert!(shown.contains("would") && shown.contains("start a run (implement)"), "{shown}");
    // Nothing was changed for that: no branch, no comment, no run.
    assert_eq!(before, ["t-1", "t-2", "t-3"].map(|id| board.ticket_text(id)));
    assert_eq!(board.scratch.git(["branch", "--list", "dirigent/*"]), "");
    assert_eq!(board.status(&["t-1"])["attempts"], 0);

    board.scratch.write("WORKFLOW.md", &front("mutate"));
    board.ok(&["run", "--once"]);
    assert!(
        board.scratch.git(["branch", "--list", "--format=%(refname:short)", "dirigent/*"]).contains("dirigent/t-1")
    );
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    assert_eq!(board.status(&["t-3"])["attempts"], 0, "it waits, as was said");
    assert_eq!(merges(&board, "t-1"), 0);
    assert!(would(&board, "t-1").is_empty(), "nothing is only said any more");
}

#[test]
fn a_preflight_counts_for_the_very_configuration_that_passed() {
    let more = "rollout: {mode: mutate, preflight_required: true}\npr: {forge: local}\nmerge: {no_checks: pass}\n";
    let board = Board::new(GOOD, more);
    board.ticket("t-1", "Work");
    let refused = |args: &[&str]| {
        let told = board.ok(args);
        assert!(told.contains("preflight_required") || args[0] == "--set", "{told}");
        assert_eq!(board.status(&["t-1"])["attempts"], 0);
        assert_eq!(board.scratch.git(["branch", "--list", "dirigent/*"]), "");
    };
    refused(&["run", "--once"]);
    board.ok(&["doctor"]);
    // Checked, but not with this on the command line, nor with another word in the prompt.
    refused(&["--set", "agent.max_retries=1", "run", "--once"]);
    let text = board.scratch.read("WORKFLOW.md");
    board.scratch.write("WORKFLOW.md", &format!("{text}Do it well: {{{{issue.title}}}}\n"));
    refused(&["run", "--once"]);
    // A check that fails is no check.
    board.scratch.write("WORKFLOW.md", &text.replace("sh ./agent.sh", "no-such-program"));
    board.fails(&["doctor"], 7);
    refused(&["run", "--once"]);
    board.scratch.write("WORKFLOW.md", &text);
    board.ok(&["run", "--once"]);
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
}
