//! What a worker says, fails to say, or is too quiet to say; and what its tokens cost.

use super::{Board, GOOD, MERGE, merges, salvaged, sentence, with_events};

const SILENT_COMMIT: &str = "set -eu
echo \"$DIRIGENT_ATTEMPT\" > work.txt
git add -A
git commit -qm work
";

#[test]
fn required_evidence_is_required_also_of_whoever_never_says_done() {
    let board = Board::new(
        SILENT_COMMIT,
        &format!("{MERGE}gates: {{required_evidence: [test]}}\norchestration: {{max_rework_cycles: 1}}\n"),
    );
    board.ticket("t-1", "No proof");
    board.ok(&["run", "--once"]);
    assert_eq!(merges(&board, "t-1"), 0, "nothing is merged without its evidence");
    let job = board.status(&["t-1"]);
    assert_eq!((job["phase"].as_str(), job["attempts"].as_u64()), (Some("blocked"), Some(2)), "{job}");
    let story = board.ok(&["explain", "t-1"]);
    assert!(story.contains("asks for `test`, and the worker recorded none"), "{story}");

    // Whoever reads the prompt of the rework and proves it gets through.
    let proves = format!(
        "{SILENT_COMMIT}if [ $DIRIGENT_PHASE = rework ]; then grep -q 'asks for `test`' \"$DIRIGENT_PROMPT_FILE\"; tk evidence --type test --passed 3; fi\n"
    );
    let board = Board::new(&proves, &format!("{MERGE}gates: {{required_evidence: [test]}}\n"));
    board.ticket("t-1", "Proof");
    board.ok(&["run", "--once"]);
    let job = board.status(&["t-1"]);
    assert_eq!((job["phase"].as_str(), job["attempts"].as_u64()), (Some("done"), Some(2)), "{job}");
}

#[test]
fn whoever_gives_up_is_not_asked_the_same_again() {
    let board = Board::new("tk failed 'the compiler is missing here'", MERGE);
    with_events(&board, "", ", max_retry_backoff_ms: 100", MERGE);
    board.ticket("t-1", "Hopeless");
    let runner = board.start();
    board.until("it is blocked", || board.phase("t-1") == "blocked");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    let story = board.ok(&["explain", "t-1"]);
    assert!(story.contains("the worker gave up: the compiler is missing here"), "{story}");
    runner.end();
}

#[test]
fn a_quiet_run_is_shown_as_quiet_with_how_long_before_it_is_ended() {
    let agent = format!(
        "echo '{{\"type\":\"message\",\"text\":\"thinking about it\"}}'
until [ -e \"$HOME/open\" ]; do sleep 0.1; done
echo '{{\"type\":\"tool_started\",\"id\":\"1\",\"name\":\"sh\",\"about\":\"make all\"}}'
until [ -e \"$HOME/more\" ]; do sleep 0.1; done
{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    with_events(&board, ", stall_timeout_ms: 10m", ", quiet_after_ms: 300", MERGE);
    board.ticket("t-1", "Thinks");
    let runner = board.start();
    board.until("it runs", || board.phase("t-1") == "implementing");
    board.until("it is quiet", || {
        let run = &board.status(&["t-1"])["run"];
        run["said"] == "thinking about it" && !run["quiet_since"].is_null()
    });
    let one = board.ok(&["status", "t-1"]);
    assert!(one.contains("quiet         nothing was heard for"), "{one}");
    assert!(one.contains("last word     thinking about it"), "{one}");
    let all = board.ok(&["status"]);
    assert!(all.contains("(quiet for "), "{all}");
    let home = board.scratch.dir.path();
    std::fs::write(home.join("open"), "").unwrap();
    board.until("it uses a tool", || board.ok(&["status"]).contains("(sh make all)"));
    assert!(board.status(&["t-1"])["run"]["quiet_since"].is_null(), "an open tool call is not silence");
    std::fs::write(home.join("more"), "").unwrap();
    board.until("it is done", || board.phase("t-1") == "done");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    runner.end();
}

#[test]
fn a_price_table_makes_the_cap_on_cost_stop_an_agent_that_names_none() {
    let agent = "echo unsaved > work.txt
while :; do echo '{\"type\":\"usage\",\"output\":100}'; sleep 0.1; done
";
    let board = Board::new(agent, MERGE);
    with_events(&board, "", "", &format!("{MERGE}budget: {{max_cost_usd: 0.01, prices: {{any: {{output: 10}}}}}}\n"));
    board.ticket("t-1", "Spends");
    board.ok(&["run", "--once"]);
    let job = board.status(&["t-1"]);
    assert_eq!((job["phase"].as_str(), job["attempts"].as_u64()), (Some("blocked"), Some(1)), "{job}");
    let why = sentence(&board, "t-1");
    assert!(why.contains("the budget is spent: cost") && why.contains("of 0.0100"), "{why}");
    let (tokens, cost) = (job["spent"]["output"].as_u64().unwrap(), job["spent"]["cost_microusd"].as_u64().unwrap());
    assert_eq!(cost, tokens * 10, "10 USD for a million");
    assert_eq!(salvaged(&board), 1);
}
