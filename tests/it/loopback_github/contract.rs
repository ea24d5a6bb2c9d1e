//! Requests and answers are held against GitHub's published contracts.

use serde_json::json;

use crate::github::{Hub, Instead, RestContract, When, handles};

use super::client::{ask, robot};

#[test]
fn every_operation_of_the_contract_has_a_handler() {
    let missing: Vec<&str> = RestContract::get().operations().filter(|one| !handles(one)).collect();
    assert!(missing.is_empty(), "without a handler: {missing:?}");
}

#[test]
fn a_right_request_gets_a_right_answer() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "It hurts.", &["agent"]);
    let issue = robot(&hub, "GET", &format!("/issues/{number}"), None);
    assert_eq!(issue.status, 200);
    assert_eq!(issue.json()["labels"][0]["name"], "agent");
    hub.assert_contract();
}

#[test]
fn a_wrong_request_is_a_violation() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "It hurts.", &[]);
    let wrong = [
        ("GET", "/issues?statee=open".to_owned(), None, "query statee"),
        ("GET", "/issues?state=shut".to_owned(), None, "query state"),
        ("GET", "/issues?per_page=many".to_owned(), None, "query per_page"),
        ("GET", "/issues/one".to_owned(), None, "path issue_number"),
        ("PATCH", format!("/issues/{number}"), Some(json!({"state": "shut"})), "body/state"),
        ("PATCH", format!("/issues/{number}"), Some(json!({"colour": 1})), "colour"),
        ("POST", format!("/issues/{number}/comments"), Some(json!({})), "body"),
        ("POST", format!("/issues/{number}/comments"), None, "body: missing"),
        ("GET", "/no/such/thing".to_owned(), None, "not an operation"),
    ];
    for (method, path, body, expected) in wrong {
        let reply = robot(&hub, method, &path, body);
        assert!(reply.status >= 400, "{method} {path}");
        let violations = hub.take_violations();
        assert!(violations.iter().any(|one| one.contains(expected)), "{method} {path}: {violations:?}");
    }
    assert!(hub.is_open(number) && hub.comments(number).is_empty());
}

#[test]
fn a_wrong_answer_of_its_own_is_a_violation() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "It hurts.", &[]);
    let path = format!("/issues/{number}");
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, Edit); 4] = [
        ("comments", |issue| issue["comments"] = json!("three")),
        ("user", |issue| drop(issue.as_object_mut().unwrap().remove("user"))),
        ("invented", |issue| issue["invented"] = json!(1)),
        ("updated_at", |issue| issue["updated_at"] = json!("yesterday")),
    ];
    for (field, edit) in edits {
        hub.fault("issues/get", When::After, Instead::EditedAndChecked(Box::new(edit)));
        let reply = robot(&hub, "GET", &path, None);
        assert_eq!(reply.status, 500);
        let violations = hub.take_violations();
        assert!(violations.iter().any(|one| one.contains(field)), "{field}: {violations:?}");
    }
    // The same change as an injected fault is not looked at.
    hub.fault("issues/get", When::After, Instead::Edited(Box::new(|issue| issue["comments"] = json!("three"))));
    assert_eq!(robot(&hub, "GET", &path, None).json()["comments"], "three");
}

#[test]
fn a_violation_fails_the_test() {
    let caught = std::panic::catch_unwind(|| {
        let hub = Hub::start();
        robot(&hub, "GET", "/issues?statee=open", None);
    });
    let words = *caught.unwrap_err().downcast::<String>().unwrap();
    assert!(words.contains("query statee"), "{words}");
}

#[test]
fn the_enterprise_addresses_are_served_too() {
    let hub = Hub::start();
    let reply = ask(&hub, "ada-token", "GET", &format!("{}/user", hub.enterprise_api()), None);
    assert_eq!(reply.json()["login"], "ada");
}
