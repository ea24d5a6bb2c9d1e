//! The local forge sits the exam, with real git.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::pr::CheckStatus;
use dirigent::forge::Forge;
use dirigent::forge::local::LocalForge;

use super::forge::{Candidate, Cannot, Gaps};
use crate::support::{Scratch, commit_in, git_in, try_git_in, write_in};

struct Local {
    scratch: Scratch,
    forge: Arc<LocalForge>,
    made: AtomicUsize,
}

/// The file that a branch and its base can quarrel about.
fn file_of(branch: &str) -> String {
    format!("{}.txt", branch.replace('/', "-"))
}

/// A part of a branch's work that the base can come to have by another way.
fn part_of(branch: &str) -> String {
    format!("{}-part.txt", branch.replace('/', "-"))
}

impl Local {
    /// One more commit on a branch, without touching the user's tree.
    fn commit_on(&self, branch: &str, write: impl FnOnce(&PathBuf)) -> CommitId {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let tree = self.scratch.dir.path().join(format!("tree-{number}"));
        let shown = tree.display().to_string();
        if try_git_in(&self.scratch.repo(), ["rev-parse", "--verify", &format!("refs/heads/{branch}")]).0 {
            self.scratch.git(["worktree", "add", "-q", &shown, branch]);
        } else {
            self.scratch.git(["worktree", "add", "-q", "-b", branch, &shown, "main"]);
        }
        write(&tree);
        let head = commit_in(&tree, &format!("step {number} on {branch}"));
        self.scratch.git(["worktree", "remove", "--force", &shown]);
        CommitId::new(head)
    }

    fn advance(&self, file: &str, text: &str) {
        self.scratch.write(file, text);
        self.scratch.commit("somebody else's work");
    }

    async fn branch_of(&self, number: PrNumber) -> String {
        self.forge.inspect(number).await.unwrap().head_branch
    }
}

#[async_trait]
impl Candidate for Local {
    const CANNOT: Gaps = &[
        ("a_pull_request_whose_answer_was_lost_is_opened_once", "nothing is answered over a network"),
        ("a_merge_whose_answer_was_lost_is_one_merge", "nothing is answered over a network"),
        ("a_part_that_was_not_read_is_unknown", "a look reads one record and one repository"),
        ("the_head_is_what_git_says", "what is shown is read from git"),
        ("a_changed_base_branch_is_not_merged_into", "nobody but us writes the record of a pull request"),
        ("a_persons_comment_is_theirs", "a pull request has no page to comment on"),
        ("a_review_has_verdict_author_and_head", "a pull request has no page to review on"),
        ("a_remark_that_was_taken_back_is_gone", "a pull request has no page to comment on"),
        ("lost_access_is_told_and_nothing_is_done", "the repository needs no account"),
        ("a_limit_is_told_with_its_end", "nobody counts how often git is asked"),
    ];

    async fn fresh() -> Self {
        let scratch = Scratch::new();
        let ledger = scratch.dir.path().join("ledger.sqlite");
        let forge = LocalForge::open(&scratch.repo(), &ledger, Duration::from_secs(120)).unwrap();
        Self { scratch, forge: Arc::new(forge), made: AtomicUsize::new(0) }
    }

    fn forge(&self) -> Arc<dyn Forge> {
        self.forge.clone()
    }

    fn base(&self) -> &'static str {
        "main"
    }

    fn person(&self) -> String {
        "Somebody".to_owned()
    }

    async fn work(&self, branch: &str) -> CommitId {
        let number = self.made.load(Ordering::SeqCst);
        self.commit_on(branch, |tree| {
            write_in(tree, &file_of(branch), &format!("from the branch, step {number}\n"));
            write_in(tree, &part_of(branch), "a part of the work\n");
        })
    }

    async fn push(&self, branch: &str) -> CommitId {
        let number = self.made.load(Ordering::SeqCst);
        self.commit_on(branch, |tree| write_in(tree, &format!("by-a-person-{number}.txt"), "more\n"))
    }

    async fn advance_base(&self) {
        self.advance(&format!("base-{}.txt", self.made.fetch_add(1, Ordering::SeqCst)), "elsewhere\n");
    }

    async fn contradict(&self, branch: &str) -> Vec<String> {
        self.advance(&file_of(branch), "from the base\n");
        vec![file_of(branch)]
    }

    async fn absorb(&self, branch: &str) {
        self.advance(&part_of(branch), "a part of the work\n");
    }

    async fn head(&self, branch: &str) -> Option<CommitId> {
        let name = format!("refs/heads/{branch}");
        let (found, head) = try_git_in(&self.scratch.repo(), ["rev-parse", "--verify", "-q", &name]);
        found.then(|| CommitId::new(head))
    }

    async fn merges(&self, number: PrNumber) -> usize {
        let mark = format!("^Dirigent-PR: {}$", number.0);
        self.scratch.git(["rev-list", "--count", "--grep", &mark, "main"]).parse().unwrap()
    }

    async fn diff(&self, branch: &str) -> Result<String, Cannot> {
        let diff = self.scratch.git(["diff", &format!("main...{branch}")]);
        // Ids of whole files and places of hunks are not part of the change.
        let lines = diff.lines().filter(|line| !line.starts_with("index ") && !line.starts_with("@@"));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    async fn close(&self, number: PrNumber) {
        self.scratch.git(["branch", "-q", "-D", &self.branch_of(number).await]);
    }

    async fn merge_by_hand(&self, number: PrNumber) {
        let branch = self.branch_of(number).await;
        git_in(&self.scratch.repo(), ["merge", "-q", "--no-ff", "--no-edit", &branch]);
    }

    async fn report(&self, number: PrNumber, name: &str, passed: bool, log: &str) {
        let pr = self.forge.inspect(number).await.unwrap();
        let result = |name: &str, passed, output_tail: &str| GateResult {
            name: name.to_owned(),
            command: "true".into(),
            passed,
            exit_code: Some(i32::from(!passed)),
            timed_out: false,
            output_tail: output_tail.to_owned(),
            duration_ms: 1,
        };
        // The gates of a head are recorded together.
        let known = pr.checks.iter().flatten();
        let mut results: Vec<GateResult> =
            known.map(|check| result(&check.name, check.status == CheckStatus::Passed, "")).collect();
        results.push(result(name, passed, log));
        self.forge.record_checks(&pr.head, results).await.unwrap();
    }
}

forge_exam!(Local);
