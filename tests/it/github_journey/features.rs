//! What a team can ask for in its file, seen with the built binary: an App on an Enterprise Server, drafts, re-runs, statuses, resolved
//! conversations, and what becomes of a pull request that somebody closed.

use super::scene::{Account, Scene, holding, workflow};
use crate::github::Line;
use crate::support::board::Runner;
use crate::support::git_in;

/// Answers what people asked, and does one more line of work.
const AGENT: &str = r#"set -eu
n=$(ls "$(cat .out)" | grep -c prompt || true)
cp "$DIRIGENT_PROMPT_FILE" "$(cat .out)/prompt-$n"
echo "line $n" >> work.txt
git add work.txt
git commit -qm "Step $n"
for remark in $(grep -o 'remark r[0-9a-f]*' "$DIRIGENT_PROMPT_FILE" | cut -d' ' -f2 | sort -u); do
  tk answer "$remark" fixed 'mended'
done
tk done "step $n"
"#;

/// The file as it is from now on, here and on the hub.
fn write(scene: &Scene, text: &str) {
    scene.board.scratch.write("WORKFLOW.md", text);
    scene.board.scratch.commit("the workflow");
    let remote = scene.hub.git_folder().display().to_string();
    git_in(&scene.board.repo(), ["push", "-q", &remote, "main:main"]);
}

fn start(scene: &Scene) -> Runner {
    scene.board.start_with(&[("GITHUB_TOKEN", Account::Own.token())])
}

fn pass(scene: &Scene, number: u64) {
    let head = scene.hub.head(&scene.hub.head_branch(number)).unwrap();
    scene.hub.set_job(&head, "build", Some("success"), "");
}

#[test]
fn an_app_on_an_enterprise_server_with_everything_that_a_team_can_ask_for() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let (board, hub) = (&scene.board, &scene.hub);
    hub.push("ada", "main", &[(".github/pull_request_template.md", Some("## Checklist\n- [ ] read\n"))], "a template");
    git_in(&board.repo(), ["pull", "-q", &hub.git_folder().display().to_string(), "main"]);
    let installation = hub.add_app(77, "dirigent-test");
    let key = board.scratch.dir.path().join("app-key.pem");
    std::fs::write(&key, include_str!("../../github/app-key.pem")).unwrap();
    let api = hub.enterprise_api();
    let text = format!(
        "---\ntracker: {{kind: github, provider: {{repo: acme/widgets, api_url: \"{api}\", app_id: 77, installation_id: {installation}, private_key: {}}}, required_labels: [agent]}}\n\
         polling: {{interval_ms: 200}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {{stop_grace_ms: 500}}\n\
         gates: {{task: ['true']}}\nrollout: {{mode: merge}}\n\
         pr: {{forge: github, repo_slug: acme/widgets, draft: until_green, publish_gates: true, resolve_threads: answered, reviewers: [ada, acme/core], required_labels: [by-agent], title: \"[bot] {{{{ticket.title}}}}\"}}\n\
         merge: {{mode: auto, rerun_failed_checks: 1}}\n---\n",
        key.display()
    );
    write(&scene, &text);
    let issue = hub.add_issue("ada", "Write something", "Please.", &["agent"]);
    let name = format!("GH-{issue}");
    let runner = board.start_with(&[]);
    board.until("a pull request is there", || !hub.pulls().is_empty());
    let number = hub.pulls()[0];
    let head = || hub.head(&hub.head_branch(number)).unwrap();
    board.until("it is dressed", || hub.reviewers(number) == ["ada", "core"] && hub.labels(number) == ["by-agent"]);
    assert_eq!(hub.title(number), "[bot] Write something");
    assert!(hub.body(number).contains("## Checklist") && hub.body(number).contains(&format!("Closes #{issue}")));
    board.until("our gates are a status", || {
        hub.statuses(&head()).iter().any(|(context, state)| context == "dirigent/gates" && state == "success")
    });
    assert!(hub.is_draft(number));

    let first = head();
    hub.set_job(&first, "build", Some("failure"), "flaky\n");
    board.until("it is run again", || hub.count("actions/re-run-job-for-workflow-run") == 1);
    hub.set_job(&first, "build", Some("success"), "fine\n");
    board.until("it is ready for review", || !hub.is_draft(number));
    assert_eq!(head(), first, "no rework was paid for what passed the second time");

    let line = Line { path: "work.txt".to_owned(), line: 1, body: "why this line?".to_owned() };
    hub.review("ada", number, "COMMENTED", "", &[line]);
    board.until("there is another head", || head() != first);
    pass(&scene, number);
    board.until("the conversation is resolved", || hub.is_resolved(number, hub.threads(number)[0]));
    assert_eq!(hub.thread_comments(number)[0].len(), 2, "and answered once");
    board.until("it waits for an approval", || board.phase(&name) == "waiting_for_human");
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is done", || board.phase(&name) == "done");
    board.until("the issue is closed", || !hub.is_open(issue));
    runner.end();
    assert!(hub.comments(issue).iter().all(|one| one.author == "dirigent-test[bot]"));
    assert_eq!(hub.merges().len(), 1);
    let held = holding(&board.home(), "ghs_");
    assert!(held.is_empty(), "a token of the installation is in {held:?}");
}

#[test]
fn a_pull_request_that_somebody_closed_is_opened_again_or_another_is_made_where_the_file_says_so() {
    for (policy, pulls) in [("reopen", 1), ("new_branch", 2)] {
        let scene = Scene::new(AGENT, Account::Own, "");
        let (board, hub) = (&scene.board, &scene.hub);
        let more = workflow(hub, "account: own", "");
        write(
            &scene,
            &more.replace("repo_slug: acme/widgets", &format!("repo_slug: acme/widgets, closed_pr_policy: {policy}")),
        );
        let issue = hub.add_issue("ada", "Write something", "", &["agent"]);
        let runner = start(&scene);
        board.until("a pull request is there", || !hub.pulls().is_empty());
        let first = hub.pulls()[0];
        board.until("it was looked at", || board.phase(&format!("GH-{issue}")) == "waiting_for_checks");
        hub.close_pull("ada", first);
        board.until("an open one is there", || hub.pulls().len() == pulls && hub.is_open(hub.pulls()[pulls - 1]));
        let last = hub.pulls()[pulls - 1];
        assert_eq!(hub.head_branch(last) == hub.head_branch(first), pulls == 1);
        pass(&scene, last);
        hub.review("ada", last, "APPROVED", "good", &[]);
        board.until("it is done", || board.phase(&format!("GH-{issue}")) == "done");
        runner.end();
        assert_eq!(hub.merges().len(), 1, "{policy}");
    }
}
