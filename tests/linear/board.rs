//! What is on the board, and what happened to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

pub type Id = String;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Admin,
    Member,
    /// A member of the workspace who is in no team.
    Outside,
    Guest,
    /// An integration with an account of its own.
    App,
    Left,
}

/// Who does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    User(Id),
    /// An integration without an account.
    Bot(String),
    /// Somebody whose words came from another system.
    Outsider(String),
    /// Linear itself, by a rule.
    Rule,
}

#[derive(Clone, Debug)]
pub struct User {
    pub id: Id,
    pub name: String,
    pub role: Role,
}

#[derive(Clone, Debug)]
pub struct State {
    pub id: Id,
    pub name: String,
    pub kind: &'static str,
}

#[derive(Clone, Debug)]
pub struct Team {
    pub id: Id,
    pub key: String,
    pub states: Vec<State>,
    pub issues: u64,
}

#[derive(Clone, Debug)]
pub struct Project {
    pub id: Id,
    pub name: String,
    pub slug: String,
    pub team: Id,
}

#[derive(Clone, Debug)]
pub struct Label {
    pub id: Id,
    pub name: String,
    pub team: Option<Id>,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub id: Id,
    pub by: Actor,
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub reactions: Vec<(Id, String, Id)>,
}

/// A line of an issue's history.
#[derive(Clone, Debug)]
pub struct Happened {
    pub id: Id,
    pub at: Timestamp,
    pub by: Actor,
    pub states: Option<(Id, Id)>,
    pub added_labels: Vec<Id>,
}

#[derive(Clone, Debug)]
pub struct Issue {
    pub id: Id,
    pub number: u64,
    pub team: Id,
    pub project: Option<Id>,
    pub title: String,
    pub description: Option<String>,
    pub priority: i64,
    pub state: Id,
    pub labels: Vec<Id>,
    pub by: Actor,
    pub assignee: Option<Id>,
    pub delegate: Option<Id>,
    pub parent: Option<Id>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub trashed: bool,
    pub hidden: bool,
    pub comments: Vec<Comment>,
    pub history: Vec<Happened>,
    /// Address and title.
    pub attachments: Vec<(Id, String, String)>,
}

#[derive(Clone, Debug)]
pub struct Relation {
    pub id: Id,
    pub kind: String,
    pub issue: Id,
    pub related: Id,
}

/// Cloned for replicas that lag, so the issues are shared.
#[derive(Clone, Debug, Default)]
pub struct Board {
    pub users: Vec<User>,
    pub teams: Vec<Team>,
    pub projects: Vec<Project>,
    pub labels: Vec<Label>,
    pub issues: BTreeMap<Id, Arc<Issue>>,
    pub relations: Vec<Relation>,
    /// Ids that were used once are not given again.
    pub used: Vec<Id>,
}

impl Board {
    pub fn user(&self, id: &str) -> Option<&User> {
        self.users.iter().find(|user| user.id == id)
    }

    pub fn user_named(&self, name: &str) -> &User {
        self.users.iter().find(|user| user.name == name).unwrap_or_else(|| panic!("there is no user {name}"))
    }

    pub fn team(&self, id: &str) -> &Team {
        self.teams.iter().find(|team| team.id == id).unwrap()
    }

    pub fn state(&self, id: &str) -> &State {
        self.teams.iter().flat_map(|team| &team.states).find(|state| state.id == id).unwrap()
    }

    pub fn team_of_state(&self, id: &str) -> &Team {
        self.teams.iter().find(|team| team.states.iter().any(|state| state.id == id)).unwrap()
    }

    pub fn project(&self, id: &str) -> &Project {
        self.projects.iter().find(|project| project.id == id).unwrap()
    }

    pub fn label(&self, id: &str) -> &Label {
        self.labels.iter().find(|label| label.id == id).unwrap()
    }

    /// What everybody can find: not hidden, not purged.
    pub fn issue(&self, id: &str) -> Option<&Arc<Issue>> {
        self.issues.get(id).filter(|issue| !issue.hidden)
    }

    pub fn edit<T>(&mut self, id: &str, change: impl FnOnce(&mut Issue) -> T) -> T {
        change(Arc::make_mut(self.issues.get_mut(id).unwrap_or_else(|| panic!("there is no issue {id}"))))
    }

    pub fn comment(&self, id: &str) -> Option<(&Arc<Issue>, &Comment)> {
        let mut all = self.issues.values().filter(|issue| !issue.hidden);
        all.find_map(|issue| issue.comments.iter().find(|comment| comment.id == id).map(|comment| (issue, comment)))
    }

    /// Whether an id was given out or taken once, for whatever became of it.
    pub fn is_used(&self, id: &str) -> bool {
        self.issues.contains_key(id) || self.used.iter().any(|used| used == id)
    }
}
