use dirigent::workspace::Workspaces;

use super::prepare;
use crate::support::{Scratch, git_in, write_in};

/// A repository whose `*.enc` files are stored scrambled.
fn scrambled() -> (Scratch, Workspaces) {
    let scratch = Scratch::new();
    scratch.git(["config", "filter.scramble.clean", "tr a-z n-za-m"]);
    scratch.git(["config", "filter.scramble.smudge", "tr a-z n-za-m"]);
    scratch.git(["config", "filter.scramble.required", "true"]);
    scratch.write(".gitattributes", "*.enc filter=scramble\n");
    for n in 0..20 {
        scratch.write(&format!("secret-{n}.enc"), "abc\n");
    }
    scratch.commit("scrambled");
    assert_eq!(scratch.git(["show", "main:secret-1.enc"]), "nop");
    let workspaces = scratch.workspaces();
    (scratch, workspaces)
}

#[tokio::test]
async fn filtered_files_do_not_look_changed() {
    let (_scratch, workspaces) = scrambled();
    let worktree = prepare(&workspaces, "01").await;
    assert_eq!(std::fs::read_to_string(worktree.path.join("secret-1.enc")).unwrap(), "abc\n");
    for n in 0..20 {
        write_in(&worktree.path, &format!("secret-{n}.enc"), "abc\n");
    }
    assert!(workspaces.work_status(&worktree).await.unwrap().dirty.is_empty());
    assert_eq!(workspaces.commit_dirty(&worktree, "w").await.unwrap(), None);
    assert_eq!(workspaces.remove(&worktree).await.unwrap().salvage, None);
}

#[tokio::test]
async fn changed_filtered_files_are_stored_as_the_filter_makes_them() {
    let (scratch, workspaces) = scrambled();
    let worktree = prepare(&workspaces, "01").await;
    write_in(&worktree.path, "secret-1.enc", "xyz\n");
    write_in(&worktree.path, "new.enc", "abc\n");
    let committed = workspaces.commit_dirty(&worktree, "w").await.unwrap().unwrap();
    assert_eq!(committed.files, 2);
    assert_eq!(scratch.git(["show", &format!("{}:secret-1.enc", worktree.branch)]), "klm");
    assert_eq!(git_in(&worktree.path, ["status", "--porcelain"]), "");
    write_in(&worktree.path, "new.enc", "aaa\n");
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    assert_eq!(scratch.git(["show", &format!("{}:new.enc", salvage.reference)]), "nnn");
}

#[tokio::test]
async fn a_filter_that_was_replaced_later_does_not_run() {
    let (scratch, workspaces) = scrambled();
    let worktree = prepare(&workspaces, "01").await;
    let mark = scratch.dir.path().join("it-ran");
    scratch.git(["config", "filter.scramble.clean", &format!("touch '{}'; cat", mark.display())]);
    write_in(&worktree.path, "secret-1.enc", "xyz\n");
    let salvage = workspaces.remove(&worktree).await.unwrap().salvage.unwrap();
    assert_eq!(scratch.git(["show", &format!("{}:secret-1.enc", salvage.reference)]), "klm");
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_filter_that_was_planted_later_does_not_run_when_files_are_written() {
    let (scratch, workspaces) = scrambled();
    let mark = scratch.dir.path().join("it-ran");
    let trap = format!("touch '{}'; cat", mark.display());
    for key in ["clean", "smudge", "process"] {
        scratch.git(["config", &format!("filter.planted.{key}"), &trap]);
    }
    scratch.git(["config", "filter.planted.required", "true"]);
    scratch.git(["config", "filter.scramble.smudge", &trap]);
    std::fs::create_dir_all(scratch.repo().join(".git/info")).unwrap();
    std::fs::write(scratch.repo().join(".git/info/attributes"), "*.txt filter=planted\nREADME filter=planted\n")
        .unwrap();
    let worktree = prepare(&workspaces, "01").await;
    assert!(!mark.exists(), "what a worker planted ran in the runner's git");
    assert_eq!(
        std::fs::read_to_string(worktree.path.join("secret-1.enc")).unwrap(),
        "abc\n",
        "the user's own filter still does"
    );
}
