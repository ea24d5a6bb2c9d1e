//! What a job has cost, over its whole life and since a person last cleared its budget.

use serde::{Deserialize, Serialize};

use crate::domain::seldom::unwritten;
use crate::domain::usage::Usage;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Over the job's whole life.
    pub total: Usage,
    pub run_ms: u64,
    /// Since a person last cleared the budget. The caps are compared with this.
    pub since_reset: Usage,
    pub run_ms_since_reset: u64,
}

unwritten!(Spending);
