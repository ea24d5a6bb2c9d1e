//! Adapters that hang, panic or shut us out: what hangs holds nobody else, what breaks down gives its slot back, and nothing
//! that was said is lost. The clock passes only where everybody waits, so that minutes of deadlines take no time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dirigent::config::policy::ForgeKind;
use dirigent::domain::basis::Basis;
use dirigent::domain::ids::{PrNumber, TicketId};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::CheckStatus;
use dirigent::engine::event::{Event, OperatorCommand};
use dirigent::engine::permit::EffectKind;
use dirigent::forge::ForgeError;
use dirigent::runtime::{Command, Gatekeeper, Message};
use dirigent::tracker::TrackerError;
use dirigent::worker::Control;
use tokio::sync::{Notify, oneshot};

use super::engine::fixtures;
use super::engine::machine::Machine;
use super::support::driven::{Driven, Play, Stage, ticket};
use super::support::troubled::Trouble;

fn pr_of(driven: &Driven, key: &str) -> Option<String> {
    driven.job(key).and_then(|job| job.pr).map(|pr| pr.number.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_look_that_hangs_holds_no_other_and_is_asked_again_after_its_deadline() {
    let stage = Stage::new(&["t-1", "t-2"], Play::Commits);
    stage.forge.line.trouble("inspect", "1", Trouble::Hangs);
    let driven = stage.start().await;
    driven
        .until("the other one is merged", |driven| {
            driven.snapshot().jobs.iter().filter(|job| job.phase == Phase::Done).count() == 1
        })
        .await;
    assert_eq!(driven.stage.forge.line.count("merge", "1"), 0);
    driven.until("it is asked again", |driven| driven.stage.forge.line.count("inspect", "1") >= 2).await;
    driven.stage.forge.line.mend();
    driven.until("it is merged too", |driven| driven.stage.forge.line.count("merge", "1") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn logs_that_hang_cost_a_look_one_deadline_however_many_checks_have_failed() {
    let mut stage = Stage::new(&["t-1"], Play::Commits);
    stage.policy.merge.require_human_approval = true;
    let driven = stage.start().await;
    let waits = |driven: &Driven| driven.job("t-1").is_some_and(|job| job.phase == Phase::WaitingForHuman);
    driven.until("it waits for a person", waits).await;
    driven.stage.forge.line.trouble("check log", "", Trouble::Hangs);
    for check in 0..12 {
        let name = format!("check-{check}");
        driven.stage.forge.forge.report(PrNumber(1), &name, CheckStatus::Failed, "it broke");
    }
    let began = tokio::time::Instant::now();
    driven.until("it is reworked", |driven| driven.stage.host.runs.load(Ordering::SeqCst) == 2).await;
    assert!(began.elapsed() < Duration::from_secs(5 * 60), "after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_asked_for_during_another_follows_it() {
    let mut stage = Stage::new(&["t-1"], Play::Commits);
    stage.policy.polling_interval = Duration::from_secs(24 * 60 * 60);
    stage.policy.merge.require_human_approval = true;
    let driven = stage.start().await;
    let waits = |driven: &Driven| driven.job("t-1").is_some_and(|job| job.phase == Phase::WaitingForHuman);
    driven.until("it waits for a person", |driven| waits(driven) && pr_of(driven, "t-1").is_some()).await;
    let go_on = Arc::new(Notify::new());
    let looks = |driven: &Driven| driven.stage.forge.line.count("inspect", "");
    let before = looks(&driven);
    driven.stage.forge.line.trouble("inspect", "", Trouble::Waits(go_on.clone()));
    // Whatever the first look answers, it left before the approval.
    let id = TicketId::new("t-1");
    driven.handle.command(Command::Poll, "somebody").await.unwrap();
    driven.until("a look is under way", |driven| looks(driven) == before + 1).await;
    let approve = Command::Approve { ticket: id, head: None, anyway: false, overrule: Vec::new() };
    driven.handle.command(approve, "somebody").await.unwrap();
    driven.stage.forge.line.mend();
    go_on.notify_waiters();
    driven
        .until("it is looked at again, and merged", |driven| {
            looks(driven) >= before + 2 && driven.stage.forge.line.count("merge", "") == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_comment_that_hangs_holds_neither_the_pull_request_nor_another_ticket() {
    let stage = Stage::new(&["t-1", "t-2"], Play::Commits);
    stage.board.line.trouble("comment", "t-1", Trouble::Hangs);
    stage.board.line.trouble("edit", "t-1", Trouble::Hangs);
    let driven = stage.start().await;
    driven
        .until("both are merged", |driven| {
            ["1", "2"].iter().all(|number| driven.stage.forge.line.count("merge", number) == 1)
        })
        .await;
    driven
        .until("the lane says so", |driven| {
            let lanes = &driven.snapshot().lanes;
            lanes
                .iter()
                .any(|lane| lane.lane == "tracker" && lane.last_error.as_ref().is_some_and(|e| e.contains("60 s")))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_hangs_ends_at_its_deadline_and_the_next_one_is_made() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    stage.board.line.trouble("list", "", Trouble::Hangs);
    let driven = stage.start().await;
    driven
        .until("it is told", |driven| {
            driven.snapshot().tracker.last_error.as_ref().is_some_and(|error| error.contains("no answer within"))
        })
        .await;
    driven.stage.board.line.mend();
    driven.until("work begins", |driven| driven.stage.host.runs.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_panics_is_a_poll_that_failed() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    stage.board.line.trouble("list", "", Trouble::Panics);
    let driven = stage.start().await;
    driven
        .until("it is told", |driven| {
            driven.snapshot().tracker.last_error.as_ref().is_some_and(|error| error.contains("broke down"))
        })
        .await;
    driven.stage.board.line.mend();
    driven.until("work begins", |driven| driven.stage.host.runs.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_at_the_start_of_a_run_gives_the_slot_back() {
    let mut stage = Stage::new(&["t-1", "t-2"], Play::UntilStopped);
    stage.policy.agent.max_concurrent = 1;
    stage.board.line.trouble("by id", "t-1", Trouble::Panics);
    let driven = stage.start().await;
    driven
        .until("the other one has the slot", |driven| {
            driven
                .job("t-2")
                .is_some_and(|job| job.phase == Phase::Implementing && job.run.is_some_and(|r| r.pid.is_some()))
        })
        .await;
    assert_eq!(driven.snapshot().counts.running, 1);
    let first = driven.job("t-1").unwrap();
    assert_eq!(first.phase, Phase::Queued, "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_gives_its_slot_back_even_if_nothing_can_be_reclaimed() {
    let mut stage = Stage::new(&["t-1"], Play::Panics);
    stage.policy.agent.max_retries = 0;
    stage.host.reclaim_panics.store(true, Ordering::SeqCst);
    let driven = stage.start().await;
    driven
        .until("the slot is free", |driven| {
            driven.stage.host.runs.load(Ordering::SeqCst) == 1 && driven.snapshot().counts.running == 0
        })
        .await;
    assert_eq!(driven.stage.host.reclaimed.lock().unwrap().len(), 1);
}

/// A poll that starts a run, and a stop, in one batch.
async fn stop_with_the_start(disk_full: bool) -> Driven {
    let mut stage = Stage::new(&["t-1"], Play::UntilStopped);
    stage.policy.pr.forge = ForgeKind::None;
    stage.disk_full.store(disk_full, Ordering::SeqCst);
    let (ready, handle) = stage.assemble().await;
    let polled = Event::Polled { tickets: vec![ticket("t-1")], base: None, basis: Basis::default() };
    handle.inbox.send(Message::Event(polled)).await.unwrap();
    let (reply, _answer) = oneshot::channel();
    let stop = Command::Operator(OperatorCommand::Stop { ticket: TicketId::new("t-1") });
    handle.inbox.send(Message::Command { command: stop, by: "somebody".into(), reply }).await.unwrap();
    ready.start_without_polls()
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_overtakes_its_start_is_obeyed_before_anything_is_made() {
    let driven = stop_with_the_start(false).await;
    driven.until("it is blocked", |driven| driven.job("t-1").is_some_and(|job| job.phase == Phase::Blocked)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(driven.snapshot().counts.running, 0);
    assert_eq!(driven.stage.host.runs.load(Ordering::SeqCst), 0, "the run was started all the same");
    assert_eq!(driven.job("t-1").unwrap().phase, Phase::Blocked);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_overtakes_its_start_is_obeyed_on_a_full_disk_and_after_it() {
    let driven = stop_with_the_start(true).await;
    driven.until("it is blocked", |driven| driven.job("t-1").is_some_and(|job| job.phase == Phase::Blocked)).await;
    assert!(driven.snapshot().ledger_error.is_some());
    driven.stage.disk_full.store(false, Ordering::SeqCst);
    driven.until("the disk has room", |driven| driven.snapshot().ledger_error.is_none()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(driven.stage.host.runs.load(Ordering::SeqCst), 0, "the run was started all the same");
    assert_eq!((driven.snapshot().counts.running, driven.job("t-1").unwrap().phase), (0, Phase::Blocked));
}

#[tokio::test(start_paused = true)]
async fn a_runner_on_a_full_disk_ends_when_it_is_told_although_a_start_was_decided() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    let full = stage.disk_full.clone();
    full.store(true, Ordering::SeqCst);
    let (ready, handle) = stage.assemble().await;
    let polled = Event::Polled { tickets: vec![ticket("t-1")], base: None, basis: Basis::default() };
    handle.inbox.send(Message::Event(polled)).await.unwrap();
    let mut driven = ready.start_without_polls();
    driven.until("the start waits for the disk", |driven| driven.snapshot().counts.running == 1).await;
    driven.handle.command(Command::Shutdown, "somebody").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(3600), &mut driven.running).await;
    assert!(ended.expect("it ends").unwrap().is_err(), "the ledger could not be written, and that is said");
    assert_eq!(driven.stage.host.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_before_the_worker_listens_reaches_it_in_its_order() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    let go_on = Arc::new(Notify::new());
    stage.board.line.trouble("by id", "t-1", Trouble::Waits(go_on.clone()));
    let driven = stage.start().await;
    driven.until("the ticket is being read", |driven| driven.stage.board.line.count("by id", "t-1") == 1).await;
    for text in ["first", "second", "third"] {
        let word = Command::Message { ticket: TicketId::new("t-1"), text: text.into(), urgent: false };
        driven.handle.command(word, "somebody").await.unwrap();
    }
    driven.stage.board.line.mend();
    go_on.notify_waiters();
    let heard = |driven: &Driven| driven.stage.host.heard.lock().unwrap().clone();
    driven.until("all of it is heard", |driven| heard(driven).len() == 3).await;
    let texts: Vec<String> = heard(&driven)
        .into_iter()
        .map(|control| match control {
            Control::Steer(message) => message.text,
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_reading_that_hangs_is_obeyed_at_once() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    stage.board.line.trouble("by id", "t-1", Trouble::Hangs);
    let driven = stage.start().await;
    driven.until("the ticket is being read", |driven| driven.stage.board.line.count("by id", "t-1") == 1).await;
    let began = tokio::time::Instant::now();
    let stop = Command::Operator(OperatorCommand::Stop { ticket: TicketId::new("t-1") });
    driven.handle.command(stop, "somebody").await.unwrap();
    driven.until("the slot is free", |driven| driven.snapshot().counts.running == 0).await;
    assert!(began.elapsed() < Duration::from_secs(30), "after {:?}", began.elapsed());
    assert_eq!(driven.stage.host.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_gates_run_at_once_than_may_and_those_that_wait_can_be_stopped() {
    let names: Vec<String> = (0..12).map(|number| format!("t-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stage = Stage::new(&names, Play::Commits);
    stage.policy.agent.max_concurrent = 12;
    stage.policy.gates.has_task_gates = true;
    stage.policy.gates.task_names = vec!["make check".into()];
    assert_eq!(stage.gates.at_once, 2, "the default");
    stage.host.gates_open.send_replace(false);
    let mut driven = stage.start().await;
    let gates = |driven: &Driven| {
        let lanes = driven.snapshot().lanes.clone();
        lanes.into_iter().find(|lane| lane.lane == "gates").map(|lane| (lane.busy, lane.waiting)).unwrap_or_default()
    };
    driven.until("two run and ten wait", |driven| gates(driven) == (2, 10)).await;
    assert_eq!(driven.stage.host.most_at_gates.load(Ordering::SeqCst), 2);
    let began = tokio::time::Instant::now();
    driven.handle.command(Command::Shutdown, "somebody").await.unwrap();
    let _ = (&mut driven.running).await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "after {:?}", began.elapsed());
    assert_eq!(driven.stage.host.most_at_gates.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn who_is_shut_out_is_seen_and_nothing_is_dropped() {
    let stage = Stage::new(&["t-1"], Play::UntilStopped);
    let refused = TrackerError::Status { status: 401, detail: "bad credentials".into() };
    stage.board.line.trouble("comment", "", Trouble::Fails(refused));
    let driven = stage.start().await;
    let lane = |driven: &Driven, name: &str| driven.snapshot().lanes.iter().find(|lane| lane.lane == name).cloned();
    driven.until("it is seen", |driven| lane(driven, "tracker").is_some_and(|lane| lane.locked_out)).await;
    assert!(driven.snapshot().pending_effects > 0, "the comment is held, not dropped");
}

#[tokio::test(start_paused = true)]
async fn failures_of_the_forge_are_in_the_picture() {
    let stage = Stage::new(&["t-1"], Play::Commits);
    stage.forge.line.trouble("inspect", "", Trouble::Fails(ForgeError::Request("no route to host".into())));
    let driven = stage.start().await;
    driven
        .until("it is seen", |driven| {
            let lanes = &driven.snapshot().lanes;
            lanes
                .iter()
                .any(|lane| lane.lane == "forge" && lane.last_error.as_ref().is_some_and(|e| e.contains("no route")))
        })
        .await;
}

/// While everything is taken in anew, whoever asks gets the old answer or the new one. The rounds make a gap show itself; without
/// one, no number of them can.
#[test]
fn a_permit_never_forgets_a_pause_while_the_gatekeeper_takes_in_the_board() {
    let mut machine = Machine::new(fixtures::policy());
    machine.poll((0..300).map(|number| fixtures::ticket(&format!("t{number}"))).collect());
    let paused = fixtures::id("t7");
    machine.operator(OperatorCommand::Pause { ticket: paused.clone() });
    let dir = tempfile::tempdir().unwrap();
    let gatekeeper = Gatekeeper::new(&dir.path().join("pause"));
    gatekeeper.refresh(&machine.state, &machine.policy, None);
    gatekeeper.permit(EffectKind::Comment, Some(&fixtures::id("t8"))).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut allowed = 0;
            while !over.load(Ordering::SeqCst) {
                allowed += usize::from(gatekeeper.permit(EffectKind::Comment, Some(&paused)).is_ok());
            }
            allowed
        });
        for _ in 0..300 {
            gatekeeper.refresh(&machine.state, &machine.policy, None);
        }
        over.store(true, Ordering::SeqCst);
        assert_eq!(asking.join().unwrap(), 0, "a paused ticket was written to");
    });
}

/// The job of a finished ticket is archived: its pause and its labels are not known any more.
#[test]
fn nothing_is_written_to_a_ticket_without_a_job() {
    let mut machine = Machine::new(fixtures::policy());
    machine.poll(vec![fixtures::ticket("a")]);
    let dir = tempfile::tempdir().unwrap();
    let gatekeeper = Gatekeeper::new(&dir.path().join("pause"));
    gatekeeper.refresh(&machine.state, &machine.policy, None);
    let gone = fixtures::id("gone");
    gatekeeper.update(&machine.state, &machine.policy, [&gone]);
    for kind in [EffectKind::Comment, EffectKind::MoveTicket, EffectKind::MergePr, EffectKind::CleanUp] {
        gatekeeper.permit(kind, Some(&fixtures::id("a"))).unwrap();
        assert!(gatekeeper.permit(kind, Some(&gone)).is_err(), "{kind:?}");
    }
    assert!(!dirigent::engine::circumstances(&machine.state, &machine.policy, Some(&gone)).owned);
    // What stops, reads or takes back is never refused, and a notification about the runner itself is about no ticket.
    for kind in [EffectKind::StopRun, EffectKind::InspectPr, EffectKind::Dequeue] {
        gatekeeper.permit(kind, Some(&gone)).unwrap();
    }
    gatekeeper.permit(EffectKind::Notify, None).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pull_request_is_opened_as_the_file_says() {
    let mut stage = Stage::new(&["t-1"], Play::Commits);
    stage.policy.pr.draft = true;
    stage.policy.pr.reviewers = vec!["ada".into()];
    stage.policy.pr.labels = vec!["by-a-robot".into()];
    let driven = stage.start().await;
    let number = PrNumber(1);
    driven.until("it is open", |driven| driven.stage.forge.forge.pr(number).is_some()).await;
    let pr = driven.stage.forge.forge.pr(number).unwrap();
    assert!(pr.draft);
    assert_eq!(pr.labels, ["by-a-robot"]);
    assert_eq!(driven.stage.forge.forge.requested_reviewers(number), ["ada"]);
    driven.until("it waits for somebody", |driven| driven.job("t-1").is_some_and(|job| job.reason == "draft")).await;
}
