//! The GitHub forge sits the exam, against the loopback GitHub and with real git.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::ids::{CommentId, CommitId, PrNumber};
use dirigent::domain::pr::Verdict;
use dirigent::forge::Forge;
use dirigent::forge::github::GithubForge;
use dirigent::forge::memory::LookPart;

use super::forge::{Candidate, Cannot, Gaps, Outcome};
use crate::github::{Fault, Hub, Instead, Lag, Line, Thing, When};
use crate::github_forge::{clone_of, forge_of};
use crate::support::{commit_in, git_in, try_git_in, write_in};

const PERSON: &str = "ada";

struct OnGithub {
    hub: Hub,
    /// A clone, in which workers commit.
    folder: tempfile::TempDir,
    forge: RwLock<Arc<GithubForge>>,
    made: AtomicUsize,
}

fn file_of(branch: &str) -> String {
    format!("{}.txt", branch.replace('/', "-"))
}

fn part_of(branch: &str) -> String {
    format!("{}-part.txt", branch.replace('/', "-"))
}

impl OnGithub {
    fn clone(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    /// What a forge remembers for a minute is not part of what is looked at.
    fn begin_again(&self) {
        *self.forge.write().unwrap() = Arc::new(forge_of(&self.hub, &self.clone(), "robot-token"));
    }

    fn head_sha(&self, number: PrNumber) -> String {
        let branch = self.hub.head_branch(number.0);
        self.hub.head(&branch).unwrap()
    }

    fn lasting(&self, route: &str, when: When, instead: Instead) {
        self.hub.add_fault(Fault { route: route.to_owned(), when, instead, skip: 0, times: 1000 });
    }
}

fn commit_on(clone: &Path, tree: &Path, branch: &str, write: impl FnOnce(&Path)) -> CommitId {
    let shown = tree.display().to_string();
    if try_git_in(clone, ["rev-parse", "--verify", &format!("refs/heads/{branch}")]).0 {
        git_in(clone, ["worktree", "add", "-q", &shown, branch]);
    } else {
        git_in(clone, ["worktree", "add", "-q", "-b", branch, &shown, "main"]);
    }
    write(tree);
    let head = commit_in(tree, &format!("a step on {branch}"));
    git_in(clone, ["worktree", "remove", "--force", &shown]);
    CommitId::new(head)
}

#[async_trait]
impl Candidate for OnGithub {
    const CANNOT: Gaps = &[];

    async fn fresh() -> Self {
        let hub = Hub::start();
        let folder = tempfile::tempdir().unwrap();
        let clone = clone_of(&hub, folder.path());
        let forge = forge_of(&hub, &clone, "robot-token");
        Self { hub, folder, forge: RwLock::new(Arc::new(forge)), made: AtomicUsize::new(0) }
    }

    fn forge(&self) -> Arc<dyn Forge> {
        self.forge.read().unwrap().clone()
    }

    fn base(&self) -> &'static str {
        "main"
    }

    fn person(&self) -> String {
        PERSON.to_owned()
    }

    async fn settle(&self) {
        self.hub.release(&Thing::Everything);
        // What was to go wrong has.
        self.hub.clear_expired_faults();
    }

    async fn work(&self, branch: &str) -> CommitId {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let tree = self.folder.path().join(format!("tree-{number}"));
        commit_on(&self.clone(), &tree, branch, |tree| {
            write_in(tree, &file_of(branch), &format!("from the branch, step {number}\n"));
            write_in(tree, &part_of(branch), "a part of the work\n");
        })
    }

    fn changed_file(&self, branch: &str) -> Option<String> {
        Some(file_of(branch))
    }

    async fn push(&self, branch: &str) -> CommitId {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let file = format!("by-a-person-{number}.txt");
        CommitId::new(self.hub.push(PERSON, branch, &[(&file, Some("more\n"))], "by hand"))
    }

    async fn advance_base(&self) {
        let file = format!("base-{}.txt", self.made.fetch_add(1, Ordering::SeqCst));
        self.hub.push(PERSON, "main", &[(&file, Some("elsewhere\n"))], "somebody else's work");
    }

    async fn contradict(&self, branch: &str) -> Vec<String> {
        self.hub.push(PERSON, "main", &[(&file_of(branch), Some("from the base\n"))], "somebody else's work");
        vec![file_of(branch)]
    }

    async fn absorb(&self, branch: &str) {
        self.hub.push(PERSON, "main", &[(&part_of(branch), Some("a part of the work\n"))], "the same by another way");
    }

    async fn head(&self, branch: &str) -> Option<CommitId> {
        self.hub.head(branch).map(CommitId::new)
    }

    async fn merges(&self, number: PrNumber) -> usize {
        let path = format!("/repos/acme/widgets/pulls/{}/merge", number.0);
        self.hub
            .requests()
            .iter()
            .filter(|entry| entry.route == "pulls/merge" && entry.took_effect && entry.path == path)
            .count()
    }

    async fn diff(&self, branch: &str) -> Result<String, Cannot> {
        let diff = git_in(&self.hub.git_folder(), ["diff", &format!("main...{branch}")]);
        let lines = diff.lines().filter(|line| !line.starts_with("index ") && !line.starts_with("@@"));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    async fn close(&self, number: PrNumber) {
        self.hub.close_pull(PERSON, number.0);
    }

    async fn merge_by_hand(&self, number: PrNumber) {
        self.hub.merge(PERSON, number.0, crate::github::Method::Merge);
    }

    async fn retarget(&self, number: PrNumber, base: &str) -> Outcome {
        self.hub.push(PERSON, base, &[("release.txt", Some("a release\n"))], "a release");
        self.hub.retarget(PERSON, number.0, base);
        Ok(())
    }

    async fn report(&self, number: PrNumber, name: &str, passed: bool, log: &str) {
        let conclusion = if passed { "success" } else { "failure" };
        self.hub.set_job(&self.head_sha(number), name, Some(conclusion), log);
    }

    async fn review(&self, number: PrNumber, verdict: Verdict, text: &str) -> Result<CommentId, Cannot> {
        let state = match verdict {
            Verdict::Approved => "APPROVED",
            Verdict::ChangesRequested => "CHANGES_REQUESTED",
            Verdict::Commented | Verdict::Dismissed => "COMMENTED",
        };
        let id = self.hub.review(PERSON, number.0, state, text, &[]);
        Ok(CommentId::new(format!("PRR_{id}")))
    }

    async fn converse(&self, number: PrNumber, text: &str) -> Result<CommentId, Cannot> {
        let line = Line { path: "README.md".to_owned(), line: 1, body: text.to_owned() };
        self.hub.review(PERSON, number.0, "COMMENTED", "", &[line]);
        let id = self.hub.threads(number.0).last().copied().unwrap();
        Ok(CommentId::new(format!("PRRT_{id}")))
    }

    async fn say(&self, number: PrNumber, text: &str) -> Result<CommentId, Cannot> {
        Ok(CommentId::new(format!("IC_{}", self.hub.comment(PERSON, number.0, text))))
    }

    async fn delete_remark(&self, number: PrNumber, id: &CommentId) -> Outcome {
        let (kind, rest) = id.as_str().split_once('_').unwrap();
        let rest: u64 = rest.parse().unwrap();
        match kind {
            "IC" => self.hub.delete_comment(rest),
            "PRR" => self.hub.delete_review(number.0, rest),
            _ => self.hub.delete_thread(number.0, rest),
        }
        Ok(())
    }

    async fn reactions(&self, id: &CommentId) -> Result<usize, Cannot> {
        let number = id.as_str().trim_start_matches("IC_").parse().unwrap();
        Ok(self.hub.reactions(number).len())
    }

    async fn append(&self, number: PrNumber, text: &str) -> Outcome {
        let body = self.hub.body(number.0);
        self.hub.set_body(number.0, &format!("{body}{text}"));
        Ok(())
    }

    async fn body(&self, number: PrNumber) -> Result<String, Cannot> {
        Ok(self.hub.body(number.0))
    }

    async fn reviewers(&self, number: PrNumber) -> Result<Vec<String>, Cannot> {
        Ok(self.hub.reviewers(number.0))
    }

    async fn lag(&self) -> Outcome {
        self.hub.lag(Thing::Everything, Lag::Frozen);
        Ok(())
    }

    async fn withhold(&self, _number: PrNumber, part: LookPart) -> Outcome {
        self.hub.clear_faults();
        self.begin_again();
        /// A page that says that there is another one, which never comes.
        fn endless(part: &'static str) -> Instead {
            Instead::Edited(Box::new(move |answer| {
                let repository = answer["data"]["repository"].as_object_mut().into_iter().flatten();
                for (_, pull) in repository {
                    pull[part]["pageInfo"] = serde_json::json!({ "hasNextPage": true, "endCursor": "cursor:1" });
                }
            }))
        }
        let look = "graphql/viewer+repository";
        match part {
            LookPart::RefHead => self.lasting("transport/fetch*", When::Before, Instead::Status(502)),
            LookPart::RequiredChecks => self.lasting("repos/get-branch-rules", When::Before, Instead::Status(500)),
            LookPart::Reviews => self.lasting(look, When::After, endless("reviews")),
            LookPart::Threads => self.lasting(look, When::After, endless("reviewThreads")),
            LookPart::Comments => self.lasting(look, When::After, endless("comments")),
            LookPart::Checks => {
                let unreadable = |answer: &mut serde_json::Value| {
                    answer["errors"] = serde_json::json!([{
                        "type": "INTERNAL", "message": "Something went wrong", "path": ["repository", "p0", "statusCheckRollup"],
                    }]);
                };
                self.lasting(look, When::After, Instead::Edited(Box::new(unreadable)));
                self.lasting("repos/get-combined-status-for-ref", When::Before, Instead::Status(500));
            }
        }
        self.lasting("graphql/node", When::Before, Instead::Status(502));
        Ok(())
    }

    async fn lose_next(&self, done: bool) -> Outcome {
        let when = if done { When::After } else { When::Before };
        for route in ["pulls/create", "pulls/merge"] {
            self.hub.fault(route, when, Instead::Status(502));
        }
        Ok(())
    }

    async fn lock_out(&self, out: bool) -> Outcome {
        if out {
            self.hub.revoke("robot-token");
        } else {
            self.hub.restore("robot-token");
        }
        Ok(())
    }

    async fn limit_next(&self, wait: Duration) -> Outcome {
        self.hub.fault("*", When::Before, Instead::SecondaryLimit { status: 403, retry_after: Some(wait.as_secs()) });
        Ok(())
    }
}

forge_exam!(OnGithub);
