//! Real repositories in temporary directories.

pub mod board;
pub mod driven;
pub mod troubled;

use std::path::{Path, PathBuf};
use std::process::Command;

use dirigent::config::policy::RolloutMode;
use dirigent::domain::permit::Permit;
use dirigent::engine::permit::{Circumstances, EffectKind, permit};

/// A permit for `effect` with nothing in the way.
pub fn allowed(effect: EffectKind) -> Permit {
    let free = Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true };
    permit(effect, &free).unwrap()
}

/// A scratch directory with a repository `repo` in it, one commit on `main`.
pub struct Scratch {
    pub dir: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        let scratch = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(scratch.repo()).unwrap();
        scratch.git(["init", "-q", "-b", "main"]);
        scratch.identify(&scratch.repo());
        scratch.write("README", "hello\n");
        scratch.write("src/a.txt", "one\ntwo\nthree\n");
        scratch.write(".gitignore", "*.log\ntarget/\n");
        scratch.commit("first");
        scratch
    }

    pub fn identify(&self, repo: &Path) {
        git_in(repo, ["config", "user.name", "Somebody"]);
        git_in(repo, ["config", "user.email", "somebody@example.invalid"]);
        git_in(repo, ["config", "commit.gpgsign", "false"]);
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("workspaces")
    }

    pub fn write(&self, file: &str, text: &str) {
        write_in(&self.repo(), file, text);
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.repo().join(file)).unwrap()
    }

    pub fn git<const N: usize>(&self, args: [&str; N]) -> String {
        git_in(&self.repo(), args)
    }

    /// Commits everything in the repository's own tree.
    pub fn commit(&self, message: &str) -> String {
        commit_in(&self.repo(), message)
    }

    /// A branch with one file more than `main`, made without touching the tree.
    pub fn branch_with(&self, branch: &str, file: &str, text: &str) -> String {
        let tree = self.dir.path().join(format!("tree-{}", branch.replace('/', "-")));
        let shown = tree.display().to_string();
        self.git(["worktree", "add", "-q", "-b", branch, &shown, "main"]);
        write_in(&tree, file, text);
        let head = commit_in(&tree, &format!("work on {branch}"));
        self.git(["worktree", "remove", "--force", &shown]);
        head
    }

    pub fn head(&self, branch: &str) -> String {
        self.git(["rev-parse", branch])
    }
}

pub fn write_in(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn commit_in(tree: &Path, message: &str) -> String {
    git_in(tree, ["add", "-A"]);
    git_in(tree, ["commit", "-q", "-m", message]);
    git_in(tree, ["rev-parse", "HEAD"])
}

/// Runs git and expects it to succeed.
pub fn git_in<const N: usize>(dir: &Path, args: [&str; N]) -> String {
    let (ok, text) = try_git_in(dir, args);
    assert!(ok, "git {args:?} in {}: {text}", dir.display());
    text
}

pub fn try_git_in<const N: usize>(dir: &Path, args: [&str; N]) -> (bool, String) {
    let output = Command::new("git").args(args).current_dir(dir).env("LC_ALL", "C").output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8_lossy(&text).trim_end().to_owned())
}
