//! The runner is killed between a write and its answer: nothing is there twice afterwards.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;

use crate::github::Hub;
use crate::linear::{Instead, KEY, Linear, When};
use crate::support::board::Board;
use crate::support::git_in;

pub const WORKPAD: &str = "orchestration: {phase_store: workpad, comment_min_interval_ms: 0}\n";
pub const AGENT: &str = "set -eu\necho x > made\ngit add made\ngit commit -qm 'Write something' || true\ntk comment 'nearly there'\ntk done 'it is done'\n";

pub const COLUMNS: &str = "orchestration:
  phase_store: workpad
  comment_min_interval_ms: 0
  states: {implementing: In Progress, waiting_for_human: In Review}
merge: {checks_grace_ms: 1, no_checks: pass}
";

pub const ENV: [(&str, &str); 2] = [("LINEAR_API_KEY", KEY), ("GITHUB_TOKEN", "robot-token")];

/// A board on Linear whose pull requests go to GitHub; `more` is further front matter.
pub fn board(linear: &Linear, hub: &Hub, agent: &str, more: &str) -> Board {
    let board = Board::new(agent, "");
    let (endpoint, api) = (linear.endpoint(), hub.api());
    board.scratch.write(
        "WORKFLOW.md",
        &format!("---\ntracker:\n  kind: linear\n  provider: {{endpoint: \"{endpoint}\", team_key: ENG}}\npolling: {{interval_ms: 300}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nrollout: {{mode: mutate}}\npr: {{forge: github, repo_slug: acme/widgets, provider: {{api_url: \"{api}\"}}}}\n{more}---\n"),
    );
    board.scratch.commit("a Linear board");
    git_in(&board.repo(), ["push", "-q", "--force", &hub.git_folder().display().to_string(), "main:main"]);
    git_in(&board.repo(), ["remote", "add", "origin", &hub.clone_url()]);
    board
}

/// How often each of our marks is there.
pub fn marks(linear: &Linear, id: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for text in linear.comments(id) {
        let mark = text.split("`dirigent:").skip(1).last().map(|rest| rest.split('`').next().unwrap().to_owned());
        *found.entry(mark.unwrap_or_else(|| panic!("no mark: {text}"))).or_default() += 1;
    }
    found
}

#[test]
fn a_kill_between_a_write_and_its_answer_doubles_nothing() {
    for (operation, skip) in [("WriteComment", 0), ("WriteComment", 1), ("WriteComment", 3), ("Attach", 0)] {
        let (linear, hub) = (Linear::start(), Hub::start());
        let id = linear.add_issue("Write something", "Todo", &[]);
        let board = board(&linear, &hub, AGENT, WORKPAD);
        linear.fault_later(operation, When::After, Instead::Silence, skip, 1);
        let mut runner = board.start_with(&ENV);
        let unanswered = || linear.journal().iter().any(|entry| entry.took_effect && entry.status.is_none());
        board.until("it is written and not answered", unanswered);
        runner.signal(Signal::SIGKILL);
        runner.child.wait().unwrap();
        linear.heal();
        let runner = board.start_with(&ENV);
        board.until("the pull request is attached", || linear.links(&id).len() == 1);
        let waits = |texts: &[String]| texts.iter().any(|text| text.contains("waiting_for"));
        board.until("the workpad tells of it", || waits(&linear.comments(&id)));
        runner.end();
        let marks = marks(&linear, &id);
        assert!(marks.values().all(|times| *times == 1), "{operation} {skip}: {marks:#?}");
        assert_eq!(marks.keys().filter(|mark| mark.starts_with("workpad")).count(), 1, "{marks:#?}");
        assert_eq!(linear.links(&id).len(), 1, "{operation} {skip}");
    }
}

/// Everything is written, and the answer is a gateway's page, or none until nobody waits for it any more.
#[test]
fn a_lost_answer_doubles_nothing() {
    const EVERY: &[&str] = &["WriteComment", "EditComment", "ChangeIssue", "Attach"];
    // Half a minute for each that is not answered.
    type Loss = (&'static str, fn() -> Instead, u32, &'static [&'static str]);
    let lost: [Loss; 2] =
        [("502", || Instead::Html(502), 3, EVERY), ("silence", || Instead::Silence, 1, &["WriteComment", "Attach"])];
    for (what, instead, times, operations) in lost {
        let (linear, hub) = (Linear::start(), Hub::start());
        let id = linear.add_issue("Write something", "Todo", &[]);
        let board = board(&linear, &hub, AGENT, COLUMNS);
        for operation in operations {
            linear.fault_later(operation, When::After, instead(), 0, times);
        }
        let runner = board.start_with(&ENV);
        board.until("the pull request is attached", || linear.links(&id).len() == 1);
        board.until("the workpad tells of it", || linear.comments(&id).iter().any(|said| said.contains("waiting_for")));
        board.until("the ticket waits in its column", || linear.state_of(&id) == "In Review");
        // Whatever was written and not confirmed has been looked for or written again by now.
        board.until("nothing is left to be written", || board.outbox().is_empty());
        runner.end();
        let journal = linear.journal();
        let hidden = |operation: &str| {
            let lost = |status: Option<u16>| status.is_none_or(|status| status == 502);
            journal.iter().any(|entry| entry.operation == operation && entry.took_effect && lost(entry.status))
        };
        assert!(operations.iter().all(|operation| hidden(operation)), "{what}: {journal:#?}");
        let marks = marks(&linear, &id);
        assert!(marks.values().all(|times| *times == 1), "{what}: {marks:#?}");
        assert_eq!(marks.keys().filter(|mark| mark.starts_with("workpad")).count(), 1, "{what}: {marks:#?}");
        assert_eq!(linear.links(&id).len(), 1, "{what}");
        let columns: Vec<String> = linear.moves(&id).into_iter().map(|(_, to)| to).collect();
        assert_eq!(columns, ["In Progress", "In Review"], "{what}");
    }
}
