//! How the runner's own commits are made: author, sign-off and signature. The key and the signing program are those of the user's git. A
//! key that needs a person at a keyboard is found out at the start, not at the first merge.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use git2::{Commit, Config, Oid, Repository, Signature, Tree};

use super::error::WorkspaceError;
use super::git::Git;
use super::repo::{self, RepoPlace};
use super::scratch;
use crate::config::workspace::CommitSettings;

/// Git's settings for signing programs, with their defaults. Empty: the value of `gpg.program`.
const PROGRAMS: [(&str, &str); 4] = [
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", ""),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.x509.program", "gpgsm"),
];
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// Time limit of a signature. It takes a moment; a longer one means that a program waits for a person.
const SIGNING_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Default)]
pub struct Commits {
    style: CommitSettings,
}

impl Commits {
    pub fn new(style: &CommitSettings) -> Self {
        Self { style: style.clone() }
    }

    /// Returns the identity that commits: the one in the workflow file, else the repository's own user, else Dirigent.
    pub fn signature(&self, repo: &Repository) -> Result<Signature<'static>, git2::Error> {
        match self.style.identity() {
            Some((name, mail)) => Signature::now(name, mail),
            None => repo::signature(repo),
        }
    }

    pub fn signs(&self, repo: &Repository) -> bool {
        let by_git = || repo.config().and_then(|config| config.get_bool("commit.gpgSign")).unwrap_or(false);
        self.style.sign.unwrap_or_else(by_git)
    }

    /// Writes a commit that no ref points to yet, signed if commits are to be signed. Must be called from a blocking thread of the runtime.
    pub fn write(
        &self,
        repo: &Repository,
        author: Option<&Signature<'_>>,
        message: &str,
        tree: &Tree<'_>,
        parents: &[&Commit<'_>],
    ) -> Result<Oid, git2::Error> {
        let who = self.signature(repo)?;
        let author = author.unwrap_or(&who);
        let message = self.signed_off(message, &who);
        if !self.signs(repo) {
            return repo.commit(None, author, &who, &message, tree, parents);
        }
        let parents: Vec<Oid> = parents.iter().map(|parent| parent.id()).collect();
        let made = sign(repo.path(), &people(author, &who), &message, &tree.id().to_string(), &parents, Vec::new());
        made.map_err(|detail| git2::Error::from_str(&format!("the commit could not be signed: {detail}")))
    }

    fn signed_off(&self, message: &str, who: &Signature<'_>) -> String {
        let line = format!("Signed-off-by: {} <{}>", text(who.name_bytes()), text(who.email_bytes()));
        if !self.style.signoff || message.lines().any(|have| have == line) {
            return message.to_owned();
        }
        let body = message.trim_end();
        // If the message ends with trailers, the line joins them without an empty line.
        let last = body.lines().last().unwrap_or_default();
        let is_trailer = last.split_once(": ").is_some_and(|(key, _)| key.contains('-') && !key.contains(' '));
        let between = if is_trailer && body.contains('\n') { "\n" } else { "\n\n" };
        format!("{body}{between}{line}\n")
    }

    /// Fails if a signature cannot be made without a person. Leaves nothing in the repository.
    pub fn try_signing(&self, place: &RepoPlace, root: &Path) -> Result<(), WorkspaceError> {
        let repo = place.open()?;
        if !self.signs(&repo) {
            return Ok(());
        }
        let failed = |source| WorkspaceError::libgit("try to sign", &place.git_dir, source);
        let who = self.signature(&repo).map_err(failed)?;
        let scratch = scratch::make(root)?;
        let objects: Vec<(OsString, OsString)> = vec![
            ("GIT_OBJECT_DIRECTORY".into(), scratch.path().into()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), place.git_dir.join("objects").into()),
        ];
        sign(&place.git_dir, &people(&who, &who), "Try to sign\n", EMPTY_TREE, &[], objects)
            .map(|_| ())
            .map_err(|detail| WorkspaceError::CannotSign { detail })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the environment variables that tell git author and committer.
fn people(author: &Signature<'_>, committer: &Signature<'_>) -> Vec<(OsString, OsString)> {
    let one = |role: &str, who: &Signature<'_>| {
        let when = who.when();
        let (hours, minutes) = (when.offset_minutes().abs() / 60, when.offset_minutes().abs() % 60);
        let date = format!("@{} {}{hours:02}{minutes:02}", when.seconds(), when.sign());
        [
            (format!("GIT_{role}_NAME").into(), text(who.name_bytes()).into()),
            (format!("GIT_{role}_EMAIL").into(), text(who.email_bytes()).into()),
            (format!("GIT_{role}_DATE").into(), date.into()),
        ]
    };
    one("AUTHOR", author).into_iter().chain(one("COMMITTER", committer)).collect()
}

fn sign(
    git_dir: &Path,
    people: &[(OsString, OsString)],
    message: &str,
    tree: &str,
    parents: &[Oid],
    more: Vec<(OsString, OsString)>,
) -> Result<Oid, String> {
    let mut args: Vec<String> = programs().into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect();
    args.extend(["commit-tree".to_owned(), "-S".to_owned(), tree.to_owned()]);
    args.extend(parents.iter().flat_map(|parent| ["-p".to_owned(), parent.to_string()]));
    args.extend(["-F".to_owned(), "-".to_owned()]);
    let env = people.iter().cloned().chain(more).collect();
    let git = Git::new(SIGNING_LIMIT);
    let made = git.commit(git_dir, args, message, env);
    let made = tokio::runtime::Handle::current().block_on(made).map_err(|error| error.to_string())?;
    Oid::from_str(text(&made).trim()).map_err(|error| error.message().to_owned())
}

/// Returns the settings for signing programs. Only the user's own configuration counts: an agent can write the repository's.
fn programs() -> Vec<String> {
    let own = Config::open_default().ok();
    let written = |key: &str| own.as_ref().and_then(|config| config.get_string(key).ok());
    let general = written("gpg.program");
    PROGRAMS
        .iter()
        .map(|(key, default)| {
            let default = if default.is_empty() {
                general.clone().unwrap_or_else(|| "gpg".into())
            } else {
                (*default).to_owned()
            };
            format!("{key}={}", written(key).unwrap_or(default))
        })
        .chain([format!("gpg.ssh.defaultKeyCommand={}", written("gpg.ssh.defaultKeyCommand").unwrap_or_default())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_off_joins_the_trailers_and_is_written_once() {
        let style = CommitSettings { author: Some("Ada <a@b>".into()), signoff: true, sign: None };
        let commits = Commits::new(&style);
        let who = Signature::now("Ada", "a@b").unwrap();
        let plain = commits.signed_off("Fix it\n", &who);
        assert_eq!(plain, "Fix it\n\nSigned-off-by: Ada <a@b>\n");
        assert_eq!(commits.signed_off(&plain, &who), plain);
        let joined = commits.signed_off("Fix it\n\nRefs: #3\nCo-authored-by: Bo <b@c>\n", &who);
        assert!(joined.ends_with("Co-authored-by: Bo <b@c>\nSigned-off-by: Ada <a@b>\n"), "{joined}");
    }
}
