//! An agent that looks for secrets everywhere it can.

use std::path::Path;

use super::{Board, GOOD, MERGE, text};

const CANARY: &str = "canary-0a1b2c3d4e5f-secret";

#[test]
fn no_secret_of_the_server_reaches_the_agent_or_anything_it_leaves() {
    let agent = format!(
        "env | sort > env.txt
cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' > procs.txt
cat \"$DIRIGENT_PROMPT_FILE\" > prompt-seen.txt
tk show > show.txt 2>&1
env
tk comment \"$(env)\"
{GOOD}"
    );
    let more =
        "server: {token: $CANARY}\nhooks: {before_run: 'env > hook.txt'}\ngates: {task: ['env; env > gate.txt']}\n";
    let board = Board::new(&agent, &format!("{MERGE}{more}"));
    board.scratch.write(
        "WORKFLOW.md",
        &board.scratch.read("WORKFLOW.md").replace("runtime: exec}", "runtime: exec, env_pass: [PASSED_*, CANARY]}"),
    );
    board.ticket("t-1", "Look around");
    let encoded = ["Y2FuYXJ5LTBhMWIyYzNkNGU1Zi1zZWNyZXQ=", "canary%2D0a1b2c3d4e5f%2Dsecret"];
    let with_secrets = |args: &[&str]| {
        let mut command = board.command(args);
        command
            .env("CANARY", CANARY)
            .env("PASSED_PLAIN", format!("Bearer {CANARY}"))
            .env("PASSED_BASE64", encoded[0])
            .env("PASSED_URL", encoded[1])
            .env("PASSED_OTHER", "an-ordinary-value");
        let output = command.output().unwrap();
        let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{args:?}: {said}");
        said
    };
    let mut told = String::new();
    for args in [
        &["doctor"][..],
        &["run", "--once", "--plain"],
        &["status", "--json"],
        &["explain", "t-1", "--json"],
        &["config", "show"],
        &["logs", "t-1"],
    ] {
        told.push_str(&with_secrets(args));
    }
    assert_eq!(board.scratch.read("env.txt").matches("an-ordinary-value").count(), 1, "the agent did not look");
    assert!(board.scratch.read("hook.txt").contains("PATH="), "the hook did not look");
    for secret in [CANARY, encoded[0].trim_end_matches('='), encoded[1]] {
        assert!(!told.contains(secret), "{secret} was told");
        search(board.scratch.dir.path(), secret);
        let history = board.scratch.git(["log", "-p", "--all"]);
        assert!(!history.contains(secret), "{secret} is in the repository");
    }
}

fn search(place: &Path, secret: &str) {
    for entry in std::fs::read_dir(place).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            search(&path, secret);
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}
