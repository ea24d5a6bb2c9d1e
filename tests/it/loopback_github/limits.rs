//! Limits, conditional requests and pages.

use serde_json::json;

use crate::github::Hub;

use super::client::{ask, query, robot, send};

#[test]
fn what_has_not_changed_costs_nothing() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let url = format!("{}/repos/acme/widgets/issues?state=all", hub.api());
    let get = |tag: &str| {
        let headers = [("authorization", "Bearer robot-token"), ("user-agent", "test"), ("if-none-match", tag)];
        send(&url, "GET", &headers, None).unwrap()
    };
    let first = get("");
    let tag = first.header("etag").unwrap().to_owned();
    let used = |reply: &super::client::Reply| reply.header("x-ratelimit-used").unwrap().to_owned();
    let second = get(&tag);
    assert_eq!((second.status, second.text.as_deref()), (304, Ok("")));
    assert_eq!(used(&second), used(&first));
    assert!(second.header("date").unwrap().ends_with("GMT"));
    hub.label("ada", number, "agent");
    assert_eq!(get(&tag).status, 200);
}

#[test]
fn pages_are_linked_by_the_id_of_the_repository() {
    let hub = Hub::start();
    for index in 0..5 {
        hub.add_issue("ada", &format!("Bug {index}"), "", &[]);
    }
    let mut path = "/repos/acme/widgets/issues?state=all&per_page=2&sort=updated&direction=asc".to_owned();
    let mut seen = Vec::new();
    loop {
        let reply = ask(&hub, "robot-token", "GET", &path, None);
        seen.extend(reply.json().as_array().unwrap().iter().map(|issue| issue["number"].as_u64().unwrap()));
        let next = reply.header("link").unwrap().split(", ").find(|one| one.ends_with("rel=\"next\""));
        let Some(next) = next else { break };
        path = next.split('>').next().unwrap().trim_start_matches('<').to_owned();
        assert!(path.contains("/repositories/") && !path.contains("/repos/"), "{path}");
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[test]
fn only_what_was_updated_since_is_listed() {
    let hub = Hub::start();
    let (old, new) = (hub.add_issue("ada", "Old", "", &[]), hub.add_issue("ada", "New", "", &[]));
    hub.advance(100);
    let comment = hub.comment("ada", new, "Still there");
    let moment = robot(&hub, "GET", &format!("/issues/{new}"), None).json()["updated_at"].as_str().unwrap().to_owned();
    let since = || robot(&hub, "GET", &format!("/issues?state=all&since={moment}"), None).json();
    assert_eq!(since().as_array().unwrap().len(), 1);
    hub.advance(100);
    hub.delete_comment(comment);
    let after = since();
    assert_eq!(after[0]["updated_at"], moment.as_str(), "a deleted comment moves no timestamp");
    hub.close("ada", old, "not_planned");
    assert_eq!(since().as_array().unwrap().len(), 2);
}

#[test]
fn the_primary_limit_refuses_until_the_hour_is_over() {
    let hub = Hub::start();
    hub.set_remaining("core", 1);
    let ask_user = || ask(&hub, "ada-token", "GET", "/user", None);
    assert_eq!(ask_user().header("x-ratelimit-remaining"), Some("0"));
    let refused = ask_user();
    assert_eq!(refused.status, 403);
    assert!(refused.text.as_ref().unwrap().contains("rate limit exceeded"));
    let free = ask(&hub, "ada-token", "GET", "/rate_limit", None);
    assert_eq!((free.status, &free.json()["rate"]["remaining"]), (200, &json!(0)));
    hub.advance(3601);
    assert_eq!(ask_user().status, 200);
    // GraphQL has a limit of its own and says it with 200.
    hub.set_remaining("graphql", 0);
    let answer = query(&hub, "{ viewer { login } }", json!({}));
    assert_eq!(answer["errors"][0]["type"], "RATE_LIMITED");
}

#[test]
fn the_secondary_limit_comes_with_and_without_a_word_on_how_long() {
    let hub = Hub::start();
    hub.limit_secondary(403, 60, true);
    let refused = ask(&hub, "ada-token", "GET", "/user", None);
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (403, true));
    hub.limit_secondary(429, 60, false);
    let refused = ask(&hub, "ada-token", "GET", "/user", None);
    assert_eq!((refused.status, refused.header("retry-after")), (429, None));
    assert_ne!(refused.header("x-ratelimit-remaining"), Some("0"));
    hub.advance(61);
    assert_eq!(ask(&hub, "ada-token", "GET", "/user", None).status, 200);
}
