//! The runner is killed between a write and its answer: nothing is there twice afterwards.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;

use crate::github::Hub;
use crate::linear::{Instead, KEY, Linear, When};
use crate::support::board::Board;
use crate::support::git_in;

const AGENT: &str = "set -eu\necho x > made\ngit add made\ngit commit -qm 'Write something' || true\ntk comment 'nearly there'\ntk done 'it is done'\n";

fn board(linear: &Linear, hub: &Hub) -> Board {
    let board = Board::new(AGENT, "");
    let (endpoint, api) = (linear.endpoint(), hub.api());
    board.scratch.write(
        "WORKFLOW.md",
        &format!("---\ntracker:\n  kind: linear\n  provider: {{endpoint: \"{endpoint}\", team_key: ENG}}\npolling: {{interval_ms: 300}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\norchestration: {{phase_store: workpad, comment_min_interval_ms: 0}}\nrollout: {{mode: mutate}}\npr: {{forge: github, repo_slug: acme/widgets, provider: {{api_url: \"{api}\"}}}}\n---\n"),
    );
    board.scratch.commit("a Linear board");
    git_in(&board.repo(), ["push", "-q", "--force", &hub.git_folder().display().to_string(), "main:main"]);
    git_in(&board.repo(), ["remote", "add", "origin", &hub.clone_url()]);
    board
}

/// How often each of our marks is there.
fn marks(linear: &Linear, id: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for text in linear.comments(id) {
        let mark =
            text.split("<!-- dirigent:").skip(1).last().map(|rest| rest.split(" -->").next().unwrap().to_owned());
        *found.entry(mark.unwrap_or_else(|| panic!("no mark: {text}"))).or_default() += 1;
    }
    found
}

#[test]
fn a_kill_between_a_write_and_its_answer_doubles_nothing() {
    let env = [("LINEAR_API_KEY", KEY), ("GITHUB_TOKEN", "robot-token")];
    for (operation, skip) in [("WriteComment", 0), ("WriteComment", 1), ("WriteComment", 3), ("Attach", 0)] {
        let (linear, hub) = (Linear::start(), Hub::start());
        let id = linear.add_issue("Write something", "Todo", &[]);
        let board = board(&linear, &hub);
        linear.fault_later(operation, When::After, Instead::Silence, skip, 1);
        let mut runner = board.start_with(&env);
        let unanswered = || linear.journal().iter().any(|entry| entry.took_effect && entry.status.is_none());
        board.until("it is written and not answered", unanswered);
        runner.signal(Signal::SIGKILL);
        runner.child.wait().unwrap();
        linear.heal();
        let runner = board.start_with(&env);
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
