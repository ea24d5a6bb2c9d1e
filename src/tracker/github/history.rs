//! Who did what to an issue, as its timeline says: labels, assignments, changes of the text, and the move into its state.

use super::GithubTracker;
use super::columns::Columns;
use super::ids::time;
use super::ticket::Issue;
use super::wire::{Actor, ColumnValue, GraphqlIssue, TimelineItem};
use crate::domain::comment::{Author, TrustLevel};
use crate::domain::ticket::{Doing, History, Labelled, StateChange, same_state, state_in};
use crate::domain::time::Timestamp;

impl GithubTracker {
    /// Returns who labelled and assigned the issue, and who changed its text last.
    pub(super) fn history(&self, issue: &Issue, told: &GraphqlIssue, events: &[&TimelineItem]) -> History {
        let deed = |event: &TimelineItem| Doing {
            by: self.author(event.actor.as_ref().map(|actor| actor.as_user()).as_ref()),
            at: event.created_at.as_deref().and_then(time).unwrap_or_default(),
        };
        let of_label = |label: &String| {
            let put = events.iter().rev().find(|event| labels(event, label)).map(|event| deed(event));
            let (label, at) = (label.trim().to_lowercase(), put.as_ref().map(|put| put.at));
            Labelled { label, by: put.map_or_else(nobody, |put| put.by), at }
        };
        let wanted = self.assignee_wanted();
        let assigns = |event: &&&TimelineItem| {
            event.kind == "AssignedEvent"
                && event
                    .assignee
                    .as_ref()
                    .and_then(|who| who.login())
                    .zip(wanted.as_ref())
                    .is_some_and(|(who, wanted)| same_state(&who, wanted))
        };
        let given = || events.iter().rev().find(assigns).map(|event| deed(event));
        let unknown = || Doing { by: nobody(), at: Timestamp::default() };
        let is_given = wanted.as_ref().is_some_and(|wanted| state_in(wanted, &issue.assignees));
        let editor = self.author(told.editor.as_ref().map(|actor| actor.as_user()).as_ref());
        let edited_at = told.last_edited_at.as_deref().and_then(time);
        History {
            labelled: issue.labels.iter().map(of_label).collect(),
            assigned: is_given.then(|| given().unwrap_or_else(unknown)),
            reworded: edited_at.map(|at| Doing { by: editor, at }),
        }
    }

    /// Returns when the issue entered its state, and who moved it. `None` if it was never moved.
    pub(super) fn state_changed(
        &self,
        issue: &Issue,
        state: &str,
        events: &[&TimelineItem],
        column: Option<&ColumnValue>,
    ) -> Option<StateChange> {
        let Moved { at, by } = self.last_move(issue, state, events, column)?;
        let by = by.map_or_else(nobody, |actor| self.author(Some(&actor.as_user())));
        Some(StateChange { at: at.and_then(time).unwrap_or_default(), by: Some(by) })
    }

    /// Returns the last move of the issue into its state. `None` if it was never moved.
    pub(super) fn last_move<'a>(
        &self,
        issue: &Issue,
        state: &str,
        events: &[&'a TimelineItem],
        column: Option<&'a ColumnValue>,
    ) -> Option<Moved<'a>> {
        match &self.board.columns {
            Columns::Labels(known) => {
                if let Some(one) = known.iter().find(|one| same_state(&one.state, state)) {
                    // Whoever reopened the issue since is not who put the label on.
                    return Some(last(events, |event| labels(event, &one.label)).unwrap_or_default());
                }
            }
            // GitHub describes the `creator` of a column's value as who created the item, not as who moved it last.
            Columns::Project(_) => {
                if let Some(column) =
                    column.filter(|column| column.name.as_deref().is_some_and(|name| same_state(name, state)))
                {
                    return Some(Moved { at: column.updated_at.as_deref(), by: None });
                }
            }
            Columns::OpenClosed => {}
        }
        let kind = if issue.is_open { "ReopenedEvent" } else { "ClosedEvent" };
        last(events, |event| event.kind == kind)
    }
}

/// The last move of an issue into its state, as far as GitHub tells when it was made and by whom.
#[derive(Default)]
pub struct Moved<'a> {
    at: Option<&'a str>,
    pub by: Option<&'a Actor>,
}

/// Returns the move by the last of these events.
fn last<'a>(events: &[&'a TimelineItem], is_it: impl Fn(&TimelineItem) -> bool) -> Option<Moved<'a>> {
    let event = events.iter().rev().copied().find(|event| is_it(event))?;
    Some(Moved { at: event.created_at.as_deref(), by: event.actor.as_ref() })
}

/// Stands for whoever did something, where the event is too old to be in the response or has no actor: an author whose actions do
/// not count.
fn nobody() -> Author {
    Author::new("somebody whom GitHub does not name", TrustLevel::Stranger)
}

fn labels(event: &TimelineItem, label: &str) -> bool {
    event.kind == "LabeledEvent" && event.label.as_ref().is_some_and(|named| same_state(&named.name, label))
}
