//! The state of an issue: open or closed, or the one of a label or of a project's column.

use super::project::ProjectColumn;
use crate::domain::ticket::{same_state, state_in};

pub const OPEN: &str = "open";
pub const CLOSED: &str = "closed";

/// The source of the board's states.
#[derive(Debug, Clone)]
pub enum Columns {
    OpenClosed,
    /// Labels, ordered by rank: an issue with several of them is in the state of the last one.
    Labels(Vec<StateLabel>),
    Project(ProjectColumn),
}

/// A state and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLabel {
    pub state: String,
    pub label: String,
    /// Whether an issue in this state is closed.
    pub terminal: bool,
}

impl Columns {
    /// Orders labels by the progress of the work: active states in the order of the workflow file, then other states, then terminal
    /// ones.
    pub fn of_labels(
        labels: impl IntoIterator<Item = (String, String)>,
        active: &[String],
        terminal: &[String],
    ) -> Self {
        let mut labels: Vec<StateLabel> = labels
            .into_iter()
            .map(|(state, label)| StateLabel { terminal: state_in(&state, terminal), state, label })
            .collect();
        let rank = |one: &StateLabel| match active.iter().position(|state| same_state(state, &one.state)) {
            Some(place) => (0, place),
            None => (1 + usize::from(one.terminal), 0),
        };
        labels.sort_by_key(rank);
        Self::Labels(labels)
    }

    /// Returns the state of an issue. `column` is its column in the project, if it has one.
    pub fn state(&self, is_open: bool, labels: &[String], column: Option<&str>) -> String {
        let (named, terminal) = match self {
            Self::OpenClosed => (None, false),
            Self::Labels(known) => {
                let highest = known.iter().rev().find(|one| state_in(&one.label, labels));
                (highest.map(|one| one.state.as_str()), highest.is_some_and(|one| one.terminal))
            }
            Self::Project(project) => (column, column.is_some_and(|column| state_in(column, &project.terminal))),
        };
        match (named, is_open) {
            (Some(named), true) => named.to_owned(),
            (Some(named), false) if terminal => named.to_owned(),
            (_, true) => OPEN.to_owned(),
            (_, false) => CLOSED.to_owned(),
        }
    }

    /// Whether a label only represents a state.
    pub fn is_state(&self, label: &str) -> bool {
        match self {
            Self::Labels(known) => known.iter().any(|one| same_state(&one.label, label)),
            Self::OpenClosed | Self::Project(_) => false,
        }
    }

    /// Returns the label of the state in which new tickets begin. `None` if that state has no label.
    pub fn first_label(&self) -> Option<&str> {
        match self {
            Self::Labels(known) => known.first().filter(|one| !one.terminal).map(|one| one.label.as_str()),
            Self::OpenClosed | Self::Project(_) => None,
        }
    }

    /// Whether an issue in one of these states may be closed.
    pub fn may_be_closed(&self, states: &[String]) -> bool {
        let terminal = |state: &String| match self {
            Self::OpenClosed => false,
            Self::Labels(known) => known.iter().any(|one| one.terminal && same_state(&one.state, state)),
            Self::Project(project) => state_in(state, &project.terminal),
        };
        states.iter().any(|state| same_state(state, CLOSED) || terminal(state))
    }

    /// Whether an issue in one of these states may be open.
    pub fn may_be_open(&self, states: &[String]) -> bool {
        match self {
            Self::OpenClosed => state_in(OPEN, states),
            Self::Labels(_) | Self::Project(_) => states.iter().any(|state| !same_state(state, CLOSED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_state_of_several_labels_is_the_furthest_one() {
        let labels = [("Done", "s/done"), ("In Progress", "s/doing"), ("In Review", "s/review"), ("Todo", "s/todo")];
        let labels = labels.map(|(state, label)| (state.to_owned(), label.to_owned()));
        let columns = Columns::of_labels(labels, &owned(&["Todo", "In Progress"]), &owned(&["Done"]));
        let state = |is_open, labels: &[&str]| columns.state(is_open, &owned(labels), None);
        assert_eq!(state(true, &[]), "open");
        assert_eq!(state(true, &["bug", "S/Todo"]), "Todo");
        assert_eq!(state(true, &["s/doing", "s/todo"]), "In Progress");
        assert_eq!(state(true, &["s/review", "s/doing"]), "In Review");
        assert_eq!(state(true, &["s/done", "s/doing"]), "Done");
        assert_eq!(state(false, &["s/doing"]), "closed", "a closed issue is not worked on, whatever its label");
        assert_eq!(state(false, &["s/done"]), "Done");
    }
}
