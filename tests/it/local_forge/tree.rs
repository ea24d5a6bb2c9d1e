use dirigent::domain::pr::MergeMethod;

use super::{merge, not_now, open};
use crate::support::{Scratch, git_in, write_in};

async fn refused(scratch: &Scratch, branch: &str, head: &str) -> String {
    let before = (scratch.head("main"), scratch.git(["status", "--porcelain=v2", "--ignored"]));
    let forge = scratch.forge();
    let number = open(&forge, branch, head).await.number;
    let because = not_now(merge(&forge, number, head, MergeMethod::Squash).await);
    let after = (scratch.head("main"), scratch.git(["status", "--porcelain=v2", "--ignored"]));
    assert_eq!(before, after, "nothing was changed");
    because
}

#[tokio::test]
async fn dirty_files_that_the_merge_does_not_touch_stay() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    scratch.write("README", "dirty\n");
    scratch.write(".tickets/t.md", "untracked\n");
    scratch.write("src/staged.txt", "staged\n");
    scratch.git(["add", "src/staged.txt"]);
    let forge = scratch.forge();
    let pr = open(&forge, "dirigent/a", &head).await;
    merge(&forge, pr.number, &head, MergeMethod::Merge).await.unwrap();
    assert_eq!(scratch.read("a"), "a\n");
    assert_eq!(scratch.read("README"), "dirty\n");
    assert_eq!(scratch.git(["status", "--porcelain"]), " M README\nA  src/staged.txt\n?? .tickets/");
}

#[tokio::test]
async fn a_dirty_file_that_the_merge_touches_makes_it_wait() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "README", "from the branch\n");
    scratch.write("README", "mine\n");
    let because = refused(&scratch, "dirigent/a", &head).await;
    assert!(because.starts_with("`README` in "), "{because}");
    scratch.git(["add", "README"]);
    let because = refused(&scratch, "dirigent/a", &head).await;
    assert!(because.starts_with("`README` in "), "staged: {because}");
    assert_eq!(scratch.read("README"), "mine\n");
    scratch.git(["checkout", "-q", "main", "--", "README"]);
    scratch.git(["reset", "-q", "--hard"]);
    let forge = scratch.forge();
    let number = open(&forge, "dirigent/a", &head).await.number;
    merge(&forge, number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.read("README"), "from the branch\n");
}

#[tokio::test]
async fn a_touched_time_stamp_is_no_change() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "README", "from the branch\n");
    scratch.write("README", "hello\n");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options().write(true).open(scratch.repo().join("README")).unwrap().set_modified(later).unwrap();
    let forge = scratch.forge();
    let number = open(&forge, "dirigent/a", &head).await.number;
    merge(&forge, number, &head, MergeMethod::Squash).await.unwrap();
    assert_eq!(scratch.read("README"), "from the branch\n");
}

#[tokio::test]
async fn an_untracked_or_ignored_file_in_the_way_makes_it_wait() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "new.txt", "theirs\n");
    scratch.write("new.txt", "mine\n");
    assert!(refused(&scratch, "dirigent/a", &head).await.starts_with("`new.txt` in "));
    assert_eq!(scratch.read("new.txt"), "mine\n");
    std::fs::remove_file(scratch.repo().join("new.txt")).unwrap();

    scratch.git(["worktree", "add", "-q", "-b", "dirigent/b", "../side", "main"]);
    let side = scratch.dir.path().join("side");
    write_in(&side, "secret.log", "theirs\n");
    write_in(&side, "target", "a file where I have a directory\n");
    git_in(&side, ["add", "-f", "secret.log"]);
    git_in(&side, ["commit", "-q", "-m", "ignored file"]);
    let head = git_in(&side, ["rev-parse", "HEAD"]);
    scratch.write("secret.log", "mine, ignored\n");
    assert!(refused(&scratch, "dirigent/b", &head).await.starts_with("`secret.log` in "));
    assert_eq!(scratch.read("secret.log"), "mine, ignored\n");
    std::fs::remove_file(scratch.repo().join("secret.log")).unwrap();

    git_in(&side, ["add", "-f", "target"]);
    git_in(&side, ["commit", "-q", "-m", "a file named target"]);
    let head = git_in(&side, ["rev-parse", "HEAD"]);
    scratch.write("target/build.o", "mine, ignored\n");
    assert!(refused(&scratch, "dirigent/b", &head).await.starts_with("`target/build.o` in "));
    assert_eq!(scratch.read("target/build.o"), "mine, ignored\n");
}

#[tokio::test]
async fn a_link_or_file_where_a_directory_must_be_makes_it_wait() {
    let scratch = Scratch::new();
    scratch.git(["worktree", "add", "-q", "-b", "dirigent/a", "../side", "main"]);
    let side = scratch.dir.path().join("side");
    write_in(&side, "target/out.txt", "theirs\n");
    git_in(&side, ["add", "-f", "target/out.txt"]);
    git_in(&side, ["commit", "-q", "-m", "forced"]);
    let head = git_in(&side, ["rev-parse", "HEAD"]);
    let outside = scratch.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scratch.repo().join("target")).unwrap();
    assert!(refused(&scratch, "dirigent/a", &head).await.starts_with("`target` in "));
    assert!(std::fs::read_dir(&outside).unwrap().next().is_none());
}

#[tokio::test]
async fn a_locked_index_makes_it_wait() {
    let scratch = Scratch::new();
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    std::fs::write(scratch.repo().join(".git/index.lock"), "").unwrap();
    let forge = scratch.forge();
    let number = open(&forge, "dirigent/a", &head).await.number;
    let because = not_now(merge(&forge, number, &head, MergeMethod::Squash).await);
    assert!(because.contains("index.lock"), "{because}");
    std::fs::remove_file(scratch.repo().join(".git/index.lock")).unwrap();
    merge(&forge, number, &head, MergeMethod::Squash).await.unwrap();
}

#[tokio::test]
async fn a_linked_worktree_on_the_base_moves_along() {
    let scratch = Scratch::new();
    scratch.step_aside();
    scratch.git(["worktree", "add", "-q", "../on-main", "main"]);
    let linked = scratch.dir.path().join("on-main");
    let head = scratch.branch_with("dirigent/a", "a", "a\n");
    write_in(&linked, "README", "dirty\n");
    let forge = scratch.forge();
    let number = open(&forge, "dirigent/a", &head).await.number;
    merge(&forge, number, &head, MergeMethod::Squash).await.unwrap();
    assert!(linked.join("a").exists());
    assert_eq!(git_in(&linked, ["status", "--porcelain"]), " M README");
}

#[tokio::test]
async fn deletions_and_file_modes_move_along() {
    let scratch = Scratch::new();
    scratch.git(["worktree", "add", "-q", "-b", "dirigent/a", "../side", "main"]);
    let side = scratch.dir.path().join("side");
    std::fs::remove_file(side.join("README")).unwrap();
    std::os::unix::fs::symlink("src/a.txt", side.join("link")).unwrap();
    git_in(&side, ["add", "-A"]);
    git_in(&side, ["update-index", "--chmod=+x", "src/a.txt"]);
    git_in(&side, ["commit", "-q", "-m", "modes"]);
    let head = git_in(&side, ["rev-parse", "HEAD"]);
    let forge = scratch.forge();
    let number = open(&forge, "dirigent/a", &head).await.number;
    merge(&forge, number, &head, MergeMethod::Squash).await.unwrap();
    assert!(!scratch.repo().join("README").exists());
    assert!(scratch.repo().join("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(scratch.git(["status", "--porcelain"]), "");
}
