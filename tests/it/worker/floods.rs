//! Agents that never stop talking.

use dirigent::domain::failure::RunFailure;
use dirigent::domain::run::{Activity, RunOutcome};
use dirigent::worker::WorkerEvent;

use super::bench::Bench;

#[tokio::test]
async fn a_million_lines_are_a_few_events() {
    let bench = Bench::new(&["flood=1000000", "commit=a.txt"]);
    let mut running = bench.start();
    let run = running.run.clone();
    let mut activities = 0_u32;
    while let Some(event) = running.events.recv().await {
        activities += u32::from(matches!(event, WorkerEvent::Activity(Activity::Agent { .. })));
    }
    assert_eq!(running.report().await.outcome, RunOutcome::Done);
    assert!((1..1000).contains(&activities), "{activities}");
    let transcript = bench.transcript(&run);
    assert!(transcript.lines().count() > 900_000);
}

#[tokio::test]
async fn an_endless_line_is_cut_with_a_note() {
    let bench = Bench::new(&["endless=30000000", "say=", "say=after", "exit=5"]);
    let running = bench.start();
    let run = running.run.clone();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Failed { failure: RunFailure::Exit { code: 5, said: None } });
    let transcript = bench.transcript(&run);
    assert!(transcript.contains("was cut: 19514240 more bytes"), "{}", &transcript[transcript.len() - 300..]);
    assert!(transcript.contains(" out after\n"), "the next line is whole again");
    assert!(transcript.len() < 11_000_000);
}

#[tokio::test]
async fn what_is_not_utf_8_survives() {
    let mut bench = Bench::new(&[]);
    bench.settings.exec.command = "printf 'a\\377b\\n'; exit 6".into();
    let running = bench.start();
    let run = running.run.clone();
    assert_eq!(
        running.report().await.outcome,
        RunOutcome::Failed { failure: RunFailure::Exit { code: 6, said: None } }
    );
    let raw = std::fs::read(dirigent::worker::transcript_path(&bench.path("state"), &run)).unwrap();
    assert!(raw.windows(3).any(|three| three == b"a\xffb"));
}
