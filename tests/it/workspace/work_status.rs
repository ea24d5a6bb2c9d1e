use std::path::PathBuf;

use dirigent::workspace::WorkspaceError;

use super::prepare;
use crate::support::{Scratch, commit_in, git_in, try_git_in, write_in};

#[tokio::test]
async fn the_facts_about_a_branch() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    let before = workspaces.work_status(&worktree).await.unwrap();
    assert_eq!((before.commits_ahead, before.merge_base_clean, before.stray_head), (0, true, None));
    assert!(before.dirty.is_empty());

    write_in(&worktree.path, "one", "1\n");
    commit_in(&worktree.path, "one");
    write_in(&worktree.path, "two", "2\n");
    git_in(&worktree.path, ["add", "two"]);
    write_in(&worktree.path, "three", "3\n");
    write_in(&worktree.path, "noise.log", "ignored\n");
    std::fs::remove_file(worktree.path.join("README")).unwrap();
    let after = workspaces.work_status(&worktree).await.unwrap();
    assert_eq!(after.commits_ahead, 1);
    assert_eq!(after.dirty, ["README", "three", "two"].map(PathBuf::from));
    assert_eq!(after.head.unwrap().as_str(), scratch.head(&worktree.branch));
}

#[tokio::test]
async fn a_branch_that_cannot_be_merged_is_seen() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let mut worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "README", "from the branch\n");
    commit_in(&worktree.path, "branch");
    scratch.write("README", "from main\n");
    scratch.commit("main");
    worktree.base = workspaces.base_commit("main").await.unwrap();
    assert!(!workspaces.work_status(&worktree).await.unwrap().merge_base_clean);
}

#[tokio::test]
async fn uncommitted_work_is_committed_on_the_branch() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    assert_eq!(workspaces.commit_dirty(&worktree, "nothing").await.unwrap(), None);
    write_in(&worktree.path, "new/file.txt", "n\n");
    write_in(&worktree.path, "noise.log", "ignored\n");
    std::fs::remove_file(worktree.path.join("README")).unwrap();
    let commit = workspaces.commit_dirty(&worktree, "Leftover work\n").await.unwrap().unwrap();
    assert_eq!(commit.commit.as_str(), scratch.head(&worktree.branch));
    assert_eq!(
        scratch.git(["show", "--name-status", "--format=%an %s", &worktree.branch]),
        "Somebody Leftover work\n\nD\tREADME\nA\tnew/file.txt"
    );
    assert_eq!(git_in(&worktree.path, ["status", "--porcelain"]), "");
}

#[tokio::test]
async fn without_a_configured_user_dirigent_is_the_author() {
    let scratch = Scratch::new();
    scratch.git(["config", "--unset", "user.name"]);
    scratch.git(["config", "--unset", "user.email"]);
    let anonymous = !try_git_in(&scratch.repo(), ["config", "user.name"]).0;
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "x", "x\n");
    workspaces.commit_dirty(&worktree, "w").await.unwrap().unwrap();
    let author = scratch.git(["log", "-1", "--format=%an", &worktree.branch]);
    assert_eq!(author == "Dirigent", anonymous, "{author}");
}

#[tokio::test]
async fn commits_made_off_the_branch_are_brought_onto_it() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    git_in(&worktree.path, ["checkout", "-q", "--detach"]);
    write_in(&worktree.path, "x", "x\n");
    let detached = commit_in(&worktree.path, "off the branch");
    assert_eq!(workspaces.work_status(&worktree).await.unwrap().stray_head.unwrap().as_str(), detached);
    write_in(&worktree.path, "y", "y\n");
    workspaces.commit_dirty(&worktree, "rest").await.unwrap().unwrap();
    assert_eq!(scratch.git(["rev-parse", &format!("{}^", worktree.branch)]), detached);
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage, None);
}

#[tokio::test]
async fn a_tree_on_an_unrelated_branch_or_in_a_merge_is_not_committed() {
    let scratch = Scratch::new();
    let workspaces = scratch.workspaces();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "README", "ours\n");
    commit_in(&worktree.path, "ours");
    git_in(&worktree.path, ["checkout", "-q", "-b", "side", "main"]);
    write_in(&worktree.path, "z", "z\n");
    let error = workspaces.commit_dirty(&worktree, "w").await.unwrap_err();
    assert!(matches!(error, WorkspaceError::StrayHead { .. }), "{error}");

    write_in(&worktree.path, "README", "theirs\n");
    commit_in(&worktree.path, "theirs");
    assert!(!try_git_in(&worktree.path, ["merge", &worktree.branch]).0);
    let error = workspaces.commit_dirty(&worktree, "w").await.unwrap_err();
    assert!(error.to_string().contains("a merge is unfinished"), "{error}");
}
