//! The phase of a job: where it stands, as one machine-readable word.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Queued,
    Implementing,
    Reviewing,
    Rework,
    WaitingForChecks,
    WaitingForHuman,
    Blocked,
    ReadyToMerge,
    Merging,
    Done,
    Released,
}

/// What moves a job on while it is in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseClass {
    Waiting,
    Active,
    Passive,
    Terminal,
}

impl Phase {
    pub const ALL: [Phase; 11] = [
        Phase::Queued,
        Phase::Implementing,
        Phase::Reviewing,
        Phase::Rework,
        Phase::WaitingForChecks,
        Phase::WaitingForHuman,
        Phase::Blocked,
        Phase::ReadyToMerge,
        Phase::Merging,
        Phase::Done,
        Phase::Released,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Implementing => "implementing",
            Self::Reviewing => "reviewing",
            Self::Rework => "rework",
            Self::WaitingForChecks => "waiting_for_checks",
            Self::WaitingForHuman => "waiting_for_human",
            Self::Blocked => "blocked",
            Self::ReadyToMerge => "ready_to_merge",
            Self::Merging => "merging",
            Self::Done => "done",
            Self::Released => "released",
        }
    }

    /// Returns the phase in words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::WaitingForChecks => "waiting for checks",
            Self::WaitingForHuman => "waiting for approval",
            Self::ReadyToMerge => "ready to merge",
            other => other.name(),
        }
    }

    pub fn from_name(name: &str) -> Option<Phase> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    pub fn class(self) -> PhaseClass {
        match self {
            Self::Queued => PhaseClass::Waiting,
            Self::Implementing | Self::Reviewing | Self::Rework => PhaseClass::Active,
            Self::WaitingForChecks | Self::WaitingForHuman | Self::Blocked | Self::ReadyToMerge | Self::Merging => {
                PhaseClass::Passive
            }
            Self::Done | Self::Released => PhaseClass::Terminal,
        }
    }

    pub fn is_terminal(self) -> bool {
        self.class() == PhaseClass::Terminal
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
