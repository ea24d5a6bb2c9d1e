//! The board on GitHub, against the loopback GitHub: what goes wrong, what is sent how often, and the built program.

mod agent_api;
mod bad_input;
mod client;
mod commands;
mod keys;
mod once;
mod project;
mod reading;
mod requests;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use dirigent::domain::ids::TicketId;
use dirigent::domain::permit::Permit;
use dirigent::engine::permit::EffectKind;
use dirigent::github::{Access, Credential, Github};
use dirigent::tracker::github::{Columns, Done, GithubBoard, GithubTracker, ProjectColumn};
use dirigent::tracker::{BoardAnswer, Mark, Tracker};

use crate::github::Hub;

fn client(hub: &Hub, token: &str) -> Github {
    let access = Access::new(Some(hub.api().to_owned()), Credential::Token(token.into()));
    Github::new(Access { timeout: Duration::from_secs(5), ..access }).unwrap()
}

pub fn plain_board() -> GithubBoard {
    GithubBoard {
        owner: "acme".into(),
        name: "widgets".into(),
        columns: Columns::OpenClosed,
        shared_account: false,
        assignee: None,
        milestone: None,
        required_labels: Vec::new(),
        approval_states: Vec::new(),
        done: Done::default(),
    }
}

fn tracker_of(hub: &Hub, board: GithubBoard) -> Arc<GithubTracker> {
    Arc::new(GithubTracker::new(client(hub, "robot-token"), board))
}

fn tracker(hub: &Hub) -> Arc<GithubTracker> {
    tracker_of(hub, plain_board())
}

/// The board of a project with the columns Todo and Done.
fn project_board(hub: &Hub) -> Arc<GithubTracker> {
    hub.add_project(1, "Status", &["Todo", "Done"]);
    let column = ProjectColumn {
        owner: "acme".into(),
        number: 1,
        field: "Status".into(),
        terminal: vec!["Done".to_owned()],
        first: Some("Todo".to_owned()),
    };
    tracker_of(hub, GithubBoard { columns: Columns::Project(column), ..plain_board() })
}

fn id(number: u64) -> TicketId {
    TicketId::new(format!("GH-{number}"))
}

fn open() -> Vec<String> {
    vec!["open".to_owned()]
}

fn permit() -> Permit {
    crate::support::allowed(EffectKind::Comment)
}

fn mark(answer: BoardAnswer) -> Option<Mark> {
    match answer {
        BoardAnswer::Listed { mark, .. } => mark,
        BoardAnswer::Changed { mark, .. } => Some(mark),
        BoardAnswer::Unchanged => None,
    }
}

/// The board, asked once.
async fn ask(tracker: &GithubTracker, since: Option<&Mark>) -> BoardAnswer {
    tracker.poll(&open(), since).await.unwrap().answer
}
