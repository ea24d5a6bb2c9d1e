//! The keys of a board on GitHub, from the file to what is read and by whom.

use std::sync::Arc;

use dirigent::domain::ticket::Ticket;
use dirigent::runtime::assembly;
use dirigent::tracker::{Found, Tracker};
use dirigent::workflow::{self, Env};

use super::id;
use crate::github::Hub;

/// The board that a file with these lines under `tracker` and `tracker.provider` asks for.
fn board(hub: &Hub, tracker: &str, provider: &str) -> Arc<dyn Tracker> {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo).unwrap();
    let file = repo.join("WORKFLOW.md");
    let text = format!(
        "---\ntracker: {{kind: github, required_labels: [agent]{tracker}, provider: {{repo: acme/widgets, api_url: '{}'{provider}}}}}\n---\n",
        hub.api()
    );
    std::fs::write(&file, text).unwrap();
    let home = dir.path().join("home").display().to_string();
    let env = [("HOME", &*home), ("GITHUB_TOKEN", "robot-token"), ("HERS", "ada-token")];
    let loaded = workflow::load(&file, &Env::of(env)).unwrap_or_else(|error| panic!("{error}"));
    assembly::tracker(&loaded.settings).unwrap()
}

async fn read(tracker: &dyn Tracker, number: u64) -> Ticket {
    match tracker.fetch_by_ids(&[id(number)]).await.unwrap().remove(0).1 {
        Found::Ticket(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_board_is_asked_as_the_account_that_the_file_names() {
    let hub = Hub::start();
    assert_eq!(board(&hub, "", "").whoami().await.unwrap().login, "robot");
    assert_eq!(board(&hub, "", ", token: $HERS").whoami().await.unwrap().login, "ada");
    let (first, second) = (hub.add_app(77, "painter"), hub.add_app(78, "plumber"));
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/github/app-key.pem");
    for (app, installation, login) in [(77, first, "painter[bot]"), (78, second, "plumber[bot]")] {
        let provider = format!(", app_id: {app}, installation_id: {installation}, private_key: {key}");
        let us = board(&hub, "", &provider).whoami().await.unwrap();
        assert_eq!((us.login.as_str(), us.shared_with_person), (login, false));
    }
    // Neither number is taken from anywhere else, and the key has to be one.
    for (app, installation, key) in [(79, first, key), (77, first + 1000, key)] {
        let provider = format!(", app_id: {app}, installation_id: {installation}, private_key: {key}");
        assert!(board(&hub, "", &provider).whoami().await.is_err(), "{provider}");
    }
}

#[tokio::test]
async fn whose_account_it_is_decides_whose_words_are_ours() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    hub.comment("robot", number, "by whoever uses this account");
    for (account, ours) in [("", false), (", account: shared", false), (", account: own", true)] {
        let tracker = board(&hub, "", account);
        let said = read(&*tracker, number).await.comments.unwrap().remove(0);
        assert_eq!(said.author.ourselves, ours, "{account}");
        assert_eq!(tracker.whoami().await.unwrap().shared_with_person, !ours, "{account}");
    }
}

#[tokio::test]
async fn a_state_is_what_the_label_that_the_file_names_says() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent", "wip"]);
    assert_eq!(read(&*board(&hub, "", ""), number).await.state, "open");
    let states = ", active_states: [Doing], terminal_states: [Done]";
    let labels = board(&hub, states, ", state_labels: {Doing: wip, Done: shipped}");
    assert_eq!(read(&*labels, number).await.state, "Doing");
    let others = board(&hub, states, ", state_labels: {Doing: doing, Done: shipped}");
    assert_eq!(read(&*others, number).await.state, "open");
}

#[tokio::test]
async fn a_state_is_what_the_project_that_the_file_names_says() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "A bug", "", &["agent"]);
    let (first, second) =
        (hub.add_project(1, "Status", &["Todo", "Doing"]), hub.add_project(2, "Stage", &["Idea", "Work"]));
    hub.move_in_project("ada", first, number, "Doing");
    hub.move_in_project("ada", second, number, "Idea");
    let states = ", active_states: [Todo, Idea, Doing], terminal_states: [Done]";
    let state = async |project: &str| {
        let tracker = board(&hub, states, &format!(", project: {{{project}}}"));
        tracker.fetch_by_ids(&[id(number)]).await.map(|mut found| match found.remove(0).1 {
            Found::Ticket(ticket) => ticket.state,
            other => format!("{other:?}"),
        })
    };
    assert_eq!(state("number: 1").await.unwrap(), "Doing");
    assert_eq!(state("number: 2, status_field: Stage").await.unwrap(), "Idea");
    assert_eq!(state("number: 1, owner: acme").await.unwrap(), "Doing");
    let elsewhere = state("number: 1, owner: somebody-else").await;
    assert!(elsewhere.as_ref().is_ok_and(|state| state == "open") || elsewhere.is_err(), "{elsewhere:?}");
    let no_such_field = state("number: 2").await;
    assert!(no_such_field.as_ref().is_ok_and(|state| state == "open") || no_such_field.is_err(), "{no_such_field:?}");
}
