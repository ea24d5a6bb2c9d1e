//! Compares the claims in a run's evidence with the changes that git shows.

use crate::domain::evidence::{Evidence, EvidenceKind, FileAction};
use crate::domain::words::count;

/// A file that the branch changes, according to git.
#[derive(Debug, Clone, Copy)]
pub struct Changed<'a> {
    pub path: &'a str,
    pub action: FileAction,
}

/// Returns one sentence for each claim that the facts contradict. Notes and commands cannot be checked and are skipped. Of several
/// test results only the last one counts.
pub fn contradicted(evidence: &[Evidence], changes: &[Changed<'_>]) -> Vec<String> {
    let is_test = |evidence: &&Evidence| matches!(evidence.kind, EvidenceKind::Test { .. });
    let last_test = evidence.iter().rev().find(is_test);
    evidence
        .iter()
        .filter(|evidence| !is_test(evidence) || last_test.is_some_and(|last| std::ptr::eq(last, *evidence)))
        .filter_map(|evidence| contradiction(&evidence.kind, changes))
        .collect()
}

/// Returns the same where git cannot tell what the branch changes: what contradicts itself, and that claims about files were not checked.
pub fn contradicted_without_changes(evidence: &[Evidence], why: &str) -> Vec<String> {
    let is_file = |evidence: &Evidence| matches!(evidence.kind, EvidenceKind::File { .. });
    let (files, others): (Vec<Evidence>, Vec<Evidence>) = evidence.iter().cloned().partition(is_file);
    let mut found = contradicted(&others, &[]);
    if !files.is_empty() {
        let claims = count(files.len(), "claim about a file", "claims about files");
        found.push(format!("{claims} could not be checked: {why}"));
    }
    found
}

fn contradiction(claim: &EvidenceKind, changes: &[Changed<'_>]) -> Option<String> {
    match claim {
        EvidenceKind::File { action, path } => {
            let path = path.strip_prefix("./").unwrap_or(path);
            let found = changes.iter().find(|change| change.path == path);
            match (action, found.map(|change| change.action)) {
                (_, None) => {
                    Some(format!("it claims to have {} `{path}`, but the branch does not touch it", verb(*action)))
                }
                (FileAction::Deleted, Some(FileAction::Deleted)) => None,
                (FileAction::Deleted, Some(_)) => Some(format!("it claims to have deleted `{path}`, but it is there")),
                (FileAction::Created | FileAction::Modified, Some(FileAction::Deleted)) => {
                    Some(format!("it claims to have {} `{path}`, but the branch deletes it", verb(*action)))
                }
                (FileAction::Created | FileAction::Modified, Some(_)) => None,
            }
        }
        EvidenceKind::Test { failed, .. } if *failed > 0 => {
            Some(format!("by its own evidence {}", count(*failed as usize, "test fails", "tests fail")))
        }
        EvidenceKind::Command { .. } | EvidenceKind::Test { .. } | EvidenceKind::Note { .. } => None,
    }
}

fn verb(action: FileAction) -> &'static str {
    match action {
        FileAction::Created => "created",
        FileAction::Modified => "modified",
        FileAction::Deleted => "deleted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    fn says(kind: EvidenceKind) -> usize {
        let changes = [
            Changed { path: "new.rs", action: FileAction::Created },
            Changed { path: "gone.rs", action: FileAction::Deleted },
        ];
        contradicted(&[Evidence { kind, timestamp: Timestamp(0) }], &changes).len()
    }

    fn file(action: FileAction, path: &str) -> EvidenceKind {
        EvidenceKind::File { action, path: path.into() }
    }

    #[test]
    fn claims_about_files_are_held_against_the_diff() {
        assert_eq!(says(file(FileAction::Created, "./new.rs")), 0);
        assert_eq!(says(file(FileAction::Modified, "new.rs")), 0, "created and then modified");
        assert_eq!(says(file(FileAction::Deleted, "gone.rs")), 0);
        assert_eq!(says(file(FileAction::Deleted, "new.rs")), 1);
        assert_eq!(says(file(FileAction::Created, "gone.rs")), 1);
        assert_eq!(says(file(FileAction::Modified, "never.rs")), 1);
    }

    #[test]
    fn claims_about_files_that_cannot_be_checked_are_not_taken_for_true() {
        let record = |kind| Evidence { kind, timestamp: Timestamp(0) };
        let note = record(EvidenceKind::Note { text: "x".into() });
        assert!(contradicted_without_changes(std::slice::from_ref(&note), "no head").is_empty());
        let evidence = [
            note,
            record(file(FileAction::Created, "new.rs")),
            record(file(FileAction::Deleted, "gone.rs")),
            record(EvidenceKind::Test { passed: 3, failed: 1 }),
        ];
        let found = contradicted_without_changes(&evidence, "no head");
        assert_eq!(found, ["by its own evidence 1 test fails", "2 claims about files could not be checked: no head"]);
    }

    #[test]
    fn failing_tests_contradict_and_notes_do_not() {
        assert_eq!(says(EvidenceKind::Test { passed: 3, failed: 1 }), 1);
        assert_eq!(says(EvidenceKind::Test { passed: 3, failed: 0 }), 0);
        assert_eq!(says(EvidenceKind::Note { text: "x".into() }), 0);
    }
}
