//! What a board costs while nothing happens, however large it is.

use std::time::{Duration, Instant};

use dirigent::tracker::{BoardAnswer, Tracker};

use super::runner::{board_with, symphony};
use super::{active, first_mark, team, titles, tracker};
use crate::linear::{KEY, Linear};

/// What these threads have used of a processor.
fn processor(tasks: impl IntoIterator<Item = std::path::PathBuf>) -> Duration {
    let spent = |task: std::path::PathBuf| {
        let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|spent| spent.parse().ok()).unwrap_or(0)
    };
    Duration::from_nanos(tasks.into_iter().map(spent).sum())
}

/// Ours, and not the server's, which has a thread of its own.
fn our_own() -> Duration {
    processor(["/proc/thread-self".into()])
}

fn a_board_of(candidates: usize) -> (Linear, Vec<String>) {
    let linear = Linear::start();
    linear.allow_requests(u64::MAX / 2);
    let ids = (0..candidates).map(|number| linear.add_issue(&format!("ticket {number}"), "Todo", &[])).collect();
    linear.advance(jiff::SignedDuration::from_hours(1));
    (linear, ids)
}

/// What it takes to read these answers once, as JSON and nothing more.
fn reading_once(answers: &[Vec<u8>]) -> (usize, Duration) {
    let spent = our_own();
    for answer in answers {
        std::hint::black_box(serde_json::from_slice::<serde_json::Value>(answer).unwrap());
    }
    (answers.iter().map(Vec::len).sum(), our_own() - spent)
}

async fn one_request_per_idle_tick(candidates: usize) {
    let (linear, ids) = a_board_of(candidates);
    let tracker = tracker(&linear, team("ENG"));
    linear.record();
    let (began, spent) = (Instant::now(), our_own());
    let mark = first_mark(&tracker).await;
    let (asked, read_in, reading) = (linear.journal().len(), began.elapsed(), our_own() - spent);
    let (bytes, json) = reading_once(&linear.recorded());
    linear.forget_journal();
    let (began, spent) = (Instant::now(), our_own());
    for _ in 0..10 {
        assert_eq!(tracker.poll(&active(), Some(&mark)).await.unwrap().answer, BoardAnswer::Unchanged);
    }
    let (idle, idling) = (began.elapsed() / 10, (our_own() - spent) / 10);
    let journal = linear.journal();
    assert_eq!(journal.len(), 10, "one request per tick: {journal:?}");
    println!(
        "{candidates} candidates: read once with {asked} requests in {read_in:?}, {reading:?} of them ours; the same {bytes} bytes of JSON \
         read once: {json:?}; an idle tick costs 1 request, {} of complexity, {idle:?}, {idling:?} of them ours",
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

/// The built runner, all of it: in observe mode nothing is written; the board is followed all the same.
fn a_runner_idles(candidates: usize) {
    const TICKS: usize = 30;
    let (linear, ids) = a_board_of(candidates);
    let key = format!("team_key: ENG\n    api_key: {KEY}");
    let board = board_with(&symphony(&linear, "rollout: {mode: observe}\n").replace("team_key: ENG", &key));
    linear.record();
    let runner = board.start();
    let ticks = || linear.journal().iter().filter(|entry| entry.operation == "Changes").count();
    // A slow machine may need several calls for it: each goes on where the one before broke off.
    let began = Instant::now();
    while ticks() < 3 {
        assert!(began.elapsed() < Duration::from_secs(30 * 60), "the board is never read: {}", runner.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    let (bytes, json) = reading_once(&linear.recorded());
    let process = format!("/proc/{}/task", runner.child.id());
    let spent = || processor(std::fs::read_dir(&process).unwrap().flatten().map(|task| task.path()));
    let (from, before) = (ticks(), spent());
    board.until("it ticks", || ticks() >= from + TICKS);
    let idling = (spent() - before) / u32::try_from(ticks() - from).unwrap();
    let journal = linear.journal();
    let first = journal.iter().position(|entry| entry.operation == "Changes").unwrap();
    assert!(journal[first..].iter().all(|entry| entry.operation == "Changes"), "one request per tick");
    println!(
        "a runner with {candidates} candidates, as the tests build it: {idling:?} of processor per idle tick; the board's {bytes} bytes of JSON \
         read once, by the test: {json:?}"
    );
    assert!(idling * 2 < json, "an idle tick costs {idling:?}, reading the JSON once {json:?}");
    linear.forget_journal();
    linear.shift(&linear.user("ada"), &ids[candidates / 2], "In Progress");
    board.until("a moved ticket is read", || linear.journal().iter().any(|entry| entry.operation == "Issues"));
    assert!(ticks() <= 2, "within one poll of its move, or of one that was under way");
    runner.end();
}

#[test]
fn a_runner_with_a_thousand_candidates() {
    a_runner_idles(1_000);
}

#[test]
fn a_runner_with_five_thousand_candidates() {
    a_runner_idles(5_000);
}
