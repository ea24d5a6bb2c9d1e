//! What has to hold before a merge, one by one, as people see it.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// In the order in which they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionName {
    Base,
    Look,
    Checks,
    Mergeable,
    Prepared,
    Review,
    Draft,
    Remarks,
    Approval,
    Claims,
    Guards,
    Merging,
    Switch,
    Turn,
}

impl ConditionName {
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Look => "look",
            Self::Checks => "checks",
            Self::Mergeable => "mergeable",
            Self::Prepared => "prepared",
            Self::Review => "review",
            Self::Draft => "draft",
            Self::Remarks => "remarks",
            Self::Approval => "approval",
            Self::Claims => "claims",
            Self::Guards => "guards",
            Self::Merging => "merging",
            Self::Switch => "switch",
            Self::Turn => "turn",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionStatus {
    Pass,
    /// It comes with time, from CI, or by our own doing.
    Pending,
    /// It takes more work, or a person.
    Fail,
}

impl ConditionStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Pending => "pending",
            Self::Fail => "fail",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub name: ConditionName,
    pub status: ConditionStatus,
    /// Since when it has been so.
    pub since: Timestamp,
    pub detail: Option<String>,
}

impl Condition {
    pub fn passes(&self) -> bool {
        self.status == ConditionStatus::Pass
    }
}
