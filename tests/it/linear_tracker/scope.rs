//! Which issues are on the board, and what becomes of them.

use dirigent::domain::ids::TicketId;
use dirigent::domain::ticket::Dispatchable;
use dirigent::tracker::linear::{LinearConfig, LinearTracker, Scope};
use dirigent::tracker::{BoardAnswer, Found, Tracker, TrackerError};

use super::{active, assigned_to, config, first_mark, found, listed, team, titles, tracker, whole};
use crate::linear::{Actor, Lag, Linear};

#[tokio::test]
async fn a_team_and_a_project_narrow_the_board() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo", "Done"]);
    linear.add_project("Apollo", "0123456789ab", "ENG");
    let inside = linear.add_issue("inside", "Todo", &[]);
    linear.add_issue("beside", "Todo", &[]);
    linear.add_issue_to("OPS", "elsewhere", "Todo", &[]);
    let project = linear.project_id("Apollo");
    linear.edit(&inside, |issue| issue.project = Some(project));
    assert_eq!(titles(&listed(&tracker(&linear, team("eng"))).await), ["beside", "inside"]);
    for slug in ["0123456789ab", "apollo-0123456789ab"] {
        let scope = Scope { project_slug: Some(slug.to_owned()), ..Scope::default() };
        assert_eq!(titles(&listed(&tracker(&linear, scope)).await), ["inside"], "{slug}");
    }
}

#[tokio::test]
async fn assigned_or_delegated_counts_and_anything_else_waits() {
    let linear = Linear::start();
    let Actor::User(robot) = linear.user("robot") else { unreachable!() };
    let Actor::User(ben) = linear.user("ben") else { unreachable!() };
    let mine = linear.add_issue("mine", "Todo", &[]);
    linear.edit(&mine, |issue| issue.assignee = Some(robot.clone()));
    let delegated = linear.add_issue("delegated", "Todo", &[]);
    linear.edit(&delegated, |issue| (issue.assignee, issue.delegate) = (Some(ben.clone()), Some(robot.clone())));
    let bens = linear.add_issue("ben's", "Todo", &[]);
    linear.edit(&bens, |issue| issue.assignee = Some(ben.clone()));
    linear.add_issue("nobody's", "Todo", &[]);
    for name in ["me", "robot", "robot@example.invalid", robot.as_str()] {
        let tracker = tracker(&linear, assigned_to(name));
        assert_eq!(titles(&listed(&tracker).await), ["delegated", "mine"], "{name}");
        let other = whole(&tracker, &bens).await;
        assert!(matches!(other.dispatchable, Dispatchable::No(_)), "{name}: {other:?}");
        assert_eq!(whole(&tracker, &mine).await.dispatchable, Dispatchable::Yes);
    }
}

#[tokio::test]
async fn a_ticket_brings_what_linear_knows() {
    let linear = Linear::start();
    let blocker = linear.add_issue("first", "In Progress", &[]);
    let id = linear.add_issue("second", "Todo", &["Bug"]);
    linear.block(&id, &blocker);
    let long = "x".repeat(100_000);
    linear.edit(&id, |issue| {
        issue.priority = 0;
        issue.description = Some(long.clone());
        issue.parent = Some(blocker.clone());
    });
    let ticket = whole(&tracker(&linear, team("ENG")), &id).await;
    assert_eq!((ticket.key.as_str(), ticket.priority), ("ENG-2", None), "no priority is not the most urgent one");
    assert_eq!(ticket.description.as_deref(), Some(long.as_str()));
    assert_eq!(ticket.branch_name.as_deref(), Some("ada/eng-2"));
    assert_eq!(ticket.parent, Some(TicketId::new(&blocker)));
    assert_eq!(ticket.author.unwrap().name, "ada");
    let [blocked] = &ticket.blocked_by[..] else { panic!("{:?}", ticket.blocked_by) };
    assert_eq!((blocked.key.as_str(), blocked.state.as_deref()), ("ENG-1", Some("In Progress")));
}

#[tokio::test]
async fn long_lists_are_read_to_their_end() {
    let linear = Linear::start();
    let id = linear.add_issue("discussed", "Todo", &[]);
    let ada = linear.user("ada");
    for number in 0..160 {
        linear.say(&ada, &id, &format!("word {number}"));
    }
    for number in 0..30 {
        let blocker = linear.add_issue(&format!("before {number}"), "Done", &[]);
        linear.block(&id, &blocker);
        linear.label(&ada, &id, &format!("label {number}"));
    }
    for oldest_first in [false, true] {
        if oldest_first {
            linear.oldest_history_first();
        }
        linear.shift(&ada, &id, "In Progress");
        for number in 0..15 {
            linear.label(&Actor::Rule, &id, &format!("late {number} {oldest_first}"));
        }
        let board = tracker(&linear, team("ENG"));
        for ticket in [whole(&board, &id).await, listed(&board).await.remove(0)] {
            let comments = ticket.comments.unwrap();
            assert_eq!((comments.len(), comments[0].body.as_str()), (160, "word 0"));
            assert_eq!(ticket.blocked_by.len(), 30);
            assert!(ticket.labels.len() >= 45, "{:?}", ticket.labels);
            assert_eq!(
                ticket.state_changed.unwrap().by.unwrap().name,
                "ada",
                "the move lies behind what came after it"
            );
        }
        linear.shift(&ada, &id, "Todo");
    }
}

#[tokio::test]
async fn archived_moved_away_and_deleted_are_told_apart() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo", "Done"]);
    let tracker = tracker(&linear, team("ENG"));
    let [archived, moved, deleted] = ["archived", "moved", "deleted"].map(|title| linear.add_issue(title, "Todo", &[]));
    let mark = first_mark(&tracker).await;
    linear.archive(&archived);
    linear.move_to_team(&moved, "OPS");
    linear.delete(&deleted);
    assert!(matches!(whole(&tracker, &archived).await.dispatchable, Dispatchable::No(_)));
    match found(&tracker, &moved).await {
        Found::Gone(why) => assert!(why.contains("OPS"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(found(&tracker, &deleted).await, Found::Gone(_)));
    match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Listed { tickets, .. } => assert!(tickets.is_empty(), "{tickets:?}"),
        other => panic!("only a whole list says that something has left: {other:?}"),
    }
}

/// Only a whole list can say that an issue has left; the board is not read whole again and again for it.
#[tokio::test]
async fn an_issue_that_was_deleted_costs_one_reading_of_the_board() {
    let linear = Linear::start();
    linear.add_issue("stays", "Todo", &[]);
    let deleted = linear.add_issue("deleted", "Todo", &[]);
    linear.say(&linear.user("ada"), &deleted, "never mind");
    let tracker = tracker(&linear, team("ENG"));
    let mark = first_mark(&tracker).await;
    linear.delete(&deleted);
    let mark = match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Listed { tickets, mark: Some(mark) } => {
            assert_eq!(titles(&tickets), ["stays"]);
            mark
        }
        other => panic!("{other:?}"),
    };
    linear.forget_journal();
    assert_eq!(tracker.poll(&active(), Some(&mark)).await.unwrap().answer, BoardAnswer::Unchanged);
    assert_eq!(linear.journal().len(), 1);
    // Brought back, it is a change like any other.
    linear.edit(&deleted, |issue| (issue.trashed, issue.archived_at) = (false, None));
    match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Changed { tickets, .. } => assert_eq!(titles(&tickets), ["deleted"]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_renamed_state_is_another_state() {
    let linear = Linear::start();
    let id = linear.add_issue("one", "Todo", &[]);
    let tracker = tracker(&linear, team("ENG"));
    assert_eq!(listed(&tracker).await.len(), 1);
    linear.rename_state("ENG", "Todo", "Ready");
    assert!(listed(&tracker).await.is_empty(), "the workflow does not name it");
    assert_eq!(whole(&tracker, &id).await.state, "Ready");
}

/// A relation does not move its issue's time here, as it may not in Linear itself; a sweep finds it, and reads only what changed.
#[tokio::test]
async fn a_sweep_finds_what_no_change_tells() {
    let linear = Linear::start();
    let blocker = linear.add_issue("first", "Todo", &[]);
    let id = linear.add_issue("second", "Todo", &[]);
    let sweeping = LinearConfig { sweep_every: std::time::Duration::ZERO, ..config(&linear, team("ENG")) };
    let tracker = LinearTracker::new(sweeping).unwrap();
    let mark = first_mark(&tracker).await;
    linear.block(&id, &blocker);
    let mark = match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Changed { tickets, mark } => {
            assert_eq!(titles(&tickets), ["second"]);
            assert_eq!(tickets[0].blocked_by.len(), 1);
            mark
        }
        other => panic!("{other:?}"),
    };
    linear.hide(&blocker);
    match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Listed { tickets, .. } => assert_eq!(titles(&tickets), ["second"]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_replica_shows_late_is_told_when_it_is_shown() {
    let linear = Linear::start();
    let id = linear.add_issue("one", "Todo", &[]);
    let tracker = tracker(&linear, team("ENG"));
    let mark = first_mark(&tracker).await;
    linear.lag(Lag::Frozen);
    linear.say(&linear.user("ada"), &id, "late");
    linear.shift(&linear.user("ada"), &id, "In Progress");
    assert_eq!(tracker.poll(&active(), Some(&mark)).await.unwrap().answer, BoardAnswer::Unchanged);
    linear.advance(jiff::SignedDuration::from_secs(90));
    linear.settle();
    match tracker.poll(&active(), Some(&mark)).await.unwrap().answer {
        BoardAnswer::Changed { tickets, .. } => {
            assert_eq!(tickets[0].state, "In Progress");
            assert_eq!(tickets[0].known_comments().len(), 1);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn doctor_is_told_what_there_is_instead() {
    let linear = Linear::start();
    linear.add_project("Apollo", "0123456789ab", "ENG");
    let wrong_team = tracker(&linear, team("ENGG")).probe().await;
    assert!(
        matches!(&wrong_team, Err(TrackerError::InvalidConfig(why)) if why.contains("ENG (Team ENG)")),
        "{wrong_team:?}"
    );
    let scope = Scope { project_slug: Some("nope".to_owned()), ..Scope::default() };
    let wrong_project = tracker(&linear, scope).probe().await;
    assert!(
        matches!(&wrong_project, Err(TrackerError::InvalidConfig(why)) if why.contains("0123456789ab (Apollo)")),
        "{wrong_project:?}"
    );
    let mut wrong = config(&linear, team("ENG"));
    wrong.states.targets.push("Merged".to_owned());
    let wrong_state = LinearTracker::new(wrong).unwrap().probe().await;
    assert!(
        matches!(&wrong_state, Err(TrackerError::InvalidConfig(why)) if why.contains("`Merged`") && why.contains("In Review")),
        "{wrong_state:?}"
    );
    let mut wrong = config(&linear, team("ENG"));
    wrong.states.approval.push("Approvd".to_owned());
    let wrong_state = LinearTracker::new(wrong).unwrap().probe().await;
    assert!(
        matches!(&wrong_state, Err(TrackerError::InvalidConfig(why)) if why.contains("`Approvd` (merge.approval_states)")),
        "{wrong_state:?}"
    );
    for nobody in ["adda", "ada@elsewhere.invalid", "00000000-0000-4000-8000-000000000000"] {
        let probed = tracker(&linear, assigned_to(nobody)).probe().await;
        assert!(
            matches!(&probed, Err(TrackerError::InvalidConfig(why)) if why.contains(nobody) && why.contains("there is ada, ben")),
            "{probed:?}"
        );
    }
    for somebody in ["me", "ada", "ben@example.invalid"] {
        tracker(&linear, assigned_to(somebody)).probe().await.unwrap();
    }
    let right = tracker(&linear, team("ENG")).probe().await.unwrap();
    assert!(right.contains("robot") && right.contains("of 2500 requests"), "{right}");
}
