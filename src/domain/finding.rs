//! A finding of a review: one thing that is wrong with a head, and how severe it is.

use serde::{Deserialize, Serialize};

use super::hash::stable_hash;
use super::ids::CommentId;
use super::remark::{RemarkKey, RemarkKind};

/// The prefix of the comment key of a conversation about a finding.
pub const NOTE: &str = "finding:";

/// The severity of a finding; P0 is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    P0,
    P1,
    P2,
    P3,
    P4,
}

impl Severity {
    pub const ALL: [Self; 5] = [Self::P0, Self::P1, Self::P2, Self::P3, Self::P4];

    pub fn name(self) -> &'static str {
        match self {
            Self::P0 => "P0",
            Self::P1 => "P1",
            Self::P2 => "P2",
            Self::P3 => "P3",
            Self::P4 => "P4",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name().eq_ignore_ascii_case(name))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewFinding {
    /// The id that the reviewer gave to the finding. Answers refer to it.
    pub id: String,
    pub severity: Severity,
    pub title: String,
    /// `path` or `path:line`, if the finding is about one file.
    pub place: Option<String>,
    pub summary: String,
    pub why_it_matters: String,
    pub suggested_fix: String,
}

impl ReviewFinding {
    /// Returns a hash that changes with the severity, the title and every text of the finding, but not with its place.
    pub fn version(&self) -> String {
        let parts = [self.severity.name(), &self.title, &self.summary, &self.why_it_matters, &self.suggested_fix];
        format!("{:016x}", stable_hash(&parts))
    }

    /// Returns the key by which the finding's conversation on the pull request is found again. The same id and text in a later review give
    /// the same key.
    pub fn note_key(&self) -> String {
        format!("{NOTE}{}:{}", self.id, self.version())
    }

    /// Returns the file and the line that the finding is about, if its place contains both: `path:12`, `path:12-20`, `path#L12`,
    /// `path line 12`.
    pub fn line(&self) -> Option<(String, u32)> {
        let place = self.place.as_deref()?.trim().trim_matches(['`', '(', ')']);
        let (path, rest) = ["#L", ", line ", " line ", ":"].iter().find_map(|between| place.split_once(between))?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        let path = path.trim().trim_matches('`').trim_start_matches("./");
        let line = digits.parse().ok().filter(|line| *line > 0)?;
        (!path.is_empty()).then(|| (path.to_owned(), line))
    }

    /// Returns the key of the finding as a remark, which is open until it is answered.
    pub fn key(&self) -> RemarkKey {
        RemarkKey { kind: RemarkKind::Finding, id: CommentId::new(self.id.clone()), version: self.version() }
    }

    /// Returns the finding as text for the worker that has to deal with it.
    pub fn text(&self) -> String {
        format!(
            "[{}] {}\n{}\nWhy it matters: {}\nSuggested fix: {}",
            self.severity.name(),
            self.title,
            self.summary,
            self.why_it_matters,
            self.suggested_fix
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_where_it_names_a_line_and_not_guessed_where_it_does_not() {
        let at = |place: &str| {
            ReviewFinding {
                id: "F1".into(),
                severity: Severity::P1,
                title: String::new(),
                place: Some(place.into()),
                summary: String::new(),
                why_it_matters: String::new(),
                suggested_fix: String::new(),
            }
            .line()
        };
        let found = Some(("src/a.rs".to_owned(), 12));
        for place in [
            "src/a.rs:12",
            "`src/a.rs:12`",
            "./src/a.rs:12-20",
            "src/a.rs#L12-L20",
            "src/a.rs line 12",
            "src/a.rs:12:5",
        ] {
            assert_eq!(at(place), found, "{place}");
        }
        for place in ["src/a.rs", "the whole file", "src/a.rs:0", ":12", "src/a.rs:twelve", "src/a.rs:99999999999"] {
            assert_eq!(at(place), None, "{place}");
        }
    }
}
