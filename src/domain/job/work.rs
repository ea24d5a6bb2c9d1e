//! What a run of a job has to do, and why it has to be done again.

use serde::{Deserialize, Serialize};

use crate::domain::evidence::{Evidence, EvidenceKind, tail};
use crate::domain::ids::CommitId;
use crate::domain::phase::Phase;
use crate::domain::run::RunKind;

/// What the current run, or the next one, has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Work {
    Implement,
    Review { head: CommitId },
    Rework { cause: ReworkCause },
}

impl Work {
    /// Returns the phase of a job while a run does this work.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Implement => Phase::Implementing,
            Self::Review { .. } => Phase::Reviewing,
            Self::Rework { .. } => Phase::Rework,
        }
    }

    pub fn kind(&self) -> RunKind {
        match self {
            Self::Implement => RunKind::Implement,
            Self::Review { .. } => RunKind::Review,
            Self::Rework { .. } => RunKind::Rework,
        }
    }
}

/// Why the work has to be done again, with the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReworkCause {
    pub trigger: ReworkTrigger,
    pub summary: String,
    pub evidence: Vec<Evidence>,
}

impl ReworkCause {
    /// Returns the evidence, short enough for a comment: the end of a command's output, or the first remarks. `None` if there is none to
    /// show.
    pub fn shown(&self) -> Option<String> {
        const LINES: usize = 10;
        const CHARACTERS: usize = 1_000;
        let parts = self.evidence.iter().filter_map(|evidence| match &evidence.kind {
            EvidenceKind::Command { command, output, .. } => {
                Some(format!("$ {command}\n{}", tail(output, LINES, CHARACTERS)))
            }
            // For a conflict the summary already lists the files.
            EvidenceKind::Note { text } if self.trigger != ReworkTrigger::MergeConflict => {
                Some(tail(text, LINES, CHARACTERS))
            }
            EvidenceKind::Note { .. } | EvidenceKind::File { .. } | EvidenceKind::Test { .. } => None,
        });
        let shown = parts.take(3).collect::<Vec<_>>().join("\n");
        (!shown.trim().is_empty()).then_some(shown)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReworkTrigger {
    CheckFailed,
    MergeConflict,
    ChangesRequested,
    ReviewFinding,
    UnresolvedThread,
    /// A remark by a bot of `review.bots`. Such rounds are counted separately, and there is one at most.
    Bot,
    TicketComment,
    ReworkState,
    GateFailed,
    Contradicted,
    /// A person moved the branch, or asked for another round by command.
    Operator,
    /// Nothing is wrong: the head is prepared for its merge (`merge.executor: prompt`). Not counted as a round of rework.
    Landing,
}
