//! The built binary with tickets here and pull requests on a GitHub of our own: from the ticket to the merge, through a red check and a
//! reviewer's question.

use std::path::Path;

use crate::github::{Hub, Line};
use crate::support::board::{Board, Runner};
use crate::support::git_in;

const TOKEN: &str = "robot-token";

/// Keeps what it was given, commits one more line, and says done.
const AGENT: &str = "set -eu
out=$(cat .out)
n=$(ls \"$out\" | grep -c prompt || true)
cp \"$DIRIGENT_PROMPT_FILE\" \"$out/prompt-$n\"
env > \"$out/env-$n\"
(cat /proc/*/cmdline 2>/dev/null || true) | tr '\\0' ' ' > \"$out/arguments-$n\"
git config --list --show-origin > \"$out/config-$n\" 2>&1 || true
if [ -e \"$out/hold\" ]; then while [ -e \"$out/hold\" ]; do sleep 0.1; done; fi
echo \"line $n\" >> work.txt
git add work.txt
git commit -qm \"Step $n\"
tk done \"step $n\"
";

pub struct Scene {
    pub board: Board,
    pub hub: Hub,
}

impl Scene {
    pub fn new(more: &str) -> Self {
        Self::with_agent(AGENT, more)
    }

    pub fn with_agent(agent: &str, more: &str) -> Self {
        let hub = Hub::start();
        let api = hub.api().to_owned();
        let front = format!(
            "rollout: {{mode: merge}}\npr: {{forge: github, repo_slug: acme/widgets, provider: {{api_url: \"{api}\"}}}}\nmerge: {{mode: auto, checks_grace_ms: 1}}\n{more}"
        );
        let board = Board::new(agent, &front);
        let out = board.scratch.dir.path().join("out");
        std::fs::create_dir(&out).unwrap();
        board.scratch.write(".out", &out.display().to_string());
        board.scratch.commit("where the agent leaves what it got");
        git_in(&board.repo(), ["push", "-q", "--force", &hub.git_folder().display().to_string(), "main:main"]);
        git_in(&board.repo(), ["remote", "add", "origin", &hub.clone_url()]);
        Self { board, hub }
    }

    pub fn start(&self) -> Runner {
        self.board.start_with(&[("GITHUB_TOKEN", TOKEN)])
    }

    /// A `PATH` on which git writes down everything that it is started with when it speaks with GitHub.
    fn watched_git(&self) -> String {
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
        let place = self.board.scratch.dir.path();
        let (bin, calls) = (place.join("watched"), place.join("out/git-calls"));
        std::fs::create_dir(&bin).unwrap();
        let (calls, git) = (calls.display(), bin.join("git"));
        let script = format!(
            "#!/bin/sh\nif [ -n \"$GIT_ASKPASS\" ]; then {{ echo \"$@\"; env; cat \"$GIT_DIR\"/*; }} >> {calls} 2>/dev/null; fi\nexec {} \"$@\"\n",
            real.display()
        );
        std::fs::write(&git, script).unwrap();
        std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        format!("{}:{}", bin.display(), path.display())
    }

    pub fn out(&self, file: &str) -> String {
        std::fs::read_to_string(self.board.scratch.dir.path().join("out").join(file)).unwrap_or_default()
    }

    /// The head of the only pull request, once it is not `before`.
    pub fn head(&self, before: &str) -> (u64, String) {
        self.board.until("there is a new head", || {
            self.hub
                .pulls()
                .first()
                .is_some_and(|number| self.hub.head(&self.hub.head_branch(*number)).is_some_and(|head| head != before))
        });
        let number = self.hub.pulls()[0];
        (number, self.hub.head(&self.hub.head_branch(number)).unwrap())
    }

    pub fn pass(&self, head: &str) {
        self.hub.set_job(head, "build", Some("success"), "fine\n");
    }
}

/// Every file below a folder that holds the text.
fn holding(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

#[test]
fn from_a_ticket_through_a_red_check_and_a_question_to_a_merge() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let path = scene.watched_git();
    let runner = board.start_with(&[("GITHUB_TOKEN", TOKEN), ("PATH", &path)]);

    let (number, first) = scene.head("");
    hub.set_job(&first, "build", Some("failure"), "error: it does not compile\n");
    let (_, second) = scene.head(&first);
    assert!(scene.out("prompt-1").contains("it does not compile"), "{}", scene.out("prompt-1"));

    scene.pass(&second);
    let line = Line { path: "work.txt".to_owned(), line: 1, body: "why this line?".to_owned() };
    hub.review("ada", number, "COMMENTED", "", &[line]);
    let (_, third) = scene.head(&second);
    assert!(scene.out("prompt-2").contains("why this line?"), "{}", scene.out("prompt-2"));
    board.until("the question is answered in its place", || hub.thread_comments(number)[0].len() == 2);
    assert_eq!(hub.thread_comments(number)[0][1].author, "robot");
    assert!(!hub.is_resolved(number, hub.threads(number)[0]), "that is the person's affair");

    scene.pass(&third);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    board.until("the ticket is closed", || board.ticket_text("t-1").contains("status: closed"));
    board.until("the branch is gone", || hub.head(&hub.head_branch(number)).is_none());
    runner.end();

    assert_eq!(hub.pulls().len(), 1);
    assert_eq!(hub.thread_comments(number)[0].len(), 2);
    let merges = hub.requests().iter().filter(|one| one.route == "pulls/merge" && one.took_effect).count();
    assert_eq!(merges, 1);
    let message = git_in(&hub.git_folder(), ["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("Ticket: t-1") && message.contains("Dirigent-Run: "), "{message}");
    assert!(git_in(&hub.git_folder(), ["show", "main:work.txt"]).contains("line 2"));

    let calls = scene.out("git-calls");
    assert!(calls.contains("push --porcelain") && calls.contains("GIT_ASKPASS="), "{calls}");
    let held = holding(board.scratch.dir.path(), TOKEN);
    assert!(held.is_empty(), "the token is in {held:?}");
}

#[test]
fn what_a_person_pushes_during_a_run_is_joined_with_it() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, first) = scene.head("");
    let hold = board.scratch.dir.path().join("out/hold");
    std::fs::write(&hold, "").unwrap();
    hub.set_job(&first, "build", Some("failure"), "red\n");
    board.until("the second run is at it", || !scene.out("prompt-1").is_empty());
    let branch = hub.head_branch(number);
    let theirs = hub.push("ada", &branch, &[("theirs.txt", Some("by a person\n"))], "by hand");
    std::fs::remove_file(&hold).unwrap();
    let (_, joined) = scene.head(&theirs);
    board.until("both are there", || {
        let head = hub.head(&branch).unwrap_or_default();
        let files = git_in(&hub.git_folder(), ["ls-tree", "--name-only", &head]);
        files.contains("theirs.txt")
            && git_in(&hub.git_folder(), ["show", &format!("{head}:work.txt")]).contains("line 1")
    });
    git_in(&hub.git_folder(), ["merge-base", "--is-ancestor", &theirs, &joined]);
    let head = hub.head(&branch).unwrap();
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "both are good", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    runner.end();
}

#[test]
fn a_runner_that_is_killed_in_the_middle_leaves_one_of_everything() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    board.ticket("t-1", "Write something");
    let mut runner = scene.start();
    let kill = |runner: Runner| {
        runner.signal(nix::sys::signal::Signal::SIGKILL);
        drop(runner);
        scene.start()
    };
    board.until("it is pushed", || hub.count("transport/push") > 0);
    runner = kill(runner);
    let (number, head) = scene.head("");
    runner = kill(runner);
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("a merge left", || hub.count("pulls/merge") > 0);
    runner = kill(runner);
    board.until("it is done", || board.phase("t-1") == "done");
    board.until("the ticket is closed", || board.ticket_text("t-1").contains("status: closed"));
    runner.end();
    assert_eq!(hub.pulls().len(), 1);
    let merges = hub.requests().iter().filter(|one| one.route == "pulls/merge" && one.took_effect).count();
    assert_eq!(merges, 1);
    assert!(!hub.is_open(number));
}

#[test]
fn from_a_label_on_an_issue_to_its_closing() {
    let scene = Scene::new("");
    let (board, hub) = (&scene.board, &scene.hub);
    let api = hub.api();
    let text = format!(
        "---\ntracker: {{kind: github, provider: {{repo: acme/widgets, api_url: \"{api}\", account: own}}, required_labels: [agent]}}\npolling: {{interval_ms: 500}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nrollout: {{mode: merge}}\npr: {{forge: github, repo_slug: acme/widgets}}\nmerge: {{mode: auto, checks_grace_ms: 1}}\n---\n"
    );
    board.scratch.write("WORKFLOW.md", &text);
    let issue = hub.add_issue("ada", "Write something", "Please.", &[]);
    let runner = scene.start();
    hub.label("ada", issue, "agent");
    let (number, head) = scene.head("");
    assert!(hub.body(number).contains(&format!("Closes #{issue}")), "{}", hub.body(number));
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("the issue is closed", || !hub.is_open(issue));
    board.until("the branch is gone", || hub.head(&hub.head_branch(number)).is_none());
    runner.end();
    let said = hub.comments(issue);
    assert!(said.iter().all(|one| one.author == "robot") && said.len() <= 5, "{said:?}");
    assert_eq!(hub.pulls(), [number]);
}

#[test]
fn the_receipt_reaches_github_and_joins_the_notes_of_others() {
    let scene = Scene::new("gates: {task: ['test -e work.txt']}\n");
    let (board, hub) = (&scene.board, &scene.hub);
    let folder = hub.git_folder();
    let base = git_in(&folder, ["rev-parse", "main"]);
    let ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"];
    git_in(&folder, [ada[0], ada[1], ada[2], ada[3], "notes", "--ref=dirigent", "add", "-m", "by hand", &base]);
    // Another one that is only here.
    let first = git_in(&board.repo(), ["rev-list", "--max-parents=0", "HEAD"]);
    git_in(&board.repo(), ["notes", "--ref=dirigent", "add", "-m", "only here", &first]);
    board.ticket("t-1", "Write something");
    let runner = scene.start();
    let (number, head) = scene.head("");
    scene.pass(&head);
    hub.review("ada", number, "APPROVED", "good", &[]);
    board.until("it is merged", || board.phase("t-1") == "done");
    let merged = git_in(&folder, ["rev-parse", "main"]);
    let kept = || board.ok(&["explain", "t-1"]).contains("the receipt of");
    board.until("the receipt is kept", kept);
    runner.end();

    let note = |commit: &str| git_in(&folder, ["notes", "--ref=dirigent", "show", commit]);
    assert!(note(&merged).contains("test -e work.txt") && note(&merged).contains(&head), "{}", note(&merged));
    assert_eq!((note(&base), note(&first)), ("by hand".to_owned(), "only here".to_owned()));
    assert!(hub.body(number).contains(&merged), "the pull request has it too: {}", hub.body(number));
    assert!(board.ok(&["receipt", "verify", &merged]).contains("the commit holds the work of"));

    // With the notes of the others fetched, another clone can look, and has nothing to prove it with.
    let clone = board.scratch.dir.path().join("clone");
    git_in(board.scratch.dir.path(), ["clone", "-q", &folder.display().to_string(), &clone.display().to_string()]);
    git_in(&clone, ["fetch", "-q", "origin", "refs/notes/dirigent:refs/notes/dirigent"]);
    let workflow = clone.join("WORKFLOW.md").display().to_string();
    std::fs::write(
        &workflow,
        "---\ntracker: {kind: tk}\nworker: {runtime: exec}\nexec: {command: sh ./agent.sh}\npr: {forge: local}\n---\n",
    )
    .unwrap();
    let told = board.fails(&["--workflow", &workflow, "receipt", "verify", &merged], 9);
    assert!(told.contains("anybody could have written it"), "{told}");
}
