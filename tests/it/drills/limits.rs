//! Limits: checks that never pass, budgets, quotas, silence, claims without work.

use super::{Board, GOOD, MERGE, merges, salvaged, sentence, with_events};

#[test]
fn a_gate_that_never_passes_ends_after_exactly_the_allowed_reworks() {
    let agent = "echo $DIRIGENT_ATTEMPT > result.txt; git add -A; git commit -qm more; tk done x";
    let board = Board::new(
        agent,
        &format!("{MERGE}gates: {{task: ['echo NOTGREEN; false']}}\norchestration: {{max_rework_cycles: 2}}\n"),
    );
    board.ticket("t-1", "Never green");
    board.ok(&["run", "--once"]);
    let job = board.status(&["t-1"]);
    assert_eq!(job["phase"], "blocked");
    assert_eq!(job["attempts"], 3, "one implementation and two reworks: {job}");
    let ticket = board.ticket_text("t-1");
    assert_eq!(ticket.matches("<!-- dirigent:blocked:").count(), 1, "{ticket}");
    assert!(ticket.contains("2 rework rounds were not enough"), "{ticket}");
    assert!(ticket.contains("NOTGREEN"), "{ticket}");
    assert_eq!(merges(&board, "t-1"), 0);
    // And not again at the next start.
    board.ok(&["run", "--once"]);
    assert_eq!(board.status(&["t-1"])["attempts"], 3);
}

#[test]
fn done_without_a_commit_is_contradicted_in_the_next_prompt() {
    let agent = "if [ $DIRIGENT_PHASE = rework ]; then cp \"$DIRIGENT_PROMPT_FILE\" prompt.txt; git add -A; git commit -qm real; fi
tk done 'all done, believe me'
";
    let board = Board::new(agent, MERGE);
    board.ticket("t-1", "Claim");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    assert_eq!(board.status(&["t-1"])["attempts"], 2);
    let prompt = board.scratch.read("prompt.txt");
    assert!(prompt.contains("says done, but the branch has no commit beyond the base"), "{prompt}");
}

#[test]
fn a_budget_that_is_crossed_inside_a_turn_stops_the_turn() {
    let agent = "echo unsaved > work.txt
while :; do echo '{\"type\":\"usage\",\"output\":100}'; sleep 0.1; done
";
    let board = Board::new(agent, MERGE);
    with_events(&board, "", "", &format!("{MERGE}budget: {{max_tokens: 1000}}\n"));
    board.ticket("t-1", "Spends");
    board.ok(&["run", "--once"]);
    let job = board.status(&["t-1"]);
    assert_eq!(job["phase"], "blocked");
    assert_eq!(job["attempts"], 1);
    let why = board.ok(&["status", "t-1", "--field", "sentence"]);
    assert!(why.contains("the budget is spent: tokens") && why.contains("of 1000"), "{why}");
    assert!(board.ticket_text("t-1").contains("of 1000"), "{}", board.ticket_text("t-1"));
    assert_eq!(salvaged(&board), 1);
    // Durable: the next start does not spend either.
    board.ok(&["run", "--once"]);
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
}

#[test]
fn a_silent_tool_call_is_no_stall_and_silence_without_one_is() {
    let agent = format!(
        "case $DIRIGENT_TICKET_KEY in
t-tool) echo '{{\"type\":\"tool_started\",\"id\":\"1\",\"name\":\"sh\"}}'; sleep 4; echo '{{\"type\":\"tool_finished\",\"id\":\"1\"}}' ;;
t-stall) if [ $DIRIGENT_ATTEMPT = 1 ]; then sleep 100000; fi ;;
esac
{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    with_events(&board, ", stall_timeout_ms: 1500", ", max_retry_backoff_ms: 100", MERGE);
    board.ticket("t-tool", "Runs a long test");
    board.ticket("t-stall", "Falls asleep");
    let runner = board.start();
    board.until("both are done", || board.phase("t-tool") == "done" && board.phase("t-stall") == "done");
    assert_eq!(board.status(&["t-tool"])["attempts"], 1);
    assert_eq!(board.status(&["t-stall"])["attempts"], 2);
    let story = board.ok(&["explain", "t-stall"]);
    assert!(story.contains("stall") || story.contains("no event"), "{story}");
    runner.end();
}

#[test]
fn a_usage_limit_rests_the_whole_pool_and_costs_no_retry() {
    let agent = format!(
        "cd \"$PWD\"
if [ ! -e \"$HOME/open\" ]; then echo once >> \"$HOME/met\"; echo '{{\"type\":\"error\",\"class\":\"rate_limit\",\"message\":\"enough\",\"reset_in_ms\":4000}}'; exit 1; fi
{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    with_events(&board, "", ", max_concurrent_agents: 3, max_retries: 0", MERGE);
    let ids = ["t-1", "t-2", "t-3", "t-4"];
    for id in ids {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("everybody rests", || ids.iter().all(|id| sentence(&board, id).contains("usage limit")));
    let met = std::fs::read_to_string(board.scratch.dir.path().join("met")).unwrap().lines().count();
    assert!(met <= 3, "{met} workers ran into the limit");
    std::fs::write(board.scratch.dir.path().join("open"), "").unwrap();
    board.until("everybody is done", || ids.iter().all(|id| board.phase(id) == "done"));
    runner.end();
}
