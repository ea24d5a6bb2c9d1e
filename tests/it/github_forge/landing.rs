//! Reviews, queues and what people change under us, with the built binary and pull requests on a GitHub of our own.

use super::end_to_end::Scene;
use crate::github::Demands;

/// A worker and its reviewer, which finds a mistake in the first head.
const TEAM: &str = r#"set -eu
if [ "$DIRIGENT_PHASE" = reviewing ]; then
  head=$(git rev-parse HEAD)
  if grep -q mistake work.txt; then
    printf '# Review\n- head: %s\n- findings: 1\n\n## F1: There is a mistake\n- severity: P1\n- summary: The word is wrong.\n- why_it_matters: People read it.\n- suggested_fix: Write another.\n' "$head"
  else
    printf '# Review\n- head: %s\n- findings: 0\n' "$head"
  fi
  exit 0
fi
if [ "$DIRIGENT_PHASE" = rework ]; then
  echo better > work.txt
  git commit -qam 'Mend it'
  tk answer F1 fixed 'wrote another'
else
  echo mistake > work.txt
  git add work.txt
  git commit -qm work
fi
tk done x
"#;

#[test]
fn a_review_shows_on_the_pull_request_as_one_comment_that_is_kept_up_to_date() {
    let scene = Scene::with_agent(TEAM, "review: {enabled: true}\n");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write a word");
    let runner = scene.start();
    let (number, first) = scene.head("");
    scene.pass(&first);
    let (_, second) = scene.head(&first);
    let comments = || hub.comments(number).into_iter().map(|said| said.body).collect::<Vec<String>>();
    board.until("the answer is in the comment", || comments().iter().any(|body| body.contains("fixed in")));
    scene.pass(&second);
    board.until("the second review is in", || comments().iter().any(|body| body.contains("nothing found")));
    let about_it: Vec<String> =
        comments().into_iter().filter(|body| body.contains("<!-- dirigent-review -->")).collect();
    assert_eq!(about_it.len(), 1, "{about_it:#?}");
    assert!(about_it[0].contains("F1 [P1] There is a mistake: fixed in"), "{}", about_it[0]);
    board.until("it waits for a person", || board.status(&["t-1"])["reason"] == "approval");
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    runner.end();
}

#[test]
fn a_switch_takes_a_pull_request_out_of_githubs_queue_and_its_release_puts_it_back() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    hub.add_ruleset("queue", "main", Demands { merge_queue: true, ..Demands::default() });
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, head) = scene.head("");
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is in the queue", || board.status(&["t-1"])["reason"] == "in_queue");
    let pause = board.repo().join(".dirigent/pause");
    std::fs::create_dir_all(pause.parent().unwrap()).unwrap();
    std::fs::write(&pause, "").unwrap();
    let taken_out = || hub.requests().iter().any(|one| one.route.contains("dequeuePullRequest") && one.took_effect);
    board.until("it was taken out", || taken_out() && board.phase("t-1") == "ready_to_merge");
    assert!(hub.run_merge_queue(true).is_none(), "nothing is left in the queue");
    std::fs::remove_file(&pause).unwrap();
    board.until("it is in the queue again", || board.status(&["t-1"])["reason"] == "in_queue");
    board.until("the queue has it", || hub.run_merge_queue(true).is_some());
    board.until("it is done", || board.phase("t-1") == "done");
    runner.end();
}

/// Each ends in a phase with an exit and a sentence, and none in a merge that nobody wanted.
#[test]
fn what_people_change_under_us_is_said_and_goes_on_when_it_is_changed_back() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    hub.protect("main", Demands { checks: vec!["build".into(), "slow".into()], ..Demands::default() });
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, head) = scene.head("");
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    let reason = |wanted: &str| board.until(wanted, || board.status(&["t-1"])["reason"] == wanted);
    // A required check that never reports.
    reason("checks");
    // Another base.
    hub.push("ada", "develop", &[("x.txt", Some("x"))], "another base");
    hub.retarget("ada", number, "develop");
    reason("other_base");
    hub.retarget("ada", number, "main");
    reason("checks");
    // A draft, with everything else in place.
    hub.set_draft(number, true);
    hub.set_job(&head, "slow", Some("success"), "");
    reason("draft");
    // Another head by force: what was approved is not what is there.
    let theirs = hub.push("ada", &hub.head_branch(number), &[("theirs.txt", Some("theirs"))], "by hand");
    hub.set_draft(number, false);
    reason("checks");
    hub.force("ada", &hub.head_branch(number), &head);
    board.until("the old head is judged again", || {
        board.status(&["t-1"])["head"] == head.as_str() || board.phase("t-1") == "done"
    });
    assert_ne!(theirs, head);
    board.until("it is merged", || board.phase("t-1") == "done");
    let landed = crate::support::git_in(&hub.git_folder(), ["ls-tree", "--name-only", "main"]);
    assert!(!landed.contains("theirs.txt"), "{landed}");
    runner.end();
}
