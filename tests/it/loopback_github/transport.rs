//! Real git against it.

use std::path::Path;
use std::process::Command;

use base64::Engine;

use crate::github::{Hub, Permission};
use crate::support::{commit_in, write_in};

use super::client::robot;

/// Git with a token in a header and nothing of the user's own configuration.
fn git(folder: &Path, token: Option<&str>, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "true").env("LC_ALL", "C");
    if let Some(token) = token {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"));
        command.args(["-c", &format!("http.extraHeader=Authorization: Basic {pair}")]);
    }
    command.args(["-c", "user.name=Robot", "-c", "user.email=robot@example.invalid"]);
    let output = command.args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn cloned(hub: &Hub, folder: &Path) {
    let (done, said) = git(folder, Some("robot-token"), &["clone", "-q", &hub.clone_url(), "work"]);
    assert!(done, "{said}");
    let work = folder.join("work");
    for (key, value) in [("user.name", "Robot"), ("user.email", "robot@example.invalid")] {
        assert!(git(&work, None, &["config", key, value]).0);
    }
}

#[test]
fn it_can_be_cloned_and_pushed_to_with_a_token() {
    let hub = Hub::start();
    let folder = tempfile::tempdir().unwrap();
    cloned(&hub, folder.path());
    let work = folder.path().join("work");
    assert!(work.join("README.md").exists());

    assert!(git(&work, None, &["checkout", "-q", "-b", "feature/one"]).0);
    write_in(&work, "new.txt", "new\n");
    let head = commit_in(&work, "A new file");
    let (done, said) = git(&work, Some("robot-token"), &["push", "-q", "origin", "feature/one"]);
    assert!(done, "{said}");
    assert_eq!(hub.head("feature/one").as_deref(), Some(head.as_str()));
    let reference = robot(&hub, "GET", "/git/ref/heads/feature/one", None).json();
    assert_eq!(reference["object"]["sha"], head.as_str());
    assert_eq!(hub.count("transport/push"), 1);
}

#[test]
fn a_push_moves_the_head_of_its_pull_request() {
    let hub = Hub::start();
    hub.push("robot", "feature", &[("a.txt", Some("a\n"))], "A");
    let number = hub.open_pull("robot", "feature", "main", "A", "");
    let folder = tempfile::tempdir().unwrap();
    cloned(&hub, folder.path());
    let work = folder.path().join("work");
    assert!(git(&work, None, &["checkout", "-q", "feature"]).0);
    write_in(&work, "b.txt", "b\n");
    let head = commit_in(&work, "B");
    let (done, said) = git(&work, Some("robot-token"), &["push", "-q", "origin", "feature"]);
    assert!(done, "{said}");
    let pull = robot(&hub, "GET", &format!("/pulls/{number}"), None).json();
    assert_eq!(pull["head"]["sha"], head.as_str());
    assert_eq!(pull["commits"], 2);
}

#[test]
fn without_the_right_nothing_is_read_or_written() {
    let hub = Hub::start();
    hub.grant("reader", Permission::Read);
    hub.add_token("reader", "reader-token");
    let folder = tempfile::tempdir().unwrap();
    let (done, said) = git(folder.path(), None, &["clone", "-q", &hub.clone_url(), "anonymous"]);
    assert!(!done && said.contains("Authentication failed"), "{said}");
    let (done, _) = git(folder.path(), Some("wrong"), &["clone", "-q", &hub.clone_url(), "wrong"]);
    assert!(!done);

    cloned(&hub, folder.path());
    let work = folder.path().join("work");
    write_in(&work, "x.txt", "x\n");
    let head = commit_in(&work, "X");
    let (done, said) = git(&work, Some("reader-token"), &["push", "-q", "origin", "HEAD:refs/heads/x"]);
    assert!(!done && said.contains("403"), "{said}");
    assert_eq!(hub.head("x"), None);

    hub.refuse_push(
        "refs/heads/x",
        "error: GH013: Repository rule violations found for refs/heads/x.\n- Cannot create ref",
    );
    let (done, said) = git(&work, Some("robot-token"), &["push", "-q", "origin", "HEAD:refs/heads/x"]);
    assert!(!done && said.contains("GH013") && said.contains("Cannot create ref"), "{said}");
    hub.allow_push();
    assert!(git(&work, Some("robot-token"), &["push", "-q", "origin", "HEAD:refs/heads/x"]).0);
    assert_eq!(hub.head("x"), Some(head));

    hub.revoke("robot-token");
    let (done, _) = git(&work, Some("robot-token"), &["fetch", "-q"]);
    assert!(!done);
}
