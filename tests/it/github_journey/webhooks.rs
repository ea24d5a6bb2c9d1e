//! GitHub's deliveries to a runner that would not ask again for an hour.

use std::time::Duration;

use ring::hmac;
use serde_json::Value;

use super::scene::{Account, Scene};
use crate::http::client::ServedBoard;

const SECRET: &str = "0123456789abcdef-hook";
const AGENT: &str = "tk blocked 'which colour?'\n";

/// One of GitHub's published examples, as if it were about this repository and this issue.
fn delivery(name: &str, number: u64, updated: &str) -> String {
    let text = include_str!("../../contracts/webhooks/github.json");
    let mut payload = serde_json::from_str::<Value>(text).unwrap()["examples"][name].take();
    payload["repository"]["full_name"] = "acme/widgets".into();
    payload["issue"]["number"] = number.into();
    payload["issue"]["updated_at"] = updated.into();
    payload.to_string()
}

fn send(served: &ServedBoard, event: &str, id: &str, body: &str) -> Value {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature: String =
        hmac::sign(&key, body.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let headers = format!(
        "Content-Type: application/json\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={signature}\r\n"
    );
    let answer = served.post_with("/webhooks/github", &headers, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn an_issue_is_taken_up_when_github_tells_of_it_and_nothing_else_is_read() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let more = "server: {port: 0}\n";
    let text = super::scene::workflow(&scene.hub, "account: own", more);
    let rare = "polling: {interval_ms: 3600000, webhook: {github: {secret: $HOOK}}}";
    let rarely = text.replace("polling: {interval_ms: 200}", rare);
    assert!(rarely.contains(rare));
    scene.board.scratch.write("WORKFLOW.md", &rarely);
    let (board, hub) = (scene.board, scene.hub);
    let runner = board.start_with(&[("GITHUB_TOKEN", Account::Own.token()), ("HOOK", SECRET)]);
    let served = ServedBoard::of(board, runner);
    served.until("the board was read once", || served.get("/readyz").status == 200);
    let number = hub.add_issue("ada", "Paint the door", "In a colour.", &["agent"]);
    std::thread::sleep(Duration::from_millis(300));
    let key = format!("GH-{number}");
    assert_eq!(served.get(&format!("/api/v1/{key}")).status, 404, "nobody has told of it");
    let body = delivery("issues.labeled", number, "2020-01-01T00:00:00Z");
    assert_eq!(send(&served, "issues", "d-1", &body)["status"], "taken");
    served.until("it asks its question", || served.phase(&key) == "blocked");
    assert_eq!(send(&served, "issues", "d-1", &body)["status"], "repeated");
    let closed = delivery("issues.labeled", number, "2020-01-01T00:00:00Z");
    // It says that the issue is open. What is read says otherwise, and that counts.
    hub.close("ada", number, "completed");
    send(&served, "issues", "d-2", &closed);
    served.until("it is given up", || served.phase(&key) == "released");
    served.runner.end();
}
