//! Replicas that lag, thing by thing.

use jiff::SignedDuration;
use serde_json::json;

use crate::github::{Hub, Lag, Thing};

use super::client::{query, robot};

#[test]
fn a_frozen_pull_request_shows_its_old_head_until_it_is_released() {
    let hub = Hub::start();
    let old = hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let number = hub.open_pull("robot", "one", "main", "One", "");
    hub.lag(Thing::Pull(number), Lag::Frozen);
    let new = hub.push("robot", "one", &[("one.txt", Some("2\n"))], "Two");
    let get = || robot(&hub, "GET", &format!("/pulls/{number}"), None).json()["head"]["sha"].clone();
    let list = || robot(&hub, "GET", "/pulls", None).json()[0]["head"]["sha"].clone();
    let document =
        "query($n: Int!) { repository(owner: \"acme\", name: \"widgets\") { pullRequest(number: $n) { headRefOid } } }";
    let asked =
        || query(&hub, document, json!({"n": number}))["data"]["repository"]["pullRequest"]["headRefOid"].clone();
    for look in [get(), list(), asked()] {
        assert_eq!(look, old.as_str());
    }
    assert_eq!(hub.head("one").as_deref(), Some(new.as_str()), "git itself does not lag");
    hub.release(&Thing::Pull(number));
    for look in [get(), list(), asked()] {
        assert_eq!(look, new.as_str());
    }
}

#[test]
fn a_thing_lags_by_requests_or_by_time() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    let labels = || robot(&hub, "GET", &format!("/issues/{number}"), None).json()["labels"].as_array().unwrap().len();
    hub.lag(Thing::Issue(number), Lag::Requests(2));
    hub.label("ada", number, "agent");
    assert_eq!((labels(), labels(), labels()), (0, 1, 1));
    hub.lag(Thing::Issue(number), Lag::Time(SignedDuration::from_hours(1)));
    hub.label("ada", number, "urgent");
    assert_eq!(labels(), 1);
    hub.advance(3601);
    assert_eq!(labels(), 2);
}

#[test]
fn what_was_written_during_a_lag_is_confirmed_and_not_seen() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.lag(Thing::Comments(number), Lag::Frozen);
    let path = format!("/issues/{number}/comments");
    assert_eq!(robot(&hub, "POST", &path, Some(json!({"body": "Hello"}))).status, 201);
    assert_eq!(robot(&hub, "GET", &path, None).json(), json!([]));
    assert_eq!(hub.comments(number).len(), 1);
    hub.release(&Thing::Comments(number));
    assert_eq!(robot(&hub, "GET", &path, None).json()[0]["body"], "Hello");
}

#[test]
fn an_object_made_during_a_lag_of_everything_is_not_there() {
    let hub = Hub::start();
    hub.lag(Thing::Everything, Lag::Frozen);
    let made = robot(&hub, "POST", "/issues", Some(json!({"title": "New"}))).json()["number"].clone();
    assert_eq!(robot(&hub, "GET", &format!("/issues/{made}"), None).status, 404);
    assert_eq!(robot(&hub, "GET", "/issues", None).json(), json!([]));
    // A pull request for a branch that the replica has not seen is refused.
    hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let body = json!({"title": "One", "head": "one", "base": "main"});
    assert_eq!(robot(&hub, "POST", "/pulls", Some(body.clone())).status, 422);
    hub.release(&Thing::Everything);
    assert_eq!(robot(&hub, "POST", "/pulls", Some(body)).status, 201);
}
