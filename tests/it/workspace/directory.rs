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
    match directories.leave(&key()).await.unwrap() {
        Ok(None) => DirectoryRemoval::Absent,
        Ok(Some(workspace)) => directories.remove(&allowed(EffectKind::CleanUp), &workspace).await.unwrap(),
        Err(because) => DirectoryRemoval::Kept { because },
    }
}

/// Made and filled; nobody works in it any more.
async fn filled(directories: &Directories) -> std::path::PathBuf {
    let made = prepared(directories).await;
    directories.filled(&made).unwrap();
    made.path
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
    directories.filled(&first).unwrap();
    let path = first.path.clone();
    assert!(!directories.discard_half_filled(&first).await.unwrap() && path.exists(), "it is whole");
    drop(first);
    let second = prepared(&directories).await;
    assert!(!second.created);
    assert_eq!(path, second.path);
    drop(second);
    assert_eq!(removed(&directories).await, DirectoryRemoval::Removed);
    assert!(!path.exists());
    assert_eq!(removed(&directories).await, DirectoryRemoval::Absent);
}

#[tokio::test]
async fn what_was_only_half_filled_is_filled_anew_and_another_tools_is_taken_as_it_is() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let first = prepared(&directories).await;
    write_in(&first.path, "half", "x");
    drop(first);
    // As after a crash: another life.
    let directories = Directories::open(&scratch.root()).unwrap();
    let second = prepared(&directories).await;
    assert!(second.created && std::fs::read_dir(&second.path).unwrap().next().is_none());
    assert!(directories.discard_half_filled(&second).await.unwrap() && !second.path.exists());
    drop(second);
    std::fs::create_dir(directories.path_of(&TicketKey::from("ENG-2"))).unwrap();
    let foreign = directories.prepare(&allowed(EffectKind::StartRun), &TicketKey::from("ENG-2")).await.unwrap();
    assert!(!foreign.created);
}

#[tokio::test]
async fn nobody_removes_a_directory_that_a_run_works_in() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let at_work = prepared(&directories).await;
    assert!(kept_because(removed(&directories).await).contains("a run works in"));
    drop(at_work);
    assert_eq!(removed(&directories).await, DirectoryRemoval::Removed, "nothing but a hook was ever in it");
}

#[tokio::test]
async fn spec_9_something_else_in_the_place_is_left_alone() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    std::fs::write(directories.path_of(&key()), "a file").unwrap();
    assert!(directories.prepare(&allowed(EffectKind::StartRun), &key()).await.is_err());
    assert!(directories.leave(&key()).await.is_err());
    assert_eq!(std::fs::read_to_string(directories.path_of(&key())).unwrap(), "a file");
}

#[tokio::test]
async fn a_directory_with_work_that_is_nowhere_else_is_kept() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = filled(&directories).await;
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

/// `git clone --depth 1` knows one branch and ends somewhere: what was pushed to another branch is asked of the remote.
#[tokio::test]
async fn what_a_shallow_clone_has_pushed_is_known() {
    let scratch = Scratch::new();
    scratch.write("more", "more\n");
    scratch.commit("something before the last commit");
    let directories = Directories::open(&scratch.root()).unwrap();
    let made = prepared(&directories).await;
    let url = format!("file://{}", scratch.repo().display());
    git_in(&made.path, ["clone", "-q", "--depth", "1", &url, "."]);
    scratch.identify(&made.path);
    directories.filled(&made).unwrap();
    let before = made.head();
    assert_eq!(made.standing(before.as_ref()).commits_ahead, 0);
    git_in(&made.path, ["checkout", "-q", "-b", "work"]);
    write_in(&made.path, "x", "x\n");
    commit_in(&made.path, "work");
    assert_eq!(made.standing(before.as_ref()).commits_ahead, 1);
    drop(made);
    assert!(kept_because(removed(&directories).await).contains("commits on `work` that are not pushed"));
    git_in(&directories.path_of(&key()), ["push", "-q", "origin", "work"]);
    assert_eq!(removed(&directories).await, DirectoryRemoval::Removed);
}

#[tokio::test]
async fn a_repository_that_git_cannot_read_keeps_the_directory() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = filled(&directories).await;
    write_in(&dir, ".git/HEAD", "garbage");
    assert!(kept_because(removed(&directories).await).contains("git cannot read"));
}

#[tokio::test]
async fn a_misleading_work_tree_setting_is_not_believed() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = filled(&directories).await;
    let url = scratch.repo().display().to_string();
    git_in(&dir, ["clone", "-q", &url, "."]);
    write_in(&dir, "x", "x\n");
    git_in(&dir, ["config", "core.worktree", &url]);
    assert!(kept_because(removed(&directories).await).contains("uncommitted work"));
}

#[tokio::test]
async fn work_in_a_bare_repository_and_in_files_that_git_does_not_look_at_is_work() {
    let scratch = Scratch::new();
    let directories = Directories::open(&scratch.root()).unwrap();
    let dir = filled(&directories).await;
    let url = scratch.repo().display().to_string();
    git_in(&dir, ["clone", "-q", &url, "code"]);
    git_in(&dir, ["clone", "-q", "--bare", &url, "mirror.git"]);
    let (code, mirror) = (dir.join("code"), dir.join("mirror.git"));
    scratch.identify(&code);
    git_in(&code, ["checkout", "-q", "-b", "work"]);
    write_in(&code, "x", "x\n");
    commit_in(&code, "work");
    git_in(&code, ["push", "-q", &mirror.display().to_string(), "work"]);
    git_in(&code, ["checkout", "-q", "main"]);
    git_in(&code, ["branch", "-q", "-D", "work"]);
    let because = kept_because(removed(&directories).await);
    assert!(because.contains("mirror.git has commits on `work`"), "{because}");
    git_in(&mirror, ["branch", "-q", "-D", "work"]);

    git_in(&code, ["update-index", "--skip-worktree", "README"]);
    write_in(&code, "README", "changed in hiding\n");
    let because = kept_because(removed(&directories).await);
    assert!(because.contains("not to look at README"), "{because}");
    git_in(&code, ["update-index", "--no-skip-worktree", "README"]);
    git_in(&code, ["checkout", "-q", "README"]);
    assert_eq!(removed(&directories).await, DirectoryRemoval::Removed);
}
