//! Errors of a git remote, sorted by what has to happen next.

use thiserror::Error;

use crate::domain::ids::CommitId;
use crate::workspace::command::{CommandError, tail};
use crate::workspace::git::GitError;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// A temporary failure: a later try should work.
    #[error("{0}")]
    Passing(String),
    /// The credential is missing or not accepted.
    #[error("{0}")]
    Access(String),
    /// A rule of the remote forbids it. A person has to do something.
    #[error("{rule}\n  fix: {fix}")]
    Refused { rule: String, fix: String },
    /// The ref was not where the caller had seen it.
    #[error("the branch was moved by somebody at the same moment")]
    Moved,
    /// A problem on this machine, not at the remote.
    #[error("{0}")]
    Local(String),
    #[error("{0} is not in this repository")]
    NoCommit(CommitId),
}

/// Determines what a failed call means, from git's messages.
pub fn meaning(error: GitError, url: &str) -> RemoteError {
    let said = match &error {
        GitError::Command(CommandError::TimedOut { limit, .. }) => {
            return RemoteError::Passing(format!("git did not finish with {url} within {} s", limit.as_secs()));
        }
        GitError::Command(_) => return RemoteError::Local(error.to_string()),
        GitError::Failed { stderr, .. } => stderr,
    };
    let has = |words: &str| said.contains(words);
    if let Some(rule) = rule_of(said) {
        return rule;
    }
    let moved = ["stale info", "fetch first", "non-fast-forward"].into_iter().chain(RACES);
    if moved.into_iter().any(has) {
        return RemoteError::Moved;
    }
    let words = words_of(said);
    if has("Authentication failed") || has("could not read Username") || has("could not read Password") {
        return RemoteError::Access(format!("{url} does not accept our credential: {words}"));
    }
    if has("The requested URL returned error: 403") || has("Permission to ") {
        return RemoteError::Refused {
            rule: format!("{url} does not let our account write: {words}"),
            fix: "give the token write access to the repository's contents (classic: `repo`; fine-grained: Contents: read and write)"
                .to_owned(),
        };
    }
    if has("Repository not found") || has("The requested URL returned error: 404") || has("' not found") {
        return RemoteError::Refused {
            rule: format!("{url} does not exist for our account: {words}"),
            fix: "check pr.repo_slug, and that the token may see the repository".to_owned(),
        };
    }
    RemoteError::Passing(format!("git and {url}: {words}"))
}

/// Recognises a refusal by the server's own rules, by the words that GitHub uses.
fn rule_of(said: &str) -> Option<RemoteError> {
    let has = |words: &str| said.contains(words);
    let quoted = words_of(said);
    let (rule, fix) = if has("without `workflow` scope") || has("without `workflows` permission") {
        let file = said.split('`').find(|part| part.starts_with(".github/workflows")).unwrap_or("a workflow file");
        (
            format!("the push changes {file}, and the token may not change workflows"),
            "give the token the scope `workflow` (fine-grained and Apps: Workflows: read and write), or keep the change out of the branch",
        )
    } else if has("GH013") && (has("Push cannot contain secrets") || has("PUSH PROTECTION")) {
        (
            format!("push protection found a secret in the commits: {quoted}"),
            "take the secret out of the branch's history, or allow it at the address that GitHub names; it should be revoked either way",
        )
    } else if has("GH009") {
        (
            format!("push protection found a secret in the commits: {quoted}"),
            "take the secret out of the branch's history",
        )
    } else if has("GH006") || has("protected branch hook declined") {
        (
            format!("the branch is protected: {quoted}"),
            "choose a workspace.branch_prefix that no protection rule matches, or let our account bypass the rule",
        )
    } else if has("GH013") {
        (
            format!("a rule of the repository refuses the push: {quoted}"),
            "do what the rule asks for, choose another workspace.branch_prefix, or let our account bypass the ruleset",
        )
    } else if has("GH001") || has("exceeds GitHub's file size limit") {
        (format!("a file is too large: {quoted}"), "take the file out of the branch's history, or use Git LFS")
    } else if has("pre-receive hook declined") || said.lines().any(is_refusal) {
        (format!("the remote refuses the push: {quoted}"), "do what it asks for; `dirigent retry` tries again")
    } else {
        return None;
    };
    Some(RemoteError::Refused { rule, fix: fix.to_owned() })
}

/// Why a remote rejects a ref that another call moves at the same moment.
const RACES: [&str; 3] = ["cannot lock ref", "reference already exists", "incorrect old value"];
/// Why a remote rejects a ref while it has trouble of its own, in lower case.
const TROUBLE: [&str; 10] = [
    "internal server error",
    "internal error",
    "service unavailable",
    "temporarily",
    "try again",
    "timeout",
    "timed out",
    "failed to update ref",
    "fatal error in commit_refs",
    "unpacker error",
];

/// Whether a line tells that the remote rejects a ref for good: `! [remote rejected] x -> x (REASON)`.
fn is_refusal(line: &str) -> bool {
    let Some((_, reason)) = line.split_once("[remote rejected]") else { return false };
    let reason = reason.rsplit_once(" (").map_or(reason, |(_, reason)| reason).to_lowercase();
    !RACES.iter().chain(&TROUBLE).any(|words| reason.contains(words))
}

/// Returns the remote's messages, else the end of git's own output.
fn words_of(said: &str) -> String {
    let remote: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("remote:"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if !remote.is_empty() {
        return tail(&remote.join(" "));
    }
    tail(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(stderr: &str) -> GitError {
        GitError::Failed {
            what: "push".to_owned(),
            cwd: "/".into(),
            status: "exit status: 1".to_owned(),
            code: Some(1),
            stderr: stderr.to_owned(),
        }
    }

    fn refusal(stderr: &str) -> (String, String) {
        match meaning(failed(stderr), "https://github.com/a/b.git") {
            RemoteError::Refused { rule, fix } => (rule, fix),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_rule_is_named_with_what_to_do() {
        let (rule, fix) = refusal(
            " ! [remote rejected] x -> x (refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope)",
        );
        assert!(rule.contains(".github/workflows/ci.yml") && fix.contains("`workflow`"), "{rule} {fix}");
        let (rule, fix) = refusal(
            "remote: error: GH013: Repository rule violations found for refs/heads/x.\nremote: - GITHUB PUSH PROTECTION\nremote:   Push cannot contain secrets\nremote: —— Amazon AWS Access Key ID ——\n ! [remote rejected] x -> x (push declined due to repository rule violations)",
        );
        assert!(rule.contains("push protection") && rule.contains("Amazon AWS"), "{rule}");
        assert!(fix.contains("revoked"), "{fix}");
        let (rule, _) = refusal(
            "remote: error: GH013: Repository rule violations found for refs/heads/x.\nremote: - Commits must have verified signatures.\n ! [remote rejected] x -> x (push declined due to repository rule violations)",
        );
        assert!(rule.contains("verified signatures"), "{rule}");
        let (rule, fix) = refusal("remote: error: GH006: Protected branch update failed for refs/heads/x.");
        assert!(rule.contains("protected") && fix.contains("branch_prefix"), "{rule} {fix}");
    }

    #[test]
    fn races_access_and_passing_trouble_are_told_apart() {
        let of = |text: &str| meaning(failed(text), "https://github.com/a/b.git");
        assert_eq!(of(" ! [rejected] x -> x (stale info)"), RemoteError::Moved);
        assert_eq!(of(" ! [rejected] x -> x (fetch first)"), RemoteError::Moved);
        assert_eq!(
            of(" ! [remote rejected] x -> x (cannot lock ref 'refs/heads/x': is at 1 but expected 2)"),
            RemoteError::Moved
        );
        assert_eq!(of("!\tx:refs/heads/x\t[remote rejected] (reference already exists)"), RemoteError::Moved);
        for trouble in
            ["Internal Server Error", "fatal error in commit_refs", "unpacker error", "please try again later"]
        {
            let told = format!("!\tx:refs/heads/x\t[remote rejected] ({trouble})");
            assert!(matches!(of(&told), RemoteError::Passing(_)), "{told}");
        }
        // The reason counts, not the name of the branch.
        let branch = "!\tx:refs/heads/fix-timeout\t[remote rejected] (deletion prohibited)";
        assert!(matches!(of(branch), RemoteError::Refused { .. }));
        assert!(matches!(of("fatal: Authentication failed for 'https://github.com/a/b.git/'"), RemoteError::Access(_)));
        assert!(matches!(
            of("fatal: could not read Password for 'https://x@github.com': terminal prompts disabled"),
            RemoteError::Access(_)
        ));
        assert!(matches!(
            of("fatal: unable to access 'https://github.com/': Could not resolve host: github.com"),
            RemoteError::Passing(_)
        ));
        assert!(matches!(
            of("fatal: unable to access 'x': The requested URL returned error: 502"),
            RemoteError::Passing(_)
        ));
        assert!(matches!(
            of(
                "remote: Permission to a/b.git denied to robot.\nfatal: unable to access 'x': The requested URL returned error: 403"
            ),
            RemoteError::Refused { .. }
        ));
        assert!(matches!(
            of("remote: Repository not found.\nfatal: repository 'x' not found"),
            RemoteError::Refused { .. }
        ));
    }
}
