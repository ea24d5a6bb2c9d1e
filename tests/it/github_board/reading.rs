//! What an issue says besides its text: who did what, what it waits for, where it belongs.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ticket::Ticket;
use dirigent::tracker::github::GithubTracker;
use dirigent::tracker::{Found, Tracker};

use super::{GithubBoard, id, open, plain_board, tracker, tracker_of};
use crate::github::{Hub, Instead, When};

async fn read(tracker: &GithubTracker, number: u64) -> Ticket {
    match tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1 {
        Found::Ticket(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_put_a_label_on_and_who_closed_it() {
    let hub = Hub::start();
    let number = hub.add_issue("zoe", "A bug", "", &[]);
    hub.label("zoe", number, "Agent");
    hub.unlabel("zoe", number, "Agent");
    hub.label("ada", number, "Agent");
    let ticket = read(&tracker(&hub), number).await;
    assert_eq!(ticket.history.labelled.len(), 1);
    let by = &ticket.history.labelled[0];
    assert_eq!((by.label.as_str(), by.by.name.as_str(), by.by.trust), ("agent", "ada", TrustLevel::Admin));
    assert_eq!(ticket.author.unwrap().trust, TrustLevel::Stranger);
    hub.close("robot", number, "completed");
    let by = read(&tracker(&hub), number).await.state_changed.unwrap().by.unwrap();
    assert_eq!((by.name.as_str(), by.ourselves), ("robot", true));
    let shared = GithubBoard { shared_account: true, ..plain_board() };
    let by = read(&tracker_of(&hub, shared), number).await.state_changed.unwrap().by.unwrap();
    assert!(!by.ourselves, "with a shared account it may have been the person");
}

#[tokio::test]
async fn who_was_given_it_by_whom_and_who_changed_its_text() {
    let hub = Hub::start();
    let number = hub.add_issue("zoe", "A bug", "one", &["agent"]);
    hub.assign("zoe", number, "ada");
    hub.assign("ada", number, "robot");
    let board = || GithubBoard { assignee: Some("me".into()), ..plain_board() };
    let ticket = read(&tracker_of(&hub, board()), number).await;
    let given = ticket.history.assigned.unwrap();
    assert_eq!((given.by.name.as_str(), given.by.trust), ("ada", TrustLevel::Admin));
    assert_eq!(ticket.history.reworded, None);
    assert_eq!(read(&tracker(&hub), number).await.history.assigned, None, "nobody asks for it");
    hub.advance(60);
    hub.reword("zoe", number, "two");
    let ticket = read(&tracker_of(&hub, board()), number).await;
    let reworded = ticket.history.reworded.unwrap();
    assert_eq!((reworded.by.name.as_str(), reworded.by.trust), ("zoe", TrustLevel::Stranger));
    assert!(reworded.at > ticket.history.labelled[0].at.unwrap());
    // A label without an event that tells whose it is lets nobody in.
    hub.forget_events(number);
    let put = read(&tracker(&hub), number).await.history.labelled.remove(0);
    assert_eq!((put.label.as_str(), put.by.trust, put.at), ("agent", TrustLevel::Stranger, None));
}

#[tokio::test]
async fn not_to_know_what_an_issue_waits_for_is_not_to_know_of_nothing() {
    let hub = Hub::start();
    let first = hub.add_issue("ada", "First", "", &[]);
    let second = hub.add_issue("ada", "Second", "", &[]);
    hub.block(second, first);
    let tracker = tracker(&hub);
    for instead in [Instead::Forbidden, Instead::Status(502), Instead::Status(404)] {
        hub.fault("issues/list-dependencies-blocked-by", When::Before, instead);
        assert!(tracker.fetch_by_states(&open()).await.is_err());
        hub.clear_faults();
        let listed = tracker.fetch_by_states(&open()).await.unwrap();
        let blocked = listed.iter().find(|one| one.id == id(second)).unwrap();
        assert_eq!(
            blocked.blocked_by.len(),
            1,
            "one answer that was not there does not stand for all: {}",
            hub.print()
        );
    }
}

/// The first thing that a runner asks after its start need not be a list.
#[tokio::test]
async fn one_answer_that_was_not_there_does_not_mean_that_nothing_has_dependencies() {
    let hub = Hub::start();
    let first = hub.add_issue("ada", "First", "", &[]);
    let second = hub.add_issue("ada", "Second", "", &[]);
    hub.block(second, first);
    let tracker = tracker(&hub);
    hub.fault("issues/list-dependencies-blocked-by", When::Before, Instead::Status(404));
    assert!(tracker.fetch_by_ids(&[id(second)]).await.is_err());
    assert_eq!(read(&tracker, second).await.blocked_by.len(), 1);
    // Nothing is asked about an issue that nothing blocks, if the issue itself says so.
    hub.fault("issues/list-dependencies-blocked-by", When::Before, Instead::Status(404));
    assert!(read(&tracker, first).await.blocked_by.is_empty());
}

#[tokio::test]
async fn a_server_without_dependencies_is_known_by_its_issues() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "First", "", &[]);
    let tracker = tracker(&hub);
    let older = |body: &mut serde_json::Value| drop(body.as_object_mut().unwrap().remove("issue_dependencies_summary"));
    hub.fault("issues/get", When::After, Instead::Edited(Box::new(older)));
    hub.fault("issues/list-dependencies-blocked-by", When::Before, Instead::Status(404));
    assert!(read(&tracker, number).await.blocked_by.is_empty());
    read(&tracker, number).await;
    assert_eq!(hub.count("issues/list-dependencies-blocked-by"), 1, "{}", hub.print());
}

#[tokio::test]
async fn only_our_own_tickets_have_a_hidden_priority() {
    let hub = Hub::start();
    let body = "text\n\n<!-- dirigent-priority: 1 -->\n<!-- dirigent:follow up 1 -->";
    let theirs = hub.add_issue("zoe", "Urgent!", body, &[]);
    let ours = hub.add_issue("robot", "Follow up", body, &[]);
    let tracker = tracker(&hub);
    let (theirs, ours) = (read(&tracker, theirs).await, read(&tracker, ours).await);
    assert_eq!((theirs.priority, theirs.description.as_deref()), (None, Some(body)));
    assert_eq!((ours.priority, ours.description.as_deref()), (Some(1), Some("text")));
}

#[tokio::test]
async fn blockers_are_dependencies_or_lines() {
    let hub = Hub::start();
    let first = hub.add_issue("ada", "First", "", &[]);
    let second = hub.add_issue("ada", "Second", "", &[]);
    let by_link = hub.add_issue("ada", "By link", "Blocked by #999", &[]);
    hub.block(by_link, first);
    let by_line = hub.add_issue("ada", "By line", &format!("Text\n\nDepends on #{second}, #4242"), &[]);
    let child = hub.add_issue("ada", "Child", "", &[]);
    hub.add_sub_issue(first, child);
    let tracker = tracker(&hub);
    let blockers = |ticket: &Ticket| -> Vec<(String, Option<String>)> {
        ticket.blocked_by.iter().map(|one| (one.id.to_string(), one.state.clone())).collect()
    };
    let here = |number: u64, state: &str| (format!("GH-{number}"), Some(state.to_owned()));
    let listed = tracker.fetch_by_states(&open()).await.unwrap();
    let of = |number: u64| listed.iter().find(|ticket| ticket.id == id(number)).unwrap();
    assert_eq!(blockers(of(by_link)), [here(first, "open")], "a dependency outranks a line");
    assert_eq!(blockers(of(by_line)), [here(second, "open"), ("GH-4242".into(), None)]);
    assert_eq!(of(child).parent, Some(id(first)));
    assert_eq!(blockers(&read(&tracker, by_link).await), [here(first, "open")]);
    assert_eq!(read(&tracker, child).await.parent, Some(id(first)));

    hub.close("ada", first, "not_planned");
    let ticket = read(&tracker, by_link).await;
    assert_eq!(blockers(&ticket), [here(first, "closed")], "given up is over, too");
    assert!(!ticket.blocked_by[0].failed);
    let told = tracker.left_out().join("\n");
    assert!(
        told.contains(&format!("the blocker GH-{first} of GH-{by_link}, which was closed as not planned")),
        "{told}"
    );
}

#[tokio::test]
async fn more_comments_than_a_page_holds_are_all_read() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "Long", "", &[]);
    for word in 0..130 {
        hub.comment("ada", number, &format!("word {word}"));
    }
    let ticket = read(&tracker(&hub), number).await;
    let said: Vec<&str> = ticket.known_comments().iter().map(|one| one.body.as_str()).collect();
    assert_eq!((said.len(), said[0], said[129]), (130, "word 0", "word 129"));
}

#[tokio::test]
async fn pull_requests_are_not_tickets() {
    let hub = Hub::start();
    hub.push("ada", "topic", &[("a.txt", Some("a\n"))], "a");
    hub.open_pull("ada", "topic", "main", "A pull request", "");
    let issue = hub.add_issue("ada", "An issue", "", &[]);
    let listed = tracker(&hub).fetch_by_states(&open()).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), [id(issue)]);
}

#[tokio::test]
async fn missing_labels_are_named_and_made() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &["Bug"]);
    let board = GithubBoard { required_labels: vec!["agent".into(), "bug".into()], ..plain_board() };
    let tracker = tracker_of(&hub, board);
    assert_eq!(tracker.labels_missing().await.unwrap(), ["agent"]);
    for _ in 0..2 {
        tracker.create_label(&super::permit(), "agent").await.unwrap();
    }
    assert!(tracker.labels_missing().await.unwrap().is_empty());
    let report = tracker.check_setup().await.unwrap();
    assert_eq!((report.account.as_str(), report.role, report.wrong.len()), ("robot", "write", 0));
}

#[tokio::test]
async fn what_an_app_may_not_do_is_named() {
    let hub = Hub::start();
    let installation_id = hub.add_app(77, "dirigent-test");
    let key = include_str!("../../github/app-key.pem");
    let report = async || {
        let credential = dirigent::github::Credential::App { app_id: 77, private_key: key.into(), installation_id };
        let access = dirigent::github::Access::new(Some(hub.api().to_owned()), credential);
        let github = dirigent::github::Github::new(access).unwrap();
        GithubTracker::new(github, plain_board()).check_setup().await.unwrap()
    };
    let whole = report().await;
    assert_eq!((whole.wrong, whole.doubts), (Vec::<String>::new(), Vec::<String>::new()));
    let edit = |body: &mut serde_json::Value| body["permissions"]["issues"] = "read".into();
    let instead = Instead::EditedAndChecked(Box::new(edit));
    hub.fault("apps/create-installation-access-token", When::After, instead);
    let wrong = report().await.wrong;
    assert!(wrong[0].contains("the App lacks the permission `Issues: read and write`"), "{wrong:?}");
}

#[tokio::test]
async fn a_token_without_its_scope_is_told_what_it_lacks() {
    let hub = Hub::start();
    hub.add_issue("ada", "A bug", "", &[]);
    hub.add_scoped_token("robot", "small-token", &["read:user"]);
    let tracker = GithubTracker::new(super::client(&hub, "small-token"), plain_board());
    let report = tracker.check_setup().await.unwrap();
    assert!(report.wrong.iter().any(|words| words.contains("`repo`")), "{report:?}");
}
