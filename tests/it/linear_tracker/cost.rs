//! What a board costs while nothing happens, however large it is.

use std::time::{Duration, Instant};

use dirigent::tracker::{BoardAnswer, Tracker};

use super::{active, first_mark, team, titles, tracker};
use crate::linear::Linear;

/// What this thread has used of a processor: ours, and not the server's, which has a thread of its own.
fn processor() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(spent.split_whitespace().next().unwrap().parse().unwrap())
}

async fn one_request_per_idle_tick(candidates: usize) {
    let linear = Linear::start();
    linear.allow_requests(u64::MAX / 2);
    let ids: Vec<String> =
        (0..candidates).map(|number| linear.add_issue(&format!("ticket {number}"), "Todo", &[])).collect();
    linear.advance(jiff::SignedDuration::from_hours(1));
    let tracker = tracker(&linear, team("ENG"));
    let (began, spent) = (Instant::now(), processor());
    let mark = first_mark(&tracker).await;
    let (asked, read_in, reading) = (linear.journal().len(), began.elapsed(), processor() - spent);
    linear.forget_journal();
    let (began, spent) = (Instant::now(), processor());
    for _ in 0..10 {
        assert_eq!(tracker.poll(&active(), Some(&mark)).await.unwrap().answer, BoardAnswer::Unchanged);
    }
    let (idle, idling) = (began.elapsed() / 10, (processor() - spent) / 10);
    let journal = linear.journal();
    assert_eq!(journal.len(), 10, "one request per tick: {journal:?}");
    println!(
        "{candidates} candidates: read once with {asked} requests in {read_in:?}, {reading:?} of them ours; an idle tick costs 1 request, {} of complexity, {idle:?}, {idling:?} of them ours",
        journal[0].complexity
    );
    assert!(idling * 10 < reading, "an idle tick costs {idling:?}, the whole board {reading:?}");
    linear.forget_journal();
    linear.shift(&linear.user("ada"), &ids[candidates / 2], "In Progress");
    match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Changed { tickets, .. } => {
            assert_eq!(titles(&tickets), [format!("ticket {}", candidates / 2).as_str()], "seen within one poll");
        }
        other => panic!("{other:?}"),
    }
    let asked: Vec<String> = linear.journal().into_iter().map(|entry| entry.operation).collect();
    assert_eq!(asked, ["Changes", "Issues", "People"][..asked.len()], "and read by itself");
}

#[tokio::test]
async fn a_thousand_candidates() {
    one_request_per_idle_tick(1_000).await;
}

#[tokio::test]
async fn five_thousand_candidates() {
    one_request_per_idle_tick(5_000).await;
}
