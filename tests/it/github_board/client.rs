//! The client by itself: tokens of apps, an Enterprise Server's addresses, limits, where the token goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dirigent::github::{Access, Credential, Github, GithubError, LimitKind, PermitGrounds, Purpose, while_it_holds};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::client;
use crate::github::{Hub, Instead, When};

/// Made for these tests, and of no use anywhere else.
const KEY: &str = include_str!("../../github/app-key.pem");

fn app(api: &str, installation_id: u64) -> Github {
    let credential = Credential::App { app_id: 77, private_key: KEY.into(), installation_id };
    Github::new(Access::new(Some(api.to_owned()), credential)).unwrap()
}

#[tokio::test]
async fn an_app_gets_a_token_and_a_new_one_before_it_expires() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    let installation = hub.add_app(77, "dirigent-test");
    let github = app(hub.api(), installation);
    for _ in 0..3 {
        let issues: Vec<Value> = github.list(Purpose::Look, "/repos/acme/widgets/issues").await.unwrap();
        assert_eq!(issues.len(), 1);
    }
    assert_eq!(hub.count("apps/create-installation-access-token"), 1, "{}", hub.print());
    // Refused before its time, it is made anew in the middle of a question, be it one that changes something.
    let path = "/repos/acme/widgets/issues?state=all";
    hub.revoke(github.token().await.unwrap().expose_secret());
    github.get::<Value>(Purpose::Look, path).await.unwrap();
    hub.revoke(github.token().await.unwrap().expose_secret());
    let said = json!({"body": "once"});
    let path_of_comments = "/repos/acme/widgets/issues/1/comments";
    github.write_blindly(Purpose::Write, http::Method::POST, path_of_comments, Some(&said)).await.unwrap();
    assert_eq!(hub.comments(1).len(), 1);
    assert_eq!(hub.count("apps/create-installation-access-token"), 3, "{}", hub.print());

    // One that ends in four minutes is not used any more.
    let github = app(hub.api(), installation);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(4);
    let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ends_soon = Instead::EditedAndChecked(Box::new(move |body| body["expires_at"] = json!(soon)));
    hub.fault("apps/create-installation-access-token", When::After, ends_soon);
    for _ in 0..3 {
        github.get::<Value>(Purpose::Look, path).await.unwrap();
    }
    assert_eq!(hub.count("apps/create-installation-access-token"), 5, "{}", hub.print());
}

#[tokio::test]
async fn an_enterprise_server_has_its_addresses_elsewhere() {
    let hub = Hub::start();
    for n in 0..3 {
        hub.add_issue("ada", &format!("Issue {n}"), "", &[]);
    }
    let github = app(&hub.enterprise_api(), hub.add_app(77, "dirigent-test"));
    let issues: Vec<Value> = github.list(Purpose::Look, "/repos/acme/widgets/issues?per_page=1").await.unwrap();
    assert_eq!(issues.len(), 3, "{}", hub.print());
    let viewer = github.query::<Value>(Purpose::Look, "query { viewer { login } }", &json!({})).await.unwrap();
    assert_eq!(viewer.data.unwrap()["viewer"]["login"], "dirigent-test[bot]");
}

#[tokio::test]
async fn a_limit_that_was_told_is_kept_without_asking_again() {
    let hub = Hub::start();
    let github = client(&hub, "robot-token");
    hub.limit_secondary(429, 90, true);
    let path = "/repos/acme/widgets";
    let limited = github.get::<Value>(Purpose::Look, path).await.unwrap_err();
    let GithubError::RateLimited { wait, by: LimitKind::Secondary } = limited else { panic!("{limited:?}") };
    assert!(!wait.is_zero() && wait <= Duration::from_secs(90), "{wait:?}");
    let asked = hub.count("*");
    assert!(matches!(github.get::<Value>(Purpose::Land, path).await, Err(GithubError::RateLimited { .. })));
    assert_eq!(hub.count("*"), asked, "{}", hub.print());
}

#[tokio::test]
async fn the_last_requests_of_an_hour_are_for_watching_and_landing() {
    let hub = Hub::start();
    let github = client(&hub, "robot-token");
    hub.set_remaining("core", 200);
    let path = "/repos/acme/widgets";
    github.get::<Value>(Purpose::Look, path).await.unwrap();
    let limited = github.get::<Value>(Purpose::Look, path).await.unwrap_err();
    assert!(matches!(limited, GithubError::RateLimited { by: LimitKind::Reserve, .. }), "{limited:?}");
    github.get::<Value>(Purpose::Watch, path).await.unwrap();
    github.get::<Value>(Purpose::Land, path).await.unwrap();
    hub.set_remaining("core", 0);
    let limited = github.get::<Value>(Purpose::Watch, "/repos/acme/widgets/labels").await.unwrap_err();
    assert!(matches!(limited, GithubError::RateLimited { by: LimitKind::Primary, .. }), "{limited:?}");
    let spent = github.spent();
    assert!(spent.requests >= 4 && spent.unchanged == 2, "{spent:?}");
}

#[tokio::test]
async fn graphql_says_with_200_that_its_hour_is_used_up() {
    let hub = Hub::start();
    let github = client(&hub, "robot-token");
    hub.set_remaining("graphql", 0);
    let limited = github.query::<Value>(Purpose::Look, "query { viewer { login } }", &json!({})).await.unwrap_err();
    assert!(matches!(limited, GithubError::RateLimited { by: LimitKind::Primary, .. }), "{limited:?}");
}

#[tokio::test]
async fn the_token_goes_to_the_api_alone() {
    let hub = Hub::start();
    let github = client(&hub, "robot-token");
    // The host of files refuses whoever shows a credential of the API.
    let url = hub.attach("picture.png", b"pixels");
    let fetch = async |url: &str, longest: usize| {
        github.fetch_public(Purpose::Look, url, longest, |to| !to.contains("/away")).await
    };
    assert_eq!(fetch(&url, 100).await.unwrap(), b"pixels");
    let long = fetch(&url, 3).await.unwrap_err();
    assert!(long.to_string().contains("longer than 3 bytes"), "{long}");
    // Wherever it leads, it is asked first whether that may be; also on the API's own host, which would know the token.
    let moved = hub.forward("moved.png", "/user-attachments/picture.png");
    assert_eq!(fetch(&moved, 100).await.unwrap(), b"pixels");
    for to in ["http://169.254.169.254/away", "/away", &format!("{}/away", hub.api())] {
        let refused = fetch(&hub.forward("elsewhere.png", to), 100).await.unwrap_err();
        assert!(refused.to_string().contains("not a host of GitHub's"), "{to}: {refused}");
    }
    let round = hub.forward("round.png", "/user-attachments/round.png");
    assert!(fetch(&round, 100).await.unwrap_err().to_string().contains("from one address to the next"));
    assert!(hub.requests().is_empty(), "nothing was asked of the API: {}", hub.print());
    // A log: the API knows where it is, and its host is not shown the token.
    let head = hub.push("ada", "topic", &[("a.txt", Some("a\n"))], "a");
    let job = hub.set_job(&head, "build", Some("failure"), "what it printed\n");
    let log = github.download(Purpose::Look, &format!("/repos/acme/widgets/actions/jobs/{job}/logs"), 1000).await;
    assert_eq!(log.unwrap(), b"what it printed\n");
}

#[tokio::test]
async fn a_permission_is_told_from_a_limit() {
    let hub = Hub::start();
    hub.add_fine_grained_token("robot", "fine-token", &["issues/"]);
    let github = client(&hub, "fine-token");
    match github.get::<Value>(Purpose::Look, "/repos/acme/widgets/issues").await {
        Err(GithubError::Refused(refusal)) => assert_eq!(refusal.status, 403),
        other => panic!("{other:?}"),
    }
}

/// A permit until somebody takes it back.
struct Until(AtomicBool);

impl PermitGrounds for Until {
    fn holds(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

/// More is to be written than may leave at once; a switch is pulled while the rest waits for its turn.
#[tokio::test]
async fn a_write_that_waits_for_its_turn_does_not_leave_under_a_switch() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    let (github, switch) = (client(&hub, "robot-token"), Arc::new(Until(AtomicBool::new(false))));
    let write = |n: usize| {
        let (github, said) = (github.clone(), json!({ "body": format!("word {n}") }));
        let (path, allowed) = ("/repos/acme/widgets/issues/1/comments", Arc::clone(&switch));
        let writing = async move { github.write_blindly(Purpose::Write, http::Method::POST, path, Some(&said)).await };
        tokio::spawn(while_it_holds(allowed, writing))
    };
    let writes: Vec<_> = (0..24).map(write).collect();
    while hub.comments(1).len() < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    switch.0.store(true, Ordering::Release);
    let (mut done, mut withdrawn) = (0, 0);
    for write in writes {
        match write.await.unwrap() {
            Ok(()) => done += 1,
            Err(GithubError::Withdrawn) => withdrawn += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((done, hub.comments(1).len()), (done, done), "what did not leave was told, and nothing else");
    assert!(withdrawn >= 1 && done + withdrawn == 24, "{done} {withdrawn}");
    github.get::<Value>(Purpose::Look, "/repos/acme/widgets/issues/1").await.unwrap();
}
