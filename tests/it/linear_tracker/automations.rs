//! Linear's own Git automations move tickets, too. What they do is known as theirs, and nobody takes it back; nor is it a person's word.

use crate::github::{Hub, Method};
use crate::linear::{Actor, Linear};

use super::killed::{COLUMNS, ENV, board};

const AGENT: &str = "set -eu\necho run >> \"$HOME/runs\"\necho x > made\ngit add made\ngit commit -qm 'Write something'\ntk done 'it is done'\n";

#[test]
fn moves_by_automations_are_known_and_not_fought() {
    let (linear, hub) = (Linear::start(), Hub::start());
    let id = linear.add_issue("Write something", "Todo", &[]);
    let board = board(&linear, &hub, AGENT, &format!("{COLUMNS}workspace: {{branch: tracker}}\n"));
    let github = Actor::Bot("GitHub".to_owned());
    let runs = || std::fs::read_to_string(board.scratch.dir.path().join("runs")).unwrap_or_default().lines().count();
    let polled = || linear.journal().iter().filter(|entry| entry.operation == "Changes").count();
    let polled_again = |times: usize| {
        let before = polled();
        board.until("the board was read again", || polled() >= before + times);
    };
    // A branch is made: the rule for it comes before our own move, or after it.
    linear.shift(&Actor::Rule, &id, "In Progress");
    let runner = board.start_with(&ENV);
    board.until("a pull request is open", || !hub.pulls().is_empty());
    let number = hub.pulls()[0];
    assert_eq!(hub.head_branch(number), "ada/eng-1", "the name by which Linear links it by itself");
    // The integration has seen the pull request.
    linear.shift(&github, &id, "In Review");
    board.until("it waits for a person", || board.phase("ENG-1") == "waiting_for_human");
    board.until("nothing is left to be written", || board.outbox().is_empty());

    // Somebody marks it as a draft, and the rule for that moves the ticket back to where work goes on.
    linear.shift(&github, &id, "In Progress");
    polled_again(4);
    assert_eq!(linear.state_of(&id), "In Progress", "left where it was put");
    assert_eq!((runs(), board.phase("ENG-1").as_str()), (1, "waiting_for_human"), "and no order to work on it again");
    // A column of theirs that the workflow does not name.
    linear.shift(&github, &id, "Backlog");
    polled_again(4);
    assert_eq!((linear.state_of(&id).as_str(), runs()), ("Backlog", 1));
    assert_eq!(board.phase("ENG-1"), "waiting_for_human", "the pull request is still there to be judged");

    // Merged: the rule for that is quicker than we are.
    hub.merge("ada", number, Method::Squash);
    linear.shift(&github, &id, "Done");
    board.until("it is done", || board.phase("ENG-1") == "done");
    board.until("nothing is left to be written", || board.outbox().is_empty());
    polled_again(3);
    runner.end();
    assert_eq!(linear.state_of(&id), "Done");
    let robot = linear.user("robot");
    let ours: Vec<String> = linear.moves(&id).into_iter().filter(|(by, _)| *by == robot).map(|(_, to)| to).collect();
    for column in ["In Progress", "In Review", "Done"] {
        let times = ours.iter().filter(|to| *to == column).count();
        assert!(times <= 1, "never a second time: {ours:?}");
    }
    assert_eq!(runs(), 1);
    assert_eq!(linear.links(&id).len(), 1, "one attachment");
}
