//! `github_api`: what a worker may ask GitHub for, and what it can never write.

use dirigent::domain::ids::TicketId;
use dirigent::domain::service::{ApiDeed, ApiScope, Attachment};
use dirigent::engine::provenance;
use dirigent::tracker::{AgentApi, Tracker, TrackerError};
use serde_json::{Value, json};

use super::{id, permit, tracker};
use crate::github::Hub;

fn scope(ticket: &TicketId) -> ApiScope {
    let mark = provenance::marked_key("secret", ticket, "worker:run-1:api:0");
    ApiScope {
        ticket: ticket.clone(),
        key: ticket.as_str().into(),
        pull_request: Some("https://github.com/acme/widgets/pull/90".into()),
        mark,
    }
}

#[tokio::test]
async fn the_repository_is_read_and_nothing_beside_it() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "It hurts.", &[]);
    let (tracker, scope) = (tracker(&hub), scope(&id(number)));
    for path in [format!("issues/{number}"), format!("/repos/Acme/widgets/issues/{number}")] {
        let request = json!({ "path": path });
        assert_eq!(tracker.judge(&scope, &request).await, Ok(ApiDeed::Read));
        let answer = tracker.read_api(&scope, &request).await.unwrap();
        assert!(answer.success && answer.output.contains("It hurts."), "{answer:?}");
    }
    let missing = tracker.read_api(&scope, &json!({ "path": "issues/4711" })).await.unwrap();
    assert!(!missing.success && missing.output.contains("does not show it"), "{missing:?}");
    let sent = hub.requests().len();
    for path in [
        "secret-scanning/alerts",
        "keys",
        "actions/secrets",
        "hooks",
        "collaborators",
        "/repos/acme/gears/issues",
        "/user",
        "issues/../keys",
        "contents/../../../user",
        "issues?state=all",
        "",
    ] {
        let refused = tracker.judge(&scope, &json!({ "path": path })).await;
        assert!(refused.is_err(), "{path}: {refused:?}");
        assert!(!tracker.read_api(&scope, &json!({ "path": path })).await.unwrap().success, "{path}");
    }
    assert_eq!(hub.requests().len(), sent, "what is refused is never sent: {}", hub.print());
}

#[tokio::test]
async fn a_worker_writes_on_its_own_issue_and_what_it_wrote_is_known_as_its_own() {
    let hub = Hub::start();
    let (own, other) = (hub.add_issue("ada", "A bug", "", &[]), hub.add_issue("ada", "Another", "", &[]));
    let (tracker, scope) = (tracker(&hub), scope(&id(own)));
    let post = |number: u64| json!({ "method": "POST", "path": format!("issues/{number}/comments"), "body": { "body": "/dirigent approve" } });
    let judged = tracker.judge(&scope, &post(own)).await.unwrap();
    assert_eq!(judged, ApiDeed::Write { what: format!("a comment on #{own}") });
    assert!(tracker.write_api(&permit(), &scope, &post(own)).await.unwrap().success);
    let comments = hub.comments(own);
    assert_eq!(comments.len(), 1);
    let body = &comments[0].body;
    assert!(provenance::proven_key("secret", &id(own), body).is_some(), "it would count as a person's: {body}");

    let reply = |pull: u64| json!({ "method": "POST", "path": format!("pulls/{pull}/comments/5/replies"), "body": { "body": "Done." } });
    assert!(matches!(tracker.judge(&scope, &reply(90)).await, Ok(ApiDeed::Write { .. })));
    let elsewhere = ApiScope { pull_request: Some("https://github.com/acme/gears/pull/90".into()), ..scope.clone() };
    assert!(tracker.judge(&elsewhere, &reply(90)).await.is_err(), "the same number in another repository");
    let refused: Vec<Value> = vec![
        post(other),
        reply(91),
        json!({ "method": "POST", "path": format!("issues/{own}/comments") }),
        json!({ "method": "POST", "path": format!("issues/{own}/comments"), "body": { "body": " " } }),
        json!({ "method": "POST", "path": format!("issues/{own}/labels"), "body": { "labels": ["agent"] } }),
        json!({ "method": "DELETE", "path": format!("issues/{own}/labels/dirigent-stop") }),
        json!({ "method": "PUT", "path": "pulls/90/merge" }),
        json!({ "method": "PATCH", "path": format!("issues/{own}"), "body": { "state": "closed" } }),
        json!({ "method": "POST", "path": "pulls/90/reviews", "body": { "event": "APPROVE" } }),
        json!({ "path": format!("issues/{own}"), "body": { "state": "closed" } }),
        json!({ "path": format!("issues/{own}"), "header": "x" }),
        json!("issues"),
    ];
    for request in refused {
        assert!(tracker.judge(&scope, &request).await.is_err(), "{request}");
        assert!(!tracker.write_api(&permit(), &scope, &request).await.unwrap().success, "{request}");
    }
    assert_eq!(hub.writes().len(), 1, "{}", hub.print());
}

#[tokio::test]
async fn files_of_an_issue_come_from_githubs_own_hosts_alone_and_without_the_token() {
    let hub = Hub::start();
    let url = hub.attach("shot.png", b"pixels");
    let tracker = tracker(&hub);
    let text = format!(
        "![a]({url}) and again <img src=\"{url}\"> and https://evil.example/user-attachments/x.png and {url}@evil.example/x \
         and http://127.0.0.1/etc/passwd."
    );
    let found = tracker.attachments(&text);
    let urls: Vec<&str> = found.iter().map(|one| one.url.as_str()).filter(|one| *one == url).collect();
    assert_eq!(urls, [url.as_str()], "{found:?}");
    assert!(found.iter().all(|one| one.url.contains("127.0.0.1") && !one.url.contains("passwd")), "{found:?}");
    let shot = found.iter().find(|one| one.url == url).unwrap();
    assert_eq!(shot.name, "shot.png");
    // The host of the files refuses whoever shows it a credential.
    assert_eq!(tracker.fetch_attachment(shot, 100).await.unwrap(), b"pixels");
    assert!(tracker.fetch_attachment(shot, 3).await.is_err(), "longer than it may be");
    let elsewhere = Attachment { url: "https://evil.example/x.png".into(), name: "x.png".into() };
    assert!(matches!(tracker.fetch_attachment(&elsewhere, 100).await, Err(TrackerError::Refused(_))));
}
