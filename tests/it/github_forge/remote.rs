//! Git over HTTP with a credential: exact heads, leases, refusals with their rule, and nothing of the repository's own configuration.

use std::path::Path;

use dirigent::domain::ids::{CommitId, RunId, TicketKey};
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::remote::{Deletion, Lease, Remote, RemoteError};
use dirigent::workspace::{WorkspaceConfig, Workspaces};

use super::{client_of, clone_of, remote_of};
use crate::github::{Hub, Instead, When};
use crate::support::{allowed, commit_in, git_in, write_in};

struct Scene {
    hub: Hub,
    folder: tempfile::TempDir,
    remote: Remote,
}

impl Scene {
    fn new() -> Self {
        let hub = Hub::start();
        let folder = tempfile::tempdir().unwrap();
        let clone = clone_of(&hub, folder.path());
        let remote = remote_of(&hub, &clone, &client_of(&hub, "robot-token"));
        Self { hub, folder, remote }
    }

    fn clone(&self) -> std::path::PathBuf {
        self.folder.path().join("clone")
    }

    fn commit(&self, file: &str, text: &str) -> CommitId {
        write_in(&self.clone(), file, text);
        CommitId::new(commit_in(&self.clone(), &format!("change {file}")))
    }
}

#[tokio::test]
async fn a_branch_is_pushed_at_exactly_its_head_and_only_over_what_was_seen() {
    let scene = Scene::new();
    let first = scene.commit("a", "a\n");
    let later = scene.commit("b", "b\n");
    scene.remote.push("dirigent/x", &first, &Lease::Nothing).await.unwrap();
    assert_eq!(scene.hub.head("dirigent/x").as_deref(), Some(first.as_str()), "not the tip of the tree");
    assert_eq!(scene.remote.head("dirigent/x").await.unwrap(), Some(first.clone()));
    assert_eq!(scene.remote.push("dirigent/x", &later, &Lease::Nothing).await, Err(RemoteError::Moved));
    let theirs = CommitId::new(scene.hub.push("ada", "dirigent/x", &[("c", Some("c\n"))], "by hand"));
    assert_eq!(scene.remote.push("dirigent/x", &later, &Lease::At(first.clone())).await, Err(RemoteError::Moved));
    assert_eq!(scene.hub.head("dirigent/x").as_deref(), Some(theirs.as_str()), "a person's commit is never lost");
    let heads = scene.remote.fetch(&["dirigent/x", "main", "no/such"]).await.unwrap();
    assert_eq!(heads.len(), 2);
    git_in(&scene.clone(), ["cat-file", "-e", theirs.as_str()]);
    assert_eq!(git_in(&scene.clone(), ["rev-parse", "origin/dirigent/x"]), theirs.as_str());
}

#[tokio::test]
async fn a_branch_is_deleted_only_at_the_head_that_was_merged() {
    let scene = Scene::new();
    let first = scene.commit("a", "a\n");
    scene.remote.push("dirigent/x", &first, &Lease::Nothing).await.unwrap();
    let theirs = CommitId::new(scene.hub.push("ada", "dirigent/x", &[("c", Some("c\n"))], "by hand"));
    let kept = scene.remote.delete("dirigent/x", &first).await.unwrap();
    assert_eq!(kept, Deletion::Elsewhere(theirs.clone()));
    assert!(scene.hub.head("dirigent/x").is_some());
    for _ in 0..2 {
        assert_eq!(scene.remote.delete("dirigent/x", &theirs).await.unwrap(), Deletion::Gone);
        assert_eq!(scene.hub.head("dirigent/x"), None);
    }
}

#[tokio::test]
async fn a_refused_push_names_its_rule() {
    let scene = Scene::new();
    let first = scene.commit("a", "a\n");
    let rules = [
        (
            "error: GH013: Repository rule violations found for refs/heads/dirigent/x.\n- Push cannot contain secrets\n  Amazon AWS Access Key ID",
            "push protection",
            "revoked",
        ),
        (
            "error: GH013: Repository rule violations found for refs/heads/dirigent/x.\n- Commits must have verified signatures.",
            "verified signatures",
            "ruleset",
        ),
        ("error: GH006: Protected branch update failed for refs/heads/dirigent/x.", "protected", "branch_prefix"),
        (
            "refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope",
            "ci.yml",
            "`workflow`",
        ),
    ];
    for (words, rule_says, fix_says) in rules {
        scene.hub.refuse_push("refs/heads/dirigent/*", words);
        match scene.remote.push("dirigent/x", &first, &Lease::Nothing).await {
            Err(RemoteError::Refused { rule, fix }) => {
                assert!(rule.contains(rule_says) && fix.contains(fix_says), "{rule}\n{fix}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
    scene.hub.allow_push();
    scene.remote.push("dirigent/x", &first, &Lease::Nothing).await.unwrap();
}

#[tokio::test]
async fn access_permission_and_trouble_on_the_way_are_told_apart() {
    let scene = Scene::new();
    let first = scene.commit("a", "a\n");
    let push = async || scene.remote.push("dirigent/x", &first, &Lease::Nothing).await;
    scene.hub.fault("transport/push-discover", When::Before, Instead::Status(502));
    assert!(matches!(push().await, Err(RemoteError::Passing(_))));
    scene.hub.revoke("robot-token");
    assert!(matches!(push().await, Err(RemoteError::Access(_))));
    scene.hub.restore("robot-token");
    scene.hub.grant("robot", crate::github::Permission::Read);
    assert!(matches!(push().await, Err(RemoteError::Refused { .. })));
    scene.hub.grant("robot", crate::github::Permission::Write);
    push().await.unwrap();
}

/// A program that leaves a trace, and what it was given.
fn trap(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let trace = folder.join("sprung");
    let script = format!("#!/bin/sh\necho {name} >> {0}\nenv >> {0}\nexit 1\n", trace.display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn nothing_that_a_worker_planted_in_the_repository_is_honoured() {
    let scene = Scene::new();
    let head = scene.commit("a", "a\n");
    let evil = Hub::start();
    let clone = scene.clone();
    let folder = scene.folder.path();
    let set = |key: &str, value: &str| git_in(&clone, ["config", "--local", key, value]);
    for hook in ["pre-push", "reference-transaction", "post-update", "pre-auto-gc"] {
        let hooks = clone.join("planted-hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        trap(&hooks, hook);
        trap(&clone.join(".git/hooks"), hook);
    }
    set("core.hooksPath", &clone.join("planted-hooks").display().to_string());
    set(&format!("url.{}/.insteadOf", evil.api()), &format!("{}/", scene.hub.api()));
    set(&format!("url.{}/.pushInsteadOf", evil.api()), &format!("{}/", scene.hub.api()));
    set("credential.helper", &format!("!{}", trap(folder, "credential-helper")));
    set("core.askPass", &trap(folder, "askpass"));
    set("core.fsmonitor", &trap(folder, "fsmonitor"));
    set("core.sshCommand", &trap(folder, "ssh"));
    set("core.gitProxy", &trap(folder, "proxy"));
    set("core.alternateRefsCommand", &trap(folder, "alternate-refs"));
    set("core.pager", &trap(folder, "pager"));
    set("core.editor", &trap(folder, "editor"));
    set("gpg.program", &trap(folder, "gpg"));
    set("gpg.ssh.program", &trap(folder, "gpg-ssh"));
    set("push.gpgSign", "true");
    set("commit.gpgSign", "true");
    set("filter.evil.clean", &trap(folder, "clean"));
    set("filter.evil.smudge", &trap(folder, "smudge"));
    set("filter.evil.process", &trap(folder, "process"));
    set("diff.external", &trap(folder, "diff"));
    set("remote.origin.uploadpack", &trap(folder, "uploadpack"));
    set("remote.origin.receivepack", &trap(folder, "receivepack"));
    set("http.extraHeader", "X-Planted: yes");
    set("http.sslVerify", "false");
    set("uploadpack.packObjectsHook", &trap(folder, "pack-objects"));
    set("include.path", &folder.join("more-config").display().to_string());
    std::fs::write(folder.join("more-config"), format!("[core]\n\tsshCommand = {}\n", trap(folder, "included")))
        .unwrap();
    std::fs::create_dir_all(clone.join(".git/info")).unwrap();
    std::fs::write(clone.join(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();

    // The same traps do spring for a git that reads the repository's configuration: they are real ones.
    let _ = std::process::Command::new("git")
        .args(["push", "origin", "main"])
        .current_dir(&clone)
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    assert!(folder.join("sprung").exists(), "the traps do not work");
    assert!(evil.count("transport/*") > 0, "the address was not redirected");
    std::fs::remove_file(folder.join("sprung")).unwrap();
    let before = evil.requests().len();
    // These would end every push before it began.
    set("remote.origin.vcs", "evil");
    set("remote.origin.proxy", "http://127.0.0.1:9");
    set("http.proxy", "http://127.0.0.1:9");

    scene.remote.push("dirigent/x", &head, &Lease::Nothing).await.unwrap();
    scene.hub.push("ada", "dirigent/x", &[("c", Some("c\n"))], "by hand");
    let heads = scene.remote.fetch(&["dirigent/x"]).await.unwrap();
    scene.remote.delete("dirigent/x", &heads[0].1).await.unwrap();
    let sprung = std::fs::read_to_string(folder.join("sprung")).unwrap_or_default();
    assert!(sprung.is_empty(), "planted programs ran:\n{sprung}");
    assert_eq!(evil.requests().len(), before, "another host was asked");
    assert_eq!(scene.hub.head("dirigent/x"), None, "and all of it worked");
}

/// Somebody deleted the branch on GitHub: what was fetched of it before is nothing to go on with.
#[tokio::test]
async fn a_branch_that_was_deleted_there_begins_anew() {
    let scene = Scene::new();
    let root = scene.folder.path().join("trees");
    let config = WorkspaceConfig::new(scene.clone(), root, "main");
    let workspaces = Workspaces::open(WorkspaceConfig { remote: Some(scene.remote.clone()), ..config }).unwrap();
    let permit = allowed(EffectKind::StartRun);
    let prepare = async |run: &str| {
        workspaces.prepare(&permit, &RunId::from(run), &TicketKey::from("t-1"), "dirigent/x", "main").await.unwrap()
    };
    let theirs = CommitId::new(scene.hub.push("ada", "dirigent/x", &[("c", Some("c\n"))], "by hand"));
    let first = prepare("01").await;
    assert_eq!(first.head_before, theirs);
    workspaces.remove(&first).await.unwrap();
    workspaces.delete_branch(&permit, "dirigent/x", &theirs).await.unwrap();
    scene.hub.delete_branch("ada", "dirigent/x");
    let second = prepare("02").await;
    assert_eq!(second.head_before, second.base);
}
