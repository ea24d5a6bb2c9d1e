//! Webhooks: GitHub's published examples and Linear's documented shape, signed, forged, repeated, too old and too big.

use ring::hmac;
use serde_json::{Value, json};

use super::client::{Answer, raw};
use super::{ASKS, ServedBoard};
use crate::support::board::Board;

const SECRET: &str = "It's a Secret to Everybody";

fn examples() -> Value {
    let text = include_str!("../../contracts/webhooks/github.json");
    serde_json::from_str::<Value>(text).unwrap()["examples"].take()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sign(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex(hmac::sign(&key, body.as_bytes()).as_ref())
}

/// As GitHub sends it.
fn github(served: &ServedBoard, event: &str, id: &str, body: &str) -> Answer {
    let signature = sign(SECRET, body);
    let headers = format!(
        "Content-Type: application/json\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={signature}\r\n"
    );
    served.post_with("/webhooks/github", &headers, body)
}

fn linear(served: &ServedBoard, id: &str, body: &str) -> Answer {
    let headers = format!(
        "Content-Type: application/json\r\nLinear-Event: Issue\r\nLinear-Delivery: {id}\r\nLinear-Signature: {}\r\n",
        sign(SECRET, body)
    );
    served.post_with("/webhooks/linear", &headers, body)
}

/// A board of ticket files that takes webhooks, too: what they name is nothing here, and they are proved all the same.
fn takes(more: &str) -> ServedBoard {
    let more = format!("server: {{port: 0}}\npolling: {{webhook: {more}}}\n");
    let board = Board::new(ASKS, "");
    board.scratch.write(
        "WORKFLOW.md",
        &format!(
            "---\ntracker: {{kind: tk}}\n{more}worker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n---\n"
        ),
    );
    let runner = board.start_with(&[("HOOK", SECRET)]);
    ServedBoard::of(board, runner)
}

/// The test vector of GitHub's own documentation.
#[test]
fn signatures_are_those_that_github_documents() {
    let known = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    assert_eq!(sign(SECRET, "Hello, World!"), known);
}

#[test]
fn a_signed_delivery_is_taken_once_and_a_forged_one_never() {
    let served = takes("{github: {secret: $HOOK}}");
    let body = examples()["issues.labeled"].to_string();
    let said = |answer: &Answer| answer.json()["status"].as_str().unwrap_or_default().to_owned();
    // It is about a repository that is not this board's.
    let first = github(&served, "issues", "d-1", &body);
    assert_eq!((first.status, said(&first).as_str()), (200, "ignored"), "{first:?}");
    let again = github(&served, "issues", "d-1", &body);
    assert_eq!((again.status, said(&again).as_str()), (200, "repeated"));
    for (signature, what) in [
        (format!("sha256={}", sign("another", &body)), "another secret"),
        (format!("sha256={}", sign(SECRET, &format!("{body} "))), "another body"),
        (format!("sha1={}", sign(SECRET, &body)), "another kind"),
        ("sha256=".to_owned(), "nothing"),
        ("sha256=zz".to_owned(), "nonsense"),
        (sign(SECRET, &body), "no kind"),
    ] {
        let headers =
            format!("X-GitHub-Event: issues\r\nX-GitHub-Delivery: d-2\r\nX-Hub-Signature-256: {signature}\r\n");
        let answer = served.post_with("/webhooks/github", &headers, &body);
        assert_eq!((answer.status, answer.error().as_str()), (401, "unauthorized"), "{what}");
    }
    assert_eq!(served.post_with("/webhooks/github", "", &body).status, 401, "unsigned");
    let after = github(&served, "issues", "d-2", &body);
    assert_eq!(said(&after), "ignored", "a forged one does not use up the name of a true one");
    for (name, payload) in examples().as_object().unwrap() {
        let event = name.split('.').next().unwrap();
        assert_eq!(github(&served, event, name, &payload.to_string()).status, 200, "{name}");
    }
    assert_eq!(github(&served, "issues", "d-3", "not JSON").status, 400);
    for odd in ["null", "[]", "{}", "{\"issue\": {\"number\": \"x\"}, \"repository\": 7}"] {
        assert_eq!(github(&served, "issues", &format!("odd {odd}"), odd).status, 200, "{odd}");
    }
    assert_eq!(served.post_with("/webhooks/linear", "", "{}").status, 404, "there is no secret for it");
    served.runner.end();
}

#[test]
fn a_delivery_that_is_too_big_is_refused_before_it_is_read() {
    let served = takes("{github: {secret: $HOOK}}");
    let body = json!({ "issue": { "body": "x".repeat(3 << 20) } }).to_string();
    let answer = github(&served, "issues", "d-1", &body);
    assert_eq!((answer.status, answer.error().as_str()), (413, "too_large"));
    let host = &served.address;
    let head = format!(
        "POST /webhooks/github HTTP/1.1\r\nHost: hooks.example\r\nConnection: close\r\nContent-Length: 99999999999\r\nX-Hub-Signature-256: sha256={}\r\n\r\n",
        sign(SECRET, "")
    );
    assert_eq!(raw(host, head.as_bytes()).status, 413, "and by any name: a tunnel has its own");
    assert_eq!(served.get("/healthz").status, 200);
    served.runner.end();
}

#[test]
fn linears_deliveries_have_an_age_and_name_the_issue() {
    let served = takes("{linear: {secret: $HOOK}}");
    let now = jiff::Timestamp::now().as_millisecond();
    let issue = |at: i64| {
        json!({ "action": "update", "type": "Issue", "data": { "id": "i-1", "updatedAt": "2026-11-18T05:05:23.123Z" },
            "webhookTimestamp": at, "webhookId": "w-1" })
        .to_string()
    };
    assert_eq!(linear(&served, "l-1", &issue(now)).status, 200);
    assert_eq!(linear(&served, "l-1", &issue(now)).json()["status"], "repeated");
    let old = linear(&served, "l-2", &issue(now - 5 * 60_000));
    assert_eq!((old.status, old.error().as_str()), (401, "too_old"));
    assert_eq!(linear(&served, "l-3", &issue(now + 5 * 60_000)).error(), "too_old");
    assert_eq!(linear(&served, "l-4", "{}").error(), "too_old", "what has no time is not fresh");
    let body = issue(now);
    let forged = format!("Linear-Delivery: l-5\r\nLinear-Signature: {}\r\n", sign("another", &body));
    assert_eq!(served.post_with("/webhooks/linear", &forged, &body).status, 401);
    served.runner.end();
}
