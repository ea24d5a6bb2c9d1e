//! Events as they happen.

use super::client::Events;
use super::{ASKS, ENDLESS, ServedBoard};
use crate::support::board::MERGE;

#[test]
fn whoever_comes_back_gets_what_was_missed_and_nothing_twice() {
    let served = ServedBoard::new(ASKS, MERGE, |board| board.ticket("t-1", "Ask"));
    let mut events = Events::open(&served.address, "");
    let first = events.read().unwrap();
    assert_eq!(first.kind, "state");
    assert!(first.data["tickets"].is_array(), "{}", first.data);
    served.until("it asks", || served.phase("t-1") == "blocked");
    let seen = if first.data["tickets"][0]["phase"] == "blocked" {
        first
    } else {
        events.wait("the ticket is blocked", |event| event.data["changed"][0]["phase"] == "blocked")
    };
    drop(events);
    served.board.ticket("t-2", "Another");
    served.until("the other asks", || served.phase("t-2") == "blocked");
    let mut events = Events::open(&served.address, &format!("Last-Event-ID: {}\r\n", seen.id));
    let next = events.read().unwrap();
    assert_eq!(next.kind, "change", "what was missed is told one by one");
    let number = |id: &str| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(number(&next.id), number(&seen.id) + 1);
    assert!(next.data["changed"].is_array() && next.data["gone"].is_array() && next.data.get("tickets").is_none());
    for unknown in ["1-1", "nonsense", "99999999999999999999-1", ""] {
        let mut events = Events::open(&served.address, &format!("Last-Event-ID: {unknown}\r\n"));
        assert_eq!(events.read().unwrap().kind, "state", "{unknown}");
    }
    served.runner.end();
    while events.read().is_some() {}
}

#[test]
fn a_thousand_who_follow_and_one_who_never_reads_hold_nobody_up() {
    let served = ServedBoard::new(ENDLESS, MERGE, |board| board.ticket("t-1", "Work"));
    served.until("it works", || served.phase("t-1") == "implementing");
    // Two ends of each connection, and only one of them is in this process.
    let soft = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, soft.1.min(4096), soft.1).unwrap();
    let silent = Events::open(&served.address, "");
    let mut all: Vec<Events> = (0..1000).map(|_| Events::open(&served.address, "")).collect();
    for events in &mut all {
        assert_eq!(events.read().unwrap().kind, "state");
    }
    assert_eq!(served.get("/api/v1/state").status, 200, "there is room for a question");
    served.board.ok(&["pause", "t-1"]);
    for events in &mut all {
        events.wait("the pause", |event| event.data["switches"][0]["subject"] == "t-1");
    }
    let began = std::time::Instant::now();
    served.board.ok(&["resume", "t-1"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    drop(silent);
    served.runner.end();
}
