//! The built binary on a Linear board, with a workflow in each dialect; comments and states read back.

use std::process::Output;

use crate::linear::{Actor, KEY, Linear};
use crate::support::board::Board;

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
env > \"$HOME/seen-by-the-agent\" || true
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk comment 'nearly there'
tk done 'it is done'
";

const REST: &str = "polling: {interval_ms: 500}
worker: {runtime: exec}
exec: {command: sh ./agent.sh}
agent: {stop_grace_ms: 1000}
orchestration:
  phase_store: workpad
  states: {implementing: In Progress, waiting_for_human: In Review}
pr: {forge: local}
";

const MERGE: &str = "rollout: {mode: merge}\nmerge: {mode: auto, no_checks: pass, require_human_approval: false}\n";

/// Symphony's spelling, with the key from the environment that it reads by itself.
pub fn symphony(linear: &Linear, more: &str) -> String {
    let endpoint = linear.endpoint();
    format!(
        "---\ntracker:\n  kind: linear\n  provider:\n    endpoint: {endpoint}\n    team_key: ENG\n{REST}{more}---\n"
    )
}

/// pi-symphony's flat one, with a variable of its own.
fn flat(linear: &Linear, more: &str) -> String {
    let endpoint = linear.endpoint();
    format!(
        "---\ntracker:\n  kind: linear\n  api_key: $MY_LINEAR\n  endpoint: {endpoint}\n  project_slug: apollo-0123456789ab\n  assignee: $LINEAR_ASSIGNEE\n{REST}{more}---\n"
    )
}

fn run(board: &Board, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = board.command(args);
    command.envs(env.iter().copied());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn ok(board: &Board, args: &[&str], env: &[(&str, &str)]) -> String {
    let output = run(board, args, env);
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    said(&output)
}

pub fn board_with(workflow: &str) -> Board {
    let board = Board::new(GOOD, "");
    board.scratch.write("WORKFLOW.md", workflow);
    board.scratch.commit("a Linear board");
    board
}

#[test]
fn a_ticket_goes_the_whole_way_with_symphonys_keys() {
    let linear = Linear::start();
    let id = linear.add_issue("Write something", "Todo", &[]);
    let board = board_with(&symphony(&linear, MERGE));
    let env = [("LINEAR_API_KEY", KEY)];
    let doctor = ok(&board, &["doctor"], &env);
    assert!(doctor.contains("linear: team ENG, written to as the account robot"), "{doctor}");
    ok(&board, &["run", "--once"], &env);
    assert_eq!(linear.state_of(&id), "Done");
    let comments = linear.comments(&id);
    assert!(comments.iter().any(|text| text.contains("nearly there")), "{comments:#?}");
    let workpads = comments.iter().filter(|text| text.contains("Workpad")).count();
    assert_eq!(workpads, 1, "{comments:#?}");
    assert!(board.scratch.git(["log", "--oneline", "main"]).contains("ENG-1"), "merged");
    assert!(!comments.concat().contains(KEY) && !doctor.contains(KEY));
    let moves: Vec<Actor> = linear.issue(&id).history.iter().map(|line| line.by.clone()).collect();
    assert!(moves.len() >= 2 && moves.iter().all(|by| *by == linear.user("robot")), "{moves:?}");
}

#[test]
fn a_ticket_is_offered_with_the_flat_keys() {
    let linear = Linear::start();
    linear.add_project("Apollo", "0123456789ab", "ENG");
    let id = linear.add_issue("Write something", "Todo", &[]);
    let other = linear.add_issue("Somebody else's", "Todo", &[]);
    let (project, Actor::User(robot)) = (linear.project_id("Apollo"), linear.user("robot")) else { unreachable!() };
    linear.edit(&id, |issue| (issue.project, issue.assignee) = (Some(project.clone()), Some(robot)));
    linear.edit(&other, |issue| issue.project = Some(project));
    let board = board_with(&flat(&linear, "rollout: {mode: mutate}\nmerge: {no_checks: pass}\n"));
    let env = [("MY_LINEAR", KEY), ("LINEAR_ASSIGNEE", "me")];
    ok(&board, &["doctor"], &env);
    ok(&board, &["run", "--once"], &env);
    assert_eq!(linear.state_of(&id), "In Review");
    assert_eq!((linear.state_of(&other).as_str(), linear.comments(&other).len()), ("Todo", 0), "not for us");
    let shown = ok(&board, &["config", "show"], &env);
    assert!(!shown.contains(KEY), "{shown}");
    // What the agent saw of the environment has no key in it.
    let seen = std::fs::read_to_string(board.scratch.dir.path().join("seen-by-the-agent")).unwrap_or_default();
    assert!(!seen.contains(KEY), "{seen}");
}

/// Most people run it with their own key: what is not marked as ours is theirs, unless the file says that nobody else writes with it.
#[test]
fn the_file_says_whether_a_person_shares_the_account() {
    for (account, state) in [("shared", "Todo"), ("own", "In Review")] {
        let linear = Linear::start();
        let id = linear.add_issue("Write something", "Todo", &[]);
        linear.say(&linear.user("robot"), &id, "/dirigent pause");
        let workflow = symphony(&linear, "rollout: {mode: mutate}\nmerge: {no_checks: pass}\n");
        let board = board_with(&workflow.replace("team_key: ENG", &format!("team_key: ENG\n    account: {account}")));
        run(&board, &["run", "--once"], &[("LINEAR_API_KEY", KEY)]);
        assert_eq!(linear.state_of(&id), state, "{account}");
    }
}

#[test]
fn doctor_names_what_is_missing_and_what_there_is() {
    let linear = Linear::start();
    let board = board_with(&symphony(&linear, "rollout: {mode: observe}\n"));
    let doctor = |env: &[(&str, &str)]| {
        let output = run(&board, &["doctor"], env);
        assert!(!output.status.success());
        said(&output)
    };
    let missing = doctor(&[]);
    assert!(missing.contains("secret is missing") && missing.contains("LINEAR_API_KEY"), "{missing}");
    let wrong = doctor(&[("LINEAR_API_KEY", "lin_api_wrong")]);
    assert!(wrong.contains("refuses our access") && !wrong.contains("lin_api_wrong"), "{wrong}");
    board.scratch.write(
        "WORKFLOW.md",
        &symphony(&linear, "rollout: {mode: observe}\n").replace("team_key: ENG", "team_key: OPS"),
    );
    let team = doctor(&[("LINEAR_API_KEY", KEY)]);
    assert!(team.contains("no team `OPS`") && team.contains("ENG (Team ENG)"), "{team}");
    let states = symphony(&linear, "rollout: {mode: observe}\n").replace("In Review", "Reviewing");
    board.scratch.write("WORKFLOW.md", &states);
    let state = doctor(&[("LINEAR_API_KEY", KEY)]);
    assert!(state.contains("no state `Reviewing`") && state.contains("In Review"), "{state}");
}

#[test]
fn a_board_without_a_scope_is_refused() {
    let linear = Linear::start();
    let board = board_with(&symphony(&linear, "").replace("    team_key: ENG\n", ""));
    let output = run(&board, &["doctor"], &[("LINEAR_API_KEY", KEY)]);
    assert!(
        said(&output).contains("`tracker.provider.team_key`, `tracker.provider.project_slug`, or both"),
        "{}",
        said(&output)
    );
    let unset = symphony(&linear, "").replace("team_key: ENG", "team_key: $NOT_SET");
    board.scratch.write("WORKFLOW.md", &unset);
    let output = run(&board, &["doctor"], &[("LINEAR_API_KEY", KEY)]);
    assert!(said(&output).contains("`$NOT_SET`, which says nothing"), "{}", said(&output));
}

/// In observe mode nothing is written; the board is followed all the same.
#[test]
fn an_idle_runner_asks_once_per_tick_and_says_what_is_left() {
    let linear = Linear::start();
    for number in 0..200 {
        linear.add_issue(&format!("ticket {number}"), "Todo", &[]);
    }
    linear.advance(jiff::SignedDuration::from_hours(1));
    let key = format!("team_key: ENG\n    api_key: {KEY}");
    let board = board_with(&symphony(&linear, "rollout: {mode: observe}\n").replace("team_key: ENG", &key));
    let runner = board.start();
    let ticks = || linear.journal().iter().filter(|entry| entry.operation == "Changes").count();
    board.until("it ticks", || ticks() >= 5);
    let journal = linear.journal();
    let first = journal.iter().position(|entry| entry.operation == "Changes").unwrap();
    assert!(journal[first..].iter().all(|entry| entry.operation == "Changes"), "{:?}", &journal[first..]);
    assert!(journal.iter().all(|entry| !entry.is_mutation));
    let status = board.ok(&["status"]);
    assert!(status.contains("the board: ") && status.contains("of 2500 requests"), "{status}");
    let process = std::fs::read_to_string(format!("/proc/{}/status", runner.child.id())).unwrap_or_default();
    let resident = process.lines().find(|line| line.starts_with("VmRSS"));
    println!("an idle runner on 200 candidates, as the tests build it: {resident:?}");
    runner.end();
}

/// In the place of `GO(STATE)` it moves its ticket there.
const FORWARD: &str = r##"set -u
go() {
  printf '{"query": "mutation($s: String!) { issueUpdate(id: \\"ENG-1\\", input: {stateId: $s}) { success } }", "variables": {"s": "%s"}}' "$2" > @T/q
  if tk api - < @T/q >> @T/answers 2>&1; then echo "$1 went through" >> @T/answers; else echo "$1 was refused" >> @T/answers; fi
}
GO
echo '{"query": "mutation { commentCreate(input: {issueId: \"ENG-1\", body: \"by the worker\"}) { success } }"}' | tk api - >> @T/answers 2>&1
for try in $(seq 1 200); do
  echo '{"query": "{ issue(id: \"ENG-1\") { comments(first: 50) { nodes { id body } } } }"}' | tk api - > @T/comments
  grep -q Workpad @T/comments && break
  sleep 0.5
done
pad=$(grep -B1 -A1 Workpad @T/comments | sed -n 's/.*"id": "\([^"]*\)".*/\1/p' | head -1)
printf '{"query": "mutation($c: String!) { commentUpdate(id: $c, input: {body: \\"mine\\"}) { success } }", "variables": {"c": "%s"}}' "$pad" > @T/q
tk api - < @T/q >> @T/answers 2>&1 || echo "the workpad was refused" >> @T/answers
"##;

/// `tk api` in the worker's shell: what it may not do is refused with a sentence, and the runner's own words are not its own.
#[test]
fn a_worker_cannot_approve_close_or_speak_for_the_runner() {
    let linear = Linear::start();
    let id = linear.add_issue("Write something", "Todo", &[]);
    let workflow =
        symphony(&linear, "rollout: {mode: mutate}\nmerge: {no_checks: pass, approval_states: [In Review]}\n")
            .replace("team_key: ENG", "team_key: ENG\n    agent_tool: write")
            .replace("  states: {implementing: In Progress, waiting_for_human: In Review}\n", "");
    let board = board_with(&workflow);
    let goes: Vec<String> = ["In Review", "Done", "In Progress"]
        .map(|state| format!("go '{state}' {}", linear.state_id(&id, state)))
        .into_iter()
        .collect();
    let place = board.scratch.dir.path().display().to_string();
    let agent = FORWARD.replace("\nGO\n", &format!("\n{}\n", goes.join("\n"))).replace("@T", &place);
    board.scratch.write("agent.sh", &(agent + GOOD));
    board.scratch.commit("the agent");
    ok(&board, &["run", "--once"], &[("LINEAR_API_KEY", KEY)]);
    let answers = std::fs::read_to_string(board.scratch.dir.path().join("answers")).unwrap();
    for expected in [
        "`In Review` is where people approve",
        "In Review was refused",
        "`Done` closes the ticket",
        "Done was refused",
        "In Progress went through",
        "only what a worker of this ticket wrote",
        "the workpad was refused",
    ] {
        assert!(answers.contains(expected), "{expected}: {answers}");
    }
    assert_eq!(linear.state_of(&id), "In Progress");
    let comments = linear.comments(&id);
    assert_eq!(comments.iter().filter(|text| text.starts_with("by the worker")).count(), 1, "{comments:#?}");
    assert!(!comments.iter().any(|text| text.starts_with("mine")), "{comments:#?}");
}
