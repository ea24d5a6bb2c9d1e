//! The conditions of a merge, one by one, as they are shown to people.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// The name of a merge condition. The variants are in the order in which the conditions are judged.
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
    /// Expected to pass without a person: with time, through CI, or by the runner's own next step.
    Pending,
    /// Needs more work, or a person.
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
    /// Since when the condition has had this status.
    pub since: Timestamp,
    pub detail: Option<String>,
}

impl Condition {
    pub fn passes(&self) -> bool {
        self.status == ConditionStatus::Pass
    }
}
