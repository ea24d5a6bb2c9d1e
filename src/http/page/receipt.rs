//! The receipt as it is shown beside the diff: what was checked, by which command, and with which result.

use serde::Serialize;

use super::words::{clip, count, cut, sentence};
use crate::domain::evidence::{GateResult, Receipt, Verification};
use crate::domain::snapshot::JobView;
use crate::domain::time::span;

#[derive(Debug, Serialize)]
pub struct ReceiptView {
    result: &'static str,
    words: &'static str,
    head: String,
    /// Whether the gates checked another commit than the one that is shown.
    stale: bool,
    commits: String,
    gates: Vec<GateRow>,
    facts: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct GateRow {
    name: String,
    command: String,
    passed: bool,
    words: String,
    output: Option<String>,
}

pub fn receipt_view(receipt: &Receipt, job: &JobView) -> ReceiptView {
    let (result, words) = match receipt.verification {
        Verification::Verified => ("verified", "Verified: what was claimed was checked"),
        Verification::Unverified => ("unverified", "Unverified: there was nothing to check it with"),
        Verification::Contradicted => ("contradicted", "Contradicted: it says done, the facts say no"),
    };
    let head = receipt.head.as_ref().map(ToString::to_string).unwrap_or_default();
    ReceiptView {
        result,
        words,
        stale: job.head.as_ref().is_some_and(|shown| *shown != head),
        head: head.chars().take(12).collect(),
        commits: count(receipt.commits as usize, "commit", "commits"),
        gates: receipt.gates.iter().map(gate_row).collect(),
        facts: receipt.facts.iter().map(|fact| sentence(fact, 400)).collect(),
    }
}

fn gate_row(gate: &GateResult) -> GateRow {
    let took =
        if gate.duration_ms < 10_000 { format!("{} ms", gate.duration_ms) } else { span(gate.duration_ms / 1000) };
    let how = match (gate.passed, gate.timed_out, gate.exit_code) {
        (true, _, _) => "passed".to_owned(),
        (false, true, _) => "timed out".to_owned(),
        (false, false, Some(code)) => format!("failed with exit code {code}"),
        (false, false, None) => "ended by a signal".to_owned(),
    };
    GateRow {
        name: clip(&gate.name, 80),
        command: clip(&gate.command, 200),
        passed: gate.passed,
        words: format!("{how} in {took}"),
        output: Some(cut(gate.output_tail.trim_end(), 3_000)).filter(|output| !output.is_empty()),
    }
}
