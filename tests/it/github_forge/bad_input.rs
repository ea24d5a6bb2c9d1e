//! What GitHub answers about pull requests when something is wrong: told apart by what has to happen next, and never done twice.

use dirigent::domain::pr::PrState;
use dirigent::forge::{Forge, ForgeError};

use super::forge_of;
use super::requests::{Scene, permit};
use crate::github::{Fault, Hub, Instead, When};

fn always(hub: &Hub, route: &str, when: When, instead: Instead) {
    hub.add_fault(Fault { route: route.to_owned(), when, instead, skip: 0, times: u32::MAX });
}

/// Each fault, and what a look and a write make of it. A write that met a failure of the server may be done.
fn faults() -> Vec<(Instead, &'static str, &'static str)> {
    vec![
        (Instead::Status(404), "status", "status"),
        (Instead::Status(410), "status", "status"),
        (Instead::Status(451), "refused", "refused"),
        (Instead::Status(500), "status", "maybe_done"),
        (Instead::Status(502), "status", "maybe_done"),
        (Instead::Status(503), "status", "maybe_done"),
        (Instead::Html(200), "response", "maybe_done"),
        (Instead::Html(502), "status", "maybe_done"),
        (Instead::Truncated, "response", "maybe_done"),
        (Instead::Status(401), "auth", "auth"),
        (Instead::Forbidden, "refused", "refused"),
        (Instead::SecondaryLimit { status: 403, retry_after: Some(30) }, "rate_limited", "rate_limited"),
        (Instead::SecondaryLimit { status: 429, retry_after: None }, "rate_limited", "rate_limited"),
        (Instead::Disconnect, "request", "maybe_done"),
    ]
}

#[tokio::test]
async fn a_look_that_fails_is_an_error_of_its_kind_and_says_nothing_about_the_pull_request() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    for (at, (fault, code, _)) in faults().into_iter().enumerate() {
        // A limit is remembered by the client that met it.
        let forge = forge_of(&scene.hub, &scene.clone(), "robot-token");
        always(&scene.hub, "graphql*", When::Before, fault);
        let looked = forge.inspect(pr.number).await;
        assert_eq!(looked.as_ref().map_err(ForgeError::code).err(), Some(code), "row {at}: {looked:?}");
        scene.hub.clear_faults();
    }
    assert_eq!(scene.look(pr.number).await.state, PrState::Open);
}

#[tokio::test]
async fn a_write_that_fails_is_an_error_of_its_kind_and_one_that_took_effect_is_found() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    for (at, (fault, _, code)) in faults().into_iter().enumerate() {
        let forge = forge_of(&scene.hub, &scene.clone(), "robot-token");
        scene.hub.forget_requests();
        always(&scene.hub, "issues/create-comment", When::After, fault);
        let key = format!("row{at}#1");
        let wrote = forge.upsert_comment(&permit(), pr.number, &key, "Gates.").await;
        assert_eq!(wrote.as_ref().map_err(ForgeError::code).err(), Some(code), "row {at}: {wrote:?}");
        assert_eq!(scene.hub.count("issues/create-comment"), 1, "sent once");
        scene.hub.clear_faults();
        let forge = forge_of(&scene.hub, &scene.clone(), "robot-token");
        forge.upsert_comment(&permit(), pr.number, &key, "Gates.").await.unwrap();
        assert_eq!(scene.hub.comments(pr.number.0).len(), at + 1, "row {at}: it was there, and is not repeated");
    }
}

#[tokio::test]
async fn a_pull_request_of_a_fork_with_the_same_branch_is_not_ours() {
    let scene = Scene::new();
    let theirs = scene.hub.open_pull_from_fork("zoe", "dirigent/x", "Not ours");
    assert_eq!(scene.forge.find_pr("dirigent/x").await.unwrap(), None);
    let pr = scene.opened().await;
    assert_ne!(pr.number.0, theirs);
    assert_eq!(scene.look(pr.number).await.ref_head.as_ref(), Some(&pr.head));
}

#[tokio::test]
async fn a_head_branch_that_somebody_deleted_is_told_and_not_taken_for_a_merge() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.delete_branch("ada", "dirigent/x");
    let seen = scene.look(pr.number).await;
    assert_eq!((seen.ref_head, matches!(seen.state, PrState::Merged { .. })), (None, false));
    let refused = scene.forge.merge(&permit(), &scene.order(&pr)).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(scene.hub.merges().is_empty());
}

#[tokio::test]
async fn a_renamed_repository_is_looked_at_and_merged_under_its_new_name() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.rename("gadgets");
    let seen = scene.look(pr.number).await;
    assert_eq!(seen.head, pr.head);
    scene.forge.upsert_comment(&permit(), pr.number, "k#1", "Gates.").await.unwrap();
    assert_eq!(scene.hub.comments(pr.number.0).len(), 1);
}

#[tokio::test]
async fn a_token_that_expires_in_the_middle_stops_everything_and_nothing_is_lost() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.revoke("robot-token");
    assert_eq!(scene.forge.inspect(pr.number).await.unwrap_err().code(), "auth");
    let head = scene.work("dirigent/x", "y.txt", "y\n");
    let pushed = scene.forge.push_branch(&permit(), "dirigent/x", &head, Some(&pr.head)).await;
    assert_eq!(pushed.unwrap_err().code(), "auth");
    assert_eq!(scene.forge.merge(&permit(), &scene.order(&pr)).await.unwrap_err().code(), "auth");
    scene.hub.restore("robot-token");
    scene.forge.push_branch(&permit(), "dirigent/x", &head, Some(&pr.head)).await.unwrap();
    assert_eq!(scene.hub.head("dirigent/x").as_deref(), Some(head.as_str()));
}

#[tokio::test]
async fn a_list_that_leads_in_circles_is_not_read_as_an_end() {
    let scene = Scene::new();
    always(&scene.hub, "pulls/list", When::After, Instead::LoopingLink);
    let found = scene.forge.find_pr("dirigent/x").await;
    assert_eq!(found.as_ref().map_err(ForgeError::code).err(), Some("response"), "{found:?}");
}

/// The list claims that there is more, and gives no way to it, or the same way again.
fn no_end(list: &'static str, cursor: Option<&'static str>) -> Instead {
    Instead::Edited(Box::new(move |body| {
        let more = serde_json::json!({ "hasNextPage": true, "endCursor": cursor });
        let data = &mut body["data"];
        for place in [format!("/repository/p0/{list}/pageInfo"), "/node/page/pageInfo".to_owned()] {
            if let Some(info) = data.pointer_mut(&place) {
                *info = more.clone();
            }
        }
    }))
}

#[tokio::test]
async fn a_list_whose_next_page_cannot_be_had_is_unknown() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    for cursor in [None, Some("Y3Vyc29yOjE=")] {
        always(&scene.hub, "graphql*", When::After, no_end("comments", cursor));
        assert_eq!(scene.look(pr.number).await.comments, None, "{cursor:?}");
        scene.hub.clear_faults();
        always(&scene.hub, "graphql*", When::After, no_end("labels", cursor));
        let looked = scene.forge.inspect(pr.number).await;
        assert_eq!(looked.as_ref().map_err(ForgeError::code).err(), Some("response"), "{cursor:?}: {looked:?}");
        scene.hub.clear_faults();
    }
    assert!(scene.look(pr.number).await.comments.is_some());
}

/// The last one could be a kill switch.
#[tokio::test]
async fn every_label_of_a_pull_request_is_seen() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    for number in 0..120 {
        scene.hub.label("ada", pr.number.0, &format!("label-{number:03}"));
    }
    let labels = scene.look(pr.number).await.labels;
    assert!(labels.len() == 121 && labels.contains(&"label-119".to_owned()), "{labels:?}");
}
