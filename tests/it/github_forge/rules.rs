//! The rules of the lifecycle, each as people see it: the built binary with pull requests on a GitHub of our own, asserted from the ticket, from git and
//! from the API. `docs/reliability.md` says which test shows which rule.

use super::end_to_end::Scene;
use crate::github::{Demands, Line};
use crate::support::board::{Runner, text};
use crate::support::git_in;

/// A ticket with its pull request open.
struct Case {
    scene: Scene,
    number: u64,
    runner: Option<Runner>,
}

impl Case {
    fn opened(more: &str) -> Self {
        Self::of(Scene::new(more))
    }

    fn of(scene: Scene) -> Self {
        scene.board.ticket("t-1", "Write something");
        let runner = scene.start();
        let (number, _) = scene.head("");
        Self { scene, number, runner: Some(runner) }
    }

    fn head(&self) -> String {
        self.scene.hub.head(&self.branch()).unwrap()
    }

    fn branch(&self) -> String {
        self.scene.hub.head_branch(self.number)
    }

    fn field(&self, name: &str) -> String {
        text(&self.scene.board.run(&["status", "t-1", "--field", name]).stdout).trim().to_owned()
    }

    fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        self.scene.board.until(what, holds);
    }

    fn reason(&self, wanted: &str) {
        self.until(wanted, || self.field("reason") == wanted);
    }

    fn approve(&self) {
        self.scene.hub.review("ada", self.number, "APPROVED", "good", &[]);
    }

    /// The runner has looked a few times since.
    fn looks(&self) {
        let looks = self.scene.hub.count("graphql*") + 4;
        self.until("it looks", || self.scene.hub.count("graphql*") >= looks);
    }

    fn attempts(&self) -> u64 {
        self.scene.board.status(&["t-1"])["attempts"].as_u64().unwrap()
    }

    fn sent_merges(&self) -> usize {
        self.scene.hub.requests().iter().filter(|one| one.route == "pulls/merge" && one.took_effect).count()
    }

    fn ends_merged(mut self) {
        self.until("it is merged", || self.field("phase") == "done");
        self.until("the ticket is closed", || self.scene.board.ticket_text("t-1").contains("status: closed"));
        self.runner.take().unwrap().end();
        assert_eq!(self.scene.hub.merges().len(), 1);
    }

    fn ends(mut self) {
        self.runner.take().unwrap().end();
    }
}

/// Rule 2: a rework that changes nothing and answers nothing is a failed run, not a passed one.
#[test]
fn a_rework_without_a_change_or_an_answer_has_failed() {
    let agent = "set -eu\nif [ \"$DIRIGENT_PHASE\" = rework ]; then tk done 'it is fine'; exit 0; fi\necho x > work.txt\ngit add work.txt\ngit commit -qm work\ntk done x\n";
    let case = Case::of(Scene::with_agent(agent, "orchestration: {max_rework_cycles: 2}\n"));
    let line = Line { path: "work.txt".to_owned(), line: 1, body: "why this line?".to_owned() };
    case.scene.pass(&case.head());
    case.scene.hub.review("ada", case.number, "COMMENTED", "", &[line]);
    case.until("it is blocked", || case.field("phase") == "blocked");
    assert!(case.attempts() >= 2, "the worker was asked");
    case.approve();
    case.looks();
    assert_eq!(case.sent_merges(), 0, "nobody has answered {}", case.field("sentence"));
    case.ends();
}

/// Rule 3: exactly so many rework runs; a person's push is no further set of rounds, a person's word is.
#[test]
fn the_rounds_are_counted_and_a_push_by_a_person_is_no_retry() {
    let case = Case::opened("orchestration: {max_rework_cycles: 1}\n");
    let hub = &case.scene.hub;
    let first = case.head();
    hub.set_job(&first, "build", Some("failure"), "red\n");
    case.until("there is a second head", || case.head() != first);
    let second = case.head();
    hub.set_job(&second, "build", Some("failure"), "red again\n");
    case.reason("rework_limit_exceeded");
    assert_eq!(case.attempts(), 2, "one round is one run");
    let pushed = hub.push("ada", &case.branch(), &[("theirs.txt", Some("t\n"))], "by hand");
    hub.set_job(&pushed, "build", Some("failure"), "still red\n");
    case.looks();
    assert_eq!((case.attempts(), case.field("reason").as_str()), (2, "rework_limit_exceeded"));
    case.scene.board.ok(&["retry", "t-1"]);
    case.until("a person's word is another set", || case.attempts() == 3);
    case.until("there is another head", || case.head() != pushed);
    git_in(&hub.git_folder(), ["merge-base", "--is-ancestor", &pushed, &case.head()]);
    case.scene.pass(&case.head());
    case.approve();
    case.ends_merged();
}

/// Rule 4: what becomes of a pull request that somebody closed is the file's to say.
#[test]
fn a_closed_pull_request_is_reopened_or_replaced_as_the_file_says() {
    let case = Case::opened("");
    case.scene.hub.close_pull("ada", case.number);
    case.reason("pr_closed");
    case.ends();

    let case = Case::opened("").ended_with("closed_pr_policy: reopen");
    case.scene.hub.close_pull("ada", case.number);
    case.until("it is open again", || case.scene.hub.is_open(case.number));
    assert_eq!(case.scene.hub.pulls().len(), 1);
    case.scene.pass(&case.head());
    case.approve();
    case.ends_merged();

    let case = Case::opened("").ended_with("closed_pr_policy: new_branch");
    let before = case.branch();
    case.scene.hub.close_pull("ada", case.number);
    case.until("there is another one", || case.scene.hub.pulls().len() == 2);
    let second = *case.scene.hub.pulls().iter().find(|number| **number != case.number).unwrap();
    assert_ne!(case.scene.hub.head_branch(second), before, "on a branch of its own");
    assert!(!case.scene.hub.is_open(case.number), "the first one stays closed");
    case.ends();
}

impl Case {
    /// The same with a further key of `pr`: the file is read again.
    fn ended_with(mut self, key: &str) -> Self {
        self.runner.take().unwrap().end();
        let path = self.scene.board.repo().join("WORKFLOW.md");
        let file = std::fs::read_to_string(&path).unwrap();
        let changed = file.replace("pr: {forge: github,", &format!("pr: {{{key}, forge: github,"));
        assert_ne!(file, changed);
        std::fs::write(&path, changed).unwrap();
        self.runner = Some(self.scene.start());
        self
    }
}

/// Rule 5: no checks at all is pending, then a person's; a name that was seen is awaited on the next head.
#[test]
fn a_head_without_checks_waits_and_a_check_that_was_seen_is_awaited() {
    let case = Case::opened("");
    let hub = &case.scene.hub;
    case.reason("no_checks");
    let first = case.head();
    case.scene.pass(&first);
    hub.set_job(&first, "slow", Some("failure"), "too slow\n");
    case.until("there is a second head", || case.head() != first);
    let second = case.head();
    case.scene.pass(&second);
    case.approve();
    case.reason("checks");
    case.looks();
    assert_eq!((case.sent_merges(), case.field("reason").as_str()), (0, "checks"), "a fast check is not all of them");
    hub.set_job(&second, "slow", Some("success"), "");
    case.ends_merged();
}

/// Bad input: what is left of the checks that were there is not all there is.
#[test]
fn checks_that_disappear_are_awaited() {
    let case = Case::opened("");
    let hub = &case.scene.hub;
    let head = case.head();
    case.scene.pass(&head);
    hub.set_job(&head, "slow", Some("success"), "");
    case.reason("approval");
    hub.lose_checks(&head, "slow");
    case.reason("checks");
    case.approve();
    case.looks();
    assert_eq!((case.sent_merges(), case.field("reason").as_str()), (0, "checks"));
    hub.set_job(&head, "slow", Some("success"), "");
    case.ends_merged();
}

/// Rule 6: an approval is for the head that was shown and never outranks what a trusted person has said.
#[test]
fn an_approval_by_command_names_its_head_and_the_words_against_it() {
    let case = Case::opened("");
    let (hub, board) = (&case.scene.hub, &case.scene.board);
    let first = case.head();
    case.scene.pass(&first);
    case.reason("approval");
    let second = hub.push("ada", &case.branch(), &[("more.txt", Some("m\n"))], "one more");
    case.scene.pass(&second);
    case.until("the new head is judged", || case.field("head") == second);
    case.reason("approval");
    let refused = board.fails(&["approve", "t-1", "--head", &first], 1);
    assert!(refused.contains(&second[..7]), "it shows the head that there is: {refused}");
    assert_eq!(case.attempts(), 1, "nobody is paid for what a person pushed (rule 9)");
    hub.comment("ada", case.number, "I wonder about the name");
    case.reason("remarks");
    let refused = board.fails(&["approve", "t-1", "--head", &second], 1);
    assert!(refused.contains("I wonder about the name") && refused.contains("--anyway"), "{refused}");
    assert_eq!(case.sent_merges(), 0);
    board.ok(&["approve", "t-1", "--head", &second, "--anyway"]);
    case.ends_merged();
}

/// What a reviewer says who finds nothing, and keeps a line of how often it was asked.
const REVIEWED: &str = r#"set -eu
out=$(cat .out)
if [ "$DIRIGENT_PHASE" = reviewing ]; then
  git rev-parse HEAD >> "$out/reviewed"
  printf '# Review\n- head: %s\n- findings: 0\n' "$(git rev-parse HEAD)"
  exit 0
fi
echo work > work.txt
git add work.txt
git commit -qm work
tk done x
"#;

/// Rules 6 and 7: what waits for a person is not updated onto a moving base; in its turn it is, once, and review and approval carry over.
#[test]
fn a_reviewed_and_approved_head_is_updated_once_in_its_turn_and_not_read_again() {
    let scene = Scene::with_agent(REVIEWED, "review: {enabled: true}\n");
    let demands = Demands { checks: vec!["build".into()], up_to_date: true, ..Demands::default() };
    scene.hub.protect("main", demands);
    let case = Case::of(scene);
    let hub = &case.scene.hub;
    let first = case.head();
    case.scene.pass(&first);
    case.reason("approval");
    for round in 0..3 {
        hub.push("ada", "main", &[("theirs.txt", Some(&format!("{round}\n")))], "the base goes on");
        case.looks();
    }
    assert_eq!(case.head(), first, "nobody has approved it yet");
    case.approve();
    case.until("it is updated", || case.head() != first);
    let second = case.head();
    case.looks();
    assert_eq!(case.sent_merges(), 0, "the result is checked first");
    case.scene.pass(&second);
    let reviewed = case.scene.out("reviewed");
    assert_eq!(reviewed.lines().collect::<Vec<_>>(), [first.as_str()], "one review");
    let updates = hub.requests().iter().filter(|one| one.route == "pulls/update-branch" && one.took_effect).count();
    assert_eq!(updates, 1);
    case.ends_merged();
}

/// Mends what a gate does not like, and writes something else first.
const MENDS: &str = r#"set -eu
out=$(cat .out)
if [ "$DIRIGENT_PHASE" = rework ]; then
  cp "$DIRIGENT_PROMPT_FILE" "$out/rework"
  git rm -q bad.txt
else
  echo work > work.txt
  git add work.txt
fi
git commit -qm "$DIRIGENT_PHASE"
tk done x
"#;

/// Rule 9: what a person pushed and what our update of the branch made go through our gates too, before anything is merged.
#[test]
fn what_others_put_on_the_branch_goes_through_our_gates_too() {
    let gate = "gates: {task: [{name: clean, run: 'git rev-parse HEAD >> \"$HOME/gated\"; test ! -e bad.txt'}]}\n";
    let scene = Scene::with_agent(MENDS, gate);
    scene.hub.protect("main", Demands { checks: vec!["build".into()], up_to_date: true, ..Demands::default() });
    let case = Case::of(scene);
    let hub = &case.scene.hub;
    let gated = || std::fs::read_to_string(case.scene.board.scratch.dir.path().join("gated")).unwrap_or_default();
    let first = case.head();
    case.scene.pass(&first);
    case.reason("approval");
    let pushed = hub.push("ada", &case.branch(), &[("bad.txt", Some("b\n"))], "by hand");
    case.scene.pass(&pushed);
    case.approve();
    case.until("the gate's word on it leads to rework", || case.head() != pushed);
    assert!(gated().contains(&pushed) && case.scene.out("rework").contains("clean"), "{}", gated());
    assert_eq!(case.sent_merges(), 0, "neither green checks nor an approval let it past the gate");
    let third = case.head();
    case.scene.pass(&third);
    case.reason("approval");
    hub.push("ada", "main", &[("theirs.txt", Some("t\n"))], "the base goes on");
    case.approve();
    case.until("it is updated", || case.head() != third);
    let updated = case.head();
    case.scene.pass(&updated);
    case.until("it is merged", || case.field("phase") == "done");
    assert!(gated().contains(&updated), "what is merged was gated: {updated} is not in\n{}", gated());
    case.until("the receipt is kept", || case.scene.board.ok(&["explain", "t-1"]).contains("the receipt of"));
    let merged = git_in(&hub.git_folder(), ["rev-parse", "main"]);
    let note = git_in(&hub.git_folder(), ["notes", "--ref=dirigent", "show", &merged]);
    assert!(note.contains("\"result\": \"verified\"") && note.contains(&updated), "{note}");
    case.ends_merged();
}

/// Rule 11: what the workflow demands and nobody has shown is a contradiction, and nothing of it reaches a pull request.
#[test]
fn evidence_that_is_missing_is_reworked_before_anything_is_published() {
    let agent = r#"set -eu
out=$(cat .out)
if [ "$DIRIGENT_PHASE" = rework ]; then
  cp "$DIRIGENT_PROMPT_FILE" "$out/rework"
  while [ -e "$out/hold" ]; do sleep 0.05; done
  tk evidence --type test --passed 3 --failed 0
fi
echo "$DIRIGENT_PHASE" >> work.txt
git add work.txt
git commit -qm work
tk done 'all tests pass'
"#;
    let scene = Scene::with_agent(agent, "gates: {required_evidence: [test]}\n");
    let hold = scene.board.scratch.dir.path().join("out/hold");
    std::fs::write(&hold, "").unwrap();
    scene.board.ticket("t-1", "Write something");
    let runner = scene.start();
    scene.board.until("the worker is told", || scene.out("rework").contains("evidence"));
    assert!(scene.hub.pulls().is_empty(), "{}", scene.hub.print());
    std::fs::remove_file(hold).unwrap();
    let (number, head) = scene.head("");
    scene.pass(&head);
    scene.hub.review("ada", number, "APPROVED", "good", &[]);
    scene.board.until("it is merged", || scene.board.phase("t-1") == "done");
    runner.end();
}

/// Rule 12: without a word about whose issues they are, nothing is written to GitHub; and without a mode nothing at all.
#[test]
fn an_empty_configuration_is_no_permission() {
    let scene = Scene::new("");
    let (board, api) = (&scene.board, scene.hub.api());
    let workflow = |more: &str, rollout: &str| {
        format!(
            "---\ntracker: {{kind: github, provider: {{repo: acme/widgets, api_url: \"{api}\"}}{more}}}\npolling: {{interval_ms: 200}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n{rollout}pr: {{forge: github, repo_slug: acme/widgets}}\n---\n"
        )
    };
    let issue = scene.hub.add_issue("ada", "Write something", "", &["agent"]);
    for mode in ["mutate", "merge"] {
        board.scratch.write("WORKFLOW.md", &workflow("", &format!("rollout: {{mode: {mode}}}\n")));
        let output = board.command(&["run", "--once"]).env("GITHUB_TOKEN", "robot-token").output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("required_labels"), "{mode}: {said}");
    }
    board.scratch.write("WORKFLOW.md", &workflow(", required_labels: [agent]", ""));
    let runner = scene.start();
    let key = format!("GH-{issue}");
    board.until("it says what it would do", || {
        text(&board.run(&["status", &key, "--field", "reason"]).stdout).trim() == "observe"
    });
    runner.end();
    assert!(scene.hub.writes().is_empty(), "{}", scene.hub.print());
}

/// A bot of `review.bots` gets its round, is answered where it spoke, and after that is only in the way where GitHub's own rule says so.
#[test]
fn a_listed_bot_gets_one_round_and_what_is_left_of_it_is_named() {
    let case = Case::opened("review: {bots: [rabbit]}\norchestration: {max_rework_cycles: 1}\n");
    let hub = &case.scene.hub;
    hub.grant("rabbit[bot]", crate::github::Permission::Admin);
    hub.protect("main", Demands { checks: vec!["build".into()], conversations_resolved: true, ..Demands::default() });
    let first = case.head();
    case.scene.pass(&first);
    let says = |words: &str| {
        let line = Line { path: "work.txt".to_owned(), line: 1, body: words.to_owned() };
        hub.review("rabbit[bot]", case.number, "CHANGES_REQUESTED", "", &[line]);
    };
    says("the line is too short");
    case.until("there is a second head", || case.head() != first);
    let prompt = case.scene.out("prompt-1");
    assert!(prompt.contains("the line is too short") && prompt.contains("rabbit[bot]"), "{prompt}");
    case.until("it is answered in its place", || hub.thread_comments(case.number)[0].len() == 2);
    let second = case.head();
    case.scene.pass(&second);
    says("it is still too short");
    hub.review("rabbit[bot]", case.number, "APPROVED", "", &[]);
    hub.comment("rabbit[bot]", case.number, "/dirigent approve --anyway");
    case.until("GitHub's rule is named", || {
        text(&case.scene.board.run(&["status", "t-1"]).stdout).contains("begun by rabbit[bot]")
    });
    case.looks();
    assert_eq!((case.attempts(), case.sent_merges(), case.head()), (2, 0, second), "one round, and no approval");
    case.approve();
    case.looks();
    assert_eq!(case.sent_merges(), 0);
    for thread in hub.threads(case.number) {
        hub.resolve("ada", case.number, thread);
    }
    case.ends_merged();
}

/// Bad input: a ticket that is opened again after it was merged is worked on anew, on another branch, in another pull request.
#[test]
fn a_ticket_that_is_opened_again_after_its_merge_begins_anew() {
    let case = Case::opened("");
    let hub = &case.scene.hub;
    case.scene.pass(&case.head());
    case.approve();
    case.until("it is merged", || case.field("phase") == "done");
    let ticket = || case.scene.board.ticket_text("t-1");
    case.until("the ticket is closed", || ticket().contains("status: closed"));
    case.until("that was seen", || case.field("state") == "closed");
    case.scene.board.scratch.write(".tickets/t-1.md", &ticket().replace("status: closed", "status: open"));
    case.until("there is another pull request", || hub.pulls().len() == 2);
    let second = *hub.pulls().iter().max().unwrap();
    assert_ne!(hub.head_branch(second), "dirigent/t-1-write-something");
    hub.set_job(&hub.head(&hub.head_branch(second)).unwrap(), "build", Some("success"), "");
    case.until("the approval of the first one counts for nothing", || case.field("reason") == "approval");
    assert_eq!(hub.merges().len(), 1);
    case.ends();
}

/// Bad input: a pull request that somebody renames and closes and opens again, with its approval still standing.
#[test]
fn a_pull_request_that_is_renamed_closed_and_opened_again_goes_on() {
    let case = Case::opened("");
    let hub = &case.scene.hub;
    case.scene.pass(&case.head());
    case.reason("approval");
    hub.retitle("ada", case.number, "A better name");
    hub.close_pull("ada", case.number);
    case.reason("pr_closed");
    assert!(case.field("next").contains("retry") || case.field("next").contains("open"), "{}", case.field("next"));
    hub.reopen("ada", case.number);
    case.reason("approval");
    case.approve();
    let number = case.number;
    case.until("it is merged", || case.field("phase") == "done");
    let message = git_in(&hub.git_folder(), ["log", "-1", "--format=%s", "main"]);
    assert_eq!(message, format!("A better name (#{number})"), "the title is left as people have it");
    case.ends_merged();
}
