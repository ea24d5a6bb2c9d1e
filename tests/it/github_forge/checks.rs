//! The checks that a token sees which cannot read check runs: statuses, and the jobs of Actions.

use dirigent::domain::pr::{Check, CheckStatus, PullRequest};
use dirigent::forge::Forge;

use super::forge_of;
use super::requests::Scene;

async fn opened() -> (Scene, PullRequest) {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.add_fine_grained_token("robot", "fine-token", &[]);
    (scene, pr)
}

async fn seen(scene: &Scene, pr: &PullRequest) -> Vec<Check> {
    let forge = forge_of(&scene.hub, &scene.clone(), "fine-token");
    forge.inspect(pr.number).await.unwrap();
    forge.inspect(pr.number).await.unwrap().checks.unwrap_or_default()
}

fn is_failed(checks: &[Check], name: &str) -> bool {
    checks.iter().any(|check| check.name == name && check.status == CheckStatus::Failed)
}

#[tokio::test]
async fn a_job_that_passed_hides_no_failed_one_of_another_workflow() {
    let (scene, pr) = opened().await;
    let head = pr.head.as_str();
    scene.hub.set_job_of("Lint", head, "test", Some("failure"));
    scene.hub.set_job(head, "test", Some("success"), "");
    let checks = seen(&scene, &pr).await;
    assert!(checks.len() == 2 && is_failed(&checks, "test"), "{checks:?}");
    scene.hub.set_job_of("Lint", head, "test", Some("success"));
    scene.hub.set_job(head, "build", Some("failure"), "");
    let checks = seen(&scene, &pr).await;
    assert!(checks.len() == 3 && !is_failed(&checks, "test") && is_failed(&checks, "build"), "{checks:?}");
}

#[tokio::test]
async fn what_failed_is_seen_on_whatever_page_it_is() {
    let (scene, pr) = opened().await;
    let head = pr.head.as_str();
    for number in 0..130 {
        scene.hub.set_status("ada", head, &format!("status-{number}"), "success");
    }
    scene.hub.set_status("ada", head, "last", "failure");
    let checks = seen(&scene, &pr).await;
    assert!(checks.len() == 131 && is_failed(&checks, "last"), "{}", checks.len());

    let (scene, pr) = opened().await;
    let head = pr.head.as_str();
    for number in 0..130 {
        scene.hub.set_job(head, &format!("job-{number}"), Some("success"), "");
    }
    scene.hub.set_job(head, "last", Some("failure"), "");
    let checks = seen(&scene, &pr).await;
    assert!(checks.len() == 131 && is_failed(&checks, "last"), "{}", checks.len());
}
