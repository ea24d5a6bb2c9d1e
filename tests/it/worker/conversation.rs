//! Many turns on one live session, with a scripted agent that speaks a real protocol.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dirigent::config::agent::{AskDefault, OnRequest, RequestRule};
use dirigent::config::worker::Runtime;
use dirigent::domain::failure::RunFailure;
use dirigent::domain::ids::{RunId, TicketId};
use dirigent::domain::job::HumanMessage;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{Activity, RunOutcome, StopReason};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::worker::{Control, TicketSource, run_directory};
use tokio::sync::Semaphore;

use super::bench::{Bench, PATIENCE, Running, poll};

fn speaking(turns: &[&str]) -> Bench {
    let mut bench = Bench::new(&[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/acp.sh");
    let turns: Vec<String> = turns.iter().map(|turn| format!("'{turn}'")).collect();
    bench.settings.worker.runtime = Runtime::Acp;
    bench.settings.acp.command = format!("exec '{script}' {}", turns.join(" "));
    bench.settings.acp.timeouts.read = PATIENCE;
    bench
}

fn prompts(bench: &Bench, run: &RunId) -> Vec<String> {
    let kept = run_directory(&bench.path("state"), run).join("artifacts").join("prompts");
    fs::read_to_string(kept).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn word(text: &str, urgent: bool) -> Control {
    Control::Steer(HumanMessage { key: None, from: "ann".into(), text: text.into(), at: Timestamp(0), urgent })
}

/// Waits until the worker has taken what it was told.
async fn taken(running: &Running) {
    poll("the word is taken", || running.control.capacity() == running.control.max_capacity()).await;
}

#[tokio::test]
async fn spec_7_a_live_ticket_goes_on_with_guidance_on_the_same_session() {
    let mut bench = speaking(&["say=nothing", "commit=a.txt", "say=nothing"]);
    bench.settings.agent.max_turns = 3;
    let mut running = bench.start();
    let run = running.run.clone();
    let session = running.activity(|one| matches!(one, Activity::SessionKnown { .. })).await;
    assert_eq!(session, Activity::SessionKnown { session: "s1".into() });
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{report:?}");
    assert_eq!((report.turns, report.commits_ahead), (3, 1));
    assert_eq!(report.session, Some("s1".into()));
    let prompts = prompts(&bench, &run);
    assert!(
        prompts[0].contains("Work on t-1") && prompts[1].contains("Go on, turn 2") && prompts[2].contains("turn 3")
    );
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_ticket_in_our_own_column_goes_on_although_that_column_is_not_an_active_one() {
    let mut bench = speaking(&["say=nothing", "commit=a.txt", "say=nothing"]);
    bench.settings.agent.max_turns = 3;
    bench.settings.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    let running = bench.start();
    bench.ticket.lock().unwrap().state = "In Progress".into();
    assert_eq!(running.report().await.turns, 3);
}

#[tokio::test]
async fn a_ticket_that_lost_its_label_ends_the_turns() {
    let mut bench = speaking(&["commit=a.txt", "say=nothing"]);
    bench.settings.agent.max_turns = 2;
    bench.settings.orchestration.ownership.required_label = Some("dirigent".into());
    assert_eq!(bench.run().await.turns, 1);
}

#[tokio::test]
async fn a_ticket_that_is_over_ends_the_turns() {
    let bench = speaking(&["commit=a.txt"]);
    bench.ticket.lock().unwrap().state = "closed".into();
    let report = bench.run().await;
    assert_eq!((report.outcome, report.turns), (RunOutcome::Done, 1));
}

#[tokio::test]
async fn a_persons_words_reach_the_next_turn() {
    let go = tempfile::tempdir().unwrap();
    let flag = go.path().join("go");
    let mut bench = speaking(&[&format!("await={}", flag.display()), "commit=a.txt"]);
    bench.settings.agent.max_turns = 2;
    let running = bench.start();
    let run = running.run.clone();
    poll("the first turn runs", || !prompts(&bench, &run).is_empty()).await;
    running.control.send(word("use tabs", false)).await.unwrap();
    taken(&running).await;
    fs::write(&flag, "").unwrap();
    let report = running.report().await;
    assert_eq!(report.turns, 2);
    assert!(prompts(&bench, &run)[1].contains("use tabs"), "{:?}", prompts(&bench, &run));
}

#[tokio::test]
async fn an_urgent_word_interrupts_the_turn() {
    let mut bench = speaking(&["wait", "commit=a.txt"]);
    bench.settings.agent.max_turns = 2;
    let running = bench.start();
    let run = running.run.clone();
    poll("the first turn runs", || !prompts(&bench, &run).is_empty()).await;
    running.control.send(word("stop that", true)).await.unwrap();
    let report = running.report().await;
    assert_eq!((&report.outcome, report.turns), (&RunOutcome::Done, 2), "{report:?}");
    assert!(prompts(&bench, &run)[1].contains("stop that"));
}

#[tokio::test]
async fn a_stop_cancels_the_turn_and_ends_the_process() {
    let mut bench = speaking(&["wait"]);
    bench.settings.agent.stop_grace = PATIENCE * 10;
    let running = bench.start();
    let run = running.run.clone();
    poll("the turn runs", || !prompts(&bench, &run).is_empty()).await;
    running.control.send(Control::Stop(StopReason::KillSwitch)).await.unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::KillSwitch });
    assert!(bench.transcript(&run).contains("session/cancel"));
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn a_pool_without_quota_ends_at_the_turns_end() {
    let go = tempfile::tempdir().unwrap();
    let flag = go.path().join("go");
    let bench = speaking(&[&format!("await={}", flag.display()), "commit=a.txt"]);
    let running = bench.start();
    let run = running.run.clone();
    poll("the turn runs", || !prompts(&bench, &run).is_empty()).await;
    running.control.send(Control::StopAfterTurn).await.unwrap();
    taken(&running).await;
    fs::write(&flag, "").unwrap();
    let report = running.report().await;
    assert_eq!(report.outcome, RunOutcome::Killed { reason: StopReason::Quota });
    assert_eq!(report.turns, 1);
}

async fn asked(change: impl FnOnce(&mut Bench), answer: Option<&str>) -> (RunOutcome, String) {
    let mut bench = speaking(&["ask"]);
    bench.settings.agent.max_turns = 1;
    change(&mut bench);
    let mut running = bench.start();
    if let Some(answer) = answer {
        let asked = running.activity(|one| matches!(one, Activity::Asked { .. })).await;
        assert!(matches!(asked, Activity::Asked { question } if question.contains("execute")));
        running.control.send(word(answer, false)).await.unwrap();
    }
    let report = running.report().await;
    let branch = "dirigent/t-1-make-it-work";
    let answer = report.head.as_ref().filter(|_| report.commits_ahead > 0).map(|_| bench.content(branch, "answer.txt"));
    (report.outcome, answer.unwrap_or_default())
}

#[tokio::test]
async fn a_request_is_answered_by_policy_rule_or_person() {
    let ask = |bench: &mut Bench| bench.settings.agent.on_request = OnRequest::Ask;
    assert!(asked(|_| {}, None).await.1.contains(r#""yes""#), "auto");
    assert!(asked(ask, Some("approve")).await.1.contains(r#""yes""#));
    assert!(asked(ask, Some("deny")).await.1.contains(r#""no""#));
    let denied = asked(|bench| bench.settings.agent.deny = vec![RequestRule { tool: "*".into(), pattern: None }], None);
    assert!(denied.await.1.contains(r#""no""#));
}

#[tokio::test]
async fn nobody_answers_in_time() {
    let (_, answer) = asked(
        |bench| {
            bench.settings.agent.on_request = OnRequest::Ask;
            bench.settings.agent.ask_timeout = Duration::from_millis(50);
        },
        None,
    )
    .await;
    assert!(answer.contains(r#""no""#), "the default is to deny: {answer}");
}

#[tokio::test]
async fn what_is_said_when_nobody_answers_is_the_files_to_say() {
    let nobody = |bench: &mut Bench| {
        bench.settings.agent.on_request = OnRequest::Ask;
        bench.settings.agent.ask_timeout = Duration::from_millis(50);
        bench.settings.agent.ask_default = AskDefault::Approve;
    };
    assert!(asked(nobody, None).await.1.contains(r#""yes""#));
}

#[tokio::test]
async fn a_request_that_nobody_may_answer_fails_the_run_at_once() {
    let (outcome, _) = asked(|bench| bench.settings.agent.on_request = OnRequest::Fail, None).await;
    assert!(matches!(outcome, RunOutcome::Failed { failure: RunFailure::InputRequired { .. } }), "{outcome:?}");
}

#[tokio::test]
async fn an_agent_that_says_a_word_and_falls_silent_has_the_time_that_the_file_gives_it() {
    let mut bench = speaking(&[]);
    bench.settings.acp.command = "echo '{}'; cat >/dev/null; exec sleep 1000".into();
    bench.settings.acp.timeouts.read = Duration::from_millis(200);
    bench.settings.agent.start_timeout = PATIENCE;
    let outcome = bench.run().await.outcome;
    let RunOutcome::Failed { failure: RunFailure::Handshake { detail } } = outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("no word for 200 ms"), "{detail}");
}

#[tokio::test]
async fn a_handshake_that_never_comes_is_named() {
    let mut bench = speaking(&[]);
    bench.settings.acp.command = "cat >/dev/null; exec sleep 1000".into();
    bench.settings.agent.start_timeout = Duration::from_millis(300);
    let running = bench.start();
    let run = running.run.clone();
    let outcome = running.report().await.outcome;
    let RunOutcome::Failed { failure: RunFailure::Handshake { detail } } = outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("300 ms"), "{detail}");
    bench.assert_nothing_left(&run);
}

/// It answers the first request and no other.
#[tokio::test]
async fn spec_10_an_agent_that_falls_silent_before_it_is_ready_has_read_timeout() {
    let mut bench = speaking(&[]);
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/acp.sh");
    bench.settings.acp.command = format!("sed -u '/session.new/d' | '{fake}'");
    bench.settings.acp.timeouts.read = Duration::from_millis(300);
    bench.settings.agent.start_timeout = PATIENCE * 10;
    let running = bench.start();
    let run = running.run.clone();
    let outcome = running.report().await.outcome;
    let RunOutcome::Failed { failure: RunFailure::Handshake { detail } } = outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("no word for 300 ms"), "{detail}");
    bench.assert_nothing_left(&run);
}

#[tokio::test]
async fn an_agent_that_dies_before_it_is_ready_leaves_its_last_words() {
    let mut bench = speaking(&[]);
    bench.settings.acp.command = "echo no key found >&2; exit 9".into();
    let outcome = bench.run().await.outcome;
    let RunOutcome::Failed { failure: RunFailure::Handshake { detail } } = outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("code 9") && detail.contains("no key found"), "{detail}");
}

#[tokio::test]
async fn a_death_in_the_middle_of_a_turn_is_told_apart() {
    let mut bench = speaking(&[]);
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/acp.sh");
    // The agent is gone as soon as it is prompted.
    bench.settings.acp.command = format!("sed -u '/session.prompt/Q' | {{ '{fake}'; echo half > new.txt; exit 8; }}");
    let report = bench.run().await;
    assert_eq!(report.outcome, RunOutcome::Failed { failure: RunFailure::Exit { code: 8, said: None } });
    assert_eq!(bench.content(&report.salvage.unwrap().reference, "new.txt"), "half");
}

/// A worker whose agent speaks Codex's protocol and never takes up what it is told in the middle of a turn. `turn` is shell.
fn deaf(turn: &str) -> Bench {
    let mut bench = Bench::new(&[]);
    let script = bench.path("codex");
    fs::write(&script, include_str!("../../fakes/codex.sh").replace("    TURN\n", &format!("    {turn}\n"))).unwrap();
    bench.settings.worker.runtime = Runtime::Codex;
    bench.settings.codex.command = format!("exec sh '{}'", script.display());
    bench.settings.codex.timeouts.read = PATIENCE;
    bench.settings.agent.max_turns = 5;
    bench
}

fn assert_wrapped_up(bench: &Bench, run: &RunId, turns: u32) {
    let prompts = prompts(bench, run);
    assert_eq!((prompts.len(), turns), (2, 2), "{prompts:?}");
    assert!(prompts[1].contains("Your budget is nearly spent"), "{}", prompts[1]);
    assert!(!prompts[1].contains("says"), "nobody said it: {}", prompts[1]);
}

#[tokio::test]
async fn a_call_to_wrap_up_that_the_turn_dropped_is_the_next_prompt() {
    let place = tempfile::tempdir().unwrap();
    let flag = place.path().join("go");
    let bench = deaf(&format!("while ! [ -e '{}' ]; do sleep 0.02; done", flag.display()));
    let running = bench.start();
    let run = running.run.clone();
    poll("the first turn runs", || !prompts(&bench, &run).is_empty()).await;
    running.control.send(Control::WrapUp).await.unwrap();
    taken(&running).await;
    fs::write(&flag, "").unwrap();
    assert_wrapped_up(&bench, &run, running.report().await.turns);
}

/// A board that answers when it is let go.
struct SlowBoard {
    ticket: Ticket,
    asked: Semaphore,
    answers: Semaphore,
}

#[async_trait]
impl TicketSource for SlowBoard {
    async fn read(&self, _: &TicketId) -> Result<Option<Ticket>, String> {
        self.asked.add_permits(1);
        self.answers.acquire().await.unwrap().forget();
        Ok(Some(self.ticket.clone()))
    }
}

#[tokio::test]
async fn a_call_to_wrap_up_between_two_turns_is_the_next_prompt() {
    let bench = deaf(":");
    let ticket = bench.ticket.lock().unwrap().clone();
    let board = Arc::new(SlowBoard { ticket, asked: Semaphore::new(0), answers: Semaphore::new(0) });
    let mut worker = bench.worker();
    worker.tickets = board.clone();
    let running = bench.start_with(worker);
    let run = running.run.clone();
    board.asked.acquire().await.unwrap().forget();
    running.control.send(Control::WrapUp).await.unwrap();
    taken(&running).await;
    board.answers.add_permits(10);
    assert_wrapped_up(&bench, &run, running.report().await.turns);
}
