//! The workflow file from outside: what `--set` does, how a misspelt key and a key without effect are told, and files that an
//! editor has spoilt.

use super::{Board, GOOD, MERGE, merges, text};

/// Everything that a command says.
fn told(board: &Board, args: &[&str]) -> (Option<i32>, String) {
    let output = board.run(args);
    (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[test]
fn set_overrides_the_file_for_one_invocation_on_every_command_that_reads_it() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "Watched first");
    board.ok(&["run", "--once", "--set", "rollout.mode=observe"]);
    assert_eq!(merges(&board, "t-1"), 0, "observe changes nothing");
    assert!(board.ok(&["--set", "agent.max_turns=7", "config", "show"]).contains("7  (--set)"));
    assert!(!board.ok(&["config", "show"]).contains("(--set)"), "only for that one");
    for args in [&["run", "--once"][..], &["doctor"], &["status"], &["config", "show"]] {
        let mut with = args.to_vec();
        with.extend(["--set", "agent.max_turn=3"]);
        let (code, said) = told(&board, &with);
        assert_eq!(code, Some(3), "{args:?}: {said}");
        assert!(said.contains("did you mean `agent.max_turns`?"), "{args:?}: {said}");
    }
    let (code, said) = told(&board, &["run", "--once", "--set", "tracker.api_key=canary"]);
    assert!(code != Some(0) && said.contains("secret") && !said.contains("canary"), "{said}");
    board.ok(&["run", "--once"]);
    assert_eq!(merges(&board, "t-1"), 1);
}

#[test]
fn what_doctor_has_checked_is_the_configuration_with_its_overrides() {
    let board = Board::new(GOOD, "");
    let gated = MERGE.replace("mode: merge", "mode: merge, preflight_required: true");
    board.workflow(&format!("{gated}gates: {{task: ['true']}}\n"));
    board.ticket("t-1", "Checked");
    board.ok(&["doctor"]);
    board.ok(&["run", "--once", "--set", "agent.max_retries=1"]);
    assert_eq!(merges(&board, "t-1"), 0, "that configuration was not checked");
    board.ok(&["doctor", "--set", "agent.max_retries=1"]);
    board.ok(&["run", "--once", "--set", "agent.max_retries=1"]);
    assert_eq!(merges(&board, "t-1"), 1);
}

#[test]
fn a_misspelt_key_stops_the_start_and_names_its_place_and_its_neighbour() {
    for (written, meant) in [
        ("tracker: {kind: tk, required_label: [agent]}", "required_labels"),
        ("tracker: {kind: tk}\nagent: {max_concurent_agents: 2}", "max_concurrent_agents"),
        ("tracker: {kind: tk}\nagnet: {max_turns: 2}", "agent"),
    ] {
        let board = Board::new(GOOD, MERGE);
        let front = format!("{written}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n{MERGE}");
        board.scratch.write("WORKFLOW.md", &format!("---\n{front}---\n"));
        board.ticket("t-1", "Not meant for the agent");
        for args in [&["run", "--once"][..], &["doctor"], &["status"]] {
            let (code, said) = told(&board, args);
            assert_eq!(code, Some(3), "{args:?}: {said}");
            assert!(said.contains(meant) && said.contains("WORKFLOW.md"), "{args:?}: {said}");
        }
        assert_eq!(merges(&board, "t-1"), 0);
    }
}

#[test]
fn a_key_without_effect_is_told_by_run_status_doctor_and_config() {
    let board = Board::new(GOOD, MERGE);
    board.workflow(&format!("{MERGE}server: {{port: 4041}}\nsomebody_elses: {{x: 1}}\n"));
    board.ticket("t-1", "Works all the same");
    let runner = board.start();
    board.until("it is done", || board.phase("t-1") == "done");
    let sentence = "`server.port` is not in force: this version has no HTTP server";
    let live = board.ok(&["status"]);
    assert!(live.contains(sentence) && live.contains("somebody_elses"), "{live}");
    assert!(runner.log().contains(sentence), "{}", runner.log());
    runner.end();
    for args in [&["status"][..], &["doctor"]] {
        let (_, said) = told(&board, args);
        assert!(said.contains(sentence), "{args:?}: {said}");
    }
    let (_, shown) = told(&board, &["config", "show"]);
    assert!(shown.lines().any(|line| line.contains("server.port") && line.contains("not in force")), "{shown}");
}

#[test]
fn files_that_an_editor_has_spoilt_get_a_sentence() {
    let whole = |front: &str| {
        format!("---\ntracker: {{kind: tk}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n{front}---\n")
    };
    let long = "k".repeat(100_000);
    for (what, file, wanted) in [
        ("a duplicate key", whole("agent: {max_turns: 2, max_turns: 3}\n"), "max_turns"),
        ("a duplicate section", whole("agent: {max_turns: 2}\nagent: {max_turns: 3}\n"), "agent"),
        ("tabs", whole("agent:\n\tmax_turns: 2\n"), "tab"),
        ("a long key", whole(&format!("agent: {{{long}: 2}}\n")), "workflow.md"),
        ("a long section", whole(&format!("{long}: {{}}\n")), ""),
    ] {
        let board = Board::new(GOOD, MERGE);
        board.scratch.write("WORKFLOW.md", &file);
        for args in [&["run", "--once"][..], &["doctor"], &["config", "show"]] {
            let (code, said) = told(&board, args);
            // An unknown section is another tool's: a warning, which is no reason to be endless.
            if wanted.is_empty() {
                assert_ne!(code, Some(101), "{what}: {args:?}");
            } else {
                assert_eq!(code, Some(3), "{what}: {args:?}: {}", &said[..said.len().min(2000)]);
                assert!(said.to_lowercase().contains(wanted), "{what}: {}", &said[..said.len().min(2000)]);
                assert!(said.contains("WORKFLOW.md"), "{what}: {}", &said[..said.len().min(2000)]);
            }
            assert!(said.len() < 30_000, "{what}: {args:?}: {} bytes are no sentence", said.len());
        }
    }
    // A byte order mark is not part of the text.
    let board = Board::new(GOOD, MERGE);
    let file = std::fs::read_to_string(board.repo().join("WORKFLOW.md")).unwrap();
    board.scratch.write("WORKFLOW.md", &format!("\u{feff}{file}"));
    board.ticket("t-1", "Marked");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
}

#[test]
fn the_log_of_a_run_is_json_where_the_file_says_so() {
    let board = Board::new(GOOD, &format!("{MERGE}observability: {{log: json}}\n"));
    board.ticket("t-1", "Logged");
    let output = board.run(&["run", "--once", "--plain"]);
    let lines = text(&output.stderr);
    let parsed = lines.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert!(output.status.success() && parsed > 0, "{lines}");
    let plain = Board::new(GOOD, MERGE);
    plain.ticket("t-1", "Logged");
    let lines = text(&plain.run(&["run", "--once", "--plain"]).stderr);
    assert!(!lines.lines().any(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
}

#[test]
fn tickets_repository_prompt_and_workpad_are_where_the_file_says() {
    let agent = "set -eu
cp \"$DIRIGENT_PROMPT_FILE\" \"$HOME/prompt\"
echo work > work.txt; git add -A; git commit -qm work; tk done x
";
    let board = Board::new(agent, "");
    board.scratch.write(".dirigent/templates/drawing.md", "Draw {{issue.title}}.\n");
    board.scratch.write("boards/one/.gitignore", ".*\n");
    let place = board.scratch.dir.path().join("workflow");
    std::fs::create_dir_all(&place).unwrap();
    let repo = board.repo();
    let file = place.join("WORKFLOW.md");
    let text = format!(
        "---\ntracker: {{kind: tk, provider: {{dir: \"{repo}/boards/one\"}}}}\nworkspace: {{repo: \"{repo}\"}}\npolling: {{interval_ms: 500}}\n\
         worker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {{routing: [{{match: {{labels: [ui]}}, prompt: drawing}}]}}\n\
         orchestration: {{phase_store: workpad, ownership: {{required_workpad_marker: '## Our Pad'}}}}\n{MERGE}---\n",
        repo = repo.display()
    );
    std::fs::write(&file, text).unwrap();
    board.ticket_with("t-1", "a house", "tags: [ui]\n");
    std::fs::rename(board.ticket_path("t-1"), repo.join("boards/one/t-1.md")).unwrap();
    board.ok(&["run", "--once", "--workflow", file.to_str().unwrap()]);
    assert_eq!(merges(&board, "t-1"), 1);
    assert_eq!(std::fs::read_to_string(board.scratch.dir.path().join("prompt")).unwrap().trim(), "Draw a house.");
    let ticket = std::fs::read_to_string(repo.join("boards/one/t-1.md")).unwrap();
    assert!(ticket.contains("## Our Pad"), "{ticket}");
}

#[test]
fn worktrees_lie_where_the_file_says_and_begin_where_it_says() {
    let agent =
        "pwd > \"$HOME/where\"; ls > \"$HOME/seen\"; echo work > work.txt; git add -A; git commit -qm work; tk done x";
    let board = Board::new(agent, "");
    board.scratch.git(["checkout", "-q", "-b", "ground"]);
    board.scratch.write("underground.txt", "x\n");
    board.scratch.commit("another beginning");
    board.scratch.git(["checkout", "-q", "main"]);
    let seen = |file: &str| std::fs::read_to_string(board.scratch.dir.path().join(file)).unwrap();
    board.ticket("t-1", "As ever");
    board.ok(&["run", "--once", "--set", "rollout.mode=mutate", "--set", "pr.forge=local"]);
    assert!(seen("where").contains("/home/workspaces/") && !seen("seen").contains("underground"), "{}", seen("where"));
    let root = board.scratch.dir.path().join("elsewhere");
    board.ticket("t-2", "Elsewhere");
    board.workflow(&format!("{MERGE}workspace: {{root: \"{}\", base: ground}}\n", root.display()));
    board.ok(&["run", "--once"]);
    assert!(seen("where").starts_with(&root.canonicalize().unwrap().display().to_string()), "{}", seen("where"));
    assert!(seen("seen").contains("underground.txt"), "{}", seen("seen"));
}

#[test]
fn the_kill_switch_is_the_file_that_the_workflow_names() {
    let board = Board::new(GOOD, &MERGE.replace("mode: merge}", "mode: merge, kill_switch_file: ./halt}"));
    board.scratch.write(".dirigent/pause", "");
    board.scratch.write("halt", "");
    board.ticket("t-1", "Held");
    board.run(&["run", "--once"]);
    assert_eq!(merges(&board, "t-1"), 0);
    let status = board.ok(&["status"]);
    assert!(status.contains("STOPPED: kill-switch file") && status.contains("halt"), "{status}");
    std::fs::remove_file(board.repo().join("halt")).unwrap();
    board.ok(&["run", "--once"]);
    assert_eq!(merges(&board, "t-1"), 1, "the file of the default is nothing here");
}
