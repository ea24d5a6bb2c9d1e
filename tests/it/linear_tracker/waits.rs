//! What a running runner does when Linear says no: it waits as one, and says why.

use std::time::Duration;

use crate::linear::{Instead, Linear, When};

use super::killed::ENV;
use super::runner::{board_with, symphony};

/// A worker that asks Linear again and again.
const ASKING: &str = "set -u
for try in $(seq 1 600); do
  test -e @T/enough && break
  echo '{\"query\": \"{ viewer { id } }\"}' | tk api - >> @T/answers 2>&1
  sleep 0.2
done
echo x > made; git add made; git commit -qm made; tk done 'it is done'
";

#[test]
fn when_linear_refuses_nobody_asks_before_its_time() {
    let linear = Linear::start();
    linear.add_issue("Write something", "Todo", &[]);
    let board = board_with(&symphony(&linear, "rollout: {mode: mutate}\nmerge: {no_checks: pass}\n"));
    let place = board.scratch.dir.path().to_owned();
    board.scratch.write("agent.sh", &ASKING.replace("@T", &place.display().to_string()));
    board.scratch.commit("the agent");
    let said = || std::fs::read_to_string(place.join("answers")).unwrap_or_default();
    let runner = board.start_with(&ENV[..1]);
    board.until("the worker gets answers", || said().contains("\"viewer\""));
    linear.fault("Changes", When::Before, Instead::RateLimited(Duration::from_secs(120)));
    let held = || said().matches("nothing is asked of the tracker for").count();
    board.until("the worker is told to wait", || held() > 0);
    // What had left before is answered.
    board.until("and again", || held() > 2);
    let asked = linear.journal().len();
    board.until("and again and again", || held() > 8);
    let since = linear.journal()[asked..].iter().map(|entry| entry.operation.clone()).collect::<Vec<_>>();
    assert!(since.is_empty(), "asked while nobody was to ask: {since:?}");
    let status = board.ok(&["status"]);
    assert!(status.contains("limits our requests"), "{status}");
    std::fs::write(place.join("enough"), "").unwrap();
    runner.end();
}

/// The runner finds out when it wants to move a ticket there: it says so once, goes on with its work, and does not try for ever.
#[test]
fn a_state_that_was_renamed_is_named_and_the_work_goes_on() {
    let linear = Linear::start();
    let id = linear.add_issue("Write something", "Todo", &[]);
    let board = board_with(&symphony(&linear, "rollout: {mode: mutate}\nmerge: {no_checks: pass}\n"));
    let place = board.scratch.dir.path().to_owned();
    let agent = "set -u\ntouch @T/started\nuntil test -e @T/renamed; do sleep 0.1; done\necho x > made; git add made; git commit -qm made; tk done 'it is done'\n";
    board.scratch.write("agent.sh", &agent.replace("@T", &place.display().to_string()));
    board.scratch.commit("the agent");
    let runner = board.start_with(&ENV[..1]);
    board.until("the worker is there", || place.join("started").exists());
    board.until("its ticket is in its column", || linear.state_of(&id) == "In Progress");
    linear.rename_state("ENG", "In Review", "Reviewing");
    std::fs::write(place.join("renamed"), "").unwrap();
    board.until("it waits for a person", || board.phase("ENG-1") == "waiting_for_human");
    board.until("nothing is left to be written", || board.outbox().is_empty());
    let asked = linear.journal().iter().filter(|entry| entry.operation == "Place").count();
    let polled = || linear.journal().iter().filter(|entry| entry.operation == "Changes").count();
    let before = polled();
    board.until("the board was read again", || polled() > before + 5);
    assert_eq!(linear.journal().iter().filter(|entry| entry.operation == "Place").count(), asked, "not tried for ever");
    assert_eq!(linear.state_of(&id), "In Progress");
    let told = board.ok(&["explain", "ENG-1"]);
    assert!(told.contains("no state `In Review`") && told.contains("Reviewing"), "{told}");
    runner.end();
    let doctor = String::from_utf8(board.command(&["doctor"]).envs(ENV).output().unwrap().stdout).unwrap();
    assert!(doctor.contains("no state `In Review`"), "{doctor}");
}

/// What the board was made from counts after a restart; that is said, and nothing else of the edit counts before.
#[test]
fn spec_6_what_needs_a_restart_is_said_and_an_edit_that_is_taken_back_is_accepted() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo", "In Progress", "In Review", "Done"]);
    let workflow = symphony(&linear, "rollout: {mode: observe}\n");
    let board = board_with(&workflow);
    let runner = board.start_with(&ENV[..1]);
    let polled = || linear.journal().iter().filter(|entry| entry.operation == "Changes").count();
    board.until("it ticks", || polled() > 1);
    let status = || board.ok(&["status"]);
    for (from, to, key) in [
        ("team_key: ENG", "team_key: OPS", "tracker.provider"),
        ("pr: {forge: local}", "pr: {forge: none}", "pr.forge"),
    ] {
        board.scratch.write("WORKFLOW.md", &workflow.replace(from, to));
        let says = format!("a restart is needed for {key}");
        board.until("it is said", || status().contains(&says));
        board.scratch.write("WORKFLOW.md", &workflow);
        board.until("it is as it was", || !status().contains("a restart is needed"));
    }
    assert!(runner.log().contains("the last good one stays"), "{}", runner.log());
    runner.end();
}
