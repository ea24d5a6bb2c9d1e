use dirigent::domain::ids::TicketKey;
use dirigent::engine::permit::EffectKind;
use dirigent::workspace::directory::{Directories, DirectoryRemoval, DirectoryWorkspace};

use crate::support::{Scratch, allowed, commit_in, git_in, write_in};

fn key() -> TicketKey {
    TicketKey::from("ENG-1")
}

async fn prepared(directories: &Directories) -> DirectoryWorkspace {
    directories.prepare(&allowed(EffectKind::StartRun), &key()).await.unwrap()
}

async fn removed(directories: &Directories) -> DirectoryRemoval {
    directories.remove(&allowed(EffectKind::CleanUp), &key()).await.unwrap()
}

fn kept_because(removal: DirectoryRemoval) -> String {
    match removal {
        DirectoryRemoval::Kept { because } => because,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn spec_9_the_directory_of_a_ticket_is_made_once_and_reused() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let first = prepared(&directories).await;
    assert!(first.created && first.path.ends_with("ENG-1"));
    let second = prepared(&directories).await;
    assert!(!second.created);
    assert_eq!(first.path, second.path);
    directories.discard_new(&second).await.unwrap();
    assert!(second.path.exists(), "only a new one is taken back");
    directories.discard_new(&first).await.unwrap();
    assert!(!first.path.exists());
    assert_eq!(removed(&directories).await, DirectoryRemoval::Absent);
}

#[tokio::test]
async fn spec_9_something_else_in_the_place_is_left_alone() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    std::fs::write(directories.path_of(&key()), "a file").unwrap();
    assert!(directories.prepare(&allowed(EffectKind::StartRun), &key()).await.is_err());
    assert!(directories.remove(&allowed(EffectKind::CleanUp), &key()).await.is_err());
    assert_eq!(std::fs::read_to_string(directories.path_of(&key())).unwrap(), "a file");
}

#[tokio::test]
async fn a_directory_with_work_that_is_nowhere_else_is_kept() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = prepared(&directories).await.path;
    let url = scratch.repo().display().to_string();
    git_in(&dir, ["clone", "-q", &url, "code"]);
    let code = dir.join("code");
    scratch.identify(&code);

    write_in(&code, "x", "x\n");
    assert!(kept_because(removed(&directories).await).contains("uncommitted work (x)"));
    git_in(&code, ["checkout", "-q", "-b", "work"]);
    commit_in(&code, "work");
    assert!(kept_because(removed(&directories).await).contains("commits on `work` that are not pushed"));
    git_in(&code, ["checkout", "-q", "--detach"]);
    git_in(&code, ["branch", "-q", "-D", "work"]);
    assert!(kept_because(removed(&directories).await).contains("not pushed"));
    git_in(&code, ["push", "-q", "origin", "HEAD:refs/heads/work"]);
    git_in(&code, ["fetch", "-q"]);
    write_in(&code, "y", "y\n");
    git_in(&code, ["add", "y"]);
    git_in(&code, ["stash", "-q"]);
    assert!(kept_because(removed(&directories).await).contains("refs/stash"));
    git_in(&code, ["stash", "drop", "-q"]);
    assert_eq!(removed(&directories).await, DirectoryRemoval::Removed);
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_repository_that_git_cannot_read_keeps_the_directory() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = prepared(&directories).await.path;
    write_in(&dir, ".git/HEAD", "garbage");
    assert!(kept_because(removed(&directories).await).contains("git cannot read"));
}

#[tokio::test]
async fn a_misleading_work_tree_setting_is_not_believed() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = prepared(&directories).await.path;
    let url = scratch.repo().display().to_string();
    git_in(&dir, ["clone", "-q", &url, "."]);
    write_in(&dir, "x", "x\n");
    git_in(&dir, ["config", "core.worktree", &url]);
    assert!(kept_because(removed(&directories).await).contains("uncommitted work"));
}
