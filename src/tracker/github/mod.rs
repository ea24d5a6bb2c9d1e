//! The issues of one GitHub repository as a board. GitHub lists pull requests among them; these are left out.

mod adapter;
mod agent_api;
mod attachments;
mod blockers;
mod columns;
mod comments;
mod create;
mod error;
mod history;
mod ids;
mod labels;
mod listing;
mod marks;
mod moves;
mod people;
mod poll;
mod project;
mod refresh;
mod setup;
mod ticket;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub use agent_api::api_tool;
pub use columns::{Columns, StateLabel};
pub use project::ProjectColumn;
pub use setup::{LabelsMissing, SetupReport};

use crate::github::Github;
use blockers::Dependencies;
use people::Acquaintances;
use project::ProjectMemory;

/// The settings of a board of issues.
#[derive(Debug, Clone)]
pub struct GithubBoard {
    pub owner: String,
    pub name: String,
    pub columns: Columns,
    /// Whether a person uses the runner's account too.
    pub shared_account: bool,
    /// Only issues assigned to this account are worked on; `me` is the runner's account.
    pub assignee: Option<String>,
    /// Only issues of the milestone with this title are worked on.
    pub milestone: Option<String>,
    /// The labels that a ticket must have before the runner does anything with it.
    pub required_labels: Vec<String>,
    /// The states that approve when a person moves a ticket there.
    pub approval_states: Vec<String>,
    /// The label changes for a ticket that is moved to the state of finished work.
    pub done: Done,
}

#[derive(Debug, Clone, Default)]
pub struct Done {
    pub state: String,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

/// The tracker for the issues of one repository.
pub struct GithubTracker {
    github: Github,
    board: GithubBoard,
    people: Acquaintances,
    dependencies: Dependencies,
    project: ProjectMemory,
    /// Held by each write: searching for an existing object and writing it must not be interleaved with another write.
    writing: tokio::sync::Mutex<()>,
    left_out: Mutex<BTreeMap<u64, String>>,
}

impl GithubTracker {
    pub fn new(github: Github, board: GithubBoard) -> Self {
        Self {
            people: Acquaintances::new(board.shared_account),
            github,
            board,
            dependencies: Dependencies::default(),
            project: ProjectMemory::default(),
            writing: tokio::sync::Mutex::default(),
            left_out: Mutex::default(),
        }
    }

    /// Returns a path below the repository.
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.board.owner, self.board.name)
    }

    fn issue_path(&self, number: u64, rest: &str) -> String {
        self.path(&format!("/issues/{number}{rest}"))
    }

    /// Records a sentence about an issue that people must see. `None` removes it.
    fn say_left_out(&self, number: u64, why: Option<String>) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => left_out.insert(number, why),
            None => left_out.remove(&number),
        };
    }
}
