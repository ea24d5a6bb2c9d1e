//! `dirigent agents` and `dirigent agents test` as a user types them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::clients::Client;
use super::live::installed;

fn dirigent(path: &str, args: &[&str]) -> (Output, tempfile::TempDir) {
    // Codex refuses to sandbox with a home below the temp directory.
    let home = tempfile::Builder::new().prefix("dirigent-self-test").tempdir_in("/var/tmp").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dirigent"))
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        // Where it would be anyway; said, so that it works inside of an agent too.
        .env("DIRIGENT_HOME", home.path().join(".dirigent"))
        .current_dir(home.path())
        .output()
        .unwrap();
    (output, home)
}

fn path_with(prefix: &Path) -> String {
    format!("{}:{}", prefix.join("bin").display(), std::env::var("PATH").unwrap())
}

fn passes(client: Client, name: &str) {
    let Some(prefix) = installed(client) else { return };
    let (output, home) = dirigent(&path_with(&prefix), &["agents", "test", name, "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{name}: {said}"));
    assert!(output.status.success() && verdict["passed"] == true, "{verdict:#}\n{said}");
    let left = std::fs::read_dir(home.path().join(".dirigent/self-test")).unwrap().count();
    assert_eq!(left, 0, "{name} left its folder behind");
}

#[test]
fn codex_passes() {
    passes(Client::Codex, "codex");
}

#[test]
fn claude_passes() {
    passes(Client::Claude, "claude");
}

#[test]
fn pi_passes() {
    passes(Client::Pi, "pi");
}

#[test]
fn opencode_passes() {
    passes(Client::Opencode, "opencode");
}

#[test]
fn the_one_shot_modes_pass() {
    passes(Client::Codex, "codex-exec");
    passes(Client::Claude, "claude-print");
    passes(Client::Opencode, "opencode-run");
    passes(Client::Pi, "pi-json");
}

/// A stand-in that is found in PATH, says its version, and is not an agent.
fn impostor() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let bin = tempfile::tempdir().unwrap();
    let file = bin.path().join("codex");
    std::fs::write(&file, "#!/bin/sh\ncase $1 in --version) echo codex-cli 9.9.9;; *) exit 0;; esac\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

#[test]
fn a_client_that_does_nothing_fails_with_a_sentence() {
    let bin = impostor();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let (output, _home) = dirigent(&path, &["agents", "test", "codex"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("codex did not pass its self-test (started:"), "{said}");
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(seen.contains("NOT  commit"), "{seen}");
}

#[test]
fn the_list_says_what_is_here_and_what_it_can_do() {
    let bin = impostor();
    let (output, _home) = dirigent(&format!("{}:/usr/bin:/bin", bin.path().display()), &["agents", "--json"]);
    assert!(output.status.success());
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let named = |name: &str| all.iter().find(|agent| agent["name"] == name).unwrap();
    assert_eq!(named("codex")["installed"]["version"], "9.9.9");
    assert_eq!(named("codex")["can"]["steer"], "yes");
    assert!(named("gemini")["installed"].is_null());
    assert_eq!(named("gemini")["runtime"], "acp");
}

#[test]
fn names_that_cannot_be_tested_get_a_sentence() {
    let fails = |name: &str, code: i32, part: &str| {
        let (output, _home) = dirigent("/usr/bin:/bin", &["agents", "test", name]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part) && said.contains("fix:"), "{said}");
    };
    fails("codx", 6, "there is no agent `codx`");
    fails("gemini", 1, "has no self-test");
    fails("pi", 1, "`pi` was not found in PATH");
}
