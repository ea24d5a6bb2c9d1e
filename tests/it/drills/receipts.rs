//! Receipts: what was checked, kept with the run and the merged commit, and held against tampering.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use super::{Board, GOOD, MERGE};
use crate::support::{git_in, try_git_in, write_in};

const GATES: &str = "gates: {task: [{name: looks, run: 'test -e t-1.txt'}]}\n";

/// A board with one ticket that was merged, and the commit of it. `key`: what git signs with.
fn merged(settings: &str) -> (Board, String) {
    let board = Board::new(GOOD, &format!("{MERGE}{GATES}"));
    write_in(board.scratch.dir.path(), ".gitconfig", settings);
    board.scratch.git(["notes", "--ref=dirigent", "add", "-m", "a person's note", "HEAD"]);
    board.ticket("t-1", "Work \"quoted\" {here}");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done");
    let commit = board.status(&["t-1"])["merged_commit"].as_str().unwrap().to_owned();
    (board, commit)
}

/// A key pair without a passphrase, unless one is given.
fn key(board: &std::path::Path, name: &str, passphrase: &str) -> PathBuf {
    let file = board.join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", passphrase, "-C", "somebody@example.invalid", "-f"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(made.success());
    file
}

fn note(board: &Board, commit: &str) -> String {
    board.scratch.git(["notes", "--ref=dirigent", "show", commit])
}

fn put(board: &Board, commit: &str, text: &str) {
    write_in(board.scratch.dir.path(), "note", text);
    let file = board.scratch.dir.path().join("note").display().to_string();
    board.scratch.git(["notes", "--ref=dirigent", "add", "-f", "-F", &file, commit]);
}

fn statement(board: &Board, commit: &str) -> Json {
    let shown: Json = serde_json::from_str(&board.ok(&["receipt", "show", commit, "--json"])).unwrap();
    shown[0]["statement"].clone()
}

#[test]
fn a_merge_leaves_a_statement_of_what_was_checked_on_which_head_by_which_command() {
    let (board, commit) = merged("");
    let said = statement(&board, &commit);
    assert_eq!(said["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(said["subject"][0]["digest"]["gitCommit"], commit.as_str());
    let checked = &said["predicate"];
    assert_eq!((&checked["result"], &checked["ticket"]["key"]), (&"verified".into(), &"t-1".into()), "{said}");
    let gate = &checked["gates"][0];
    assert_eq!((&gate["name"], &gate["command"]), (&"looks".into(), &"test -e t-1.txt".into()), "{said}");
    assert_eq!((&gate["passed"], &gate["exitCode"]), (&true.into(), &0.into()), "{said}");
    assert_eq!(checked["head"], checked["pullRequest"]["head"], "the head that was merged was checked: {said}");
    assert_eq!(checked["pullRequest"]["mergedByUs"], true);

    // The same bytes with the run, and nothing of anybody else's is gone.
    let run = checked["run"].as_str().unwrap();
    let home = board.home().join("repos");
    let state = std::fs::read_dir(home).unwrap().next().unwrap().unwrap().path();
    let kept = std::fs::read_to_string(state.join("runs").join(run).join("receipt.json")).unwrap();
    assert_eq!(kept.trim_end(), note(&board, &commit));
    let all = board.scratch.git(["notes", "--ref=dirigent", "list"]);
    assert_eq!(all.lines().count(), 2, "{all}");
    let words = board.ok(&["receipt", "show", &commit]);
    assert!(words.contains("looks: passed") && words.contains("merged by Dirigent"), "{words}");
    let verdict = board.ok(&["receipt", "verify", &commit]);
    assert!(verdict.contains("it is not signed") && verdict.contains("what the runner kept"), "{verdict}");
    assert!(board.ok(&["explain", "t-1"]).contains("is kept, unsigned"));
    assert!(board.ok(&["doctor"]).contains("not signed: git has no user.signingkey"));
}

#[test]
fn an_edited_removed_or_foreign_receipt_is_told_with_an_exit_code_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let own = key(scratch.path(), "own", "");
    let settings = format!("[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = {}\n", own.display());
    let (board, commit) = merged(&settings);
    let configure = |more: &str| write_in(board.scratch.dir.path(), ".gitconfig", &format!("{settings}{more}"));
    let original = note(&board, &commit);
    assert!(original.contains("-----BEGIN SSH SIGNATURE-----"), "{original}");
    let verify = ["receipt", "verify", commit.as_str()];
    assert!(board.ok(&verify).contains("signed by your own key SHA256:"));

    // Edited: the signature and the runner's own copy both tell; either is enough.
    put(&board, &commit, &original.replace("\"verified\"", "\"unverified\""));
    let told = board.fails(&verify, 8);
    assert!(told.contains("edited after it was signed") && told.contains("not what the runner kept"), "{told}");
    put(&board, &commit, original.split("-----BEGIN").next().unwrap());
    assert!(board.fails(&verify, 8).contains("the signature was taken off"));
    put(&board, &commit, "nothing of ours\n");
    assert!(board.fails(&verify, 8).contains("holds no receipt that can be read"));
    // Moved to another commit.
    let first = board.scratch.git(["rev-list", "--max-parents=0", "main"]);
    put(&board, &first, &original);
    assert!(board.fails(&["receipt", "verify", &first], 8).contains("about another commit"));

    // Removed: it is said, and the printed command brings it back.
    board.scratch.git(["notes", "--ref=dirigent", "remove", &commit]);
    let gone = board.fails(&verify, 6);
    let again = gone.lines().find_map(|line| line.trim().strip_prefix("put it back: ")).unwrap();
    let done = Command::new("sh").args(["-c", again]).current_dir(board.repo()).status().unwrap();
    assert!(done.success(), "{again}");
    assert_eq!(note(&board, &commit), original);
    assert!(board.ok(&verify).contains("signed by your own key"));
    assert!(board.fails(&["receipt", "verify", "no-such-commit"], 6).contains("is not a commit"));

    // Signers that are named count, and nobody else.
    let public = std::fs::read_to_string(own.with_extension("pub")).unwrap();
    let stranger = key(scratch.path(), "stranger", "");
    let foreign = std::fs::read_to_string(stranger.with_extension("pub")).unwrap();
    let signers = scratch.path().join("signers");
    configure(&format!("[gpg \"ssh\"]\n\tallowedSignersFile = {}\n", signers.display()));
    std::fs::write(&signers, format!("somebody@example.invalid {public}")).unwrap();
    assert!(board.ok(&verify).contains("signed by somebody@example.invalid"));
    std::fs::write(&signers, format!("other@example.invalid {foreign}")).unwrap();
    assert!(board.fails(&verify, 9).contains("key that is not known here"));
    std::fs::remove_file(&signers).unwrap();
    assert!(board.fails(&verify, 9).contains("is not there"));

    // The key is gone.
    configure("");
    std::fs::remove_file(&own).unwrap();
    std::fs::remove_file(own.with_extension("pub")).unwrap();
    assert!(board.fails(&verify, 9).contains("is gone (user.signingkey)"));
}

/// Keyrings of their own, and a program that uses one of them. Their agents end with the test.
struct Keyring(tempfile::TempDir);

impl Keyring {
    /// `None` where there is no OpenPGP program.
    fn with_a_key() -> Option<Self> {
        Command::new("gpg").arg("--version").output().ok()?;
        let ring = Self(tempfile::tempdir().unwrap());
        for name in ["one", "empty"] {
            std::fs::create_dir(ring.0.path().join(name)).unwrap();
            std::fs::set_permissions(ring.0.path().join(name), std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        ring.turn_to("one");
        let who = "Somebody <somebody@example.invalid>";
        let made = Command::new(ring.program())
            .args(["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""])
            .args(["--quick-gen-key", who, "ed25519", "sign", "never"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(ring)
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("gpg")
    }

    fn turn_to(&self, name: &str) {
        let script = format!("#!/bin/sh\nexec gpg --homedir '{}' \"$@\"\n", self.0.path().join(name).display());
        write_in(self.0.path(), "gpg", &script);
        std::fs::set_permissions(self.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for name in ["one", "empty"] {
            let home = self.0.path().join(name);
            let _ = Command::new("gpgconf").arg("--homedir").arg(home).args(["--kill", "all"]).output();
        }
    }
}

#[test]
fn an_openpgp_signature_is_held_against_the_keyring() {
    let Some(ring) = Keyring::with_a_key() else {
        eprintln!("skipped: there is no gpg");
        return;
    };
    let program = ring.program().display().to_string();
    let (board, commit) =
        merged(&format!("[gpg]\n\tprogram = {program}\n[user]\n\tsigningkey = somebody@example.invalid\n"));
    let original = note(&board, &commit);
    assert!(original.contains("-----BEGIN PGP SIGNATURE-----"), "{original}");
    let verify = ["receipt", "verify", commit.as_str()];
    let told = board.ok(&verify);
    assert!(told.contains("signed by") && told.contains("somebody@example.invalid"), "{told}");
    put(&board, &commit, &original.replace("\"verified\"", "\"unverified\""));
    assert!(board.fails(&verify, 8).contains("edited after it was signed"));
    put(&board, &commit, &original);
    ring.turn_to("empty");
    assert!(board.fails(&verify, 9).contains("it is not on your keyring"));
}

#[test]
fn a_key_that_needs_a_person_is_told_at_the_start_and_holds_nothing_up() {
    let scratch = tempfile::tempdir().unwrap();
    let locked = key(scratch.path(), "locked", "a passphrase");
    let settings = format!("[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = {}\n", locked.display());
    let (board, commit) = merged(&settings);
    assert!(!note(&board, &commit).contains("BEGIN"), "{}", note(&board, &commit));
    assert!(board.ok(&["explain", "t-1"]).contains("but not signed: `ssh-keygen` cannot sign without a person"));
    assert!(board.ok(&["doctor"]).contains("they will not be signed"));
    assert!(board.ok(&["receipt", "verify", &commit]).contains("it is not signed"));
    let (_, log) = try_git_in(&board.repo(), ["log", "--format=%s", "main"]);
    assert!(log.contains("t-1:"), "{log}");
    git_in(&board.repo(), ["fsck", "--no-dangling"]);
}
