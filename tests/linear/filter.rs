//! Linear's filters.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::board::{Board, Comment, Issue, Label, Project, Role, State, Team, User};

/// Who asks, and the board as they see it.
pub struct Eyes<'a> {
    pub board: &'a Board,
    pub viewer: &'a str,
}

type Filter = Map<String, Value>;

impl Eyes<'_> {
    /// `and`, `or` and `null` are the same everywhere; the rest is told by `part`.
    fn holds<T>(&self, filter: &Value, thing: Option<&T>, part: &dyn Fn(&T, &str, &Value) -> bool) -> bool {
        let Some(filter) = filter.as_object() else { return true };
        filter.iter().all(|(name, wanted)| match (name.as_str(), wanted) {
            (_, Value::Null) => true,
            ("and", Value::Array(all)) => all.iter().all(|one| self.holds(one, thing, part)),
            ("or", Value::Array(any)) => any.iter().any(|one| self.holds(one, thing, part)),
            ("null", Value::Bool(null)) => thing.is_none() == *null,
            _ => thing.is_some_and(|thing| part(thing, name, wanted)),
        })
    }

    pub fn issue(&self, issue: &Issue, filter: &Value) -> bool {
        self.holds(filter, Some(issue), &|issue, name, wanted| match name {
            "id" => id(&issue.id, wanted),
            "updatedAt" => time(issue.updated_at, wanted),
            "team" => self.team(self.board.team(&issue.team), wanted),
            "state" => self.state(self.board.state(&issue.state), wanted),
            "project" => self.project(issue.project.as_ref().map(|id| self.board.project(id)), wanted),
            "assignee" => self.user(issue.assignee.as_ref().and_then(|id| self.board.user(id)), wanted),
            "delegate" => self.user(issue.delegate.as_ref().and_then(|id| self.board.user(id)), wanted),
            other => panic!("tests/linear does not know the filter Issue.{other}"),
        })
    }

    pub fn comment(&self, issue: &Issue, comment: &Comment, filter: &Value) -> bool {
        self.holds(filter, Some(comment), &|comment, name, wanted| match name {
            "id" => id(&comment.id, wanted),
            "createdAt" => time(comment.created_at, wanted),
            "updatedAt" => time(comment.updated_at, wanted),
            "issue" => self.issue(issue, wanted),
            other => panic!("tests/linear does not know the filter Comment.{other}"),
        })
    }

    pub fn team(&self, team: &Team, filter: &Value) -> bool {
        self.holds(filter, Some(team), &|team, name, wanted| match name {
            "id" => id(&team.id, wanted),
            "key" => text(&team.key, wanted),
            other => panic!("tests/linear does not know the filter Team.{other}"),
        })
    }

    fn state(&self, state: &State, filter: &Value) -> bool {
        self.holds(filter, Some(state), &|state, name, wanted| match name {
            "name" => text(&state.name, wanted),
            other => panic!("tests/linear does not know the filter WorkflowState.{other}"),
        })
    }

    pub fn project(&self, project: Option<&Project>, filter: &Value) -> bool {
        self.holds(filter, project, &|project, name, wanted| match name {
            "id" => id(&project.id, wanted),
            "slugId" => text(&project.slug, wanted),
            other => panic!("tests/linear does not know the filter Project.{other}"),
        })
    }

    pub fn user(&self, user: Option<&User>, filter: &Value) -> bool {
        self.holds(filter, user, &|user, name, wanted| match name {
            "id" => id(&user.id, wanted),
            "displayName" => text(&user.name, wanted),
            "email" => text(&email(user), wanted),
            "isMe" => wanted["eq"].as_bool().is_none_or(|me| (user.id == self.viewer) == me),
            other => panic!("tests/linear does not know the filter User.{other}"),
        })
    }

    pub fn label(&self, label: &Label, filter: &Value) -> bool {
        self.holds(filter, Some(label), &|label, name, wanted| match name {
            "name" => text(&label.name, wanted),
            "team" => match &label.team {
                Some(team) => {
                    wanted["null"].as_bool() != Some(true) && self.team(self.board.team(team), &without_null(wanted))
                }
                None => wanted["null"].as_bool() == Some(true),
            },
            other => panic!("tests/linear does not know the filter IssueLabel.{other}"),
        })
    }
}

pub fn email(user: &User) -> String {
    format!("{}@example.invalid", user.name)
}

fn without_null(filter: &Value) -> Value {
    let mut filter: Filter = filter.as_object().cloned().unwrap_or_default();
    filter.remove("null");
    Value::Object(filter)
}

fn text(actual: &str, wanted: &Value) -> bool {
    wanted.as_object().is_none_or(|all| {
        all.iter().all(|(name, value)| match (name.as_str(), value) {
            (_, Value::Null) => true,
            ("eq", value) => value.as_str() == Some(actual),
            ("eqIgnoreCase", value) => value.as_str().unwrap().to_lowercase() == actual.to_lowercase(),
            ("in", Value::Array(any)) => any.iter().any(|one| one.as_str() == Some(actual)),
            (other, _) => panic!("tests/linear does not know the comparator {other}"),
        })
    })
}

/// Linear refuses what cannot be an id of its own.
fn id(actual: &str, wanted: &Value) -> bool {
    let listed = wanted["in"].as_array().into_iter().flatten().chain(wanted.get("eq")).filter_map(Value::as_str);
    for id in listed {
        assert!(id.len() == 36 && id.matches('-').count() == 4, "Argument Validation Error: `{id}` is not a UUID");
    }
    text(actual, wanted)
}

fn time(actual: Timestamp, wanted: &Value) -> bool {
    wanted.as_object().is_none_or(|all| {
        all.iter().all(|(name, value)| match (name.as_str(), value) {
            (_, Value::Null) => true,
            ("gt", value) => actual > value.as_str().unwrap().parse::<Timestamp>().unwrap(),
            ("gte", value) => actual >= value.as_str().unwrap().parse::<Timestamp>().unwrap(),
            (other, _) => panic!("tests/linear does not know the comparator {other}"),
        })
    })
}

/// Whether an account is a full member of its team.
pub fn is_in_a_team(user: &User) -> bool {
    !matches!(user.role, Role::Outside | Role::App)
}
