//! Lanes: the adapters' bounded queues of calls.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    Tracker,
    Forge,
    /// The runner's own verification commands.
    Gates,
    /// Worktrees, fetches and pushes.
    Workspace,
}

impl Lane {
    pub const ALL: [Self; 4] = [Self::Tracker, Self::Forge, Self::Gates, Self::Workspace];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tracker => "tracker",
            Self::Forge => "forge",
            Self::Gates => "gates",
            Self::Workspace => "workspace",
        }
    }
}
