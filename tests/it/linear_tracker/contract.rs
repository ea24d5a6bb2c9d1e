//! The documents fit Linear's published schema, and the loopback server tells what does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use apollo_compiler::{ExecutableDocument, Schema};
use dirigent::domain::ids::TicketId;
use dirigent::domain::ticket::NewTicket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::permit::EffectKind;
use dirigent::tracker::linear::{LinearConfig, LinearTracker};
use dirigent::tracker::{Acknowledgement, Tracker};
use serde_json::{Value, json};

use super::{active, config, first_mark, team, tracker};
use crate::linear::{KEY, Linear, MOST_COMPLEX, Question};
use crate::support::allowed;

#[test]
fn every_document_fits_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/contracts/linear.graphql")).unwrap();
    let schema = Schema::parse_and_validate(text, "linear.graphql").unwrap();
    let mut documents = 0;
    for entry in std::fs::read_dir(root.join("src/tracker/linear")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "graphql") {
            let text = std::fs::read_to_string(&path).unwrap();
            ExecutableDocument::parse_and_validate(&schema, text, &path).unwrap_or_else(|wrong| panic!("{wrong}"));
            documents += 1;
        }
    }
    assert_eq!(documents, 4);
}

/// Needs the schema: `sh tests/contracts/install.sh PREFIX`, then `DIRIGENT_CONTRACTS_PREFIX=PREFIX`.
#[test]
fn the_schema_is_what_linear_publishes() {
    let Some(prefix) = std::env::var_os("DIRIGENT_CONTRACTS_PREFIX") else {
        eprintln!("skipped: DIRIGENT_CONTRACTS_PREFIX is not set, so Linear's schema is not here to compare with");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/linear.mjs");
    let output = match Command::new("node").arg(script).arg("check").arg(&prefix).output() {
        Ok(output) => output,
        Err(missing) => {
            eprintln!("skipped: node cannot be started: {missing}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}

fn wrong(query: &str, variables: &Value) -> String {
    let body = json!({"query": query, "operationName": "Q", "variables": variables});
    Question::read(&body).err().unwrap_or_else(|| panic!("{query} passes"))
}

#[test]
fn what_does_not_fit_is_told() {
    assert!(wrong("query Q { viewer { nickname } }", &json!({})).contains("nickname"));
    assert!(wrong("query Q { issues(bogus: 1) { nodes { id } } }", &json!({})).contains("bogus"));
    let filtered = "query Q($f: IssueFilter) { issues(filter: $f, first: 1) { nodes { id } } }";
    assert!(wrong(filtered, &json!({"f": {"team": {"nokey": 1}}})).contains("variables"));
    assert!(wrong(filtered, &json!({"f": null, "g": 1})).contains("$g"));
    let deep = "query Q { issues { nodes { labels { nodes { id } } comments { nodes { id } } } } }";
    assert!(wrong(deep, &json!({})).contains(&format!("more than {MOST_COMPLEX}")));
}

#[test]
fn complexity_is_counted_as_linear_publishes_it() {
    let cost = |query: &str| {
        let body = json!({"query": query, "operationName": "Q", "variables": {}});
        Question::read(&body).unwrap_or_else(|wrong| panic!("{wrong}")).complexity()
    };
    assert_eq!(cost("query Q { viewer { id name } }"), 2, "one object, two scalars, rounded up");
    assert_eq!(cost("query Q { issues(first: 10) { nodes { id } } }"), 12, "1 + 10 * (1 + 0.1)");
    assert_eq!(cost("query Q { issues { nodes { id } } }"), 56, "fifty, where nothing is said");
}

/// Every document of ours, with the sizes that the adapter gives it, is sent here and counted.
#[tokio::test]
async fn no_document_costs_too_much() {
    let linear = Linear::start();
    let id = linear.add_issue("one", "Todo", &["Bug"]);
    // More of everything than one reading brings.
    for number in 0..160 {
        linear.say(&linear.user("ada"), &id, &format!("word {number}"));
    }
    for number in 0..60 {
        let blocker = linear.add_issue(&format!("before {number}"), "Done", &[]);
        linear.block(&id, &blocker);
        linear.label(&linear.user("ada"), &id, &format!("label {number}"));
    }
    let sweeping =
        LinearConfig { sweep_every: std::time::Duration::ZERO, create_labels: true, ..config(&linear, team("ENG")) };
    let (board, sweeper) = (tracker(&linear, team("ENG")), LinearTracker::new(sweeping).unwrap());
    let (ticket, permit) = (TicketId::new(&id), allowed(EffectKind::Comment));
    let now = Timestamp(linear.now().as_millisecond());
    let mark = first_mark(&board).await;
    board.poll(&active(), Some(&mark)).await.unwrap();
    let mark = first_mark(&sweeper).await;
    sweeper.poll(&active(), Some(&mark)).await.unwrap();
    board.whoami().await.unwrap();
    board.probe().await.unwrap();
    board.permission("ada").await.unwrap();
    let said = board.comment(&permit, &ticket, "started:1", "Started.", now).await.unwrap();
    board.edit_comment(&permit, &ticket, &said.id, "Going on.").await.unwrap();
    board.react(&permit, &ticket, &said.id, Acknowledgement::Seen).await.unwrap();
    board.move_ticket(&permit, &ticket, "In Progress", &[]).await.unwrap();
    sweeper.label(&permit, &ticket, &["new".to_owned()], &[]).await.unwrap();
    board.attach_link(&permit, &ticket, "https://example.com/1", "PR").await.unwrap();
    let new = NewTicket {
        title: "after".to_owned(),
        description: String::new(),
        labels: Vec::new(),
        priority: None,
        parent: None,
        blocked_by: vec![ticket],
    };
    board.create_ticket(&permit, &new, "1").await.unwrap();

    let mut costs = BTreeMap::<String, u64>::new();
    for entry in linear.journal() {
        let most = costs.entry(entry.operation).or_default();
        *most = entry.complexity.max(*most);
    }
    println!("the most that each document costs, of {MOST_COMPLEX}: {costs:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tracker/linear");
    let texts = ["issues", "watch", "reads", "writes"]
        .map(|name| std::fs::read_to_string(root.join(format!("{name}.graphql"))).unwrap());
    let lines = texts.iter().flat_map(|text| text.lines());
    let named = lines.filter_map(|line| line.strip_prefix("query ").or(line.strip_prefix("mutation ")));
    let named: BTreeSet<&str> = named.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap()).collect();
    let sent: BTreeSet<&str> = costs.keys().map(String::as_str).collect();
    assert_eq!(sent, named, "every document was sent, and counted");
    assert!(costs.values().all(|cost| *cost < MOST_COMPLEX), "{costs:?}");
}

#[tokio::test]
async fn a_violation_fails_the_test() {
    let linear = Linear::start();
    let body = json!({"query": "query Q { viewer { nickname } }", "operationName": "Q"});
    let client = reqwest_like(&linear, &body).await;
    assert_eq!(client, 400);
    assert!(linear.take_violations()[0].contains("nickname"));
}

/// A request by hand.
async fn reqwest_like(linear: &Linear, body: &Value) -> u16 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = linear.endpoint().trim_start_matches("http://").trim_end_matches("/graphql").to_owned();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /graphql HTTP/1.1\r\nhost: linear\r\nauthorization: {KEY}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
