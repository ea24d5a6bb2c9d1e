//! The hard cases of a remote forge, played through the built binary: late looks, approvals of other heads, merges that do not go through,
//! things that happen at once.

use super::journey::AGENT;
use super::scene::{Account, Scene};
use crate::github::{Fault, Instead, Lag, Method, Thing, When};
use crate::support::board::Runner;
use crate::support::git_in;

/// An issue with its pull request open.
struct Case {
    scene: Scene,
    key: String,
    issue: u64,
    number: u64,
    runner: Option<Runner>,
}

impl Case {
    fn opened() -> Self {
        let scene = Scene::new(AGENT, Account::Own, "");
        let issue = scene.hub.add_issue("ada", "Write something", "", &["agent"]);
        let runner = scene.board.start_with(&[("GITHUB_TOKEN", Account::Own.token())]);
        scene.board.until("a pull request is there", || !scene.hub.pulls().is_empty());
        let number = scene.hub.pulls()[0];
        Self { scene, key: format!("GH-{issue}"), issue, number, runner: Some(runner) }
    }

    fn head(&self) -> String {
        self.scene.hub.head(&self.branch()).unwrap()
    }

    fn branch(&self) -> String {
        self.scene.hub.head_branch(self.number)
    }

    fn pass(&self) {
        self.scene.hub.set_job(&self.head(), "build", Some("success"), "");
    }

    fn approve(&self) {
        self.scene.hub.review("ada", self.number, "APPROVED", "good", &[]);
    }

    fn says(&self) -> String {
        String::from_utf8_lossy(&self.scene.board.run(&["explain", &self.key]).stdout).into_owned()
    }

    fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        self.scene.board.until(what, holds);
    }

    fn phase(&self) -> String {
        self.scene.board.phase(&self.key)
    }

    /// The runner has looked a few times since.
    fn looks(&self) {
        let looks = self.scene.hub.count("graphql*") + 4;
        self.until("it looks", || self.scene.hub.count("graphql*") >= looks);
    }

    fn ends_merged(mut self) {
        self.until("it is merged", || self.phase() == "done");
        self.until("the issue is closed", || !self.scene.hub.is_open(self.issue));
        self.runner.take().unwrap().end();
        assert_eq!(self.scene.hub.merges().len(), 1);
    }
}

#[test]
fn an_approval_is_for_the_head_that_was_seen() {
    let case = Case::opened();
    let hub = &case.scene.hub;
    // Approved before its checks were there; then somebody pushes.
    case.approve();
    hub.push("ada", &case.branch(), &[("more.txt", Some("m\n"))], "one more");
    case.pass();
    case.until("it waits for somebody to approve", || case.phase() == "waiting_for_human");
    case.looks();
    assert!(hub.merges().is_empty(), "nobody approved {}", case.head());
    case.approve();
    case.ends_merged();
}

#[test]
fn a_replica_that_shows_the_old_head_is_not_believed_however_long() {
    let case = Case::opened();
    let hub = &case.scene.hub;
    let old = case.head();
    case.until("it was looked at", || case.phase() == "waiting_for_checks");
    // From here on the API shows the pull request as it is now; git does not.
    hub.lag(Thing::Pull(case.number), Lag::Frozen);
    let new = hub.push("ada", &case.branch(), &[("more.txt", Some("m\n"))], "one more");
    hub.set_job(&old, "build", Some("success"), "");
    case.approve();
    hub.advance(600);
    case.looks();
    assert!(hub.merges().is_empty(), "{old} is not what git has");
    hub.release(&Thing::Pull(case.number));
    hub.set_job(&new, "build", Some("success"), "");
    case.approve();
    case.until("it is merged", || !hub.merges().is_empty());
    assert!(git_in(&hub.git_folder(), ["ls-tree", "--name-only", "main"]).contains("more.txt"));
    case.ends_merged();
}

#[test]
fn a_merge_that_is_stuck_says_so_and_can_be_stopped_and_tried_again() {
    let case = Case::opened();
    let hub = &case.scene.hub;
    let stuck = Fault {
        route: "pulls/merge".to_owned(),
        when: When::Before,
        instead: Instead::Status(405),
        skip: 0,
        times: u32::MAX,
    };
    hub.add_fault(stuck);
    case.pass();
    case.approve();
    case.until("it was tried", || hub.count("pulls/merge") > 0);
    case.until("it says what is in the way", || case.says().contains("Something went wrong"));
    case.scene.board.ok(&["stop", &case.key]);
    case.until("it is set aside", || case.phase() == "blocked");
    let tried = hub.count("pulls/merge");
    case.looks();
    assert_eq!(hub.count("pulls/merge"), tried, "what a person stopped is not tried again");
    hub.clear_faults();
    case.scene.board.ok(&["retry", &case.key]);
    case.ends_merged();
}

#[test]
fn merged_and_closed_at_once_is_done_and_nothing_is_merged_again() {
    let case = Case::opened();
    let hub = &case.scene.hub;
    case.pass();
    hub.merge("ada", case.number, Method::Squash);
    hub.close("ada", case.issue, "completed");
    hub.delete_branch("ada", &case.branch());
    case.until("it is done", || case.phase() == "done");
    let sent = hub.requests().iter().filter(|one| one.route == "pulls/merge").count();
    assert_eq!(sent, 0, "it was the person's");
    case.ends_merged();
}

#[test]
fn a_pull_request_that_somebody_closed_is_not_opened_again_behind_their_back() {
    let mut case = Case::opened();
    let hub = &case.scene.hub;
    hub.close_pull("ada", case.number);
    case.until("it is blocked", || case.phase() == "blocked");
    case.looks_at_the_board();
    assert_eq!(hub.pulls().len(), 1);
    assert!(!hub.is_open(case.number));
    case.runner.take().unwrap().end();
}

impl Case {
    fn looks_at_the_board(&self) {
        let polls = self.scene.hub.count("issues/list-for-repo") + 4;
        self.until("it looks at the board", || self.scene.hub.count("issues/list-for-repo") >= polls);
    }
}

#[test]
fn a_conflict_is_mended_on_top_of_the_base() {
    let case = Case::opened();
    let hub = &case.scene.hub;
    let first = case.head();
    hub.push("ada", "main", &[("work.txt", Some("theirs\n"))], "the same file");
    case.until("the worker is told about the conflict", || case.scene.out("prompt-1").contains("work.txt"));
    case.until("there is another head", || case.head() != first);
    assert!(hub.merges().is_empty());
}
