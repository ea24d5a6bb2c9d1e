//! Whose words and moves count.

use dirigent::domain::comment::TrustLevel;
use dirigent::tracker::Tracker;
use dirigent::tracker::linear::{LinearConfig, LinearTracker};

use super::{config, team, tracker, whole};
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
    assert_eq!((comments[7].author.name.as_str(), comments[7].author.trust), ("Eve", TrustLevel::Stranger));
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

#[tokio::test]
async fn whoever_tells_us_something_or_approves_by_a_move_is_asked_about_anew() {
    let linear = Linear::start();
    let mut settings = config(&linear, team("ENG"));
    settings.states.approval = vec!["In Review".to_owned()];
    let tracker = LinearTracker::new(settings).unwrap();
    let id = linear.add_issue("one", "Todo", &[]);
    let ben = linear.user("ben");
    let trust = async || {
        let ticket = whole(&tracker, &id).await;
        let listed = tracker.comments(&ticket.id, None).await.unwrap().pop().unwrap().author.trust;
        (ticket.comments.unwrap().pop().unwrap().author.trust, listed)
    };
    linear.say(&ben, &id, "I had a look");
    assert_eq!(trust().await, (TrustLevel::Member, TrustLevel::Member));
    linear.set_role("ben", Role::Guest);
    linear.say(&ben, &id, "more words");
    assert_eq!(trust().await, (TrustLevel::Member, TrustLevel::Member), "who only talks is remembered");
    linear.say(&ben, &id, "/dirigent approve 0123456");
    assert_eq!(trust().await, (TrustLevel::Stranger, TrustLevel::Stranger));
    linear.set_role("ben", Role::Member);
    linear.say(&linear.user("ada"), &id, "words of somebody else");
    linear.shift(&ben, &id, "In Progress");
    linear.shift(&ben, &id, "In Review");
    let mover = whole(&tracker, &id).await.state_changed.unwrap().by.unwrap();
    assert_eq!(mover.trust, TrustLevel::Member);
}
