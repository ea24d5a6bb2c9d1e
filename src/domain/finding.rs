//! What a review found: one thing that is wrong with a head, and how bad it is.

use serde::{Deserialize, Serialize};

use super::hash::stable_hash;
use super::ids::CommentId;
use super::remark::{RemarkKey, RemarkKind};

/// P0 is the worst.
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
    /// The reviewer's own name for it, by which it is answered.
    pub id: String,
    pub severity: Severity,
    pub title: String,
    /// `path` or `path:line`, where it is about one.
    pub place: Option<String>,
    pub summary: String,
    pub why_it_matters: String,
    pub suggested_fix: String,
}

impl ReviewFinding {
    /// Changes with every word of it.
    pub fn version(&self) -> String {
        let parts = [self.severity.name(), &self.title, &self.summary, &self.why_it_matters, &self.suggested_fix];
        format!("{:016x}", stable_hash(&parts))
    }

    /// As a remark that is open until it is answered.
    pub fn key(&self) -> RemarkKey {
        RemarkKey { kind: RemarkKind::Finding, id: CommentId::new(self.id.clone()), version: self.version() }
    }

    /// As whoever has to deal with it reads it.
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
