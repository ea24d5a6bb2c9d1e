//! A lane with calls that hang, panic, are rate limited or refused. The paused clock advances only while all tasks wait.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{CallError, CallQueue, LaneFailure};
use crate::domain::lane::Lane;
use crate::runtime::lanes::{LaneNews, Priority};
use crate::tracker::TrackerError;

const LIMIT: Duration = Duration::from_secs(60);

type Answer = Result<u32, TrackerError>;

fn lane(limit: usize) -> (Arc<CallQueue>, mpsc::UnboundedReceiver<LaneNews>) {
    let (sender, news) = mpsc::unbounded_channel();
    (Arc::new(CallQueue::new(Lane::Tracker, limit, sender)), news)
}

async fn hang() -> Answer {
    pending().await
}

async fn fail(error: TrackerError) -> Answer {
    Err(error)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_dropped_at_its_deadline_and_its_place_is_free() {
    let (lane, _news) = lane(1);
    let began = Instant::now();
    let late = lane.call(Priority::Write, LIMIT, hang()).await.unwrap_err();
    assert_eq!(late, CallError::Lane(LaneFailure::Late { lane: Lane::Tracker, limit: LIMIT }));
    assert_eq!(late.to_string(), "the tracker gave no answer within 60 s");
    assert_eq!(began.elapsed(), LIMIT);
    assert_eq!(lane.call(Priority::Look, LIMIT, async { Answer::Ok(1) }).await.unwrap(), 1);
    assert_eq!((lane.view().busy, lane.view().waiting), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn looks_that_hang_never_hold_a_write() {
    let (lane, _news) = lane(3);
    for _ in 0..10 {
        let lane = lane.clone();
        tokio::spawn(async move { lane.call(Priority::Look, LIMIT, hang()).await });
    }
    tokio::task::yield_now().await;
    assert_eq!((lane.view().busy, lane.view().waiting), (2, 8));
    let began = Instant::now();
    lane.call(Priority::Land, LIMIT, async { Answer::Ok(1) }).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_is_finished_goes_before_writes_starts_and_looks() {
    let (lane, _news) = lane(1);
    let first = lane.enter(Priority::Look).await.unwrap();
    let (done, mut order) = mpsc::unbounded_channel();
    let wanted = [Priority::Look, Priority::Start, Priority::Write, Priority::Land, Priority::Write];
    for (number, priority) in wanted.into_iter().enumerate() {
        let (lane, done) = (lane.clone(), done.clone());
        tokio::spawn(async move {
            let _slot = lane.enter(priority).await.unwrap();
            done.send((priority, number)).unwrap();
        });
        tokio::task::yield_now().await;
    }
    drop(first);
    let mut came = Vec::new();
    for _ in wanted {
        came.push(order.recv().await.unwrap());
    }
    let expected =
        [(Priority::Land, 3), (Priority::Write, 2), (Priority::Write, 4), (Priority::Start, 1), (Priority::Look, 0)];
    assert_eq!(came, expected);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_waiting_costs_no_place() {
    let (lane, _news) = lane(1);
    let first = lane.enter(Priority::Write).await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), lane.enter(Priority::Write)).await.unwrap_err();
    drop(first);
    let second = lane.enter(Priority::Write).await.unwrap();
    assert_eq!(lane.view().busy, 1);
    drop(second);
    assert_eq!(lane.view().busy, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_answer_and_costs_no_place() {
    let (lane, _news) = lane(1);
    let broke = lane.call(Priority::Write, LIMIT, async { panic!("on purpose: {}", 7) as Answer }).await.unwrap_err();
    assert_eq!(broke.to_string(), "the tracker broke down: on purpose: 7");
    lane.call(Priority::Write, LIMIT, async { Answer::Ok(1) }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_back_for_others_holds_nobody_else_up() {
    let (lane, mut news) = lane(2);
    let wait = Duration::from_secs(600);
    let later = TrackerError::Later { wait, why: "the last requests are kept".to_owned() };
    let refused = lane.call(Priority::Look, LIMIT, async { Answer::Err(later) }).await.unwrap_err();
    assert_eq!(refused.wait(), Some(wait));
    lane.call(Priority::Land, LIMIT, async { Answer::Ok(1) }).await.unwrap();
    assert!(lane.view().paused_until.is_none());
    assert!(news.try_recv().is_err(), "nothing is wrong with the lane");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_told_to_wait_asks_nothing_until_then_and_says_so_once() {
    let (lane, mut news) = lane(4);
    let limited = TrackerError::RateLimited { retry_after: Some(Duration::from_secs(90)) };
    let calls = Arc::new(AtomicUsize::new(0));
    let ask = |answer: Answer| {
        let calls = calls.clone();
        lane.call(Priority::Look, LIMIT, async move {
            calls.fetch_add(1, Ordering::SeqCst);
            answer
        })
    };
    let (one, two) = tokio::join!(ask(Err(limited.clone())), ask(Err(limited.clone())));
    assert_eq!(
        (one.unwrap_err().wait(), two.unwrap_err().wait()),
        (Some(Duration::from_secs(90)), Some(Duration::from_secs(90)))
    );
    let asked = calls.load(Ordering::SeqCst);
    let held = ask(Ok(1)).await.unwrap_err();
    assert!(matches!(held, CallError::Lane(LaneFailure::Held { locked_out: false, .. })), "{held:?}");
    assert!(held.wait().unwrap() <= Duration::from_secs(90));
    assert_eq!(calls.load(Ordering::SeqCst), asked, "it was asked all the same");
    assert!(lane.view().paused_until.is_some() && !lane.view().locked_out);
    tokio::time::advance(Duration::from_secs(91)).await;
    ask(Ok(1)).await.unwrap();
    assert_eq!((lane.view().paused_until, lane.view().last_error), (None, None));
    let told: Vec<LaneNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
    assert!(
        matches!(
            told.as_slice(),
            [LaneNews::Paused { lane: Lane::Tracker, until: Some(_), locked_out: false, .. }, LaneNews::Works { .. }]
        ),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lane_without_rights_tries_now_and_then_and_says_so_once() {
    let (lane, mut news) = lane(4);
    let refused = || fail(TrackerError::Status { status: 401, detail: "bad credentials".into() });
    for _ in 0..3 {
        lane.call(Priority::Write, LIMIT, refused()).await.unwrap_err();
        let held = lane.call(Priority::Write, LIMIT, refused()).await.unwrap_err();
        assert!(matches!(held, CallError::Lane(LaneFailure::Held { locked_out: true, .. })), "{held:?}");
        assert!(lane.view().locked_out);
        tokio::time::advance(Duration::from_secs(30)).await;
    }
    lane.call(Priority::Write, LIMIT, async { Answer::Ok(1) }).await.unwrap();
    assert!(!lane.view().locked_out);
    let told: Vec<LaneNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
    assert!(
        matches!(told.as_slice(), [LaneNews::Paused { until: None, locked_out: true, .. }, LaneNews::Works { .. }]),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_good_to_its_caller_leaves_the_lane_well() {
    let (lane, mut news) = lane(4);
    lane.call(Priority::Look, LIMIT, fail(TrackerError::NotFound("t-1".into()))).await.unwrap_err();
    assert!(lane.view().last_ok.is_some() && lane.view().last_error.is_none());
    lane.call(Priority::Look, LIMIT, fail(TrackerError::Request("no route".into()))).await.unwrap_err();
    lane.call(Priority::Look, LIMIT, fail(TrackerError::Request("no route".into()))).await.unwrap_err();
    assert!(lane.view().last_error.unwrap().contains("no route"));
    let told: Vec<LaneNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
    assert!(matches!(told.as_slice(), [LaneNews::Failing { .. }]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_greater_limit_lets_those_in_who_wait() {
    let (lane, _news) = lane(1);
    let _first = lane.enter(Priority::Write).await.unwrap();
    let waiting = tokio::spawn({
        let lane = lane.clone();
        async move { lane.enter(Priority::Write).await.unwrap() }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    lane.set_limit(2);
    let _second = waiting.await.unwrap();
    assert_eq!(lane.view().busy, 2);
}
