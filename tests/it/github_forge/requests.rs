//! Pull requests on GitHub: what is asked, what is written once, what a refusal means.

use dirigent::config::workspace::CommitSettings;
use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::pr::{CheckStatus, MergeMethod, Mergeability, NewPr, PrState, PullRequest};
use dirigent::engine::permit::EffectKind;
use dirigent::forge::github::GithubForge;
use dirigent::forge::{Forge, ForgeError, MergeOrder, Merged, Pushed};
use dirigent::workspace::commits::Commits;

use super::{clone_of, forge_of, forge_that_commits};
use crate::github::{Demands, Hub, Instead, When};
use crate::support::{allowed, commit_in, git_in, write_in};

pub struct Scene {
    pub hub: Hub,
    folder: tempfile::TempDir,
    pub forge: GithubForge,
}

pub fn permit() -> dirigent::domain::permit::Permit {
    allowed(EffectKind::Comment)
}

impl Scene {
    pub fn new() -> Self {
        let hub = Hub::start();
        let folder = tempfile::tempdir().unwrap();
        let clone = clone_of(&hub, folder.path());
        let forge = forge_of(&hub, &clone, "robot-token");
        Self { hub, folder, forge }
    }

    pub fn clone(&self) -> std::path::PathBuf {
        self.folder.path().join("clone")
    }

    /// One more commit of a worker's on a branch.
    pub fn work(&self, branch: &str, file: &str, text: &str) -> CommitId {
        let clone = self.clone();
        let tree = self.folder.path().join("tree");
        let shown = tree.display().to_string();
        if git_in(&clone, ["branch", "--list", branch]).is_empty() {
            git_in(&clone, ["branch", branch, "main"]);
        }
        git_in(&clone, ["worktree", "add", "-q", &shown, branch]);
        write_in(&tree, file, text);
        let head = commit_in(&tree, &format!("change {file}"));
        git_in(&clone, ["worktree", "remove", "--force", &shown]);
        CommitId::new(head)
    }

    pub fn new_pr(&self, branch: &str, head: &CommitId) -> NewPr {
        NewPr {
            title: "Do it".to_owned(),
            body: "What was done.\n\nCloses #1".to_owned(),
            head_branch: branch.to_owned(),
            head: head.clone(),
            base_branch: "main".to_owned(),
            draft: false,
            labels: vec!["agent".to_owned()],
            reviewers: vec!["ada".to_owned()],
        }
    }

    pub async fn opened(&self) -> PullRequest {
        let head = self.work("dirigent/x", "x.txt", "x\n");
        self.forge.push_branch(&permit(), "dirigent/x", &head, None).await.unwrap();
        self.forge.open_pr(&permit(), &self.new_pr("dirigent/x", &head)).await.unwrap()
    }

    /// A look that GitHub has had time to compute.
    pub async fn look(&self, number: PrNumber) -> PullRequest {
        self.forge.inspect(number).await.unwrap();
        self.forge.inspect(number).await.unwrap()
    }

    pub fn order(&self, pr: &PullRequest) -> MergeOrder {
        MergeOrder {
            number: pr.number,
            expected_head: pr.head.clone(),
            expected_base: "main".to_owned(),
            method: MergeMethod::Squash,
            trailers: vec!["Ticket: t-1".to_owned(), "Dirigent-Run: r-1".to_owned()],
        }
    }
}

#[tokio::test]
async fn a_pull_request_stands_in_the_repositorys_own_template() {
    let scene = Scene::new();
    scene.hub.push(
        "ada",
        "main",
        &[(".github/PULL_REQUEST_TEMPLATE.md", Some("## Checklist\n- [ ] read\n"))],
        "a template",
    );
    git_in(&scene.clone(), ["pull", "-q", &scene.hub.git_folder().display().to_string(), "main"]);
    git_in(&scene.clone(), ["update-ref", "refs/remotes/origin/main", "main"]);
    let pr = scene.opened().await;
    let body = scene.hub.body(pr.number.0);
    assert!(body.contains("What was done.") && body.contains("## Checklist"), "{body}");
    assert_eq!(scene.hub.labels(pr.number.0), ["agent"]);
    assert_eq!(scene.hub.reviewers(pr.number.0), ["ada"]);
    assert_eq!(pr.state, PrState::Open);
}

#[tokio::test]
async fn one_reviewer_who_cannot_review_keeps_no_other_from_being_asked() {
    let scene = Scene::new();
    let head = scene.work("dirigent/x", "x.txt", "x\n");
    scene.forge.push_branch(&permit(), "dirigent/x", &head, None).await.unwrap();
    let reviewers = ["robot", "ada", "acme/core", "nobody-at-all"].map(str::to_owned).to_vec();
    let new = NewPr { reviewers, ..scene.new_pr("dirigent/x", &head) };
    let pr = scene.forge.open_pr(&permit(), &new).await.unwrap();
    assert_eq!(scene.hub.reviewers(pr.number.0), ["ada", "core"], "{}", scene.hub.print());
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_and_not_repeated() {
    let scene = Scene::new();
    let head = scene.work("dirigent/x", "x.txt", "x\n");
    scene.forge.push_branch(&permit(), "dirigent/x", &head, None).await.unwrap();
    let new = scene.new_pr("dirigent/x", &head);
    for route in ["pulls/create", "issues/add-labels", "pulls/request-reviewers"] {
        scene.hub.fault(route, When::After, Instead::Status(502));
        let lost = scene.forge.open_pr(&permit(), &new).await;
        assert!(matches!(lost, Err(ForgeError::MaybeDone(_))), "{route}: {lost:?}");
    }
    let pr = scene.forge.open_pr(&permit(), &new).await.unwrap();
    assert_eq!(scene.hub.pulls(), [pr.number.0]);
    assert_eq!(scene.hub.labels(pr.number.0), ["agent"]);
    assert_eq!(scene.hub.reviewers(pr.number.0), ["ada"]);

    scene.hub.fault("issues/create-comment", When::After, Instead::Status(502));
    assert!(matches!(
        scene.forge.upsert_comment(&permit(), pr.number, "k#1", "Gates.").await,
        Err(ForgeError::MaybeDone(_))
    ));
    scene.forge.upsert_comment(&permit(), pr.number, "k#1", "Gates.").await.unwrap();
    assert_eq!(scene.hub.comments(pr.number.0).len(), 1);

    scene.hub.fault("pulls/merge", When::After, Instead::Status(502));
    assert!(matches!(scene.forge.merge(&permit(), &scene.order(&pr)).await, Err(ForgeError::MaybeDone(_))));
    assert!(matches!(scene.forge.merge(&permit(), &scene.order(&pr)).await, Ok(Merged::Done { commit: Some(_) })));
    let merges = scene.hub.requests().iter().filter(|one| one.route == "pulls/merge").count();
    assert_eq!(merges, 1);
    let message = git_in(&scene.hub.git_folder(), ["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("Ticket: t-1\nDirigent-Run: r-1"), "{message}");
}

#[tokio::test]
async fn the_rule_that_blocks_is_the_reason() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    let demands = Demands { reviews: 2, checks: vec!["build".to_owned()], ..Demands::default() };
    scene.hub.add_ruleset("main", "main", demands);
    let seen = scene.look(pr.number).await;
    assert_eq!(seen.required_checks, Some(vec!["build".to_owned()]));
    let Mergeability::Refused { because } = &seen.mergeability else { panic!("{:?}", seen.mergeability) };
    assert!(because.contains("2 approving reviews") && because.contains("build"), "{because}");
    let refused = scene.forge.merge(&permit(), &scene.order(&pr)).await;
    assert!(matches!(&refused, Err(ForgeError::NotNow(why)) if why.contains("approving review")), "{refused:?}");
}

#[tokio::test]
async fn classic_protection_names_its_checks_too() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.protect("main", Demands { checks: vec!["lint".to_owned()], up_to_date: true, ..Demands::default() });
    scene.hub.set_job(pr.head.as_str(), "lint", Some("success"), "");
    scene.hub.push("ada", "main", &[("other", Some("o\n"))], "elsewhere");
    let seen = scene.look(pr.number).await;
    assert_eq!(seen.required_checks, Some(vec!["lint".to_owned()]));
    assert_eq!(seen.mergeability, Mergeability::Behind);
}

#[tokio::test]
async fn another_method_is_taken_where_the_repository_forbids_one() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.settings(|settings| settings.squash = false);
    let merged = scene.forge.merge(&permit(), &scene.order(&pr)).await.unwrap();
    assert!(matches!(merged, Merged::Done { commit: Some(_) }));
}

#[tokio::test]
async fn a_branch_with_a_queue_is_merged_by_the_queue() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.add_ruleset("queue", "main", Demands { merge_queue: true, ..Demands::default() });
    for _ in 0..2 {
        assert_eq!(scene.forge.merge(&permit(), &scene.order(&pr)).await, Ok(Merged::Queued));
    }
    assert!(scene.look(pr.number).await.in_queue);
    for _ in 0..2 {
        scene.forge.dequeue(&permit(), pr.number).await.unwrap();
        assert!(!scene.look(pr.number).await.in_queue);
    }
    assert_eq!(scene.forge.merge(&permit(), &scene.order(&pr)).await, Ok(Merged::Queued));
    scene.hub.run_merge_queue(true);
    assert!(matches!(scene.forge.merge(&permit(), &scene.order(&pr)).await, Ok(Merged::Done { .. })));
}

#[tokio::test]
async fn a_failed_job_tells_its_step_and_the_end_of_its_log() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    let log: String = (0..400).map(|at| format!("2026-01-01T00:00:00.0000000Z line {at}\n")).collect();
    scene.hub.set_job(pr.head.as_str(), "build", Some("failure"), &log);
    scene.hub.set_job(pr.head.as_str(), "deploy", Some("action_required"), "");
    let seen = scene.look(pr.number).await;
    let checks = seen.checks.unwrap();
    let build = checks.iter().find(|check| check.name == "build").unwrap();
    assert_eq!(build.status, CheckStatus::Failed);
    let log = scene.forge.check_log(&build.id).await.unwrap();
    assert!(log.starts_with("Failed step: Run tests\n") && log.ends_with("line 399"), "{log}");
    assert!(
        matches!(&seen.mergeability, Mergeability::Refused { because } if because.contains("deploy")),
        "{:?}",
        seen.mergeability
    );
}

#[tokio::test]
async fn a_token_that_cannot_read_check_runs_merges_nothing_unknown() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    scene.hub.add_fine_grained_token("robot", "fine-token", &[]);
    let forge = forge_of(&scene.hub, &scene.clone(), "fine-token");
    let look = async || {
        forge.inspect(pr.number).await.unwrap();
        forge.inspect(pr.number).await.unwrap()
    };
    assert_eq!(look().await.checks, None, "another App's checks may be there");
    scene.hub.set_job(pr.head.as_str(), "build", Some("failure"), "red\n");
    let seen = look().await.checks.unwrap();
    assert_eq!((seen[0].name.as_str(), seen[0].status), ("build", CheckStatus::Failed), "what failed is known");
    scene.hub.add_ruleset("main", "main", Demands { checks: vec!["build".to_owned()], ..Demands::default() });
    let forge = forge_of(&scene.hub, &scene.clone(), "fine-token");
    assert!(forge.inspect(pr.number).await.unwrap().checks.is_some(), "the required ones are named");
}

#[tokio::test]
async fn a_persons_push_is_joined_and_a_contradiction_keeps_both() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    let theirs = scene.hub.push("ada", "dirigent/x", &[("theirs", Some("t\n"))], "by hand");
    let ours = scene.work("dirigent/x", "y.txt", "y\n");
    let joined = scene.forge.push_branch(&permit(), "dirigent/x", &ours, Some(&pr.head)).await.unwrap();
    let Pushed::Joined { head } = &joined else { panic!("{joined:?}") };
    assert_eq!(scene.hub.head("dirigent/x").as_deref(), Some(head.as_str()));
    for side in [ours.as_str(), &theirs] {
        git_in(&scene.hub.git_folder(), ["merge-base", "--is-ancestor", side, head.as_str()]);
    }
    assert_eq!(git_in(&scene.clone(), ["rev-parse", "dirigent/x"]), head.as_str());
    assert_eq!(scene.forge.push_branch(&permit(), "dirigent/x", &ours, Some(&pr.head)).await.unwrap(), joined);

    let theirs = scene.hub.push("ada", "dirigent/x", &[("x.txt", Some("theirs\n"))], "by hand");
    let ours = scene.work("dirigent/x", "x.txt", "ours\n");
    let apart = scene.forge.push_branch(&permit(), "dirigent/x", &ours, Some(head)).await;
    let Err(ForgeError::Apart { files, kept }) = apart else { panic!("{apart:?}") };
    assert_eq!(files, ["x.txt"]);
    assert_eq!(git_in(&scene.clone(), ["rev-parse", &kept]), ours.as_str());
    assert_eq!(git_in(&scene.clone(), ["rev-parse", "dirigent/x"]), theirs);
    assert_eq!(scene.hub.head("dirigent/x"), Some(theirs), "never pushed over");
}

#[tokio::test]
async fn a_run_may_rewrite_what_we_pushed_and_nothing_else() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    git_in(&scene.clone(), ["branch", "-f", "dirigent/x", "main"]);
    let rewritten = scene.work("dirigent/x", "x.txt", "rewritten\n");
    let pushed = scene.forge.push_branch(&permit(), "dirigent/x", &rewritten, Some(&pr.head)).await.unwrap();
    assert_eq!(pushed, Pushed::AsAsked);
    assert_eq!(scene.hub.head("dirigent/x").as_deref(), Some(rewritten.as_str()));
}

#[tokio::test]
async fn the_commit_that_joins_two_sides_is_made_as_the_file_says() {
    let scene = Scene::new();
    let pr = scene.opened().await;
    let style = CommitSettings { author: Some("Ada <ada@example.org>".to_owned()), signoff: true, sign: Some(false) };
    let forge = forge_that_commits(&scene.hub, &scene.clone(), "robot-token", Commits::new(&style));
    scene.hub.push("ada", "dirigent/x", &[("theirs", Some("t\n"))], "by hand");
    let ours = scene.work("dirigent/x", "y.txt", "y\n");
    let joined = forge.push_branch(&permit(), "dirigent/x", &ours, Some(&pr.head)).await.unwrap();
    let Pushed::Joined { head } = &joined else { panic!("{joined:?}") };
    let format = "--format=%an <%ae>|%cn|%(trailers:key=Signed-off-by,valueonly,separator=%x2C)";
    let made = git_in(&scene.clone(), ["log", "-1", format, head.as_str()]);
    assert_eq!(made, "Ada <ada@example.org>|Ada|Ada <ada@example.org>");
}
