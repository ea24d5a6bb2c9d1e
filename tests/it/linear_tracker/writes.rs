//! Writes besides what every tracker has to pass.

use dirigent::domain::ids::TicketId;
use dirigent::domain::ticket::NewTicket;
use dirigent::engine::permit::EffectKind;
use dirigent::tracker::linear::{LinearConfig, LinearTracker, Scope};
use dirigent::tracker::{Move, Tracker, TrackerError};

use super::{config, team, tracker};
use crate::linear::{Instead, Linear, When};
use crate::support::allowed;

/// Two teams have a state of the same name: the one of the ticket's own team is meant.
#[tokio::test]
async fn a_move_stays_within_the_tickets_team() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo", "In Progress", "Shipped"]);
    linear.add_project("Both", "0123456789ab", "ENG");
    let there = linear.add_issue_to("OPS", "elsewhere", "Todo", &[]);
    let project = linear.project_id("Both");
    linear.edit(&there, |issue| issue.project = Some(project));
    let scope = Scope { project_slug: Some("0123456789ab".to_owned()), ..Scope::default() };
    let tracker = tracker(&linear, scope);
    let (permit, id) = (allowed(EffectKind::Comment), TicketId::new(&there));
    let moved = tracker.move_ticket(&permit, &id, "in progress", &[]).await;
    assert!(matches!(moved, Ok(Move::Moved(Some(_)))), "{moved:?}");
    assert_eq!(linear.state_of(&there), "In Progress");
    let refused = tracker.move_ticket(&permit, &id, "Done", &[]).await;
    assert!(
        matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("OPS") && why.contains("Shipped")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_label_is_made_only_where_that_is_allowed() {
    let linear = Linear::start();
    let id = TicketId::new(linear.add_issue("one", "Todo", &[]));
    let permit = allowed(EffectKind::Comment);
    let add = ["agent".to_owned()];
    let careful = tracker(&linear, team("ENG"));
    let refused = careful.label(&permit, &id, &add, &[]).await;
    assert!(matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("create_labels")), "{refused:?}");
    assert!(linear.label_names().is_empty());
    let free = LinearConfig { create_labels: true, ..config(&linear, team("ENG")) };
    LinearTracker::new(free).unwrap().label(&permit, &id, &add, &[]).await.unwrap();
    assert_eq!(linear.label_names(), ["agent"]);
    careful.label(&permit, &id, &[], &add).await.unwrap();
    assert!(linear.issue(id.as_str()).labels.is_empty());
}

/// Somebody makes the label between the look and the write.
#[tokio::test]
async fn a_label_that_is_there_already_is_the_one_that_is_put_on() {
    let linear = Linear::start();
    let id = TicketId::new(linear.add_issue("one", "Todo", &[]));
    let theirs = linear.add_label("agent", Some("ENG"));
    let free = LinearConfig { create_labels: true, ..config(&linear, team("ENG")) };
    let unseen = || Instead::Edited(Box::new(|body| body["data"]["issueLabels"]["nodes"] = serde_json::json!([])));
    let tracker = LinearTracker::new(free).unwrap();
    let (permit, add) = (allowed(EffectKind::Comment), ["agent".to_owned()]);
    linear.fault("Place", When::After, unseen());
    linear.fault("Home", When::After, unseen());
    let early = tracker.label(&permit, &id, &add, &[]).await;
    assert!(matches!(early, Err(TrackerError::Request(_))), "the ticket is there: {early:?}");
    linear.fault("Place", When::After, unseen());
    tracker.label(&permit, &id, &add, &[]).await.unwrap();
    assert_eq!(linear.issue(id.as_str()).labels, [theirs]);
    assert_eq!(linear.label_names(), ["agent"]);
}

#[tokio::test]
async fn a_ticket_is_made_in_no_other_place_than_the_workflows() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo"]);
    for scope in [Scope::default(), team("ENG")] {
        let scope = Scope { project_slug: Some("not-shown-0123456789ab".to_owned()), ..scope };
        let new = NewTicket {
            title: "follow up".to_owned(),
            description: String::new(),
            labels: Vec::new(),
            priority: None,
            parent: None,
            blocked_by: Vec::new(),
        };
        let refused = tracker(&linear, scope).create_ticket(&allowed(EffectKind::Comment), &new, "1").await;
        assert!(
            matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("not-shown-0123456789ab")),
            "{refused:?}"
        );
    }
    assert_eq!(linear.issue_count(), 0);
}

#[tokio::test]
async fn a_ticket_without_a_parent_goes_to_the_workflows_team_and_project() {
    let linear = Linear::start();
    linear.add_team("OPS", &["Todo"]);
    linear.add_project("Apollo", "0123456789ab", "ENG");
    let new = |title: &str| NewTicket {
        title: title.to_owned(),
        description: String::new(),
        labels: Vec::new(),
        priority: None,
        parent: None,
        blocked_by: Vec::new(),
    };
    let permit = allowed(EffectKind::Comment);
    let scope = Scope { project_slug: Some("0123456789ab".to_owned()), ..Scope::default() };
    let id = tracker(&linear, scope).create_ticket(&permit, &new("in a project"), "1").await.unwrap();
    assert_eq!(linear.issue(id.as_str()).project, Some(linear.project_id("Apollo")));
    assert_eq!(linear.state_of(id.as_str()), "Todo", "where it is worked on");
    let id = tracker(&linear, team("OPS")).create_ticket(&permit, &new("in a team"), "1").await.unwrap();
    assert_eq!(linear.issue(id.as_str()).project, None);
}

/// The relation's answer is lost after the ticket was made: both are there once in the end.
#[tokio::test]
async fn a_ticket_that_was_half_made_is_completed() {
    let linear = Linear::start();
    let before = TicketId::new(linear.add_issue("before", "Todo", &[]));
    let tracker = tracker(&linear, team("ENG"));
    let new = NewTicket {
        title: "after".to_owned(),
        description: String::new(),
        labels: Vec::new(),
        priority: None,
        parent: Some(before.clone()),
        blocked_by: vec![before.clone()],
    };
    let permit = allowed(EffectKind::Comment);
    for when in [When::Before, When::After] {
        linear.fault("Relate", when, Instead::Disconnect);
        let lost = tracker.create_ticket(&permit, &new, "1").await;
        assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
    }
    let id = tracker.create_ticket(&permit, &new, "1").await.unwrap();
    assert_eq!(super::whole(&tracker, id.as_str()).await.blocked_by.len(), 1);
    assert_eq!(linear.issue_count(), 2);
}
