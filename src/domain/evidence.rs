//! What gates (the runner's verification commands) and workers recorded about the work, for prompts, receipts and people to rely on.

use serde::{Deserialize, Serialize};

use super::ids::CommitId;
use super::time::Timestamp;

/// One evidence record, in the JSON shape that workers and outside readers use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(flatten)]
    pub kind: EvidenceKind,
    pub timestamp: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum EvidenceKind {
    Command { command: String, output: String, exit_code: i32 },
    File { action: FileAction, path: String },
    Test { passed: u32, failed: u32 },
    Note { text: String },
}

impl EvidenceKind {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::File { .. } => "file",
            Self::Test { .. } => "test",
            Self::Note { .. } => "note",
        }
    }
}

/// Returns the end of a text, limited to this many lines and characters.
pub fn tail(text: &str, lines: usize, characters: usize) -> String {
    let text = text.trim_end();
    let from = text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    let kept = text.get(from..).unwrap_or_default();
    let excess = kept.chars().count().saturating_sub(characters);
    kept.chars().skip(excess).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    Created,
    Modified,
    Deleted,
}

/// Whether the recorded facts support the claim that the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    Verified,
    /// There was nothing to check the claim with.
    Unverified,
    /// The worker says that the work is done, and the facts say that it is not.
    Contradicted,
}

/// The result of one gate command on one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResult {
    pub name: String,
    /// The shell command that was run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    pub passed: bool,
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The end of the command's output.
    pub output_tail: String,
    pub duration_ms: u64,
}

/// A small JSON document attached to a finished run: what the worker claimed and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub verification: Verification,
    pub head: Option<CommitId>,
    pub base: Option<CommitId>,
    pub commits: u32,
    pub facts: Vec<String>,
    pub gates: Vec<GateResult>,
}

impl Receipt {
    /// Whether the facts contradict the claim itself, as opposed to a gate that failed. Gates that pass do not settle that.
    pub fn is_claim_contradicted(&self) -> bool {
        self.verification == Verification::Contradicted && self.gates.iter().all(|gate| gate.passed)
    }

    /// Whether each gate in `names` has a result here and none of those results is a failure. With no names, every recorded gate has to
    /// have passed.
    pub fn is_passed_by(&self, names: &[String]) -> bool {
        let counts = |gate: &&GateResult| names.is_empty() || names.contains(&gate.name);
        names.iter().all(|name| self.gates.iter().any(|gate| gate.name == *name))
            && self.gates.iter().filter(counts).all(|gate| gate.passed)
    }
}
