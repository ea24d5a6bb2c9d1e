//! Pull requests are judged and merged with real git.

use serde_json::json;

use crate::github::{Demands, Hub, Line};

use super::client::{ask, robot};

/// A pull request of `robot` with one new file, and its head.
fn pull(hub: &Hub, branch: &str, file: &str) -> (u64, String) {
    let head = hub.push("robot", branch, &[(file, Some("text\n"))], "Work");
    let body = json!({"title": "Work", "head": branch, "base": "main", "body": "Closes #1"});
    let reply = robot(hub, "POST", "/pulls", Some(body));
    assert_eq!(reply.status, 201, "{:?}", reply.text);
    (reply.json()["number"].as_u64().unwrap(), head)
}

fn merge(hub: &Hub, number: u64, sha: &str, method: &str) -> (u16, serde_json::Value) {
    let body = json!({"sha": sha, "merge_method": method, "commit_title": "Landed"});
    let reply = robot(hub, "PUT", &format!("/pulls/{number}/merge"), Some(body));
    (reply.status, reply.json())
}

#[test]
fn mergeable_is_unknown_until_it_was_asked_for() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    let (number, _) = pull(&hub, "one", "one.txt");
    let look = || robot(&hub, "GET", &format!("/pulls/{number}"), None).json();
    assert!(look()["mergeable"].is_null());
    let second = look();
    assert_eq!((&second["mergeable"], &second["mergeable_state"]), (&json!(true), &json!("clean")));
    hub.push("ada", "main", &[("one.txt", Some("something else\n"))], "In the way");
    assert!(look()["mergeable"].is_null());
    let conflict = look();
    assert_eq!((&conflict["mergeable"], &conflict["mergeable_state"]), (&json!(false), &json!("dirty")));
    let head = conflict["head"]["sha"].as_str().unwrap().to_owned();
    assert_eq!(merge(&hub, number, &head, "squash").0, 405);
}

#[test]
fn every_method_lands_the_head_that_was_named() {
    for (method, commits) in [("squash", 1), ("merge", 2), ("rebase", 1)] {
        let hub = Hub::start();
        hub.add_issue("ada", "A bug", "", &[]);
        let (number, head) = pull(&hub, "one", "one.txt");
        let before = hub.head("main").unwrap();
        let stale = merge(&hub, number, &before, method);
        assert_eq!(stale.0, 409, "{stale:?}");
        let (status, merged) = merge(&hub, number, &head, method);
        assert_eq!(status, 200, "{merged}");
        assert_eq!(hub.head("main").as_deref(), merged["sha"].as_str());
        let between = robot(&hub, "GET", &format!("/compare/{before}...main"), None).json();
        assert_eq!(between["ahead_by"], commits, "{method}");
        assert!(!hub.is_open(1), "`Closes #1` closes it");
        assert_eq!(hub.merges().len(), 1);
        assert_eq!(merge(&hub, number, &head, method).0, 405, "a merged one is not merged again");
        assert_eq!(robot(&hub, "GET", &format!("/pulls/{number}/merge"), None).status, 204);
    }
}

#[test]
fn a_method_that_the_repository_forbids_is_refused() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    hub.settings(|settings| settings.squash = false);
    let (number, head) = pull(&hub, "one", "one.txt");
    let (status, refusal) = merge(&hub, number, &head, "squash");
    assert_eq!((status, &refusal["message"]), (405, &json!("Squash merges are not allowed on this repository.")));
    assert_eq!(merge(&hub, number, &head, "merge").0, 200);
}

#[test]
fn what_the_branch_demands_stands_in_the_way() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    hub.protect("main", Demands { checks: vec!["ci".to_owned()], reviews: 1, ..Demands::default() });
    let resolved = Demands { conversations_resolved: true, ..Demands::default() };
    hub.add_ruleset("talk", "main", resolved);
    let (number, head) = pull(&hub, "one", "one.txt");
    let refusal = || merge(&hub, number, &head, "squash").1["message"].as_str().unwrap_or_default().to_owned();
    assert!(refusal().contains("1 of 1 required status checks are expected"));
    hub.set_job(&head, "ci", Some("failure"), "boom");
    assert!(refusal().contains("\"ci\" is failing"));
    hub.set_job(&head, "ci", Some("success"), "fine");
    assert!(refusal().contains("approving review is required"));
    let line = Line { path: "one.txt".to_owned(), line: 1, body: "Why?".to_owned() };
    hub.review("ada", number, "CHANGES_REQUESTED", "No.", &[line]);
    assert!(refusal().contains("Changes have been requested"));
    hub.review("ada", number, "APPROVED", "Now.", &[]);
    assert!(refusal().contains("conversation must be resolved"));
    hub.resolve("ada", number, hub.threads(number)[0]);
    assert_eq!(refusal(), "Pull Request successfully merged");
}

#[test]
fn nobody_approves_his_own_pull_request_and_strangers_do_not_count() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    hub.make_public();
    hub.add_token("stranger", "stranger-token");
    hub.protect("main", Demands { reviews: 1, ..Demands::default() });
    let (number, head) = pull(&hub, "one", "one.txt");
    let path = format!("/repos/acme/widgets/pulls/{number}/reviews");
    let approve = Some(json!({"event": "APPROVE"}));
    assert_eq!(ask(&hub, "robot-token", "POST", &path, approve.clone()).status, 422);
    assert_eq!(ask(&hub, "stranger-token", "POST", &path, approve.clone()).status, 200);
    assert_eq!(merge(&hub, number, &head, "squash").0, 405);
    assert_eq!(ask(&hub, "ada-token", "POST", &path, approve).status, 200);
    assert_eq!(merge(&hub, number, &head, "squash").0, 200);
}

#[test]
fn a_branch_is_brought_up_to_date() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    let (number, head) = pull(&hub, "one", "one.txt");
    let path = format!("/pulls/{number}/update-branch");
    let update = |head: &str| robot(&hub, "PUT", &path, Some(json!({"expected_head_sha": head})));
    assert_eq!(update(&head).status, 422, "nothing new on the base");
    hub.push("ada", "main", &[("other.txt", Some("x\n"))], "Other");
    assert_eq!(update("0000000000000000000000000000000000000000").status, 422);
    assert_eq!(update(&head).status, 202);
    let new = hub.head("one").unwrap();
    assert_ne!(new, head);
    assert_eq!(robot(&hub, "GET", &format!("/pulls/{number}"), None).json()["head"]["sha"], new.as_str());
}

#[test]
fn one_pull_request_per_head_and_only_for_new_commits() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    let (_, _) = pull(&hub, "one", "one.txt");
    let open = |head: &str| robot(&hub, "POST", "/pulls", Some(json!({"title": "T", "head": head, "base": "main"})));
    let again = open("one");
    assert_eq!(again.status, 422);
    assert!(again.text.unwrap().contains("A pull request already exists for acme:one."));
    assert_eq!(open("main").status, 422);
    assert_eq!(open("no-such-branch").status, 422);
}
