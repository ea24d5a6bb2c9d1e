//! An approval in a comment on the issue itself, by somebody whose rights were taken away a moment ago.

use super::journey::AGENT;
use super::scene::{Account, Scene};
use crate::github::Permission;

#[test]
fn an_approval_on_the_issue_by_somebody_who_may_not_write_any_more_counts_for_nothing() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let (board, hub) = (&scene.board, &scene.hub);
    hub.grant("bob", Permission::Write);
    let issue = hub.add_issue("ada", "Write something", "Please.", &["agent"]);
    let key = format!("GH-{issue}");
    let runner = board.start_with(&[("GITHUB_TOKEN", Account::Own.token())]);
    board.until("a pull request is there", || !hub.pulls().is_empty());
    let head = hub.head(&hub.head_branch(hub.pulls()[0])).unwrap();
    hub.set_job(&head, "build", Some("success"), "fine\n");
    board.until("it waits for somebody", || board.phase(&key) == "waiting_for_human");
    hub.comment("bob", issue, "/dirigent explain");
    board.until("he is somebody", || hub.comments(issue).iter().any(|one| one.body.contains("is at ")));
    hub.grant("bob", Permission::Read);
    hub.comment("bob", issue, &format!("/dirigent approve {head}"));
    board.until("his words are read", || board.ok(&["explain", &key]).contains("is not somebody whose words count"));
    assert_eq!(board.status(&[&key])["approved_head"], serde_json::Value::Null);
    assert!(hub.merges().is_empty());
    hub.comment("ada", issue, &format!("/dirigent approve {head}"));
    board.until("it is merged", || board.phase(&key) == "done");
    runner.end();
    assert_eq!(hub.merges().len(), 1);
}
