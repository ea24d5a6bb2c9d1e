//! How often the board is asked in an hour, and that ten minutes of errors stop nobody. The driver and the poller are the real
//! ones; the board and the workers are made up, and thirty seconds between two polls pass in a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use dirigent::domain::phase::Phase;
use dirigent::tracker::TrackerError;

use crate::support::driven::{Driven, Play, Stage};
use crate::support::troubled::Trouble;

fn working(driven: &Driven) -> usize {
    driven.snapshot().jobs.iter().filter(|job| job.phase == Phase::Implementing).count()
}

/// What was asked since the last time.
fn count(driven: &Driven) -> BTreeMap<&'static str, usize> {
    let mut calls = BTreeMap::new();
    for name in driven.stage.board.line.take() {
        *calls.entry(name).or_default() += 1;
    }
    calls
}

async fn polled(driven: &Driven, often: usize) {
    driven.until(&format!("{often} polls"), |driven| driven.stage.board.line.count("list", "") >= often).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_with_five_hundred_candidates_and_ten_minutes_of_errors() {
    let names: Vec<String> = (0..500).map(|number| format!("t-{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stage = Stage::new(&names, Play::UntilStopped);
    let usual = dirigent::config::Settings::default().policy("hash", false).polling_interval;
    assert_eq!(usual, Duration::from_secs(30), "an hour has 120 polls of the default period");
    stage.policy.polling_interval = Duration::from_millis(50);
    let slots = stage.policy.agent.max_concurrent;
    let driven = stage.start().await;

    // The board is read, and as many are started as there are slots.
    polled(&driven, 3).await;
    driven.until("all slots are in use", |driven| working(driven) == slots).await;
    let begin = count(&driven);
    let total = |calls: &BTreeMap<&str, usize>| calls.values().sum::<usize>();
    let beside = total(&begin) - begin["list"];
    assert!(beside <= 4 * slots, "the beginning: {begin:?}");
    // An hour: one request per poll, whatever is on the board.
    polled(&driven, 120).await;
    let hour = count(&driven);
    println!("requests in an hour with 500 candidates and {slots} workers: {hour:?}");
    assert!(total(&hour) <= 150, "{hour:?}");
    // Ten minutes of errors: nobody is stopped, nobody is started, and the board is not asked more often for it.
    let error = TrackerError::Status { status: 500, detail: "internal error".into() };
    driven.stage.board.line.trouble("", "", Trouble::Fails(error));
    polled(&driven, 20).await;
    let outage = count(&driven);
    assert!(total(&outage) <= 2 * 20 + slots, "{outage:?}");
    driven
        .until("the outage is seen", |driven| {
            driven.snapshot().tracker.last_error.as_ref().is_some_and(|error| error.contains("500"))
        })
        .await;
    assert_eq!(working(&driven), slots);
    driven.stage.board.line.mend();
    polled(&driven, 5).await;
    assert_eq!(working(&driven), slots);
    let heard = driven.stage.host.heard.lock().unwrap().clone();
    assert!(heard.is_empty(), "told: {heard:?}");
}
