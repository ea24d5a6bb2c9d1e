//! The tracker's work item in a common form. The tracker owns it; Dirigent stores only what its decisions depend on.

use serde::{Deserialize, Serialize};

use super::comment::{Author, Comment};
use super::ids::{TicketId, TicketKey};
use super::time::Timestamp;

/// A complete ticket as an adapter read it. All of its text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    pub id: TicketId,
    pub key: TicketKey,
    pub title: String,
    pub description: Option<String>,
    /// 1 is the most urgent; values outside of 1..=4 sort last. Adapters map their own scale to this one.
    pub priority: Option<i64>,
    /// In the tracker's own spelling.
    pub state: String,
    pub branch_name: Option<String>,
    pub url: Option<String>,
    pub assignee: Option<String>,
    pub author: Option<Author>,
    /// Trimmed, lower case, no blank entries, no duplicates: see [`normalise_labels`].
    pub labels: Vec<String>,
    pub blocked_by: Vec<Blocker>,
    pub parent: Option<TicketId>,
    /// Whether the adapter allows a run for this ticket at all.
    pub dispatchable: Dispatchable,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// The provider's own reference, without secrets.
    pub native_ref: Option<serde_json::Value>,
    /// All comments, oldest first; `None` where a listing does not include them.
    pub comments: Option<Vec<Comment>>,
    /// The last change of the state, where the tracker reports it.
    pub state_changed: Option<StateChange>,
    /// What people did to the ticket, where the reading includes it.
    #[serde(default)]
    pub history: History,
}

/// When the ticket came into its state, and who moved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// Zero if the tracker reports no time for this move.
    pub at: Timestamp,
    /// `None` where the tracker never reports who made a move. Where it usually does and does not for this move, an author whose
    /// words do not count.
    pub by: Option<Author>,
}

/// What people did to a ticket besides moving it. Empty where the reading does not include it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// For each label that is present, who added it.
    pub labelled: Vec<Labelled>,
    /// Who assigned the ticket to the account that the workflow file asks for.
    pub assigned: Option<Doing>,
    /// The last change of the ticket's text after its creation.
    pub reworded: Option<Doing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    pub label: String,
    pub by: Author,
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub by: Author,
    pub at: Timestamp,
}

impl History {
    /// Returns the acts that let the ticket be worked on: adding one of these labels, or assigning it. Each with its author, its time, and
    /// a description.
    pub fn let_in<'a>(&'a self, labels: &'a [String]) -> impl Iterator<Item = (&'a Author, Option<Timestamp>, String)> {
        let wanted = move |put: &&Labelled| labels.iter().any(|label| same_state(label, &put.label));
        let put_on = |put: &'a Labelled| (&put.by, put.at, format!("the label `{}` was put on", put.label));
        let given = |deed: &'a Doing| (&deed.by, Some(deed.at), "it was assigned".to_owned());
        self.labelled.iter().filter(wanted).map(put_on).chain(self.assigned.iter().map(given))
    }

    /// Returns the last change of the text, if its author does not count and nobody who counts has let the ticket in again since. `None` as
    /// well if no dated act of an author who counts is known.
    pub fn reworded_since(&self, labels: &[String], counts: impl Fn(&Author) -> bool) -> Option<&Doing> {
        let last = self.let_in(labels).filter(|(by, ..)| counts(by)).filter_map(|(_, at, _)| at).max();
        self.reworded.as_ref().filter(|change| !counts(&change.by) && last.is_some_and(|last| change.at >= last))
    }
}

impl Ticket {
    /// Returns the comments as far as this reading has them.
    pub fn known_comments(&self) -> &[Comment] {
        self.comments.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "because")]
pub enum Dispatchable {
    Yes,
    No(String),
}

/// A ticket that must be finished first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub id: TicketId,
    pub key: TicketKey,
    /// `None` when the tracker cannot tell (a dangling reference): the blocker keeps blocking.
    pub state: Option<String>,
    /// Closed without success. A failed blocker keeps blocking, whatever its state is.
    pub failed: bool,
}

/// A ticket to be created (a follow-up, a fix ticket).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTicket {
    pub title: String,
    pub description: String,
    pub labels: Vec<String>,
    pub priority: Option<i64>,
    pub parent: Option<TicketId>,
    pub blocked_by: Vec<TicketId>,
}

/// Trims and lower-cases labels and drops blanks and duplicates; the order of first occurrence stays.
pub fn normalise_labels<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut seen = Vec::new();
    for label in labels {
        let label = label.as_ref().trim().to_lowercase();
        if !label.is_empty() && !seen.contains(&label) {
            seen.push(label);
        }
    }
    seen
}

/// Whether two state names are equal, ignoring case and surrounding blanks.
pub fn same_state(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.to_lowercase() == b.to_lowercase()
}

/// Whether `state` is one of `states`.
pub fn state_in(state: &str, states: &[String]) -> bool {
    states.iter().any(|candidate| same_state(candidate, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_4_labels_are_trimmed_lower_cased_and_unique() {
        assert_eq!(normalise_labels([" Bug", "bug", "", "  ", "UI "]), ["bug", "ui"]);
    }

    #[test]
    fn spec_4_states_compare_trimmed_and_lower_case() {
        assert!(same_state(" In Progress", "in progress "));
        assert!(!same_state("todo", "done"));
    }
}
