//! `workspace.repo` as an address: a host that has no clone gets one of the runner's own.

use super::scene::{Account, Scene, holding, workflow};
use crate::support::board::text;

const AGENT: &str = "set -eu
echo done > work.txt
git add work.txt
git commit -qm 'The work'
tk done 'it is there'
";

#[test]
fn a_repository_that_is_named_by_its_address_is_cloned_and_kept_up_to_date() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let (board, hub) = (&scene.board, &scene.hub);
    // The folder of the workflow file is nobody's clone here.
    let host = board.scratch.dir.path().join("host");
    std::fs::create_dir(&host).unwrap();
    let more = format!("workspace: {{repo: \"{}\"}}\n", hub.clone_url());
    std::fs::write(host.join("WORKFLOW.md"), workflow(hub, "account: own", &more)).unwrap();
    let command = |args: &[&str]| {
        let mut command = board.command(args);
        command.current_dir(&host).env("GITHUB_TOKEN", Account::Own.token());
        command
    };
    let log = std::fs::File::create(board.scratch.dir.path().join("runner.log")).unwrap();
    let mut runner = command(&["run", "--plain"]).stderr(log).stdout(std::process::Stdio::null()).spawn().unwrap();
    for title in ["The first", "The second"] {
        let issue = hub.add_issue("ada", title, "", &["agent"]);
        // What is on the base by then is what the work begins with.
        hub.push("ada", "main", &[(&format!("{issue}.txt"), Some("o\n"))], "something else");
        board.until("a pull request is there", || hub.pulls().len() == usize::from(title == "The second") + 1);
        let number = *hub.pulls().last().unwrap();
        let head = hub.head(&hub.head_branch(number)).unwrap();
        let files = crate::support::git_in(&hub.git_folder(), ["ls-tree", "--name-only", &head]);
        assert!(files.contains("work.txt"), "{files}");
        hub.set_job(&head, "build", Some("success"), "");
        hub.review("ada", number, "APPROVED", "good", &[]);
        board.until("it is merged", || hub.merges().len() == usize::from(title == "The second") + 1);
        hub.push("ada", "main", &[("work.txt", None)], "away with it");
    }
    let _ = runner.kill();
    let _ = runner.wait();
    let clones = board.home().join("clones");
    assert!(clones.is_dir());
    let held = holding(board.scratch.dir.path(), Account::Own.token());
    assert!(held.is_empty(), "the token is in {held:?}");
}

#[test]
fn an_address_with_a_secret_or_without_a_forge_is_refused_with_a_sentence() {
    let scene = Scene::new(AGENT, Account::Own, "");
    let host = scene.board.scratch.dir.path().join("host");
    std::fs::create_dir(&host).unwrap();
    for (url, forge, words) in [
        ("https://ada:pw@github.com/acme/widgets.git", "github", "it holds a user name or a password"),
        ("http://git.example.com/acme/widgets.git", "none", "it is not encrypted"),
        ("https://git.example.com/acme/widgets.git", "local", "merged in a clone that nobody sees"),
    ] {
        let text_of = workflow(&scene.hub, "account: own", &format!("workspace: {{repo: \"{url}\"}}\n"));
        std::fs::write(
            host.join("WORKFLOW.md"),
            text_of.replace("forge: github, repo_slug: acme/widgets", &format!("forge: {forge}")),
        )
        .unwrap();
        let mut command = scene.board.command(&["run", "--once"]);
        let output = command.current_dir(&host).env("GITHUB_TOKEN", Account::Own.token()).output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{url}: {said}");
    }
}
