use std::os::unix::fs::PermissionsExt;

use dirigent::domain::ids::{CommitId, RunId, TicketKey};
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::{BaseSide, WorkspaceConfig, WorkspaceError, Workspaces};

use super::{prepare, try_prepare};
use crate::support::{Scratch, allowed, commit_in, git_in, try_git_in, write_in};

#[tokio::test]
async fn a_new_branch_starts_at_the_base() {
    let scratch = Scratch::new();
    let worktree = prepare(&scratch.workspaces(), "01RUN").await;
    assert_eq!(worktree.path, scratch.root().canonicalize().unwrap().join("ENG-1-01RUN"));
    assert_eq!(worktree.base.as_str(), scratch.head("main"));
    assert_eq!(worktree.head_before, worktree.base);
    assert_eq!(std::fs::read_to_string(worktree.path.join("src/a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(git_in(&worktree.path, ["symbolic-ref", "HEAD"]), "refs/heads/dirigent/ENG-1-x");
    assert_eq!(git_in(&worktree.path, ["status", "--porcelain"]), "");
    assert!(scratch.git(["worktree", "list"]).contains("ENG-1-01RUN"));
    assert_eq!(scratch.git(["fsck", "--no-dangling"]), "");
}

#[tokio::test]
async fn an_existing_branch_is_taken_where_it_is() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/ENG-1-x", "new.txt", "n\n");
    let worktree = prepare(&scratch.workspaces(), "01RUN").await;
    assert_eq!(worktree.head_before.as_str(), head);
    assert_eq!(worktree.base.as_str(), scratch.head("main"));
    assert!(worktree.path.join("new.txt").exists());
}

/// A run that brought nothing left a branch behind; the next one must not begin on old ground.
#[tokio::test]
async fn a_branch_without_a_commit_of_its_own_follows_the_base() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    scratch.git(["branch", "dirigent/ENG-1-x"]);
    write_in(&scratch.repo(), "later.txt", "later\n");
    commit_in(&scratch.repo(), "later");
    let worktree = prepare(&workspaces, "01RUN").await;
    assert_eq!(worktree.head_before.as_str(), scratch.head("main"));
    assert!(worktree.path.join("later.txt").exists());
}

#[tokio::test]
async fn many_at_once() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let workspaces = workspaces.clone();
        tasks.spawn(async move { try_prepare(&workspaces, &format!("R{n}"), &format!("dirigent/t{n}")).await });
    }
    let made: Vec<_> = tasks.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(made.len(), 24);
    for worktree in &made {
        assert_eq!(git_in(&worktree.path, ["status", "--porcelain"]), "");
    }
}

#[tokio::test]
async fn the_base_is_fetched_from_its_remote() {
    let scratch = Scratch::new();
    let clone = scratch.dir.path().join("clone");
    git_in(scratch.dir.path(), ["clone", "-q", "repo", "clone"]);
    scratch.write("later.txt", "x\n");
    let newer = scratch.commit("later");
    let theirs = scratch.branch_with("dirigent/ENG-1-x", "theirs.txt", "t\n");
    let workspaces = Workspaces::open(WorkspaceConfig::new(&clone, scratch.root(), "main")).unwrap();
    let worktree = prepare(&workspaces, "01RUN").await;
    assert_eq!(worktree.base.as_str(), newer);
    assert_eq!(worktree.head_before.as_str(), theirs, "the branch was taken up where the remote has it");
    assert_eq!(worktree.warning, None);
    assert!(!clone.join("later.txt").exists(), "the user's own tree is left alone");

    let mut local = WorkspaceConfig::new(&clone, scratch.root(), "main");
    local.base_side = BaseSide::Local;
    let other = try_prepare(&Workspaces::open(local).unwrap(), "02RUN", "dirigent/other").await.unwrap();
    assert_ne!(other.base.as_str(), newer);
}

#[tokio::test]
async fn a_remote_that_cannot_be_reached_is_a_warning_when_the_base_is_here() {
    let scratch = Scratch::new();
    scratch.git(["remote", "add", "origin", "/nowhere/at/all"]);
    let worktree = prepare(&scratch.workspaces(), "01RUN").await;
    assert!(worktree.warning.as_deref().unwrap().contains("could not be fetched from `origin`"), "{worktree:?}");
    let permit = allowed(EffectKind::StartRun);
    let error = scratch
        .workspaces()
        .prepare(&permit, &RunId::from("02"), &TicketKey::from("k"), "dirigent/k", "elsewhere")
        .await
        .unwrap_err();
    assert!(matches!(error, WorkspaceError::BaseNotFetched { .. }), "{error}");
    assert!(!error.is_permanent());
}

#[tokio::test]
async fn bad_input_gets_a_sentence() {
    let scratch = Scratch::new();
    let open = |config: WorkspaceConfig| Workspaces::open(config).unwrap_err();

    let error = open(WorkspaceConfig::new(scratch.repo(), scratch.root(), "nope"));
    assert!(error.to_string().starts_with("the base branch `nope` does not exist in "), "{error}");
    assert!(error.to_string().contains("there is `main`"), "{error}");
    assert!(error.is_permanent());

    let inside = scratch.repo().join("deep/ws");
    let error = open(WorkspaceConfig::new(scratch.repo(), &inside, "main"));
    assert!(matches!(error, WorkspaceError::RootInRepository { .. }), "{error}");
    assert!(!scratch.repo().join("deep").exists(), "nothing was made before the check");

    std::os::unix::fs::symlink(scratch.repo(), scratch.dir.path().join("link")).unwrap();
    let error = open(WorkspaceConfig::new(scratch.repo(), scratch.dir.path().join("link/ws"), "main"));
    assert!(matches!(error, WorkspaceError::RootInRepository { .. }), "{error}");

    let empty = scratch.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let error = open(WorkspaceConfig::new(&empty, scratch.root(), "main"));
    assert!(error.to_string().contains("is not a git repository"), "{error}");
    git_in(&empty, ["init", "-q", "-b", "main"]);
    let error = open(WorkspaceConfig::new(&empty, scratch.root(), "main"));
    assert!(error.to_string().contains("has no commit yet"), "{error}");

    let error = try_prepare(&scratch.workspaces(), "01", "a..b").await.unwrap_err();
    assert!(matches!(error, WorkspaceError::BadBranch { .. }), "{error}");
}

#[tokio::test]
async fn a_branch_checked_out_elsewhere_is_refused_and_named() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let error = try_prepare(&workspaces, "01", "main").await.unwrap_err();
    assert!(error.is_permanent());
    assert!(error.to_string().contains(&scratch.repo().display().to_string()), "{error}");

    let first = prepare(&workspaces, "02").await;
    let error = try_prepare(&workspaces, "03", &first.branch).await.unwrap_err();
    assert!(error.to_string().contains(&first.path.display().to_string()), "{error}");

    std::fs::remove_dir_all(&first.path).unwrap();
    let third = try_prepare(&workspaces, "03", &first.branch).await.unwrap();
    assert!(third.path.join("README").exists(), "an entry of ours whose tree is gone is pruned");
}

#[tokio::test]
async fn a_failed_checkout_leaves_nothing_behind() {
    let scratch = Scratch::new();
    scratch.write(".gitattributes", "*.bin filter=broken\n");
    scratch.write("a.bin", "x\n");
    scratch.commit("filtered");
    scratch.git(["config", "filter.broken.smudge", "false"]);
    scratch.git(["config", "filter.broken.required", "true"]);
    let workspaces = scratch.workspaces();
    let error = try_prepare(&workspaces, "01", "dirigent/x").await.unwrap_err();
    assert!(error.to_string().contains("a.bin"), "{error}");
    assert_eq!(workspaces.list().await.unwrap(), []);
    assert_eq!(workspaces.branch_head("dirigent/x").await.unwrap(), None);
    assert!(!workspaces.root().join("ENG-1-01").exists());
    assert!(!scratch.git(["worktree", "list"]).contains("ENG-1-01"));
}

#[tokio::test]
async fn hooks_sparse_checkout_and_rewritten_urls_of_the_users_do_not_matter() {
    let scratch = Scratch::new();
    let hooks = scratch.repo().join(".git/hooks");
    for hook in ["post-checkout", "pre-commit", "commit-msg", "reference-transaction", "post-index-change"] {
        write_in(&hooks, hook, "#!/bin/sh\nexit 1\n");
        std::fs::set_permissions(hooks.join(hook), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    try_git_in(&scratch.repo(), ["-c", "core.hooksPath=/dev/null", "sparse-checkout", "set", "src"]);
    try_git_in(&scratch.repo(), ["-c", "core.hooksPath=/dev/null", "config", "url.none:.insteadOf", "file:"]);
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    assert!(worktree.path.join("README").exists() && worktree.path.join("src/a.txt").exists());
    write_in(&worktree.path, "src/b.txt", "b\n");
    let committed = workspaces.commit_dirty(&worktree, "work").await.unwrap().unwrap();
    assert_eq!(committed.files, 1);
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage, None);
}

#[tokio::test]
async fn bare_shallow_and_linked_repositories_work() {
    let scratch = Scratch::new();
    scratch.write("two", "2\n");
    scratch.commit("second");
    let url = format!("file://{}", scratch.repo().display());
    git_in(scratch.dir.path(), ["clone", "-q", "--bare", &url, "bare.git"]);
    git_in(scratch.dir.path(), ["clone", "-q", "--depth", "1", &url, "shallow"]);
    scratch.git(["worktree", "add", "-q", "--detach", "../linked"]);
    for (n, name) in ["bare.git", "shallow", "linked"].iter().enumerate() {
        let root = scratch.dir.path().join(format!("root-{n}"));
        let workspaces = Workspaces::open(WorkspaceConfig::new(scratch.dir.path().join(name), root, "main")).unwrap();
        let worktree = try_prepare(&workspaces, "01", &format!("dirigent/{n}")).await.unwrap();
        write_in(&worktree.path, "new", "n\n");
        let salvage = workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
        assert_eq!(salvage.files, 1, "{name}");
        workspaces.remove(&worktree).await.unwrap();
    }
}

#[tokio::test]
async fn a_branch_is_deleted_only_where_it_was_expected_and_free() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let permit = allowed(EffectKind::CleanUp);
    let worktree = prepare(&workspaces, "01").await;
    let head = CommitId::new(commit_in_tree(&worktree.path));
    let error = workspaces.delete_branch(&permit, &worktree.branch, &worktree.head_before).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::BranchMoved { .. }), "{error}");
    let error = workspaces.delete_branch(&permit, &worktree.branch, &head).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::BranchInUse { .. }), "{error}");
    workspaces.remove(&worktree).await.unwrap();
    workspaces.delete_branch(&permit, &worktree.branch, &head).await.unwrap();
    assert_eq!(workspaces.branch_head(&worktree.branch).await.unwrap(), None);
    workspaces.delete_branch(&permit, &worktree.branch, &head).await.unwrap();
}

fn commit_in_tree(tree: &std::path::Path) -> String {
    write_in(tree, "w", "w\n");
    commit_in(tree, "work")
}

#[tokio::test]
async fn a_lock_that_a_killed_process_left_does_not_hold_up_the_branch_for_ever() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let leave_lock = |name: &str| write_in(&scratch.repo().join(".git"), &format!("{name}.lock"), "");
    leave_lock("refs/heads/dirigent/ENG-1-x");
    leave_lock("refs/heads/main");
    let worktree = prepare(&workspaces, "01RUN").await;
    write_in(&worktree.path, "new.txt", "n\n");
    commit_in(&worktree.path, "work");

    write_in(&worktree.path, "unsaved.txt", "u\n");
    leave_lock("refs/dirigent/salvage/01RUN");
    assert!(workspaces.remove(&worktree).await.unwrap().salvage.is_some());

    leave_lock("refs/heads/dirigent/ENG-1-x");
    let head = CommitId::new(scratch.head("dirigent/ENG-1-x"));
    workspaces.delete_branch(&allowed(EffectKind::CleanUp), "dirigent/ENG-1-x", &head).await.unwrap();
    assert!(!try_git_in(&scratch.repo(), ["rev-parse", "--verify", "-q", "dirigent/ENG-1-x"]).0);
    assert!(scratch.repo().join(".git/refs/heads/main.lock").exists(), "a lock on the user's branch is not ours");
}
