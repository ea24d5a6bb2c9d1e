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
    fn failing_tests_contradict_and_notes_do_not() {
        assert_eq!(says(EvidenceKind::Test { passed: 3, failed: 1 }), 1);
        assert_eq!(says(EvidenceKind::Test { passed: 3, failed: 0 }), 0);
        assert_eq!(says(EvidenceKind::Note { text: "x".into() }), 0);
    }
}
