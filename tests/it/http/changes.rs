//! What can be changed, by whom, and that it is what a person's command would have done.

use serde_json::json;

use super::{APPROVED, ASKS, ENDLESS, GOOD, ServedBoard};
use crate::support::board::{MERGE, text};

const ADA: &str = "0123456789abcdef-ada";

/// A board that knows `ada` by her token.
fn with_ada(agent: &str, more: &str, ids: &[&str]) -> ServedBoard {
    let more = format!("server: {{port: 0, tokens: {{ada: $ADA}}}}\n{more}");
    ServedBoard::with(agent, &more, &[("ADA", ADA)], |board| ids.iter().for_each(|id| board.ticket(id, id)))
}

fn by_ada(served: &ServedBoard, path: &str, body: serde_json::Value) -> super::Answer {
    let headers = format!("Authorization: Bearer {ADA}\r\nContent-Type: application/json\r\n");
    served.post_with(path, &headers, &body.to_string())
}

fn story(served: &ServedBoard, key: &str) -> String {
    let ticket = served.get(&format!("/api/v1/{key}")).json();
    let lines = ticket["story"].as_array().unwrap().iter();
    lines.map(|line| format!("{}\n", line["text"].as_str().unwrap())).collect()
}

#[test]
fn a_person_is_named_in_the_story_of_what_they_did() {
    let served = with_ada(GOOD, APPROVED, &["t-1"]);
    served.until("it waits for approval", || served.phase("t-1") == "waiting_for_human");
    let head = served.get("/api/v1/t-1").json()["ticket"]["head"].as_str().unwrap().to_owned();
    let other = by_ada(&served, "/api/v1/t-1/approve", json!({ "head": "0000000000000000000000000000000000000000" }));
    assert_eq!((other.status, other.error().as_str()), (409, "conflict"), "{other:?}");
    assert_eq!(by_ada(&served, "/api/v1/t-1/approve", json!({})).status, 400, "what was looked at has to be said");
    let none = by_ada(&served, "/api/v1/t-1/approve", json!({ "head": head, "overrule": ["r123456@000000"] }));
    assert_eq!(none.status, 409, "there is no such remark: {none:?}");
    let done = by_ada(&served, "/api/v1/t-1/approve", json!({ "head": head }));
    assert_eq!(done.status, 200, "{done:?}");
    served.until("it is merged", || served.phase("t-1") == "done");
    assert!(story(&served, "t-1").contains("approved by ada"), "{}", story(&served, "t-1"));
}

#[test]
fn each_command_does_what_it_does_at_the_terminal() {
    let served = ServedBoard::new(ENDLESS, MERGE, |board| board.ticket("t-1", "Work"));
    served.until("it works", || served.phase("t-1") == "implementing");
    let paused = served.post("/api/v1/t-1/pause", &json!({}));
    assert_eq!(paused.status, 200, "{paused:?}");
    // Who was told that it is done finds it so.
    let switches = served.get("/api/v1/state").json()["switches"].clone();
    assert_eq!(switches[0]["subject"], "t-1", "{switches}");
    let again = served.post("/api/v1/t-1/retry", &json!({}));
    let at_terminal = served.board.run(&["retry", "t-1"]);
    assert_eq!(again.status == 200, at_terminal.status.success(), "{again:?} {}", text(&at_terminal.stderr));
    assert_eq!(served.post("/api/v1/t-1/resume", &json!({})).status, 200);
    let refused = served.post("/api/v1/t-1/resume", &json!({}));
    assert_eq!((refused.status, refused.error().as_str()), (409, "conflict"));
    served.until("it works again", || served.phase("t-1") == "implementing");
    let said = served.post("/api/v1/t-1/message", &json!({ "text": "Be quick", "urgent": false })).json();
    assert!(said["message"].as_str().unwrap().contains("t-1 is implementing"), "{said}");
    assert_eq!(served.post("/api/v1/pause", &json!({})).status, 200);
    assert!(served.board.ok(&["status"]).contains("STOPPED"));
    assert_eq!(served.post("/api/v1/resume", &json!({})).status, 200);
    assert!(!served.board.ok(&["status"]).contains("STOPPED"));
    assert_eq!(served.post("/api/v1/t-1/stop", &json!({})).status, 200);
    served.until("it is stopped", || served.phase("t-1") == "blocked");
    served.runner.end();
}

#[test]
fn a_question_is_answered_and_work_is_sent_back_with_words() {
    let agent = format!("if grep -q Blue \"$DIRIGENT_PROMPT_FILE\"; then\n{GOOD}else\n{ASKS}fi\n");
    let served = with_ada(&agent, APPROVED, &["t-1"]);
    served.until("it asks", || served.phase("t-1") == "blocked");
    assert_eq!(by_ada(&served, "/api/v1/t-1/answer", json!({ "text": "  " })).status, 400);
    let answered = by_ada(&served, "/api/v1/t-1/answer", json!({ "text": "Blue." }));
    assert_eq!(answered.status, 200, "{answered:?}");
    served.until("the answer was heard", || served.phase("t-1") == "waiting_for_human");
    let sent_back = by_ada(&served, "/api/v1/t-1/reject", json!({ "text": "Use green after all" }));
    assert_eq!(sent_back.status, 200, "{sent_back:?}");
    served.until("it is reworked", || story(&served, "t-1").contains("Use green after all"));
    assert!(story(&served, "t-1").contains("ada"), "{}", story(&served, "t-1"));
}

#[test]
fn the_token_that_is_made_stays_across_restarts_and_a_configured_one_takes_its_place() {
    let served = ServedBoard::new(ASKS, MERGE, |board| board.ticket("t-1", "Ask"));
    let token = served.token();
    assert_eq!(token.len(), 48, "{token}");
    let ServedBoard { board, runner, .. } = served;
    assert!(!runner.log().contains(&token), "it is not told to whoever reads a log");
    runner.end();
    let runner = board.start();
    let served = ServedBoard::of(board, runner);
    assert_eq!(served.token(), token);
    let (board, runner) = (served.board, served.runner);
    runner.end();
    board.workflow(&format!("{MERGE}server: {{port: 0, token: $OWN}}\n"));
    let runner = board.start_with(&[("OWN", ADA)]);
    // Its own commands cannot read the file without the variable, and ask the runner all the same.
    let served = ServedBoard::of(board, runner);
    let headers = |token: &str| format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    assert_eq!(served.post_with("/api/v1/pause", &headers(&token), "{}").status, 401);
    assert_eq!(served.post_with("/api/v1/pause", &headers(ADA), "{}").status, 200);
}
