//! What people are told: the cause itself and not its shadow, nothing that nobody will keep, and what to type next.

use nix::sys::signal::Signal;

use super::support::board::{Board, MERGE, MUTATE, text};

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
echo \"$DIRIGENT_ATTEMPT\" > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

const ENDLESS: &str = "tk comment 'I am at it'\nwhile :; do echo alive; sleep 1; done\n";

fn holds(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in\n{told}");
    }
}

#[test]
fn without_a_runner_nothing_is_promised_that_only_a_runner_does() {
    let board = Board::new("echo 'cannot reach the model' >&2\nexit 3\n", MUTATE);
    board.ticket("t-1", "One");
    let runner = board.start();
    let reason = || text(&board.run(&["status", "t-1", "--field", "reason"]).stdout);
    board.until("it waits for its retry", || reason().trim() == "retry");
    let live = board.ok(&["status", "t-1"]);
    holds(&live, &["attempt 2 follows in ", "code 3; its last line on stderr: cannot reach the model"]);
    runner.end();
    for command in ["status", "explain"] {
        let told = board.ok(&[command, "t-1"]);
        holds(&told, &["no runner up", "`dirigent run`", "attempt 2 follows when a runner is up", "cannot reach"]);
        assert!(!told.lines().any(|line| line.starts_with("why") && line.contains("follows in ")), "{told}");
    }
    let all = board.ok(&["status"]);
    holds(&all, &["when a runner is up", "no runner up: start a runner with `dirigent run`"]);
    assert_eq!(board.status(&["t-1"])["next"], "start a runner with `dirigent run`");
}

#[test]
fn a_runner_that_does_not_answer_is_named_and_the_ledger_speaks() {
    let board = Board::new(ENDLESS, MUTATE);
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it works", || board.ticket_text("t-1").contains("I am at it"));
    runner.signal(Signal::SIGSTOP);
    let told = board.ok(&["status"]);
    let pid = runner.child.id().to_string();
    holds(&told, &[&format!("the runner (pid {pid}) does not answer"), &format!("kill -CONT {pid}"), "t-1"]);
    let refused = board.fails(&["pause"], 1);
    holds(&refused, &["does not answer; one that is only busy may still carry this out", "then say it again"]);
    assert!(!told.contains("os error") && !refused.contains("os error"), "{told}\n{refused}");
    runner.signal(Signal::SIGCONT);
    // Whoever asked is gone by now and cannot be told from a worker that has left somebody else to wait for the answer.
    board.until("it has looked at it", || runner.log().contains("a command was refused"));
    assert!(!board.ok(&["status"]).contains("STOPPED"));
    board.ok(&["pause"]);
    assert!(board.ok(&["status"]).contains("STOPPED: dirigent pause"));
    runner.end();
}

/// The agent speaks all the time; that nobody hears it is the runner's doing.
#[test]
fn an_agent_is_not_stopped_for_the_silence_of_the_runner() {
    // The limits are far from what a busy machine needs between two looks, and the agent outlives the runner's silence.
    let talks = "tk comment 'I am at it'\nfor n in $(seq 120); do echo $n; sleep 0.2; done\n";
    let more = format!("{MERGE}codex: {{stall_timeout_ms: 15000}}\n");
    let board = Board::new(&format!("{talks}{GOOD}"), &more);
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it works", || board.ticket_text("t-1").contains("I am at it"));
    runner.signal(Signal::SIGSTOP);
    std::thread::sleep(std::time::Duration::from_secs(18));
    runner.signal(Signal::SIGCONT);
    board.until("it is done", || board.phase("t-1") == "done");
    assert_eq!(board.status(&["t-1"])["attempts"], 1);
    runner.end();
}

/// The runner is gone a moment later; whoever told it to go has their answer all the same.
#[test]
fn whoever_ends_the_runner_gets_an_answer() {
    let board = Board::new(GOOD, MUTATE);
    for _ in 0..10 {
        let mut runner = board.start();
        board.until("it is up", || !board.ok(&["status"]).contains("no runner up"));
        holds(&board.ok(&["stop"]), &["shutting down"]);
        assert!(runner.child.wait().unwrap().success());
    }
}

#[test]
fn what_was_given_back_is_not_out_of_sight() {
    let board = Board::new("tk blocked 'which one?'\n", MERGE);
    board.ticket("t-1", "One");
    board.ok(&["run", "--once"]);
    board.ok(&["undo", "t-1"]);
    holds(&board.ok(&["status"]), &["1 more: given back", "dirigent status --verbose"]);
    holds(&board.ok(&["status", "--verbose"]), &["t-1", "released"]);
}

#[test]
fn an_agent_that_is_not_there_is_no_agent_also_with_its_full_path() {
    let board = Board::new(GOOD, MUTATE);
    let workflow = std::fs::read_to_string(board.repo().join("WORKFLOW.md")).unwrap();
    let other = workflow.replace("sh ./agent.sh", "/nowhere/agent --fast");
    std::fs::write(board.repo().join("WORKFLOW.md"), other).unwrap();
    let output = board.run(&["doctor"]);
    holds(&text(&output.stdout), &["PROBLEM", "`/nowhere/agent` is not there"]);
}

/// The gate fails for ever: the ticket says which one, and what it printed last.
#[test]
fn a_block_after_failed_gates_shows_the_gate_and_its_last_lines() {
    let more = format!(
        "{MERGE}orchestration: {{max_rework_cycles: 1}}\ngates: {{task: [{{name: lint, run: 'for i in $(seq 40); do echo line $i; done; echo the last straw; exit 9'}}]}}\n"
    );
    let board = Board::new(GOOD, &more);
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    let summary = board.ok(&["run", "--once"]);
    holds(&summary, &["2 tickets are blocked; what one needs: dirigent explain t-1"]);
    assert!(!summary.contains('…'), "a piped table is cut:\n{summary}");
    for told in [board.ok(&["status", "t-1"]), board.ok(&["explain", "t-1"]), board.ticket_text("t-1")] {
        holds(&told, &["gate failed: failed: lint (exit code 9)", "$ lint", "line 40", "the last straw"]);
    }
    let blocked = board.ticket_text("t-1");
    let blocked = blocked.split("**Blocked**").nth(1).unwrap();
    assert!(!blocked.contains("line 12\n"), "the whole output is there:\n{blocked}");
}

#[test]
fn a_gate_that_takes_too_long_is_called_that_to_everybody() {
    let prompts = "cat > \"$HOME/prompt-$DIRIGENT_ATTEMPT.txt\"\n";
    let more = format!(
        "{MERGE}orchestration: {{max_rework_cycles: 1}}\ngates: {{task: [{{name: slow, run: 'sleep 600'}}], timeout_ms: 1500}}\n"
    );
    let board = Board::new(&format!("{prompts}{GOOD}"), &more);
    board.ticket("t-1", "One");
    board.ok(&["run", "--once"]);
    let rework = std::fs::read_to_string(board.scratch.dir.path().join("prompt-2.txt")).unwrap();
    for told in [board.ok(&["explain", "t-1"]), board.ticket_text("t-1"), rework] {
        holds(&told, &["slow (timed out: still running after 1 s (gates.timeout_ms), then stopped)"]);
        assert!(!told.contains("exit code -1"), "{told}");
    }
}

/// Two tickets change the same line; the second cannot be reconciled by its agent.
#[test]
fn a_block_after_conflicts_names_the_files() {
    let agent = "set -eu
if [ \"$DIRIGENT_PHASE\" != rework ]; then
echo \"$DIRIGENT_TICKET_KEY\" > README
git add -A
git commit -qm change
else
git commit -q --allow-empty -m 'no idea'
fi
tk done x
";
    let more = format!("{MERGE}orchestration: {{max_rework_cycles: 1}}\n");
    let board = Board::new(agent, &more);
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    board.ok(&["run", "--once"]);
    let lost = if board.phase("t-1") == "done" { "t-2" } else { "t-1" };
    assert_eq!(board.phase(lost), "blocked", "{}", board.ok(&["explain", lost]));
    for told in [board.ok(&["status", lost]), board.ticket_text(lost)] {
        holds(&told, &["merge conflict: conflicts with the base in README"]);
    }
    let one = text(&board.run(&["status"]).stdout);
    holds(&one, &["conflicts with the base in README"]);
}

#[test]
fn run_refuses_a_base_branch_that_is_not_there_as_doctor_does() {
    let board = Board::new(GOOD, &MERGE.replace("forge: local", "forge: local, base_branch: trnk"));
    board.scratch.write(
        "WORKFLOW.md",
        &board.scratch.read("WORKFLOW.md").replace("agent: {", "workspace: {base: main}\nagent: {"),
    );
    board.ticket("t-1", "One");
    let doctor = board.run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(7));
    let doctor = text(&doctor.stdout);
    let problem = doctor.lines().find(|line| line.contains("trnk")).unwrap_or_else(|| panic!("{doctor}"));
    let sentence = problem.split_once("git").unwrap().1.trim();
    let refused = board.fails(&["run", "--once"], 1);
    holds(&refused, &[sentence, "fix: make the branch, or set pr.base_branch"]);
    assert!(!board.ticket_text("t-1").contains("Work started"), "an agent was started");
}

/// The agent's command and the gate are wrong; correcting the file is enough.
#[test]
fn a_corrected_workflow_starts_what_it_was_in_the_way_of() {
    let board = Board::new(GOOD, MERGE);
    let with = |command: &str, gate: &str| {
        board.workflow(&format!("{MERGE}gates: {{task: ['{gate}']}}\n"));
        let text = board.scratch.read("WORKFLOW.md").replace("sh ./agent.sh", command);
        board.scratch.write("WORKFLOW.md", &text);
    };
    with("no-such-agent", "true");
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it is blocked", || board.phase("t-1") == "blocked");
    with("sh ./agent.sh", "no-such-gate");
    board.until("the gate cannot be run", || {
        text(&board.run(&["status", "t-1", "--field", "sentence"]).stdout).contains("no-such-gate")
    });
    runner.end();
    // Also while nobody was looking.
    with("sh ./agent.sh", "true");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done", "{}", board.ok(&["explain", "t-1"]));
    assert_eq!(board.status(&["t-1"])["attempts"], 2, "an agent was paid again for a gate that could not run");
}

/// What waits was checked by another set of gates.
#[test]
fn only_the_gates_of_now_count() {
    let more = |gates: &str| {
        format!(
            "rollout: {{mode: merge}}\npr: {{forge: local}}\nmerge: {{mode: auto, no_checks: pass}}\ngates: {{task: [{gates}]}}\n"
        )
    };
    // A rework lasts until the next workflow is in force; otherwise a quick agent uses up its rounds before that.
    let patient =
        format!("while [ \"$DIRIGENT_PHASE\" = rework ] && [ ! -e \"$HOME/go\" ]; do sleep 0.05; done\n{GOOD}");
    let board = Board::new(&patient, &more("{name: old, run: 'true'}"));
    let in_force = || board.status(&[])["workflow"]["hash"].clone();
    board.ticket("t-1", "One");
    let runner = board.start();
    board.until("it waits for approval", || board.phase("t-1") == "waiting_for_human");
    board.workflow(&more("{name: new, run: 'exit 1'}"));
    board.until("the new gate looks at the old work", || board.phase("t-1") == "rework");
    assert!(board.ok(&["explain", "t-1"]).contains("failed: new (exit code 1)"));
    let before = in_force();
    board.workflow(&more(""));
    board.until("the workflow without gates is in force", || in_force() != before);
    std::fs::write(board.scratch.dir.path().join("go"), "").unwrap();
    board.until("what no gate forbids waits again", || board.phase("t-1") == "waiting_for_human");
    assert_eq!(board.status(&["t-1"])["pr"]["checks"], "none yet");
    runner.end();
}

#[test]
fn each_problem_of_the_workflow_is_printed_once() {
    let board = Board::new(GOOD, "rolout: {mode: merge}\nrollout: {mode: mutat}\n");
    let said = board.fails(&["status"], 3);
    holds(&said, &["2 problems in the workflow file", "did you mean `rollout`?", "did you mean `mutate`?", "╰── here"]);
    for once in ["is not a section", "did you mean `mutate`?", "it must be one of observe"] {
        assert_eq!(said.matches(once).count(), 1, "{once}:\n{said}");
    }
    board.workflow("rollout: {mode: mutat}\n");
    let said = board.fails(&["status"], 3);
    holds(&said, &["WORKFLOW.md:7:17: `rollout.mode` is \"mutat\"", "╰── here"]);
}

#[test]
fn logs_are_for_people_and_log_lines_say_no_more_than_they_know() {
    let board = Board::new(&format!("echo 'I read it'\n{GOOD}"), MUTATE);
    board.ticket("t-1", "One");
    let run = board.run(&["run", "--once", "--plain", "--log", "full"]);
    let log = text(&run.stderr);
    holds(&log, &["t-1: queued → implementing"]);
    // Whether there is a session is asked of every line about a ticket.
    let log = log.replace(" session_id=\"\"", "");
    assert!(!log.contains("=\"\""), "a field that says nothing:\n{log}");
    let shown = board.ok(&["logs", "t-1"]);
    holds(&shown, &["of the prompt (--verbose shows them)", " out  I read it"]);
    assert!(shown.lines().count() < 12, "the prompt is not folded:\n{shown}");
    assert!(board.ok(&["logs", "t-1", "--verbose"]).lines().count() > 12);
    let first = board.ok(&["logs", "t-1", "--json"]);
    let first: serde_json::Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert!(first["at"].as_i64().unwrap() > 1_700_000_000_000 && first["stream"] == "in", "{first}");
}

/// On a terminal of forty-four columns the table keeps to them, and stands there once in the end.
#[test]
fn a_narrow_terminal_shows_the_table_once() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "A title that is much longer than there is room for on such a terminal");
    let plain = board.command(&["run", "--once"]);
    let program = plain.get_program().to_string_lossy().into_owned();
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &format!("stty cols 44 rows 30; exec '{program}' run --once"), "/dev/null"]);
    command.current_dir(board.repo()).env_clear().stdin(std::process::Stdio::null());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let Ok(output) = command.env("TERM", "xterm").env("SHELL", "/bin/sh").output() else {
        println!("skipped: there is no `script`");
        return;
    };
    let screen = on_a_screen(&text(&output.stdout));
    assert_eq!(screen.iter().filter(|line| line.contains("PHASE")).count(), 1, "{screen:#?}");
    let rows = screen.iter().skip_while(|line| !line.contains("PHASE"));
    for line in rows.take_while(|line| !line.trim().is_empty()) {
        assert!(line.trim_end().chars().count() <= 44, "{line:?} in {screen:#?}");
    }
    holds(&screen.join("\n"), &["t-1", "done", "merged as"]);
    assert_eq!(board.phase("t-1"), "done");
}

/// What a terminal would show after `up N lines` and `clear to the end`.
fn on_a_screen(sent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    let mut rest = sent;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => {
                let body = rest.strip_prefix('[').unwrap_or(rest);
                let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(body.len() - 1);
                let (numbers, kind) = (&body[..end], &body[end..=end]);
                if kind == "F" {
                    let up: usize = numbers.parse().unwrap_or(1);
                    lines.truncate(lines.len().saturating_sub(up));
                }
                rest = &body[end + 1..];
            }
            '\n' => lines.push(std::mem::take(&mut current)),
            '\r' => {}
            c => current.push(c),
        }
    }
    lines
}
