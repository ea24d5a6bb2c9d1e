use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use dirigent::workspace::WorkspaceError;

use super::prepare;
use crate::support::{Scratch, git_in, write_in};

/// A program that leaves a mark when anybody runs it.
fn trap(scratch: &Scratch) -> (String, std::path::PathBuf) {
    let mark = scratch.dir.path().join("it-ran");
    let program = scratch.dir.path().join("trap.sh");
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), mark)
}

#[tokio::test]
async fn planted_monitors_hooks_and_filters_do_not_run() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let (program, mark) = trap(&scratch);
    let config = |key: &str, value: &str| git_in(&scratch.repo(), ["config", key, value]);
    config("core.fsmonitor", &program);
    config("filter.trap.clean", &program);
    config("filter.trap.process", &program);
    config("diff.external", &program);
    for hook in ["post-index-change", "pre-commit", "post-checkout", "reference-transaction", "pre-auto-gc"] {
        std::fs::copy(&program, scratch.repo().join(".git/hooks").join(hook)).unwrap();
    }
    write_in(&worktree.path, ".gitattributes", "* filter=trap diff=trap\n");
    write_in(&worktree.path, "x", "x\n");
    workspaces.work_status(&worktree).await.unwrap();
    workspaces.commit_dirty(&worktree, "work").await.unwrap().unwrap();
    write_in(&worktree.path, "y", "y\n");
    workspaces.salvage_list().await.unwrap();
    workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    workspaces.salvage_show(&worktree.run).await.unwrap();
    assert!(!mark.exists(), "something the agent planted was run");
}

#[tokio::test]
async fn a_worktree_replaced_by_a_link_is_left_alone() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let precious = scratch.dir.path().join("precious");
    write_in(&precious, "keep.txt", "k\n");
    std::fs::remove_dir_all(&worktree.path).unwrap();
    symlink(&precious, &worktree.path).unwrap();
    for error in [
        workspaces.remove(&worktree).await.unwrap_err(),
        workspaces.salvage(&worktree.path, &worktree.run).await.unwrap_err(),
        workspaces.commit_dirty(&worktree, "w").await.unwrap_err(),
    ] {
        assert!(matches!(error, WorkspaceError::Outside { .. }), "{error}");
    }
    assert!(precious.join("keep.txt").exists());
}

#[tokio::test]
async fn a_path_outside_of_the_root_is_left_alone() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let mut worktree = prepare(&workspaces, "01").await;
    for path in [scratch.repo(), workspaces.root().join("../repo"), workspaces.root().to_owned(), "/".into()] {
        worktree.path = path.clone();
        assert!(workspaces.remove(&worktree).await.is_err(), "{}", path.display());
    }
    assert!(scratch.repo().join("README").exists());
}

#[tokio::test]
async fn links_inside_the_tree_are_not_followed() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let precious = scratch.dir.path().join("precious");
    write_in(&precious, "keep.txt", "k\n");
    symlink(&precious, worktree.path.join("way-out")).unwrap();
    std::fs::remove_dir_all(worktree.path.join("src")).unwrap();
    symlink(&precious, worktree.path.join("src")).unwrap();
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    assert!(precious.join("keep.txt").exists());
    let tree = scratch.git(["ls-tree", "-r", "--name-only", &salvage.reference]);
    assert!(!tree.contains("keep.txt") && tree.contains("way-out"), "{tree}");
}

async fn work_survives(scratch: &Scratch, spoil: impl FnOnce(&Path, &Path)) {
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    spoil(&worktree.path, &scratch.repo().join(".git/worktrees/ENG-1-01"));
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    assert_eq!(scratch.git(["show", &format!("{}:x", salvage.reference)]), "x");
    assert_eq!(scratch.git(["show", &format!("{}:README", salvage.reference)]), "hello");
    assert!(!worktree.path.exists());
    assert_eq!(scratch.git(["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[tokio::test]
async fn a_replaced_git_file_does_not_mislead() {
    work_survives(&Scratch::new(), |tree, _| {
        std::fs::remove_file(tree.join(".git")).unwrap();
        git_in(tree, ["init", "-q"]);
    })
    .await;
    work_survives(&Scratch::new(), |tree, _| std::fs::write(tree.join(".git"), "gitdir: /nowhere\n").unwrap()).await;
    work_survives(&Scratch::new(), |tree, _| std::fs::remove_file(tree.join(".git")).unwrap()).await;
}

#[tokio::test]
async fn a_spoiled_administrative_entry_does_not_mislead() {
    let scratch = Scratch::new();
    let elsewhere = scratch.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    git_in(&elsewhere, ["init", "-q", "--bare"]);
    let (program, mark) = trap(&scratch);
    git_in(&elsewhere, ["config", "core.fsmonitor", &program]);
    work_survives(&scratch, |_, admin| {
        std::fs::write(admin.join("commondir"), format!("{}\n", elsewhere.display())).unwrap();
    })
    .await;
    assert!(!mark.exists());
    work_survives(&Scratch::new(), |_, admin| std::fs::remove_dir_all(admin).unwrap()).await;
    work_survives(&Scratch::new(), |_, admin| std::fs::write(admin.join("index"), "garbage").unwrap()).await;
    work_survives(&Scratch::new(), |_, admin| std::fs::write(admin.join("gitdir"), "/tmp/x/.git\n").unwrap()).await;
    work_survives(&Scratch::new(), |_, admin| {
        std::fs::remove_file(admin.join("index")).unwrap();
        nix::unistd::mkfifo(&admin.join("index"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    })
    .await;
}
