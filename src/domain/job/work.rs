//! What a run of a job has to do, and why it has to be done again.

use serde::{Deserialize, Serialize};

use crate::domain::evidence::{Evidence, EvidenceKind, tail};
use crate::domain::ids::CommitId;
use crate::domain::phase::Phase;
use crate::domain::run::RunKind;

/// What the next or current run has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Work {
    Implement,
    Review { head: CommitId },
    Rework { cause: ReworkCause },
}

impl Work {
    /// The phase of a job while a run does this.
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

/// Why the work has to be done again, with what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReworkCause {
    pub trigger: ReworkTrigger,
    pub summary: String,
    pub evidence: Vec<Evidence>,
}

impl ReworkCause {
    /// What proves it, short enough for a comment: the end of what a command printed, or the first remarks.
    pub fn shown(&self) -> Option<String> {
        const LINES: usize = 10;
        const CHARACTERS: usize = 1_000;
        let parts = self.evidence.iter().filter_map(|evidence| match &evidence.kind {
            EvidenceKind::Command { command, output, .. } => {
                Some(format!("$ {command}\n{}", tail(output, LINES, CHARACTERS)))
            }
            // The summary names the files of a conflict already.
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
    /// A bot of `review.bots`. Counted by itself, once.
    Bot,
    TicketComment,
    ReworkState,
    GateFailed,
    Contradicted,
    /// A person moved the branch or asked for another round by command.
    Operator,
    /// Nothing is wrong: the head is prepared for its merge (`merge.executor: prompt`). Not a round of rework.
    Landing,
}
