//! `pr.provider` and what else the file says about the forge itself, from the file to the account that asks.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::pr::Verdict;
use dirigent::forge::github::GithubForge;
use dirigent::forge::{Forge, ForgeError};
use dirigent::runtime::assembly;
use dirigent::workflow::{self, Env};

use super::requests::{Scene, permit};
use crate::github::{Instead, Line, Permission, When};

/// The forge that a file with these lines under `pr` asks for.
fn forge(scene: &Scene, pr: &str, provider: &str) -> GithubForge {
    let file = scene.clone().join("WORKFLOW.md");
    let text = format!(
        "---\ntracker: {{kind: tk}}\npr: {{forge: github, repo_slug: acme/widgets{pr}, provider: {{api_url: '{}'{provider}}}}}\n---\n",
        scene.hub.api()
    );
    std::fs::write(&file, text).unwrap();
    let home = scene.clone().with_file_name("home").display().to_string();
    let env = [("HOME", &*home), ("GITHUB_TOKEN", "robot-token"), ("HERS", "ada-token")];
    let loaded = workflow::load(&file, &Env::of(env)).unwrap_or_else(|error| panic!("{error}"));
    assembly::github_forge(&loaded.settings).unwrap()
}

/// The access of an App's installation.
fn app_access(app: u64, installation: u64) -> String {
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/github/app-key.pem");
    format!(", app_id: {app}, installation_id: {installation}, private_key: {key}")
}

/// Who asked, as GitHub saw it.
async fn asked_by(scene: &Scene, forge: &GithubForge) -> Vec<String> {
    scene.hub.forget_requests();
    forge.find_pr("dirigent/nothing").await.unwrap();
    let mut logins: Vec<String> = scene.hub.requests().into_iter().map(|one| one.login).collect();
    logins.retain(|login| !login.is_empty());
    logins.dedup();
    logins
}

#[tokio::test]
async fn the_forge_is_asked_as_the_account_that_the_file_names() {
    let scene = Scene::new();
    assert_eq!(asked_by(&scene, &forge(&scene, "", "")).await, ["robot"]);
    assert_eq!(asked_by(&scene, &forge(&scene, "", ", token: $HERS")).await, ["ada"]);
    let (first, second) = (scene.hub.add_app(77, "painter"), scene.hub.add_app(78, "plumber"));
    for (app, installation, login) in [(77, first, "painter[bot]"), (78, second, "plumber[bot]")] {
        let provider = app_access(app, installation);
        let asked = asked_by(&scene, &forge(&scene, "", &provider)).await;
        assert_eq!(asked.last().map(String::as_str), Some(login), "{asked:?}");
    }
    let wrong = app_access(77, first + 1000);
    assert!(forge(&scene, "", &wrong).find_pr("dirigent/nothing").await.is_err());
}

#[tokio::test]
async fn a_pull_request_that_is_there_is_taken_over_where_the_file_lets_it() {
    let scene = Scene::new();
    let head = scene.work("dirigent/a", "a", "a\n");
    scene.forge.push_branch(&permit(), "dirigent/a", &head, None).await.unwrap();
    let theirs = scene.hub.open_pull("ada", "dirigent/a", "main", "By hand", "");
    let new = scene.new_pr("dirigent/a", &head);
    let refused = forge(&scene, ", reuse_branch_pr: false", "").open_pr(&permit(), &new).await;
    assert!(matches!(&refused, Err(ForgeError::Refused(why)) if why.contains("pr.reuse_branch_pr")), "{refused:?}");
    let taken = forge(&scene, "", "").open_pr(&permit(), &new).await.unwrap();
    assert_eq!(taken.number.0, theirs);
}

/// GraphQL shows an App as `painter[bot]` where it is the viewer, and as the bot `painter` where it is an author.
#[tokio::test]
async fn an_app_knows_its_own_words_and_takes_no_namesake_for_itself() {
    let scene = Scene::new();
    let number = scene.opened().await.number;
    let forge = forge(&scene, "", &app_access(77, scene.hub.add_app(77, "painter")));
    let line = Line { path: "x.txt".to_owned(), line: 1, body: "why this line?".to_owned() };
    scene.hub.review("ada", number.0, "COMMENTED", "", &[line]);
    scene.hub.grant("painter", Permission::Write);
    scene.hub.review("painter", number.0, "APPROVED", "good", &[]);
    let pr = forge.inspect(number).await.unwrap();
    let approval = pr.reviews.unwrap().into_iter().find(|review| review.verdict == Verdict::Approved).unwrap();
    assert_eq!((approval.author.trust, approval.author.ourselves), (TrustLevel::Write, false), "a person of that name");

    let thread = &pr.threads.unwrap()[0].id;
    scene.hub.fault("graphql/addPullRequestReviewThreadReply", When::After, Instead::Status(502));
    let lost = forge.reply_in_thread(&permit(), number, thread, "k#1", "Because.").await;
    assert!(matches!(lost, Err(ForgeError::MaybeDone(_))), "{lost:?}");
    forge.reply_in_thread(&permit(), number, thread, "k#1", "Because.").await.unwrap();
    let said = forge.inspect(number).await.unwrap().threads.unwrap().remove(0).comments;
    let by: Vec<(&str, bool)> = said.iter().map(|one| (one.author.name.as_str(), one.author.ourselves)).collect();
    assert_eq!(by, [("ada", false), ("painter[bot]", true)], "one reply, and it is known");
}
