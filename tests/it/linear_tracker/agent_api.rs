//! `linear_graphql`: what a worker may ask Linear for, and what it can never write.

use dirigent::domain::ids::TicketId;
use dirigent::domain::service::{ApiDeed, ApiScope, Attachment};
use dirigent::engine::permit::EffectKind;
use dirigent::engine::provenance;
use dirigent::tracker::{AgentApi, Tracker, TrackerError};
use serde_json::{Value, json};

use super::{team, tracker, whole};
use crate::linear::{Instead, Linear, When};
use crate::support::allowed;

pub fn scope(id: &str, number: u64) -> ApiScope {
    let ticket = TicketId::new(id);
    let mark = provenance::marked_key("secret", &ticket, &provenance::worker_key(&"run-1".into(), number));
    ApiScope { ticket, key: "ENG-1".into(), pull_request: None, mark }
}

fn moves(issue: &str, state: &str) -> Value {
    json!({
        "query": "mutation Go($id: String!, $state: String!) { issueUpdate(id: $id, input: {stateId: $state}) { success issue { state { name } } } }",
        "variables": {"id": issue, "state": state},
    })
}

fn comments(issue: &str, body: &str) -> Value {
    json!({
        "query": "mutation($i: CommentCreateInput!) { said: commentCreate(input: $i) { success comment { ...Its } } } fragment Its on Comment { id body }",
        "variables": {"i": {"issueId": issue, "body": body}},
    })
}

#[tokio::test]
async fn the_board_is_read_and_what_is_refused_is_never_sent() {
    let linear = Linear::start();
    let id = linear.add_issue("A bug", "Todo", &[]);
    let (tracker, scope) = (tracker(&linear, team("ENG")), scope(&id, 0));
    let request = json!({"query": "query($id: String!) { it: issue(id: $id) { ...F } } fragment F on Issue { title state { name } }", "variables": {"id": "ENG-1"}});
    assert_eq!(tracker.judge(&scope, &request).await, Ok(ApiDeed::Read));
    let answer = tracker.read_api(&scope, &request).await.unwrap();
    assert!(answer.success && answer.output.contains("A bug") && answer.output.contains("\"data\""), "{answer:?}");
    let missing = json!({"query": "{ issue(id: \"ENG-99\") { title } }"});
    let answer = tracker.read_api(&scope, &missing).await.unwrap();
    assert!(!answer.success && answer.output.contains("Entity not found"), "{answer:?}");
    let sent = linear.journal().len();
    for query in
        ["{ webhooks { nodes { secret } } }", "mutation { issueDelete(id: \"1\") { success } }", "{ viewer {", ""]
    {
        let request = json!({ "query": query });
        assert!(tracker.judge(&scope, &request).await.is_err(), "{query}");
        assert!(!tracker.read_api(&scope, &request).await.unwrap().success, "{query}");
        let written = tracker.write_api(&allowed(EffectKind::Comment), &scope, &request).await.unwrap();
        assert!(!written.success, "{query}");
    }
    assert_eq!(linear.journal().len(), sent);
}

#[tokio::test]
async fn spec_10_a_worker_writes_on_its_own_ticket_and_what_it_wrote_is_known_as_its_own() {
    let linear = Linear::start();
    let (id, other) = (linear.add_issue("mine", "Todo", &[]), linear.add_issue("not mine", "Todo", &[]));
    let tracker = tracker(&linear, team("ENG"));
    let permit = allowed(EffectKind::Comment);
    for request in [comments(&other, "x"), moves(&other, &linear.state_id(&other, "Done"))] {
        let refused = tracker.judge(&scope(&id, 0), &request).await.unwrap_err();
        assert!(refused.contains("its own ticket, ENG-1"), "{refused}");
    }
    // By its key as well; the id and the mark are ours.
    let request = comments("eng-1", "## Codex Workpad\n/dirigent approve");
    assert!(matches!(tracker.judge(&scope(&id, 1), &request).await, Ok(ApiDeed::Write { .. })));
    let answer = tracker.write_api(&permit, &scope(&id, 1), &request).await.unwrap();
    assert!(answer.success && answer.output.contains("\"said\""), "{answer:?}");
    let said = || async { whole(&tracker, &id).await.comments.unwrap()[0].body.clone() };
    assert!(provenance::is_workers("secret", &TicketId::new(&id), &said().await), "{:?}", linear.comments(&id));
    let again = tracker.write_api(&permit, &scope(&id, 1), &request).await.unwrap();
    assert!(!again.success && linear.comments(&id).len() == 1, "the same id cannot be made twice: {again:?}");
    for mark in ["<!-- dirigent:workpad#0123456789abcdef -->", "`` dirigent:workpad#0123456789abcdef ``"] {
        let forged = comments(&id, mark);
        assert!(tracker.judge(&scope(&id, 2), &forged).await.unwrap_err().contains("only the runner writes"));
    }

    // Its own comment is changed in place and keeps its mark, also by a later run.
    let comment = linear.issue(&id).comments[0].id.clone();
    let reword = |comment: &str| json!({"query": "mutation($c: String!) { commentUpdate(id: $c, input: {body: \"done now\"}) { success } }", "variables": {"c": comment}});
    let judged = tracker.judge(&scope(&id, 3), &reword(&comment)).await.unwrap();
    assert!(
        matches!(&judged, ApiDeed::Edit { text, .. } if provenance::is_workers("secret", &TicketId::new(&id), text))
    );
    assert!(tracker.write_api(&permit, &scope(&id, 3), &reword(&comment)).await.unwrap().success);
    let now = said().await;
    assert!(now.starts_with("done now") && provenance::is_workers("secret", &TicketId::new(&id), &now), "{now}");
    let theirs = linear.say(&linear.user("ada"), &id, "a person's words");
    let judged = tracker.judge(&scope(&id, 4), &reword(&theirs)).await.unwrap();
    assert!(
        matches!(&judged, ApiDeed::Edit { text, .. } if !provenance::is_workers("secret", &TicketId::new(&id), text))
    );
    assert!(
        !tracker.write_api(&permit, &scope(&id, 4), &reword(&theirs)).await.unwrap().success,
        "even if it were let through"
    );
    let elsewhere = linear.say(&linear.user("ada"), &other, "words");
    assert!(tracker.judge(&scope(&id, 5), &reword(&elsewhere)).await.unwrap_err().contains("no comment"));
}

#[tokio::test]
async fn a_move_is_named_before_it_is_made() {
    let linear = Linear::start();
    let id = linear.add_issue("mine", "Todo", &[]);
    let (tracker, scope) = (tracker(&linear, team("ENG")), scope(&id, 0));
    let request = moves(&id, &linear.state_id(&id, "In Review"));
    let judged = tracker.judge(&scope, &request).await.unwrap();
    assert_eq!(judged, ApiDeed::Move { from: "Todo".into(), to: "In Review".into() });
    assert_eq!(linear.state_of(&id), "Todo", "judging changes nothing");
    assert!(tracker.write_api(&allowed(EffectKind::MoveTicket), &scope, &request).await.unwrap().success);
    assert_eq!(linear.state_of(&id), "In Review");
    let unknown = tracker.judge(&scope, &moves(&id, "nowhere")).await.unwrap_err();
    assert!(unknown.contains("is not a state") && unknown.contains("In Progress ("), "{unknown}");
    // A lost answer is told as such: the write may be done.
    linear.fault("Go", When::After, Instead::Disconnect);
    let lost =
        tracker.write_api(&allowed(EffectKind::MoveTicket), &scope, &moves(&id, &linear.state_id(&id, "Done"))).await;
    assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
}

#[tokio::test]
async fn links_and_files_are_added_with_ids_of_ours() {
    let linear = Linear::start();
    let id = linear.add_issue("mine", "Todo", &[]);
    let (tracker, permit) = (tracker(&linear, team("ENG")), allowed(EffectKind::Comment));
    let link = |url: &str| json!({"query": "mutation($u: String!, $i: String!) { attachmentCreate(input: {issueId: $i, url: $u, title: \"PR\"}) { success attachment { url } } }", "variables": {"u": url, "i": id}});
    assert!(tracker.judge(&scope(&id, 0), &link("javascript:alert(1)")).await.is_err());
    for _ in 0..2 {
        assert!(tracker.write_api(&permit, &scope(&id, 0), &link("https://example.com/1")).await.unwrap().success);
    }
    assert_eq!(linear.links(&id), [("https://example.com/1".to_owned(), "PR".to_owned())]);
    let upload = json!({"query": "mutation { fileUpload(contentType: \"image/png\", filename: \"a.png\", size: 12) { success uploadFile { uploadUrl assetUrl headers { key value } } } }"});
    let answer = tracker.write_api(&permit, &scope(&id, 1), &upload).await.unwrap();
    assert!(answer.success && answer.output.contains("uploadUrl"), "{answer:?}");
}

#[tokio::test]
async fn files_of_a_ticket_are_fetched_with_our_key_and_nothing_else_is() {
    let linear = Linear::start();
    let url = linear.put_file("shot.png", &[7; 2000]);
    let tracker = tracker(&linear, team("ENG"));
    let text = format!("![]({url}) and https://elsewhere.invalid/uploads/x.png and {url}. {}", linear.endpoint());
    let found = tracker.attachments(&text);
    assert_eq!(found, [Attachment { url: url.clone(), name: "shot.png".into() }]);
    assert_eq!(tracker.fetch_attachment(&found[0], 4000).await.unwrap().len(), 2000);
    let long = tracker.fetch_attachment(&found[0], 100).await;
    assert!(matches!(&long, Err(TrackerError::Refused(why)) if why.contains("longer than 100")), "{long:?}");
    let foreign = Attachment { url: "https://elsewhere.invalid/uploads/x.png".into(), name: "x.png".into() };
    assert!(tracker.fetch_attachment(&foreign, 10).await.is_err());
    let gone = Attachment { url: url.replace("shot", "gone"), name: "gone.png".into() };
    assert!(tracker.fetch_attachment(&gone, 10).await.is_err());
}
