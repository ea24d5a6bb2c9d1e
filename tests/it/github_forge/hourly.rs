//! How much is asked of GitHub in an hour of a busy repository, as GitHub itself counts it.

use std::sync::Arc;

use dirigent::domain::ids::PrNumber;
use dirigent::forge::Forge;
use dirigent::tracker::github::{GithubBoard, GithubTracker};
use dirigent::tracker::{BoardAnswer, Mark, Tracker};

use super::{client_of, clone_of, forge_of};
use crate::github::{Demands, Hub, Line};

const TICKETS: usize = 500;
const PULLS: u64 = 50;
/// At the default period of 30 s.
const POLLS_AN_HOUR: u64 = 120;
/// As many looks as the forge's lane lets go at the same time.
const AT_ONCE: usize = 8;
const POLLS: u64 = 20;

fn repository() -> (Hub, Vec<u64>, Vec<PrNumber>) {
    let hub = Hub::start();
    hub.add_ruleset("main", "main", Demands { checks: vec!["build".to_owned()], ..Demands::default() });
    let first = hub.add_issue("ada", "The first", "", &["agent"]);
    let blocked = format!("Blocked by #{first}");
    let issues = (1..TICKETS).map(|n| {
        let body = if n % 4 == 0 { blocked.as_str() } else { "" };
        hub.add_issue("ada", &format!("Issue {n}"), body, &["agent"])
    });
    let issues: Vec<u64> = std::iter::once(first).chain(issues.collect::<Vec<_>>()).collect();
    let pulls = (0..PULLS).map(|n| {
        let (branch, file) = (format!("dirigent/{n}"), format!("{n}.txt"));
        let head = hub.push("robot", &branch, &[(&file, Some("x\n"))], "work");
        let number = hub.open_pull("robot", &branch, "main", &format!("Work {n}"), "done");
        for name in ["build", "lint", "docs"] {
            hub.set_job(&head, name, Some("success"), "");
        }
        let line = Line { path: file, line: 1, body: "why?".to_owned() };
        hub.review("ada", number, "COMMENTED", "a word", &[line]);
        hub.comment("ada", number, "nearly");
        PrNumber(number)
    });
    let pulls = pulls.collect();
    // They were not all made a moment ago.
    hub.advance(7200);
    hub.comment("ada", first, "the last that happened");
    hub.advance(60);
    (hub, issues, pulls)
}

/// What a poll leads to: the board, what changed on it by its id, and every open pull request.
async fn tick(tracker: &GithubTracker, forge: &Arc<dyn Forge>, pulls: &[PrNumber], since: Option<&Mark>) -> Mark {
    let states = ["open".to_owned()];
    let (changed, mark) = match tracker.poll(&states, since).await.unwrap().answer {
        BoardAnswer::Listed { tickets, mark } => (tickets, mark.unwrap()),
        BoardAnswer::Changed { tickets, mark } => (tickets, mark),
        BoardAnswer::Unchanged => (Vec::new(), since.unwrap().clone()),
    };
    let ids: Vec<_> = changed.iter().map(|ticket| ticket.id.clone()).collect();
    assert_eq!(tracker.fetch_by_ids(&ids).await.unwrap().len(), ids.len());
    let places = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let mut looks = tokio::task::JoinSet::new();
    for number in pulls.iter().copied() {
        let (places, forge) = (places.clone(), forge.clone());
        looks.spawn(async move {
            let _place = places.acquire().await.unwrap();
            forge.inspect(number).await.unwrap()
        });
    }
    let looks = looks.join_all().await;
    assert!(looks.iter().all(|pr| pr.checks.is_some() && pr.threads.is_some()), "every look was whole");
    mark
}

#[tokio::test]
async fn an_hour_of_500_active_tickets_and_50_open_pull_requests_costs_less_than_a_third_of_the_limit() {
    let (hub, issues, pulls) = repository();
    let folder = tempfile::tempdir().unwrap();
    let forge: Arc<dyn Forge> = Arc::new(forge_of(&hub, &clone_of(&hub, folder.path()), "robot-token"));
    let board = GithubBoard { required_labels: vec!["agent".to_owned()], ..crate::github_board::plain_board() };
    let tracker = GithubTracker::new(client_of(&hub, "robot-token"), board);
    let mut mark = tick(&tracker, &forge, &pulls, None).await;
    let used = || (hub.used("core"), hub.used("graphql"));
    let (rest_of_all, graph_of_all) = used();
    println!("the first poll of all of it: {rest_of_all} REST requests, {graph_of_all} GraphQL points");
    let before = used();
    hub.forget_requests();
    for n in 0..POLLS {
        hub.advance(30);
        // Somebody says something on a ticket with every poll, and on a pull request with every second one.
        hub.comment("ada", issues[usize::try_from(n).unwrap() * 7], "a word");
        if n % 2 == 0 {
            hub.comment("ada", pulls[usize::try_from(n).unwrap()].0, "another");
        }
        mark = tick(&tracker, &forge, &pulls, Some(&mark)).await;
    }
    let after = used();
    let an_hour = |spent: u64| spent * POLLS_AN_HOUR / POLLS;
    // The rules of the base branch are asked for once a minute, two requests, and once an hour the board is listed anew.
    let rest = an_hour(after.0 - before.0) + 2 * 60 + rest_of_all;
    let graph = an_hour(after.1 - before.1);
    let sent = an_hour(u64::try_from(hub.count("*") - hub.count("transport/*")).unwrap());
    println!("{TICKETS} active tickets, {PULLS} open pull requests, {POLLS_AN_HOUR} polls in an hour:");
    println!("{sent} requests sent; {rest} of 5000 REST requests, {graph} of 5000 GraphQL points");
    assert!(rest < 5000 / 3 && graph < 5000 / 3, "{rest} {graph}\n{}", hub.print());
}
