//! A receipt in the form for outside readers: an in-toto statement about one commit, and the git note that carries the statement and its
//! signature.
//!
//! The note is text: the statement as JSON, directly followed by its signature. Anything else in the note was written by people and is
//! kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::Verification;
use super::ids::CommitId;
use super::job::{DoneHow, Job, Stage};

pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const RECEIPT_TYPE: &str = "urn:dirigent:receipt:v1";

/// An in-toto statement. The field names are those of the in-toto specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<Subject>,
    pub predicate_type: String,
    pub predicate: CheckedWork,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub name: String,
    pub digest: BTreeMap<String, String>,
}

/// What was checked: on which commit, by which commands, with which results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedWork {
    pub result: Verification,
    pub ticket: TicketName,
    /// The run that made the head.
    pub run: Option<String>,
    /// The commit that the gates ran on.
    pub head: Option<CommitId>,
    pub base: Option<CommitId>,
    pub commits: u32,
    pub gates: Vec<GateRecord>,
    pub pull_request: Option<PullRequestRecord>,
    pub facts: Vec<String>,
    pub attempts: u32,
    pub rework_cycles: u32,
    pub finished_at: String,
    pub dirigent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketName {
    pub key: String,
    pub title: String,
    pub url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateRecord {
    pub name: String,
    pub command: String,
    pub passed: bool,
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestRecord {
    pub number: u64,
    pub url: Option<String>,
    pub base_branch: String,
    /// The head that was merged, or the pull request's head while it is not merged.
    pub head: CommitId,
    /// The summary of the forge's own checks on that head.
    pub checks: String,
    pub check_names: Vec<String>,
    pub approved_head: Option<String>,
    pub reviewed_head: Option<CommitId>,
    /// Whether Dirigent merged it, not a person; `None` while it is not merged.
    pub merged_by_us: Option<bool>,
}

impl Statement {
    /// Makes the statement about the job's work as `commit`. `None` if nothing was checked yet.
    pub fn about(job: &Job, commit: &CommitId, finished_at: String) -> Option<Self> {
        let receipt = job.evidence.receipt.as_ref()?;
        let merged_by_us = match &job.stage {
            Stage::Done { how: DoneHow::Merged { by_us, .. }, .. } => Some(*by_us),
            _ => None,
        };
        let pull_request = job.delivery.pr.as_ref().map(|pr| PullRequestRecord {
            number: pr.number.0,
            url: pr.url.clone(),
            base_branch: pr.base_branch.clone(),
            head: pr.head.clone(),
            checks: pr.checks.name().to_owned(),
            check_names: pr.known_checks.clone(),
            approved_head: job.people.approved_head().map(ToString::to_string),
            reviewed_head: job.delivery.reviews.head.clone(),
            merged_by_us,
        });
        let mut facts = receipt.facts.clone();
        let mut result = receipt.verification;
        // The head differs from the checked commit after a person's push or the runner's own update of the branch. No gates ran on it.
        if let (Some(checked), Some(pr)) = (&receipt.head, &pull_request)
            && *checked != pr.head
        {
            facts.push(format!("the gates looked at {}, and the head is {}", checked.short(), pr.head.short()));
            if result == Verification::Verified {
                result = Verification::Unverified;
            }
        }
        let gates = receipt.gates.iter().map(|gate| GateRecord {
            name: gate.name.clone(),
            command: gate.command.clone(),
            passed: gate.passed,
            exit_code: gate.exit_code,
            timed_out: gate.timed_out,
            duration_ms: gate.duration_ms,
        });
        let predicate = CheckedWork {
            result,
            ticket: TicketName {
                key: job.ticket.key.to_string(),
                title: job.ticket.title.clone(),
                url: job.ticket.url.clone(),
            },
            run: job.delivery.made_by.as_ref().map(ToString::to_string),
            head: receipt.head.clone(),
            base: receipt.base.clone(),
            commits: receipt.commits,
            gates: gates.collect(),
            pull_request,
            facts,
            attempts: job.attempts,
            rework_cycles: job.rework_cycles,
            finished_at,
            dirigent: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let digest = [("gitCommit".to_owned(), commit.to_string())].into();
        Some(Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject: vec![Subject { name: job.ticket.key.to_string(), digest }],
            predicate_type: RECEIPT_TYPE.to_owned(),
            predicate,
        })
    }

    /// Returns the bytes that are signed.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    pub fn is_about(&self, commit: &CommitId) -> bool {
        self.subject.iter().any(|subject| subject.digest.get("gitCommit").is_some_and(|one| one == commit.as_str()))
    }
}

/// One receipt in a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedReceipt<'a> {
    pub payload: &'a str,
    pub signature: Option<&'a str>,
    /// `None` if the statement's type is ours but its content cannot be parsed.
    pub statement: Option<Statement>,
    /// The receipt's byte range in the note, signature included.
    at: std::ops::Range<usize>,
}

/// Returns every receipt that a note carries.
pub fn receipts_in(note: &str) -> Vec<NotedReceipt<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = next_object(note, from) {
        let rest = note.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        let Some(Ok(value)) = values.next() else {
            from = start + 1;
            continue;
        };
        let length = values.byte_offset();
        from = start + length;
        if value.get("_type").and_then(|kind| kind.as_str()) != Some(STATEMENT_TYPE) {
            continue;
        }
        // The line break after the JSON is part of what was signed.
        let end = start + length + usize::from(rest[length..].starts_with('\n'));
        let signature = signature_at(note, end);
        let upto = end + signature.map_or(0, str::len);
        let payload = note.get(start..end).unwrap_or_default();
        found.push(NotedReceipt { payload, signature, statement: serde_json::from_value(value).ok(), at: start..upto });
        from = upto;
    }
    found
}

/// Returns the position of the next line that begins with `{`.
fn next_object(note: &str, from: usize) -> Option<usize> {
    let begins = |at: usize| at == 0 || note.as_bytes().get(at - 1) == Some(&b'\n');
    note.get(from..)?.match_indices('{').map(|(at, _)| from + at).find(|at| begins(*at))
}

fn signature_at(note: &str, at: usize) -> Option<&str> {
    let rest = note.get(at..)?;
    if !rest.starts_with("-----BEGIN ") {
        return None;
    }
    let end = rest.find("\n-----END ")? + 1;
    let line = rest.get(end..)?.find('\n').map_or(rest.len(), |length| end + length + 1);
    rest.get(..line)
}

/// Returns the note with this receipt added and everything else kept. `None` if nothing has to change.
pub fn note_with(note: Option<&str>, payload: &str, signature: Option<&str>) -> Option<String> {
    let ours = format!("{payload}{}", signature.unwrap_or_default());
    let Some(note) = note.filter(|note| !note.trim().is_empty()) else { return Some(ours) };
    match receipts_in(note).into_iter().find(|known| known.payload.trim_end() == payload.trim_end()) {
        Some(known) if known.signature.is_some() || signature.is_none() => None,
        Some(known) => {
            let (before, after) = (note.get(..known.at.start)?, note.get(known.at.end..)?);
            Some(format!("{before}{ours}{after}"))
        }
        None => Some(format!("{}\n\n{ours}", note.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n";

    fn payload(name: &str) -> String {
        format!("{{\n  \"_type\": \"{STATEMENT_TYPE}\",\n  \"name\": \"{name} {{\"\n}}\n")
    }

    #[test]
    fn a_note_keeps_what_people_wrote_into_it() {
        let one = payload("one");
        assert_eq!(note_with(None, &one, None).as_deref(), Some(one.as_str()));
        assert_eq!(note_with(Some(&one), &one, None), None, "twice is once");
        let signed = note_with(Some(&one), &one, Some(SIGNATURE)).unwrap();
        assert_eq!(signed, format!("{one}{SIGNATURE}"));
        assert_eq!(note_with(Some(&signed), &one, None), None, "a signature is not lost");

        let words = "Ada: {this} was hard\n{\n  \"not\": \"ours\"\n}\n";
        let both = note_with(Some(words), &one, Some(SIGNATURE)).unwrap();
        assert!(both.starts_with(words.trim_end()) && both.ends_with(SIGNATURE), "{both}");
        let more = format!("{both}and more\n");
        let two = note_with(Some(&more), &payload("two"), None).unwrap();
        let found = receipts_in(&two);
        assert_eq!(found.len(), 2, "{two}");
        assert_eq!((found[0].payload, found[0].signature), (one.as_str(), Some(SIGNATURE)));
        assert_eq!((found[1].payload, found[1].signature), (payload("two").as_str(), None));
        assert!(two.contains("and more"));
    }

    #[test]
    fn hostile_notes_are_read_without_harm() {
        for note in ["", "{", "{}", "{\n", "-----BEGIN SSH SIGNATURE-----", "\u{feff}{", "{\"_type\":1}", "é{\n{"] {
            assert!(receipts_in(note).is_empty(), "{note}");
            assert!(note_with(Some(note), &payload("x"), None).unwrap().contains(note.trim()), "{note}");
        }
        let cut = format!("{}-----BEGIN SSH SIGNATURE-----\nab", payload("one"));
        assert_eq!(receipts_in(&cut)[0].signature, None);
    }
}
