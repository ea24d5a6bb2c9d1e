//! A repository on a GitHub of our own, its clone, and a workflow that takes its issues.

use std::path::{Path, PathBuf};

use crate::github::{Demands, Hub};
use crate::support::board::Board;
use crate::support::git_in;

/// Whose account the runner uses, and so how its work can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Its own: people review its pull requests.
    Own,
    /// The owner's, who approves with `dirigent approve`: GitHub lets nobody review their own pull request.
    Owners,
}

impl Account {
    pub fn login(self) -> &'static str {
        match self {
            Self::Own => "robot",
            Self::Owners => "ada",
        }
    }

    pub fn token(self) -> &'static str {
        match self {
            Self::Own => "robot-token",
            Self::Owners => "ada-token",
        }
    }
}

pub struct Scene {
    pub board: Board,
    pub hub: Hub,
}

impl Scene {
    /// `agent` is a shell script, which finds in `.out` where to leave what it got. `more` is further front matter.
    pub fn new(agent: &str, account: Account, more: &str) -> Self {
        let (hub, board) = (Hub::start(), Board::new(agent, ""));
        let whose = if account == Account::Own { "own" } else { "shared" };
        board.scratch.write("WORKFLOW.md", &workflow(&hub, &format!("account: {whose}"), more));
        let out = board.scratch.dir.path().join("out");
        std::fs::create_dir(&out).unwrap();
        board.scratch.write(".out", &out.display().to_string());
        board.scratch.commit("where the agent leaves what it got");
        git_in(&board.repo(), ["push", "-q", "--force", &hub.git_folder().display().to_string(), "main:main"]);
        git_in(&board.repo(), ["remote", "add", "origin", &hub.clone_url()]);
        // A team that says what has to pass: a head without it waits, and needs no grace.
        hub.add_ruleset("main", "main", Demands { checks: vec!["build".to_owned()], ..Demands::default() });
        Self { board, hub }
    }

    /// What the agent left.
    pub fn out(&self, file: &str) -> String {
        std::fs::read_to_string(self.board.scratch.dir.path().join("out").join(file)).unwrap_or_default()
    }
}

/// The issues with the label `agent` are worked on and merged when they are approved. `provider` is further access, `more` further front matter.
pub fn workflow(hub: &Hub, provider: &str, more: &str) -> String {
    let api = hub.api();
    format!(
        "---\ntracker: {{kind: github, provider: {{repo: acme/widgets, api_url: \"{api}\", {provider}}}, required_labels: [agent]}}\n\
         polling: {{interval_ms: 200}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {{stop_grace_ms: 500}}\n\
         rollout: {{mode: merge}}\npr: {{forge: github, repo_slug: acme/widgets}}\nmerge: {{mode: auto}}\n{more}---\n"
    )
}

/// Every file below a folder that holds the text.
pub fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}
