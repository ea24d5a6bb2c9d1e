//! The bare git repository behind a repository of the loopback GitHub.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{Commit, Oid, Repository, Signature};

/// Refuses pushes as the `refusals` file says: a pattern of refs, a tab, and the words.
const PRE_RECEIVE: &str = r#"#!/bin/sh
while read -r _ _ ref; do
    while IFS="$(printf '\t')" read -r pattern words; do
        case $ref in
            $pattern) printf '%b\n' "$words" >&2; exit 1 ;;
        esac
    done < "$GIT_DIR/refusals"
done
exit 0
"#;

/// How two branches are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    Merge,
    Squash,
    Rebase,
}

/// A file that a pull request changes.
pub struct Changed {
    pub path: String,
    pub status: &'static str,
    pub blob: String,
    pub additions: usize,
    pub deletions: usize,
    pub patch: String,
}

/// A new bare repository with one commit on `main`.
pub fn create(at: &Path) {
    let repository = Repository::init_bare(at).unwrap();
    repository.set_head("refs/heads/main").unwrap();
    let mut config = repository.config().unwrap();
    // What `git http-backend` needs before it takes a push.
    config.set_bool("http.receivepack", true).unwrap();
    config.set_bool("uploadpack.allowAnySHA1InWant", true).unwrap();
    std::fs::write(at.join("refusals"), "").unwrap();
    let hook = at.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, PRE_RECEIVE).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    commit(
        at,
        "main",
        "Somebody",
        "First",
        &[("README.md", Some("hello\n")), ("src/a.txt", Some("one\ntwo\nthree\n"))],
    );
}

pub fn refs(at: &Path) -> BTreeMap<String, String> {
    let repository = Repository::open_bare(at).unwrap();
    let references = repository.references().unwrap();
    let pair = |reference: git2::Reference| {
        Some((reference.name().ok()?.to_owned(), reference.peel_to_commit().ok()?.id().to_string()))
    };
    references.flatten().filter_map(pair).collect()
}

/// Commits changed files (`None` removes one) on top of a branch; a branch that is not there begins at `main`.
pub fn commit(at: &Path, branch: &str, who: &str, message: &str, files: &[(&str, Option<&str>)]) -> String {
    let repository = Repository::open_bare(at).unwrap();
    let tip = |name: &str| repository.find_branch(name, git2::BranchType::Local).ok()?.get().peel_to_commit().ok();
    let parent = tip(branch).or_else(|| tip("main"));
    let mut index = git2::Index::new().unwrap();
    if let Some(parent) = &parent {
        index.read_tree(&parent.tree().unwrap()).unwrap();
    }
    for (path, text) in files {
        match text {
            Some(text) => {
                let id = repository.blob(text.as_bytes()).unwrap();
                index.add(&git2::IndexEntry { id, ..entry(path) }).unwrap();
            }
            None => index.remove_path(Path::new(path)).unwrap(),
        }
    }
    let tree = repository.find_tree(index.write_tree_to(&repository).unwrap()).unwrap();
    let parents: Vec<&Commit> = parent.iter().collect();
    let person = signature(who);
    let made = repository.commit(None, &person, &person, message, &tree, &parents).unwrap();
    repository.reference(&format!("refs/heads/{branch}"), made, true, message).unwrap();
    made.to_string()
}

fn entry(path: &str) -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: Oid::ZERO_SHA1,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

fn signature(who: &str) -> Signature<'static> {
    Signature::now(who, &format!("{who}@users.noreply.github.invalid").replace(['[', ']'], "")).unwrap()
}

pub fn has(at: &Path, sha: &str) -> bool {
    let repository = Repository::open_bare(at).unwrap();
    Oid::from_str(sha).is_ok_and(|id| repository.find_commit(id).is_ok())
}

/// Whether `head` can be merged into `base` without a conflict.
pub fn can_merge(at: &Path, base: &str, head: &str) -> bool {
    let repository = Repository::open_bare(at).unwrap();
    let merged = repository.merge_commits(&find(&repository, base), &find(&repository, head), None);
    merged.is_ok_and(|index| !index.has_conflicts())
}

/// Joins `head` to the branch and moves it; `None` if that conflicts.
pub fn join(at: &Path, method: Method, branch: &str, head: &str, who: &str, message: &str) -> Option<String> {
    let repository = Repository::open_bare(at).unwrap();
    let name = format!("refs/heads/{branch}");
    let base = repository.find_reference(&name).unwrap().peel_to_commit().unwrap();
    let head = find(&repository, head);
    let made = match method {
        Method::Merge => one(&repository, &base, &head, &[&base, &head], who, message)?,
        Method::Squash => one(&repository, &base, &head, &[&base], who, message)?,
        Method::Rebase => {
            let mut tip = base.clone();
            for id in between_ids(&repository, base.id(), head.id()) {
                let commit = repository.find_commit(id).unwrap();
                let mut index = repository.cherrypick_commit(&commit, &tip, 0, None).ok()?;
                if index.has_conflicts() {
                    return None;
                }
                let tree = repository.find_tree(index.write_tree_to(&repository).unwrap()).unwrap();
                let words = commit.message().unwrap_or("");
                let made = repository.commit(None, &commit.author(), &signature(who), words, &tree, &[&tip]).unwrap();
                tip = repository.find_commit(made).unwrap();
            }
            tip.id()
        }
    };
    repository.reference(&name, made, true, message).unwrap();
    Some(made.to_string())
}

fn one(
    repository: &Repository,
    base: &Commit,
    head: &Commit,
    parents: &[&Commit],
    who: &str,
    message: &str,
) -> Option<Oid> {
    let mut index = repository.merge_commits(base, head, None).ok()?;
    if index.has_conflicts() {
        return None;
    }
    let tree = repository.find_tree(index.write_tree_to(repository).unwrap()).unwrap();
    let person = signature(who);
    Some(repository.commit(None, &person, &person, message, &tree, parents).unwrap())
}

fn find<'a>(repository: &'a Repository, sha: &str) -> Commit<'a> {
    repository.find_commit(Oid::from_str(sha).unwrap()).unwrap()
}

fn between_ids(repository: &Repository, base: Oid, head: Oid) -> Vec<Oid> {
    let mut walk = repository.revwalk().unwrap();
    walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE).unwrap();
    walk.push(head).unwrap();
    walk.hide(base).unwrap();
    walk.flatten().collect()
}

/// The commits of `head` that `base` does not have, oldest first.
pub fn between(at: &Path, base: &str, head: &str) -> Vec<String> {
    let repository = Repository::open_bare(at).unwrap();
    let ids = between_ids(&repository, Oid::from_str(base).unwrap(), Oid::from_str(head).unwrap());
    ids.iter().map(Oid::to_string).collect()
}

pub fn merge_base(at: &Path, one: &str, other: &str) -> Option<String> {
    let repository = Repository::open_bare(at).unwrap();
    let id = |sha: &str| Oid::from_str(sha).ok();
    repository.merge_base(id(one)?, id(other)?).ok().map(|id| id.to_string())
}

/// Whether `head` contains `base`.
pub fn contains(at: &Path, head: &str, base: &str) -> bool {
    merge_base(at, head, base).as_deref() == Some(base)
}

/// What `head` changes against where it left `base`.
pub fn changes(at: &Path, base: &str, head: &str) -> Vec<Changed> {
    let repository = Repository::open_bare(at).unwrap();
    let start = merge_base(at, base, head).unwrap_or_else(|| base.to_owned());
    let tree = |sha: &str| find(&repository, sha).tree().unwrap();
    let diff = repository.diff_tree_to_tree(Some(&tree(&start)), Some(&tree(head)), None).unwrap();
    (0..diff.deltas().len())
        .map(|index| {
            let delta = diff.get_delta(index).unwrap();
            let patch = git2::Patch::from_diff(&diff, index).unwrap();
            let (_, additions, deletions) =
                patch.as_ref().and_then(|patch| patch.line_stats().ok()).unwrap_or_default();
            let text = patch.and_then(|mut patch| patch.to_buf().ok()).map(|text| text.to_vec()).unwrap_or_default();
            let file = if delta.status() == git2::Delta::Deleted { delta.old_file() } else { delta.new_file() };
            Changed {
                path: file.path().unwrap().display().to_string(),
                status: match delta.status() {
                    git2::Delta::Added => "added",
                    git2::Delta::Deleted => "removed",
                    _ => "modified",
                },
                blob: file.id().to_string(),
                additions,
                deletions,
                patch: String::from_utf8_lossy(&text).into_owned(),
            }
        })
        .collect()
}

/// What the API shows of a commit.
pub struct Shown {
    pub sha: String,
    pub tree: String,
    pub parents: Vec<String>,
    pub message: String,
    pub author: String,
    pub email: String,
    pub at: jiff::Timestamp,
}

pub fn show(at: &Path, sha: &str) -> Shown {
    let repository = Repository::open_bare(at).unwrap();
    let commit = find(&repository, sha);
    let author = commit.author();
    Shown {
        sha: sha.to_owned(),
        tree: commit.tree_id().to_string(),
        parents: commit.parent_ids().map(|id| id.to_string()).collect(),
        message: commit.message().unwrap_or("").to_owned(),
        author: author.name().unwrap_or("").to_owned(),
        email: author.email().unwrap_or("").to_owned(),
        at: jiff::Timestamp::from_second(commit.time().seconds()).unwrap(),
    }
}

/// A file of a commit, with its blob.
pub fn file(at: &Path, sha: &str, path: &str) -> Option<(String, Vec<u8>)> {
    let repository = Repository::open_bare(at).unwrap();
    let tree = find(&repository, sha).tree().unwrap();
    let blob = tree.get_path(Path::new(path)).ok()?.to_object(&repository).ok()?.peel_to_blob().ok()?;
    Some((blob.id().to_string(), blob.content().to_vec()))
}

/// Points a ref somewhere, or removes it.
pub fn set(at: &Path, name: &str, sha: Option<&str>) {
    let repository = Repository::open_bare(at).unwrap();
    match sha {
        Some(sha) => {
            repository.reference(name, Oid::from_str(sha).unwrap(), true, "set").unwrap();
        }
        None => repository.find_reference(name).unwrap().delete().unwrap(),
    }
}
