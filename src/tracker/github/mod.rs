//! The issues of one GitHub repository as a board. Pull requests, which GitHub lists among them, are left out.

mod adapter;
mod agent_api;
mod attachments;
mod blockers;
mod columns;
mod comments;
mod create;
mod error;
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

/// Which issues are the board, and how it is written to.
pub struct GithubBoard {
    pub owner: String,
    pub name: String,
    pub columns: Columns,
    /// Our account is a person's too.
    pub shared_account: bool,
    /// Only issues that this account is assigned to are worked on; `me` is ours.
    pub assignee: Option<String>,
    /// Only issues of this milestone, by its title, are worked on.
    pub milestone: Option<String>,
    /// The labels that a ticket needs before anything happens to it.
    pub required_labels: Vec<String>,
    /// The states that approve when a person moves a ticket there.
    pub approval_states: Vec<String>,
    /// What happens to the labels of a ticket that is moved to this state.
    pub done: Done,
}

#[derive(Debug, Clone, Default)]
pub struct Done {
    pub state: String,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

/// The tracker over one repository's issues.
pub struct GithubTracker {
    github: Github,
    board: GithubBoard,
    people: Acquaintances,
    dependencies: Dependencies,
    project: ProjectMemory,
    /// Looking for what may be there and writing it are one step: nobody else writes in between.
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

    /// Whether GitHub, or what is left of the hour, keeps us from asking.
    pub fn is_paused(&self) -> bool {
        self.github.is_paused()
    }

    /// A path below the repository.
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.board.owner, self.board.name)
    }

    fn issue_path(&self, number: u64, rest: &str) -> String {
        self.path(&format!("/issues/{number}{rest}"))
    }

    /// Something about one issue that people must see, or nothing any more.
    fn say_left_out(&self, number: u64, why: Option<String>) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => left_out.insert(number, why),
            None => left_out.remove(&number),
        };
    }
}
