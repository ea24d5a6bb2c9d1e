//! What people do to a pull request on GitHub, seen through the built binary.

use super::end_to_end::Scene;

/// The reason that is shown for the ticket.
fn reason(scene: &Scene) -> String {
    String::from_utf8_lossy(&scene.board.run(&["explain", "t-1"]).stdout).into_owned()
}

#[test]
fn a_verdict_on_an_old_head_stands_until_its_author_takes_it_back() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, first) = scene.head("");
    scene.pass(&first);
    hub.review("ada", number, "CHANGES_REQUESTED", "not like this", &[]);
    let (_, second) = scene.head(&first);
    assert!(scene.out("prompt-1").contains("not like this"), "{}", scene.out("prompt-1"));
    board.until("the reviewer is asked to look again", || hub.reviewers(number) == ["ada"]);
    hub.grant("bob", crate::github::Permission::Write);
    scene.pass(&second);
    hub.review("bob", number, "APPROVED", "fine with me", &[]);
    board.until("it waits for the reviewer", || {
        board.phase("t-1") == "waiting_for_human" && reason(&scene).contains("ada")
    });
    assert!(hub.merges().is_empty(), "another reviewer's approval does not outrank it");
    hub.review("ada", number, "APPROVED", "now it is", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    runner.end();
    assert_eq!(hub.merges().len(), 1);
}

#[test]
fn an_approval_of_somebody_who_may_not_write_any_more_merges_nothing() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, head) = scene.head("");
    hub.grant("bob", crate::github::Permission::Write);
    hub.review("bob", number, "APPROVED", "fine with me", &[]);
    let asked = || hub.requests().iter().filter(|one| one.path.contains("/collaborators/bob/permission")).count();
    board.until("the approval is read while the checks are still running", || asked() > 0);
    hub.grant("bob", crate::github::Permission::Read);
    let before = asked();
    scene.pass(&head);
    board.until("bob is asked about once more", || asked() > before);
    board.until("it waits for somebody who may approve", || board.phase("t-1") == "waiting_for_human");
    assert!(hub.merges().is_empty());
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    runner.end();
    assert_eq!(hub.merges().len(), 1);
}

#[test]
fn a_pull_request_that_was_given_another_base_is_not_merged() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, head) = scene.head("");
    hub.push("ada", "release", &[("release.txt", Some("r\n"))], "a release");
    hub.retarget("ada", number, "release");
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it says whose decision that is", || reason(&scene).contains("release"));
    assert!(hub.merges().is_empty());
    hub.retarget("ada", number, "main");
    board.until("it is merged", || board.phase("t-1") == "done");
    runner.end();
}

#[test]
fn a_merge_by_a_person_completes_the_ticket_and_a_closed_one_follows_its_policy() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, _) = scene.head("");
    hub.merge("ada", number, crate::github::Method::Squash);
    board.until("it is done", || board.phase("t-1") == "done");
    board.until("the ticket is closed", || board.ticket_text("t-1").contains("status: closed"));
    runner.end();
    let merges = hub.requests().iter().filter(|one| one.route == "pulls/merge" && one.took_effect).count();
    assert_eq!(merges, 0, "it was the person's");
}
