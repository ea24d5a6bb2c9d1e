//! The way to the base branch, seen from outside: many at once, what never gets green, what claims too much, what changes under us.

use std::collections::BTreeSet;
use std::path::Path;

use super::support::board::{Board, text};
use super::support::git_in;

/// Commits a file named after the ticket; two of them write the same one. Whoever is asked for more gives up to a person.
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

fn notes(board: &Board, id: &str) -> Vec<(String, String)> {
    let told: serde_json::Value = serde_json::from_str(&board.ok(&["explain", id, "--json"])).unwrap();
    let field = |note: &serde_json::Value, name: &str| note[name].as_str().unwrap_or_default().to_owned();
    told["notes"].as_array().unwrap().iter().map(|note| (field(note, "code"), field(note, "text"))).collect()
}

/// Whose change each commit on the base branch is, the oldest first.
fn landed(repo: &Path) -> Vec<String> {
    let log = git_in(repo, ["log", "--reverse", "--format=%s", "main"]);
    let keys = log.lines().filter_map(|line| line.split(':').next());
    keys.filter(|key| key.starts_with("t-")).map(str::to_owned).collect()
}

/// An order that is neither the one of the names nor the one in which the work was done.
fn shuffled() -> Vec<String> {
    (0..20).map(|place| format!("t-{:02}", place * 7 % 20 + 1)).collect()
}

#[test]
fn twenty_at_once_land_one_by_one_in_order_and_whoever_cannot_steps_aside_with_a_reason() {
    // From the second round on a gate waits until everybody is in the line.
    let gate = "echo round >> \"$HOME/rounds\"; while [ -e \"$HOME/hold\" ]; do sleep 0.1; done";
    let more = format!(
        "rollout: {{mode: merge}}\npr: {{forge: local}}\nmerge: {{mode: auto}}\ngates: {{task: [{{name: check, run: '{gate}'}}]}}\n"
    );
    let board = Board::new(TEAM, &more);
    for name in names() {
        board.ticket(&name, &format!("Ticket {name}"));
    }
    board.ok(&["run", "--once"]);
    let rounds =
        || std::fs::read_to_string(board.scratch.dir.path().join("rounds")).unwrap_or_default().lines().count();
    assert_eq!(rounds(), 20, "each was checked once");
    for name in names() {
        assert_eq!(board.status(&[&name])["reason"], "approval", "{}", board.ok(&["explain", &name]));
    }
    let hold = board.scratch.dir.path().join("hold");
    std::fs::write(&hold, "").unwrap();
    let runner = board.start();
    for name in shuffled() {
        // The runner may still be on its way up.
        board.until("it is approved", || board.run(&["approve", &name]).status.success());
        // The first lands at once, the second has its turn and waits for the gate, and the others stand behind it.
        board.until("it is in the line", || {
            let status = board.status(&[&name]);
            ["ready_to_merge", "merging", "done"].contains(&status["phase"].as_str().unwrap())
                || status["reason"] == "gates"
        });
    }
    // While they stand there, one is withdrawn by a reviewer and one is thrown out.
    board.ok(&["reject", "t-11", "not like this"]);
    board.ok(&["stop", "t-16"]);
    std::fs::remove_file(&hold).unwrap();
    for name in names() {
        board.until("it has left the line", || ["done", "blocked"].contains(&board.phase(&name).as_str()));
    }
    runner.end();

    // Of the two that contradict each other, the one that came later steps aside.
    let order = shuffled();
    let place = |name: &str| order.iter().position(|other| other == name).unwrap();
    let later = if place("t-07") > place("t-08") { "t-07" } else { "t-08" };
    let aside = [later, "t-11", "t-16"];
    let expected: Vec<&String> = order.iter().filter(|name| !aside.contains(&name.as_str())).collect();
    let landed = landed(&board.repo());
    let sorted = |names: Vec<&String>| names.into_iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!((landed.len(), sorted(landed.iter().collect())), (17, sorted(expected.clone())), "17 landed, each once");
    // One that is looked at anew in the moment of its turn lets the next ones go first (`engine::queue` shows whose turn it is).
    let is_near =
        |(at, name): (usize, &String)| expected.iter().position(|other| *other == name).unwrap().abs_diff(at) <= 3;
    assert!(landed.iter().enumerate().all(is_near), "in their order: {landed:?}, expected {expected:?}");
    let mut reasons = Vec::new();
    for name in aside {
        let status = board.status(&[name]);
        assert_eq!(status["phase"], "blocked", "{status}");
        reasons.push(format!("{name}: {}", status["sentence"].as_str().unwrap()));
    }
    assert!(notes(&board, later).iter().any(|(_, text)| text.contains("same.txt")), "{:?}", notes(&board, later));
    assert!(reasons[2].contains("set the finished work aside"), "{reasons:?}");
    let updates: usize = names()
        .iter()
        .map(|name| notes(&board, name).iter().filter(|(code, _)| code == "branch_updated").count())
        .sum();
    println!("17 of 20 landed with {updates} updates and {} check rounds; aside: {reasons:#?}", rounds());
    assert_eq!(updates, 16, "each but the first was brought up to date once");
    assert_eq!(rounds(), 36, "and checked once more");
}

/// `merge.strategy: immediate`: nobody is brought up to date with the others, and nobody waits for them.
#[test]
fn without_a_queue_each_lands_as_soon_as_it_is_ready() {
    let more = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, strategy: immediate, require_human_approval: false}\ngates: {task: [{name: check, run: 'echo round >> \"$HOME/rounds\"'}]}\n";
    let board = Board::new(TEAM, more);
    let three = ["t-01", "t-02", "t-03"];
    for name in three {
        board.ticket(name, name);
    }
    board.ok(&["run", "--once"]);
    for name in three {
        assert_eq!(board.phase(name), "done", "{}", board.ok(&["explain", name]));
        assert!(!notes(&board, name).iter().any(|(code, _)| code == "branch_updated"));
    }
    let rounds = std::fs::read_to_string(board.scratch.dir.path().join("rounds")).unwrap();
    assert_eq!((rounds.lines().count(), landed(&board.repo()).len()), (3, 3), "each was checked once");
}

#[test]
fn what_never_gets_green_costs_exactly_its_rounds() {
    let agent = "set -eu\ndate +%N >> work.txt\ngit add -A\ngit commit -qm work\ntk done x\n";
    let more = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto}\norchestration: {max_rework_cycles: 2}\ngates: {task: [{name: check, run: 'echo it is red; exit 1'}]}\n";
    let board = Board::new(agent, more);
    board.ticket("t-1", "Never green");
    for _ in 0..3 {
        board.ok(&["run", "--once"]);
        let status = board.status(&["t-1"]);
        assert_eq!((status["attempts"].as_u64(), status["reason"].as_str()), (Some(3), Some("rework_limit_exceeded")));
    }
    assert!(board.ticket_text("t-1").contains("it is red"));
}

#[test]
fn done_without_a_commit_is_contradicted_and_reworked() {
    let agent = "set -eu\nif [ \"$DIRIGENT_PHASE\" = rework ]; then\ngrep -q 'no commit beyond the base' \"$DIRIGENT_PROMPT_FILE\"\necho work > work.txt\ngit add -A\ngit commit -qm work\nfi\ntk done 'all done'\n";
    let board = Board::new(agent, super::support::board::MERGE);
    board.ticket("t-1", "Do something");
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done", "{}", board.ok(&["explain", "t-1"]));
    assert!(board.ticket_text("t-1").contains("the worker says done, but the branch has no commit beyond the base"));
    assert_eq!(board.status(&["t-1"])["attempts"], 2);
}

#[test]
fn a_base_branch_that_is_renamed_is_said_and_its_return_goes_on() {
    let agent = "set -eu\necho work > work.txt\ngit add -A\ngit commit -qm work\ntk done x\n";
    let board = Board::new(agent, "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n");
    board.ticket("t-1", "Do something");
    let runner = board.start();
    let reason = || text(&board.run(&["status", "t-1", "--field", "reason"]).stdout).trim().to_owned();
    board.until("it waits for approval", || reason() == "approval");
    board.scratch.git(["branch", "-m", "main", "trunk"]);
    board.ok(&["approve", "t-1"]);
    board.until("the rename is said", || reason() == "forge_rule");
    let status = board.status(&["t-1"]);
    assert!(status["sentence"].as_str().unwrap().contains("the base branch `main` does not exist"), "{status}");
    let shown = text(&board.run(&["status", "t-1"]).stdout);
    assert!(shown.contains("merge needs") && shown.contains("mergeable  fail"), "{shown}");
    board.scratch.git(["branch", "-m", "trunk", "main"]);
    board.until("it goes on", || board.phase("t-1") == "done");
    runner.end();
}

/// `merge.executor: prompt`: the agent gets the merge prompt and makes the head ready; it has no way to merge, and what it made is approved first.
#[test]
fn a_run_prepares_the_head_and_the_merge_stays_ours() {
    let agent = r#"set -eu
if grep -q 'Before the merge' "$DIRIGENT_PROMPT_FILE"; then
  git merge -q main || { printf 'both\n' > same.txt; git add same.txt; git commit -qm 'Merge main'; }
  echo "- $DIRIGENT_TICKET_KEY" >> CHANGES
  git add CHANGES
  git commit -qm 'Write the changelog'
  git push -q origin HEAD:main 2>/dev/null || true
else
  echo ours > same.txt
  git add same.txt
  git commit -qm work
fi
tk done x
"#;
    let more = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, executor: prompt, no_checks: pass}\n";
    let board = Board::new(agent, more);
    board.ticket("t-1", "Do something");
    board.ok(&["run", "--once"]);
    let status = board.status(&["t-1"]);
    assert_eq!((status["reason"].as_str(), status["attempts"].as_u64()), (Some("approval"), Some(2)), "{status}");
    assert_eq!(status["rework_cycles"], 0, "a preparation is no round of rework");
    let main = board.scratch.head("main");
    let branch = status["branch"].as_str().unwrap().to_owned();
    assert!(board.scratch.git(["log", "--format=%s", &format!("main..{branch}")]).contains("Write the changelog"));
    assert_eq!(board.scratch.head("main"), main, "nothing is merged before somebody approves it");
    board.ok(&["approve", "t-1"]);
    board.ok(&["run", "--once"]);
    assert_eq!(board.phase("t-1"), "done", "{}", board.ok(&["explain", "t-1"]));
    assert_eq!(board.scratch.git(["show", "main:CHANGES"]).trim(), "- t-1");
}
