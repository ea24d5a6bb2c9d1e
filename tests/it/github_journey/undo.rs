//! What was merged on GitHub is taken back there, by a pull request that somebody merges or does not.

use super::scene::{Account, Scene};
use crate::support::git_in;

const AGENT: &str = "set -eu
echo done > work.txt
git add work.txt
git commit -qm 'The work'
tk done 'it is there'
";

#[test]
fn undo_after_a_merge_opens_one_pull_request_that_takes_it_back() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let (board, hub) = (&scene.board, &scene.hub);
    let access = [("GITHUB_TOKEN", Account::Own.token())];
    let issue = hub.add_issue("ada", "Write something", "", &["agent"]);
    let key = format!("GH-{issue}");
    let runner = board.start_with(&access);
    board.until("a pull request is there", || !hub.pulls().is_empty());
    let number = hub.pulls()[0];
    hub.set_job(&hub.head(&hub.head_branch(number)).unwrap(), "build", Some("success"), "");
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is done", || board.phase(&key) == "done");
    board.until("the branch is gone", || hub.head(&hub.head_branch(number)).is_none());
    runner.end();
    // Life goes on.
    hub.push("ada", "main", &[("other.txt", Some("o\n"))], "something else");
    let mut said = String::new();
    for _ in 0..2 {
        let output = board.command(&["undo", &key]).envs(access).output().unwrap();
        said = crate::support::board::text(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", crate::support::board::text(&output.stderr));
    }
    let pulls = hub.pulls();
    assert_eq!(pulls.len(), 2, "asked for twice, opened once");
    let revert = *pulls.iter().find(|one| **one != number).unwrap();
    assert!(said.contains(&format!("pull request #{revert} takes it back")), "{said}");
    assert!(hub.body(revert).contains(&format!("(#{number})")), "{}", hub.body(revert));
    let head = hub.head(&hub.head_branch(revert)).unwrap();
    let files = git_in(&hub.git_folder(), ["ls-tree", "--name-only", &head]);
    assert!(!files.contains("work.txt") && files.contains("other.txt"), "{files}");
    assert!(
        git_in(&hub.git_folder(), ["ls-tree", "--name-only", "main"]).contains("work.txt"),
        "the base is not touched"
    );
}

#[test]
fn undo_before_a_merge_leaves_nothing_on_github_that_a_retry_would_go_on_with() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let (board, hub) = (&scene.board, &scene.hub);
    let access = [("GITHUB_TOKEN", Account::Own.token())];
    let issue = hub.add_issue("ada", "Write something", "", &["agent"]);
    let key = format!("GH-{issue}");
    let runner = board.start_with(&access);
    board.until("a pull request is there", || !hub.pulls().is_empty());
    let first = hub.pulls()[0];
    let branch = hub.head_branch(first);
    let theirs = hub.push("ada", &branch, &[("theirs.txt", Some("t\n"))], "by hand");
    board.until("it waits", || board.phase(&key) != "implementing");

    let without = board.command(&["undo", &key]).output().unwrap();
    assert!(!without.status.success(), "the branch would stay on GitHub");
    assert_eq!(hub.head(&branch), Some(theirs.clone()));
    let undo = || board.command(&["undo", &key]).envs(access).output().unwrap();
    let output = undo();
    let said = crate::support::board::text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", crate::support::board::text(&output.stderr));
    assert!(said.contains(&format!("branch {branch} is gone from GitHub")), "{said}");
    assert_eq!(hub.head(&branch), None);
    assert!(!hub.is_open(first), "a pull request without its branch is closed");
    let kept = git_in(&board.repo(), ["for-each-ref", "--format=%(objectname)", "refs/dirigent/undone"]);
    assert!(kept.contains(&theirs), "what a person pushed is reachable: {kept}");
    assert_eq!(git_in(&board.repo(), ["for-each-ref", &format!("refs/remotes/origin/{branch}")]), "");
    assert!(undo().status.success(), "once more it changes nothing");

    assert!(board.command(&["retry", &key]).envs(access).output().unwrap().status.success());
    board.until("there is another pull request", || hub.pulls().len() == 2);
    let second = *hub.pulls().iter().find(|one| **one != first).unwrap();
    let head = hub.head(&hub.head_branch(second)).unwrap();
    let files = git_in(&hub.git_folder(), ["ls-tree", "--name-only", &head]);
    assert!(files.contains("work.txt") && !files.contains("theirs.txt"), "it began afresh: {files}");
    runner.end();
}
