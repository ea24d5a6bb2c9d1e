//! The columns of a project: a part of an answer that is missing never stands for an issue that is in no column.

use dirigent::tracker::{Found, Move, Tracker, TrackerError};
use serde_json::{Value, json};

use super::{id, permit, project_board};
use crate::github::{Hub, Instead, When};

fn todo() -> Vec<String> {
    vec!["Todo".to_owned()]
}

fn edited(edit: impl Fn(&mut Value) + Send + 'static) -> Instead {
    Instead::Edited(Box::new(edit))
}

const ITEMS: &str = "/data/repositoryOwner/projectV2/items";

#[tokio::test]
async fn a_list_of_cards_with_a_gap_is_no_list() {
    let hub = Hub::start();
    let tracker = project_board(&hub);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.move_in_project("ada", 0, number, "Todo");
    let fault = |kind: &str, last: &str| json!([{"type": kind, "message": "oh", "path": ["repositoryOwner", "projectV2", "items", "nodes", 0, last]}]);
    let (internal, forbidden) = (fault("INTERNAL", "fieldValueByName"), fault("FORBIDDEN", "content"));
    let gaps = [
        edited(|body| body.pointer_mut(ITEMS).unwrap()["nodes"][0] = Value::Null),
        edited(|body| body.pointer_mut(ITEMS).unwrap()["nodes"] = Value::Null),
        edited(|body| body.pointer_mut(ITEMS).unwrap()["pageInfo"] = Value::Null),
        edited(|body| body.pointer_mut(ITEMS).unwrap()["pageInfo"] = json!({"hasNextPage": true, "endCursor": null})),
        edited(move |body| {
            body.pointer_mut(ITEMS).unwrap()["nodes"][0]["fieldValueByName"] = Value::Null;
            body["errors"] = internal.clone();
        }),
    ];
    for gap in gaps {
        hub.fault("graphql/repositoryOwner", When::After, gap);
        let listed = tracker.fetch_by_states(&todo()).await;
        assert!(listed.as_ref().is_err_and(TrackerError::is_transient), "{listed:?}");
        assert_eq!(tracker.fetch_by_states(&todo()).await.unwrap().len(), 1);
    }
    // Cards of repositories that are hidden from us say nothing about ours.
    hub.fault("graphql/repositoryOwner", When::After, edited(move |body| body["errors"] = forbidden.clone()));
    assert_eq!(tracker.fetch_by_states(&todo()).await.unwrap().len(), 1);
    assert!(hub.has_met_all_faults(), "{}", hub.print());
}

#[tokio::test]
async fn an_issue_whose_column_is_missing_cannot_be_read() {
    let hub = Hub::start();
    let tracker = project_board(&hub);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.move_in_project("ada", 0, number, "Todo");
    let place = move |rest: &str| format!("/data/r0/i{number}/projectItems{rest}");
    let path = json!(["r0", format!("i{number}"), "projectItems", "nodes", 0, "fieldValueByName"]);
    let gaps = [
        edited(move |body| *body.pointer_mut(&place("")).unwrap() = Value::Null),
        edited(move |body| *body.pointer_mut(&place("/nodes/0")).unwrap() = Value::Null),
        edited(move |body| {
            *body.pointer_mut(&place("/nodes/0/fieldValueByName")).unwrap() = Value::Null;
            body["errors"] = json!([{"type": "INTERNAL", "message": "oh", "path": path}]);
        }),
    ];
    for gap in gaps {
        hub.fault("graphql/repository", When::After, gap);
        let found = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1;
        assert!(matches!(&found, Found::Unreadable(why) if why.contains("column")), "{found:?}");
    }
    // Another project, which is not shown to us, is not the board.
    let path = json!(["r0", format!("i{number}"), "projectItems", "nodes", 1, "project"]);
    let hidden = edited(move |body| {
        body.pointer_mut(&place("/nodes")).unwrap().as_array_mut().unwrap().push(Value::Null);
        body["errors"] = json!([{"type": "FORBIDDEN", "message": "no", "path": path}]);
    });
    hub.fault("graphql/repository", When::After, hidden);
    let found = tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1;
    assert!(matches!(&found, Found::Ticket(ticket) if ticket.state == "Todo"), "{found:?}");
    assert!(hub.has_met_all_faults(), "{}", hub.print());
}

#[tokio::test]
async fn an_archived_card_is_moved_by_nobody_but_who_restores_it() {
    let hub = Hub::start();
    let tracker = project_board(&hub);
    let number = hub.add_issue("ada", "A bug", "", &[]);
    hub.move_in_project("ada", 0, number, "Todo");
    let archived = |body: &mut Value| {
        body.pointer_mut("/data/repository/issue/projectItems/nodes/0").unwrap()["isArchived"] = true.into();
    };
    hub.fault("graphql/repositoryOwner+repository", When::After, edited(archived));
    let refused = tracker.move_ticket(&permit(), &id(number), "Done", &[]).await;
    assert!(matches!(&refused, Err(TrackerError::Refused(why)) if why.contains("archived")), "{refused:?}");
    let moved = tracker.move_ticket(&permit(), &id(number), "Done", &[]).await;
    assert!(matches!(moved, Ok(Move::Moved(_))), "{moved:?}");
}
