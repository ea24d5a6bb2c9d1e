//! Stores receipts as git notes under `refs/notes/dirigent`. Other notes there, and other text in the same note, stay as they are.

use git2::{ErrorCode, Oid, Repository};

use super::commits::Commits;
use super::error::WorkspaceError;
use super::repo::RepoPlace;
use super::{commit_at, commit_id, locks, oid};
use crate::domain::ids::CommitId;
use crate::domain::statement::note_with;

pub const NOTES_REF: &str = "refs/notes/dirigent";
/// A temporary ref on which the notes of two repositories are joined.
const JOINING_REF: &str = "refs/dirigent/notes-joining";
/// How often writing a note is tried while other processes write notes, too.
const PATIENCE: u32 = 20;
/// Limit of a note in bytes. A longer one is no receipt and is not read.
const LONGEST_NOTE: usize = 4 << 20;

/// Returns the note of a commit as text. `None` if there is none.
pub fn note_of(place: &RepoPlace, commit: &CommitId) -> Result<Option<String>, WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("read the note", &place.git_dir, source);
    let repo = place.open()?;
    read(&repo, NOTES_REF, oid(commit).map_err(failed)?).map_err(failed)
}

/// Returns the commit that the notes ref points to.
pub fn notes_tip(place: &RepoPlace) -> Result<Option<CommitId>, WorkspaceError> {
    Ok(commit_at(&place.open()?, NOTES_REF).map(commit_id))
}

/// Puts a receipt into the note of its commit. An existing receipt counts as success.
pub fn add_receipt(
    place: &RepoPlace,
    commits: &Commits,
    commit: &CommitId,
    payload: &str,
    signature: Option<&str>,
) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("write the note", &place.git_dir, source);
    let repo = place.open()?;
    let about = oid(commit).map_err(failed)?;
    let who = commits.signature(&repo).map_err(failed)?;
    locks::release_stale(&place.git_dir, NOTES_REF)?;
    in_spite_of_others(|| {
        let known = read(&repo, NOTES_REF, about)?;
        match note_with(known.as_deref(), payload, signature) {
            Some(text) => repo.note(&who, &who, Some(NOTES_REF), about, &text, true).map(|_| ()),
            None => Ok(()),
        }
    })
    .map_err(failed)
}

/// Joins the notes of another repository, at commit `theirs`, into the local ones. If both have a note for a commit, it gets both texts.
pub fn take_in(place: &RepoPlace, commits: &Commits, theirs: &CommitId) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::libgit("bring notes together", &place.git_dir, source);
    let repo = place.open()?;
    let theirs = oid(theirs).map_err(failed)?;
    let who = commits.signature(&repo).map_err(failed)?;
    locks::release_stale(&place.git_dir, NOTES_REF)?;
    in_spite_of_others(|| {
        let Some(ours) = commit_at(&repo, NOTES_REF) else {
            return repo.reference(NOTES_REF, theirs, false, "dirigent: notes fetched").map(|_| ());
        };
        if ours == theirs || repo.graph_descendant_of(ours, theirs)? {
            return Ok(());
        }
        let joined = if repo.graph_descendant_of(theirs, ours)? { theirs } else { join(&repo, &who, ours, theirs)? };
        repo.reference_matching(NOTES_REF, joined, true, ours, "dirigent: notes joined").map(|_| ())
    })
    .map_err(failed)
}

/// Makes a commit with the notes of both sides.
fn join(repo: &Repository, who: &git2::Signature<'_>, ours: Oid, theirs: Oid) -> Result<Oid, git2::Error> {
    let mine: Vec<(Oid, String)> = {
        let mut all = Vec::new();
        for note in repo.notes(Some(NOTES_REF))? {
            let (_, about) = note?;
            all.extend(read(repo, NOTES_REF, about)?.map(|text| (about, text)));
        }
        all
    };
    repo.reference(JOINING_REF, theirs, true, "dirigent: notes joined")?;
    for (about, text) in mine {
        let known = read(repo, JOINING_REF, about)?;
        let both = match known {
            Some(known) if known.contains(text.trim_end()) => continue,
            Some(known) if !text.contains(known.trim_end()) => format!("{}\n\n{text}", known.trim_end()),
            _ => text,
        };
        repo.note(who, who, Some(JOINING_REF), about, &both, true)?;
    }
    let mut joining = repo.find_reference(JOINING_REF)?;
    let tip = joining.peel_to_commit()?;
    let parents = [&repo.find_commit(ours)?, &repo.find_commit(theirs)?];
    let joined = repo.commit(None, who, who, "Notes joined by Dirigent\n", &tip.tree()?, &parents)?;
    joining.delete()?;
    Ok(joined)
}

fn read(repo: &Repository, notes: &str, about: Oid) -> Result<Option<String>, git2::Error> {
    match repo.find_note(Some(notes), about) {
        Ok(note) if note.message_bytes().len() > LONGEST_NOTE => {
            Err(git2::Error::from_str(&format!("the note of {about} in {notes} is too long for one of ours")))
        }
        Ok(note) => Ok(Some(String::from_utf8_lossy(note.message_bytes()).into_owned())),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Retries a write while other processes write notes at the same moment, so that it neither fails nor loses their notes.
fn in_spite_of_others(mut attempt: impl FnMut() -> Result<(), git2::Error>) -> Result<(), git2::Error> {
    for _ in 1..PATIENCE {
        match attempt() {
            Err(error) if matches!(error.code(), ErrorCode::Modified | ErrorCode::Locked | ErrorCode::Exists) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            result => return result,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, RepoPlace, CommitId) {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::init(dir.path()).unwrap();
        let who = git2::Signature::now("Ada", "a@b.invalid").unwrap();
        let tree = repo.find_tree(repo.index().unwrap().write_tree().unwrap()).unwrap();
        let commit = repo.commit(Some("HEAD"), &who, &who, "first", &tree, &[]).unwrap();
        let place = RepoPlace::find(dir.path()).unwrap();
        (dir, place, commit_id(commit))
    }

    const PAYLOAD: &str = "{\n  \"_type\": \"https://in-toto.io/Statement/v1\"\n}\n";

    #[test]
    fn a_receipt_joins_the_words_that_are_there_and_is_written_once() {
        let (_dir, place, commit) = place();
        let repo = place.open().unwrap();
        let who = git2::Signature::now("Bo", "b@c.invalid").unwrap();
        repo.note(&who, &who, Some(NOTES_REF), oid(&commit).unwrap(), "remember the milk", false).unwrap();
        let other = oid(&CommitId::new("1234567890123456789012345678901234567890")).unwrap();
        repo.note(&who, &who, Some(NOTES_REF), other, "of another", false).unwrap();
        add_receipt(&place, &Commits::default(), &commit, PAYLOAD, None).unwrap();
        let tip = notes_tip(&place).unwrap();
        add_receipt(&place, &Commits::default(), &commit, PAYLOAD, None).unwrap();
        assert_eq!(notes_tip(&place).unwrap(), tip, "nothing to change, nothing written");
        let note = note_of(&place, &commit).unwrap().unwrap();
        assert!(note.starts_with("remember the milk") && note.contains("in-toto"), "{note}");
        assert_eq!(read(&repo, NOTES_REF, other).unwrap().as_deref(), Some("of another"));
    }

    #[test]
    fn notes_of_two_places_are_joined_without_losing_any() {
        let (_dir, place, commit) = place();
        let repo = place.open().unwrap();
        let who = git2::Signature::now("Bo", "b@c.invalid").unwrap();
        let number = |n: u8| Oid::from_str(&format!("{n:040}")).unwrap();
        for n in 0..3 {
            repo.note(&who, &who, Some("refs/notes/theirs"), number(n), &format!("theirs {n}"), false).unwrap();
        }
        let theirs = commit_id(commit_at(&repo, "refs/notes/theirs").unwrap());
        repo.note(&who, &who, Some(NOTES_REF), number(2), "ours 2", false).unwrap();
        repo.note(&who, &who, Some(NOTES_REF), number(3), "ours 3", false).unwrap();
        add_receipt(&place, &Commits::default(), &commit, PAYLOAD, None).unwrap();
        let ours = notes_tip(&place).unwrap().unwrap();
        take_in(&place, &Commits::default(), &theirs).unwrap();
        for (n, text) in [(0, "theirs 0"), (1, "theirs 1"), (2, "theirs 2\n\nours 2"), (3, "ours 3")] {
            assert_eq!(read(&repo, NOTES_REF, number(n)).unwrap().as_deref(), Some(text));
        }
        let tip = notes_tip(&place).unwrap().unwrap();
        for old in [&ours, &theirs] {
            assert!(repo.graph_descendant_of(oid(&tip).unwrap(), oid(old).unwrap()).unwrap());
        }
        take_in(&place, &Commits::default(), &theirs).unwrap();
        assert_eq!(notes_tip(&place).unwrap(), Some(tip), "once is enough");
        assert!(repo.find_reference(JOINING_REF).is_err());
    }
}
