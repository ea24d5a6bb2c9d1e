//! `workspace.commit`: in whose name commits are made, signed off and signed, by workers and by the runner.

use std::process::Command;

use super::{Board, MERGE, merges, text};

/// Commits one file and leaves another one lying about.
const HALF: &str = "set -eu
echo one > one.txt
git add one.txt
git commit -qm 'Do one half'
echo two > two.txt
";
const KEEP_HISTORY: &str = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass, require_human_approval: false, method: merge}\n";

#[test]
fn commits_of_workers_and_merges_have_the_author_and_the_sign_off_of_the_file() {
    let board = Board::new(HALF, KEEP_HISTORY);
    board.workflow(&format!(
        "{KEEP_HISTORY}workspace: {{commit: {{author: 'Ada Lovelace <ada@example.org>', signoff: true}}}}\n"
    ));
    // The hooks of the repository are still called.
    let hook = board.repo().join(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho called >> \"$HOME/hooked\"\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let before = format!("^{}", board.scratch.head("main"));
    board.ticket("t-1", "Half");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    let format = "--format=%an <%ae>|%cn|%(trailers:key=Signed-off-by,valueonly,separator=%x2C)|%s";
    let log = board.scratch.git(["log", format, "main", &before]);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    for line in &lines {
        assert!(
            line.starts_with("Ada Lovelace <ada@example.org>|Ada Lovelace|Ada Lovelace <ada@example.org>|"),
            "{log}"
        );
    }
    assert!(lines.iter().any(|line| line.ends_with("|Do one half")), "the worker's own: {log}");
    assert!(lines.iter().any(|line| line.ends_with("|t-1: Half")), "what it left, or the merge: {log}");
    assert_eq!(std::fs::read_to_string(board.scratch.dir.path().join("hooked")).unwrap(), "called\n");
    board.ok(&["undo", "t-1"]);
    let undone = board.scratch.git(["log", "-1", format, "dirigent/undo-t-1"]);
    let (who, subject) = undone.rsplit_once('|').unwrap();
    assert_eq!(who, "Ada Lovelace <ada@example.org>|Ada Lovelace|Ada Lovelace <ada@example.org>");
    assert!(subject.starts_with("Revert "), "{undone}");
}

/// A key of the user's, and a git that signs with it.
fn with_key(board: &Board, passphrase: &str) {
    let home = board.scratch.dir.path();
    let key = home.join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", passphrase, "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let config = format!(
        "[user]\nname = Ada\nemail = ada@example.org\nsigningkey = {}\n[gpg]\nformat = ssh\n",
        key.with_extension("pub").display()
    );
    std::fs::write(home.join(".gitconfig"), config).unwrap();
}

#[test]
fn commits_are_signed_by_the_users_git() {
    let board = Board::new(HALF, KEEP_HISTORY);
    with_key(&board, "");
    board.workflow(&format!("{KEEP_HISTORY}workspace: {{commit: {{sign: true}}}}\n"));
    let before = format!("^{}", board.scratch.head("main"));
    board.ticket("t-1", "Half");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    board.ok(&["undo", "t-1"]);
    let heads = board.scratch.git(["rev-list", "dirigent/undo-t-1", &before]);
    assert_eq!(heads.lines().count(), 4);
    for head in heads.lines() {
        let commit = board.scratch.git(["cat-file", "commit", head]);
        assert!(commit.contains("gpgsig -----BEGIN SSH SIGNATURE-----"), "{commit}");
    }
}

#[test]
fn a_key_that_needs_a_person_is_told_at_the_start() {
    let board = Board::new(HALF, MERGE);
    with_key(&board, "secret words");
    board.workflow(&format!("{MERGE}workspace: {{commit: {{sign: true}}}}\n"));
    board.ticket("t-1", "Never begun");
    let said = board.fails(&["run", "--once"], 1);
    assert!(
        said.contains("git cannot sign without a person") && said.contains("workspace.commit.sign: false"),
        "{said}"
    );
    let doctor = board.run(&["doctor"]);
    let told = format!("{}{}", text(&doctor.stdout), text(&doctor.stderr));
    assert!(doctor.status.code() == Some(7) && told.contains("git cannot sign without a person"), "{told}");
    assert_eq!(merges(&board, "t-1"), 0);
    assert!(!board.ticket_text("t-1").contains("started"), "nothing was begun");
    // Whoever says no is not asked for a key.
    board.workflow(&format!("{MERGE}workspace: {{commit: {{sign: false}}}}\n"));
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
}
