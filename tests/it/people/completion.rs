//! Tab completes tickets, in the shells that are here.

use std::process::Command;

use super::{APPROVED, ASKS, GOOD, text};
use crate::support::board::Board;

fn board() -> Board {
    let agent = format!("if [ \"$DIRIGENT_TICKET_KEY\" = wall-2 ]; then {ASKS} exit 0; fi\n{GOOD}");
    let board = Board::new(&agent, APPROVED);
    board.ticket("door-1", "Paint the door");
    board.ticket("wall-2", "Paint the wall");
    board.run(&["run", "--once"]);
    board.ticket("new-3", "Not seen by any run");
    board
}

#[test]
fn a_command_completes_to_the_tickets_that_it_is_for() {
    let board = board();
    let can_be = |words: &[&str]| {
        let mut all = vec!["__complete"];
        all.extend(words);
        board.ok(&all)
    };
    assert_eq!(can_be(&["status", "new"]), "new-3\tNot seen by any run\n");
    assert_eq!(can_be(&["approve", ""]), "door-1\tPaint the door\n");
    assert_eq!(can_be(&["retry", ""]), "wall-2\tPaint the wall\n");
    assert_eq!(can_be(&["--set", "rollout.mode=merge", "pause", "door-1", "2"]), "wall-2\tPaint the wall\n");
    // Of another workflow file, the tickets of its board.
    board.scratch.write("elsewhere/.tickets/far-9.md", "---\nid: far-9\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# Far away\n");
    board.scratch.write("elsewhere/WORKFLOW.md", "---\ntracker: {kind: tk, provider: {dir: .tickets}}\nworker: {runtime: exec}\nexec: {command: sh ./agent.sh}\nworkspace: {repo: ..}\n---\n");
    for chosen in [
        &["--workflow", "elsewhere/WORKFLOW.md"][..],
        &["--workflow=elsewhere/WORKFLOW.md"],
        &["--workflow", "=", "elsewhere/WORKFLOW.md"],
    ] {
        assert_eq!(can_be(&[chosen, &["status", "fa"]].concat()), "far-9\tFar away\n", "{chosen:?}");
    }
    assert_eq!(can_be(&["message", "door-1", "wa"]), "", "words are nobody's to guess");
    assert_eq!(can_be(&["retry", "--phase", "bl"]), "blocked\n");
    assert_eq!(can_be(&["tk", "show", "wa"]), "wall-2\tPaint the wall\n");
    for nothing in [&["run", ""][..], &["status", "--f"], &["sta"], &[]] {
        assert_eq!(can_be(nothing), "", "{nothing:?}");
    }
    std::fs::write(board.repo().join("WORKFLOW.md"), "---\n: [\n").unwrap();
    assert_eq!(can_be(&["status", ""]), "", "no noise in the middle of typing");
}

/// What `shell` makes of this script in the board's repository, with `dirigent` on its path.
fn in_shell(board: &Board, shell: &str, script: &str) -> Option<String> {
    if Command::new(shell).arg("--version").output().is_err() {
        println!("skipped: there is no {shell}");
        return None;
    }
    let plain = board.command(&[]);
    let bin = std::path::Path::new(plain.get_program()).parent().unwrap().display().to_string();
    let mut command = Command::new(shell);
    command.args(["-c", script]).current_dir(board.repo()).env_clear().stdin(std::process::Stdio::null());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let output = command.env("PATH", path).env("TERM", "dumb").output().unwrap();
    Some(format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[test]
fn bash_zsh_and_fish_take_the_scripts() {
    let board = board();
    let bash = "eval \"$(dirigent completion bash)\"
COMP_WORDS=(dirigent approve d) COMP_CWORD=2
_dirigent_tickets dirigent d approve && echo \"tickets: ${COMPREPLY[*]}\"
COMP_WORDS=(dirigent sta) COMP_CWORD=1 COMPREPLY=()
_dirigent_tickets dirigent sta dirigent && echo \"commands: ${COMPREPLY[*]}\"";
    if let Some(said) = in_shell(&board, "bash", bash) {
        assert!(said.contains("tickets: door-1\n") && said.contains("commands: status\n"), "{said}");
    }
    let fish = "dirigent completion fish | source; complete -C 'dirigent approve d'";
    if let Some(said) = in_shell(&board, "fish", fish) {
        assert!(said.contains("door-1\tPaint the door"), "{said}");
    }
    // Its completion works only inside of its line editor: here, that it is a script, and that it asks for tickets.
    let zsh = "autoload -U compinit; compinit -u -D; eval \"$(dirigent completion zsh)\"
_describe() { print -l -- \"${found[@]}\" }; LBUFFER='dirigent approve d'; _dirigent_tickets";
    if let Some(said) = in_shell(&board, "zsh", zsh) {
        assert_eq!(said, "door-1:Paint the door\n");
    }
    let script = board.ok(&["completion", "zsh"]);
    let asks = script.lines().filter(|line| line.contains(":_dirigent_tickets'")).count();
    assert!(asks >= 13, "{asks} places of the script ask for tickets:\n{script}");
}
