//! What an attempt was told, one hash per part, so that a later attempt can tell which parts are new.

use serde::{Deserialize, Serialize};

/// One short hash per part of what the next prompt would tell the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Title and text of the ticket.
    pub ticket: String,
    pub comments: String,
    pub remarks: String,
    pub labels: String,
    pub head: String,
    pub checks: String,
    /// Why the work has to be done again, failed gates included; for a conflict, the tip of the base branch too.
    pub cause: String,
    pub workflow: String,
}

impl Fingerprint {
    fn parts(&self) -> [(&'static str, &str); 8] {
        [
            ("the ticket's title or text", &self.ticket),
            ("a comment", &self.comments),
            ("a remark", &self.remarks),
            ("the labels", &self.labels),
            ("the branch", &self.head),
            ("the checks", &self.checks),
            ("the reason for the work", &self.cause),
            ("the workflow", &self.workflow),
        ]
    }

    /// Returns the parts in which the two fingerprints differ, in words for people.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let theirs = other.parts();
        self.parts()
            .into_iter()
            .zip(theirs)
            .filter(|(mine, theirs)| mine.1 != theirs.1)
            .map(|(mine, _)| mine.0)
            .collect()
    }
}
