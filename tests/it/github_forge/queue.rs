//! Twenty pull requests on a GitHub of our own, all ready at once, one merged at a time.

use std::collections::BTreeSet;

use super::end_to_end::Scene;
use crate::github::Demands;
use crate::support::git_in;

/// A file named after the ticket; two of them write the same one. Whoever is asked for more gives up to a person.
const TEAM: &str = r#"set -eu
if [ "$DIRIGENT_PHASE" = rework ]; then
  tk blocked 'a person has to look at this'
  exit 0
fi
case "$DIRIGENT_TICKET_KEY" in
  t-07|t-08) echo "$DIRIGENT_TICKET_KEY" > same.txt ;;
  *) echo work > "$DIRIGENT_TICKET_KEY.txt" ;;
esac
git add -A
git commit -qm "Do $DIRIGENT_TICKET_KEY"
tk done 'it is done'
"#;

fn names() -> Vec<String> {
    (1..=20).map(|number| format!("t-{number:02}")).collect()
}

#[test]
fn twenty_at_once_land_in_order_and_three_step_aside() {
    let scene = Scene::with_agent(TEAM, "");
    let (board, hub) = (&scene.board, &scene.hub);
    hub.protect("main", Demands { checks: vec!["build".into()], up_to_date: true, ..Demands::default() });
    for name in names() {
        board.ticket(&name, &format!("Ticket {name}"));
    }
    let runner = scene.start();
    board.until("all of them are open", || hub.pulls().len() == 20);
    let number = |name: &str| {
        let of = |number: &u64| hub.head_branch(*number).starts_with(&format!("dirigent/{name}-"));
        hub.pulls().into_iter().find(of).unwrap()
    };
    let mut checked = BTreeSet::new();
    let mut check = || {
        for name in names() {
            let Some(head) = hub.head(&hub.head_branch(number(&name))) else { continue };
            if checked.insert(head.clone()) {
                scene.pass(&head);
            }
        }
        checked.len()
    };
    check();
    let phases = || {
        let all = board.status(&[]);
        let of = |job: &serde_json::Value, field: &str| job[field].as_str().unwrap_or_default().to_owned();
        let jobs = all["jobs"].as_array().unwrap().iter();
        jobs.map(|job| (of(job, "key"), of(job, "phase"), of(job, "reason"))).collect::<Vec<_>>()
    };
    board.until("all wait for a person", || phases().iter().all(|(_, _, reason)| reason == "approval"));
    // The first is merged at once; the second is updated, and the line waits for its check while the others come to stand in it.
    let order: Vec<String> = (0..20).map(|place| format!("t-{:02}", place * 7 % 20 + 1)).collect();
    for name in &order {
        hub.review("ada", number(name), "APPROVED", "good", &[]);
        board.until("it is in the line", || {
            let has_turn = || hub.requests().iter().any(|one| one.route == "pulls/update-branch");
            let phase = board.phase(name);
            ["ready_to_merge", "merging", "done"].contains(&phase.as_str()) || *name == order[1] && has_turn()
        });
    }
    hub.review("ada", number("t-11"), "CHANGES_REQUESTED", "not like this", &[]);
    hub.close_pull("ada", number("t-16"));
    let aside = |name: &str| board.phase(name) == "blocked";
    board.until("two have stepped aside", || aside("t-11") && aside("t-16"));
    let over = || phases().iter().filter(|(_, phase, _)| ["done", "blocked"].contains(&phase.as_str())).count();
    let mut gone = over();
    while gone < 20 {
        board.until("the next one lands or steps aside", || {
            check();
            over() > gone
        });
        gone = over();
    }
    let rounds = check();
    runner.end();

    let log = git_in(&hub.git_folder(), ["log", "--reverse", "--format=%s", "main"]);
    let landed: Vec<&str> =
        log.lines().filter_map(|line| line.split(':').next()).filter(|key| key.starts_with("t-")).collect();
    // Of the two that contradict each other, the one that came later.
    let place = |name: &str| order.iter().position(|other| other == name).unwrap();
    let later = if place("t-07") > place("t-08") { "t-07" } else { "t-08" };
    let expected: Vec<&str> =
        order.iter().map(String::as_str).filter(|name| ![later, "t-11", "t-16"].contains(name)).collect();
    let sorted = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!((landed.len(), sorted(&landed)), (17, sorted(&expected)), "17 landed, each once\n{log}");
    // After each merge GitHub works out anew what can be merged. Whoever is first and not worked out yet lets the next ones go first.
    let is_near =
        |(at, name): (usize, &&str)| expected.iter().position(|other| other == name).unwrap().abs_diff(at) <= 3;
    assert!(landed.iter().enumerate().all(is_near), "in their order: {landed:?}, expected {expected:?}");
    for (name, reason) in [(later, "worker_asked"), ("t-11", "worker_asked"), ("t-16", "pr_closed")] {
        assert_eq!(board.status(&[name])["reason"], reason, "{}", board.ok(&["explain", name]));
    }
    let sent = |route: &str| hub.requests().iter().filter(|one| one.route == route && one.took_effect).count();
    println!("17 of 20 landed with {} updates and {rounds} check rounds", sent("pulls/update-branch"));
    assert_eq!(sent("pulls/merge"), 17);
    assert_eq!(sent("pulls/update-branch"), 16, "each but the first was brought up to date once");
    assert_eq!(rounds, 36, "and checked once more");
}
