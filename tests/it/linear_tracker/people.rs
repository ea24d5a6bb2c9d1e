//! Whose words and moves count.

use dirigent::config::policy::Policy;
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ticket::Ticket;
use dirigent::engine::provenance;
use dirigent::tracker::Tracker;
use dirigent::tracker::linear::{LinearConfig, LinearTracker};

use super::{config, team, tracker, whole};
use crate::engine::fixtures::policy;
use crate::linear::{Actor, KEY, Linear, Role};

#[tokio::test]
async fn members_are_trusted_and_guests_apps_and_strangers_are_not() {
    let linear = Linear::start();
    for (name, role) in [("gus", Role::Guest), ("bot", Role::App), ("zoe", Role::Left), ("out", Role::Outside)] {
        linear.add_user(name, role);
    }
    let tracker = tracker(&linear, team("ENG"));
    let id = linear.add_issue("one", "Todo", &[]);
    let expected = [
        ("ada", TrustLevel::Admin),
        ("ben", TrustLevel::Member),
        ("gus", TrustLevel::Stranger),
        ("bot", TrustLevel::Bot),
        ("zoe", TrustLevel::Stranger),
        ("out", TrustLevel::Stranger),
    ];
    for (name, trust) in expected {
        assert_eq!(tracker.permission(name).await.unwrap(), trust, "{name}");
        linear.say(&linear.user(name), &id, name);
    }
    assert_eq!(tracker.permission("BEN").await.unwrap(), TrustLevel::Member, "names compare without case");
    assert_eq!(tracker.permission("nobody").await.unwrap(), TrustLevel::Stranger);
    linear.say(&Actor::Bot("GitHub".to_owned()), &id, "linked");
    linear.say(&Actor::Outsider("Eve".to_owned()), &id, "from Slack");
    let comments = whole(&tracker, &id).await.comments.unwrap();
    for (comment, (name, trust)) in comments.iter().zip(expected) {
        assert_eq!((comment.author.name.as_str(), comment.author.trust), (name, trust));
    }
    assert_eq!((comments[6].author.name.as_str(), comments[6].author.trust), ("GitHub", TrustLevel::Bot));
    assert_eq!(comments[7].author.trust, TrustLevel::Stranger);
}

/// People of another system choose their names themselves, also those of people here; what the workflow says of a name is not theirs.
#[tokio::test]
async fn a_name_from_elsewhere_is_nobodys_here() {
    let linear = Linear::start();
    linear.add_user("gus", Role::Guest);
    let tracker = tracker(&linear, team("ENG"));
    let id = linear.add_issue("one", "Todo", &[]);
    linear.say(&Actor::Outsider("ada".to_owned()), &id, "/dirigent approve");
    linear.say(&linear.user("ada"), &id, "fine");
    linear.say(&linear.user("gus"), &id, "a guest");
    let asked_from_elsewhere = linear.add_issue("from Slack", "Todo", &[]);
    linear.edit(&asked_from_elsewhere, |issue| issue.by = Actor::Outsider("ada".to_owned()));
    let mut policy = policy();
    let trusted = |ticket: &Ticket, policy: &Policy| {
        let comments = ticket.comments.as_ref().unwrap();
        comments.iter().map(|said| provenance::is_trusted(&said.author, policy)).collect::<Vec<_>>()
    };
    let ticket = whole(&tracker, &id).await;
    assert_eq!(trusted(&ticket, &policy), [false, true, false]);
    policy.tracker.trusted_accounts = ["ada", "GUS"].map(str::to_owned).to_vec();
    assert_eq!(
        trusted(&ticket, &policy),
        [false, true, true],
        "a guest whom the file names is trusted, a namesake is not"
    );
    let author = whole(&tracker, &asked_from_elsewhere).await.author.unwrap();
    assert!(author.name.contains("ada") && !author.name.eq_ignore_ascii_case("ada"), "{author:?}");
}

#[tokio::test]
async fn who_moved_a_ticket_is_read_from_its_history() {
    let linear = Linear::start();
    let tracker = tracker(&linear, team("ENG"));
    let id = linear.add_issue("one", "Todo", &[]);
    assert_eq!(whole(&tracker, &id).await.state_changed, None, "it never moved");
    let movers = [
        (linear.user("ben"), "ben", TrustLevel::Member),
        (Actor::Bot("GitHub".to_owned()), "GitHub", TrustLevel::Bot),
        (Actor::Rule, "Linear", TrustLevel::Bot),
    ];
    for (state, (actor, name, trust)) in ["In Progress", "In Review", "Done"].into_iter().zip(movers) {
        linear.shift(&actor, &id, state);
        linear.label(&linear.user("ada"), &id, &format!("after {state}"));
        let ticket = whole(&tracker, &id).await;
        let change = ticket.state_changed.unwrap();
        let by = change.by.unwrap();
        assert_eq!((by.name.as_str(), by.trust), (name, trust), "{state}");
        assert!(Some(change.at) <= ticket.updated_at);
        assert!(
            ticket.history.labelled.iter().all(|labelled| labelled.by.name == "ada"),
            "{:?}",
            ticket.history.labelled
        );
    }
}

#[tokio::test]
async fn an_app_has_an_account_of_its_own_and_a_person_shares_theirs() {
    let linear = Linear::start();
    let us = tracker(&linear, team("ENG")).whoami().await.unwrap();
    assert_eq!((us.login.as_str(), us.shared_with_person), ("robot", true));
    let own = LinearConfig { own_account: Some(true), ..config(&linear, team("ENG")) };
    let own = LinearTracker::new(own).unwrap();
    assert!(!own.whoami().await.unwrap().shared_with_person);
    let id = linear.add_issue("one", "Todo", &[]);
    linear.say(&linear.user("robot"), &id, "by its own account");
    assert!(whole(&own, &id).await.comments.unwrap()[0].author.ourselves);

    linear.add_user("app", Role::App);
    linear.add_key(KEY, "app");
    let app = tracker(&linear, team("ENG")).whoami().await.unwrap();
    assert!(!app.shared_with_person);
}
