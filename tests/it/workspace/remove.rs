use std::os::unix::fs::PermissionsExt;

use super::{prepare, try_prepare};
use crate::support::{Scratch, commit_in, write_in};

#[tokio::test]
async fn a_clean_tree_goes_without_a_trace() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    let head = commit_in(&worktree.path, "work");
    write_in(&worktree.path, "target/huge.o", "ignored\n");
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage, None);
    assert!(!worktree.path.exists());
    assert_eq!(scratch.git(["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(scratch.head(&worktree.branch), head);
    assert_eq!(workspaces.list().await.unwrap(), []);
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage, None, "twice is fine");
}

#[tokio::test]
async fn new_dirt_is_salvaged_before_the_tree_goes() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    workspaces.salvage(&worktree.path, &worktree.run).await.unwrap().unwrap();
    write_in(&worktree.path, "y", "y\n");
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    assert_eq!(salvage.files, 2);
    assert_eq!(scratch.git(["show", &format!("{}:y", salvage.reference)]), "y");
}

#[tokio::test]
async fn read_only_directories_go_too() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "target/cache/file", "x\n");
    let locked = worktree.path.join("target/cache");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    workspaces.remove(&worktree).await.unwrap();
    assert!(!worktree.path.exists());
}

#[tokio::test]
async fn nothing_goes_when_git_reports_an_error() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    let git = scratch.repo().join(".git");
    std::fs::rename(git.join("objects"), git.join("objects-away")).unwrap();
    assert!(workspaces.remove(&worktree).await.is_err());
    assert!(worktree.path.join("x").exists());
    std::fs::rename(git.join("objects-away"), git.join("objects")).unwrap();
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage.unwrap().files, 1);
}

#[tokio::test]
async fn a_kept_tree_gives_its_branch_free() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    workspaces.keep(&worktree).await.unwrap();
    let next = try_prepare(&workspaces, "02", &worktree.branch).await.unwrap();
    assert!(worktree.path.join("x").exists() && next.path.exists());
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage.unwrap().files, 1);
}
