//! Who may do what, and things that moved or are gone.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::github::{Gone, Hub, Permission};

use super::client::{ask, robot, send};

#[test]
fn credentials_and_permissions_decide() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.grant("reader", Permission::Read);
    hub.add_token("reader", "reader-token");
    hub.add_token("stranger", "stranger-token");
    let path = format!("/repos/acme/widgets/issues/{number}");
    assert_eq!(ask(&hub, "wrong", "GET", &path, None).status, 401);
    assert_eq!(ask(&hub, "stranger-token", "GET", &path, None).status, 404, "private");
    let label = Some(json!({"labels": ["agent"]}));
    assert_eq!(ask(&hub, "reader-token", "POST", &format!("{path}/labels"), label.clone()).status, 403);
    assert_eq!(ask(&hub, "robot-token", "POST", &format!("{path}/labels"), label).status, 200);
    let level = |login: &str| {
        let path = format!("/collaborators/{login}/permission");
        robot(&hub, "GET", &path, None).json()["role_name"].as_str().unwrap().to_owned()
    };
    assert_eq!((level("ada"), level("reader"), level("stranger")), ("admin".into(), "read".into(), "none".into()));
    hub.revoke("robot-token");
    assert_eq!(robot(&hub, "GET", "", None).status, 401);
}

#[test]
fn a_fine_grained_token_reads_no_check_runs() {
    let hub = Hub::start();
    let head = hub.head("main").unwrap();
    hub.set_job(&head, "ci", Some("success"), "fine");
    hub.add_fine_grained_token("robot", "fine", &["pulls/merge"]);
    let get = |path: &str| ask(&hub, "fine", "GET", &format!("/repos/acme/widgets{path}"), None).status;
    assert_eq!(get(&format!("/commits/{head}/check-runs")), 403);
    assert_eq!(get(&format!("/actions/runs?head_sha={head}")), 200);
    assert_eq!(get(&format!("/commits/{head}/status")), 200);
}

#[test]
fn an_app_gets_a_token_for_its_installation() {
    let hub = Hub::start();
    let installation = hub.add_app(4711, "dirigent");
    let now = jiff::Timestamp::now().as_second();
    let signed = |claims: serde_json::Value| {
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(&json!({"alg": "RS256", "typ": "JWT"}));
        format!("{head}.{}.{}", part(&claims), URL_SAFE_NO_PAD.encode([7; 256]))
    };
    let word = signed(json!({"iat": now - 60, "exp": now + 540, "iss": "4711"}));
    assert_eq!(ask(&hub, &word, "GET", "/app", None).json()["slug"], "dirigent");
    let path = format!("/app/installations/{installation}/access_tokens");
    let token = ask(&hub, &word, "POST", &path, None).json()["token"].as_str().unwrap().to_owned();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let comments = format!("/repos/acme/widgets/issues/{number}/comments");
    assert_eq!(ask(&hub, &token, "POST", &comments, Some(json!({"body": "Hello"}))).status, 201);
    assert_eq!(hub.comments(number)[0].author, "dirigent[bot]");
    assert_eq!(ask(&hub, &token, "GET", "/user", None).status, 403);
    for wrong in [
        json!({"iat": now - 60, "exp": now + 3600, "iss": "4711"}),
        json!({"iat": now - 600, "exp": now - 1, "iss": "4711"}),
        json!({"iss": "4711"}),
    ] {
        assert_eq!(ask(&hub, &signed(wrong), "GET", "/app", None).status, 401);
    }
    hub.advance(3601);
    assert_eq!(ask(&hub, &token, "GET", "/repos/acme/widgets", None).status, 401, "expired");
}

#[test]
fn moved_deleted_and_hidden_things_say_so() {
    let hub = Hub::start();
    let numbers: Vec<u64> = (0..3).map(|index| hub.add_issue("ada", &format!("Bug {index}"), "", &[])).collect();
    hub.lose(numbers[0], Gone::Deleted);
    hub.lose(numbers[1], Gone::Transferred { repository: 42, number: 7 });
    hub.lose(numbers[2], Gone::Hidden);
    let get = |number: u64| robot(&hub, "GET", &format!("/issues/{number}"), None);
    assert_eq!(get(numbers[0]).status, 410);
    let moved = get(numbers[1]);
    assert_eq!((moved.status, moved.header("location").unwrap().ends_with("/repositories/42/issues/7")), (301, true));
    assert_eq!(get(numbers[2]).status, 404);
    assert_eq!(hub.add_issue("ada", "Next", "", &[]), numbers[2] + 1, "numbers are not used again");

    hub.rename("gadgets");
    let old = ask(&hub, "robot-token", "GET", "/repos/acme/widgets/issues?state=all", None);
    assert_eq!(old.status, 301);
    let followed = ask(&hub, "robot-token", "GET", old.header("location").unwrap(), None);
    assert_eq!(followed.json()[0]["title"], "Next");
}

#[test]
fn locked_issues_long_texts_and_deleted_accounts() {
    let hub = Hub::start();
    hub.make_public();
    hub.add_token("stranger", "stranger-token");
    let number = hub.add_issue("ghostly", "A bug", "", &[]);
    hub.lock("ada", number);
    let path = format!("/repos/acme/widgets/issues/{number}/comments");
    let say = |token: &str, body: String| ask(&hub, token, "POST", &path, Some(json!({"body": body}))).status;
    assert_eq!(say("stranger-token", "Hello".into()), 403);
    assert_eq!(say("robot-token", "Hello".into()), 201);
    assert_eq!(say("robot-token", "x".repeat(65_537)), 422);
    assert_eq!(say("robot-token", "x".repeat(65_536)), 201);
    hub.forget_authors(number);
    assert!(robot(&hub, "GET", &format!("/issues/{number}"), None).json()["user"].is_null());
}

#[test]
fn logs_are_on_another_host_that_refuses_tokens() {
    let hub = Hub::start();
    let head = hub.head("main").unwrap();
    let job = hub.set_job(&head, "ci", Some("failure"), "line one\nboom\n");
    let redirect = robot(&hub, "GET", &format!("/actions/jobs/{job}/logs"), None);
    assert_eq!(redirect.status, 302);
    let place = redirect.header("location").unwrap();
    assert!(!place.starts_with(hub.api()));
    assert_eq!(send(place, "GET", &[], None).unwrap().text.unwrap(), "line one\nboom\n");
    assert_eq!(ask(&hub, "robot-token", "GET", place, None).status, 403);
}
