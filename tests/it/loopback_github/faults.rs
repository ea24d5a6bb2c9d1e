//! What can be made to go wrong.

use serde_json::json;

use crate::github::{Fault, Hub, Instead, When};

use super::client::{Reply, ask, robot, send};

fn comment(hub: &Hub, number: u64) -> Result<Reply, String> {
    let url = format!("{}/repos/acme/widgets/issues/{number}/comments", hub.api());
    let headers = [("authorization", "Bearer robot-token"), ("user-agent", "test")];
    send(&url, "POST", &headers, Some(&json!({"body": "Hello"})))
}

#[test]
fn a_write_takes_effect_or_not_and_the_answer_is_lost() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let route = "issues/create-comment";
    hub.fault(route, When::Before, Instead::Status(502));
    assert_eq!(comment(&hub, number).unwrap().status, 502);
    assert_eq!((hub.comments(number).len(), hub.writes().len()), (0, 0));
    hub.fault(route, When::After, Instead::Status(502));
    assert_eq!(comment(&hub, number).unwrap().status, 502);
    assert_eq!((hub.comments(number).len(), hub.writes().len()), (1, 1));
    hub.fault(route, When::After, Instead::Disconnect);
    assert!(comment(&hub, number).is_err());
    assert_eq!(hub.comments(number).len(), 2);
    hub.fault(route, When::After, Instead::Truncated);
    assert!(comment(&hub, number).unwrap().text.is_err());
    assert_eq!(hub.comments(number).len(), 3);
    assert_eq!(comment(&hub, number).unwrap().status, 201);
    assert_eq!(hub.count(route), 5);
}

#[test]
fn faults_are_skipped_counted_and_named_by_a_beginning() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.add_fault(Fault {
        route: "issues/*".to_owned(),
        when: When::Before,
        instead: Instead::Html(503),
        skip: 1,
        times: 2,
    });
    let path = format!("/issues/{number}");
    let statuses: Vec<u16> = (0..4).map(|_| robot(&hub, "GET", &path, None).status).collect();
    assert_eq!(statuses, [200, 503, 503, 200]);
}

#[test]
fn strange_answers_can_be_had() {
    let hub = Hub::start();
    for index in 0..3 {
        hub.add_issue("ada", &format!("Bug {index}"), "", &[]);
    }
    let list = || robot(&hub, "GET", "/issues?per_page=1", None);
    hub.fault("issues/list-for-repo", When::After, Instead::LoopingLink);
    let looping = list();
    let next = looping.header("link").unwrap().split('>').next().unwrap().trim_start_matches('<').to_owned();
    assert_eq!(ask(&hub, "robot-token", "GET", &next, None).json(), looping.json());
    hub.fault("issues/list-for-repo", When::After, Instead::Html(200));
    assert!(list().text.unwrap().starts_with("<html>"));
    hub.fault("issues/list-for-repo", When::After, Instead::Forbidden);
    assert!(list().text.unwrap().contains("not accessible"));
    let limit = Instead::SecondaryLimit { status: 429, retry_after: Some(7) };
    hub.fault("issues/list-for-repo", When::Before, limit);
    assert_eq!(list().header("retry-after"), Some("7"));
    let errors = json!([{"resource": "Issue", "field": "labels", "code": "invalid"}]);
    hub.fault("issues/create", When::Before, Instead::Unprocessable(errors));
    assert_eq!(robot(&hub, "POST", "/issues", Some(json!({"title": "T"}))).json()["errors"][0]["field"], "labels");
}

#[test]
fn silence_lasts_until_the_client_or_the_hub_ends() {
    let hub = Hub::start();
    hub.fault("users/get-authenticated", When::Before, Instead::Silence);
    let url = format!("{}/user", hub.api());
    let asking = std::thread::spawn(move || {
        send(&url, "GET", &[("authorization", "Bearer ada-token"), ("user-agent", "test")], None)
    });
    while hub.count("users/get-authenticated") == 0 {
        std::thread::yield_now();
    }
    // The others are served meanwhile.
    assert_eq!(ask(&hub, "ada-token", "GET", "/user", None).status, 200);
    drop(hub);
    assert!(asking.join().unwrap().is_err());
}
