//! The two public workflow files of the family, run by the built binary. Besides addresses, and the mode of the first one, nothing in them is
//! changed.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use crate::github::{Demands, Hub, Method};
use crate::linear::{KEY, Linear};
use crate::support::board::{Board, PATIENCE, text};
use crate::support::git_in;

const REFERENCE: &str = include_str!("../../fixtures/workflow/symphony_reference.md");
const PI_SYMPHONY: &str = include_str!("../../fixtures/workflow/pi_symphony.md");

/// A runner with a workflow, an agent in its path, and what it is told besides.
struct Scene {
    board: Board,
    sets: Vec<String>,
    env: Vec<(String, String)>,
}

impl Scene {
    fn new(workflow: &str, agent: &str, script: &str) -> Self {
        let board = Board::new("", "");
        board.scratch.write("WORKFLOW.md", workflow);
        board.scratch.commit("a file of the family");
        let programs = board.scratch.dir.path().join("bin");
        std::fs::create_dir(&programs).unwrap();
        let program = programs.join(agent);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        // A login shell may set it anew.
        std::fs::write(board.scratch.dir.path().join(".profile"), format!("export PATH={path}\n")).unwrap();
        let env = vec![("PATH".to_owned(), path), ("LINEAR_API_KEY".to_owned(), KEY.to_owned())];
        Self { board, sets: Vec::new(), env }
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.sets.extend(["--set".to_owned(), format!("{key}={value}")]);
        self
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn run(&self, command: &[&str]) -> Output {
        let args: Vec<&str> = command.iter().copied().chain(self.sets.iter().map(String::as_str)).collect();
        self.board.command(&args).envs(self.env.iter().map(|(name, value)| (name, value))).output().unwrap()
    }

    /// In the background, with its output in a file.
    fn start(&self) -> (std::process::Child, PathBuf) {
        let log = self.board.scratch.dir.path().join("runner.log");
        let file = std::fs::File::create(&log).unwrap();
        let args: Vec<&str> =
            ["run", "--log", "full"].into_iter().chain(self.sets.iter().map(String::as_str)).collect();
        let mut command = self.board.command(&args);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let child = command.stderr(file).stdout(std::process::Stdio::null()).spawn().unwrap();
        (child, log)
    }
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Waits for it, or ends the runner and tells what it said.
fn until(what: &str, runner: &mut (std::process::Child, PathBuf), mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            let _ = runner.0.kill();
            panic!("never came about: {what}\n{}", std::fs::read_to_string(&runner.1).unwrap_or_default());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn end(mut runner: (std::process::Child, PathBuf)) -> String {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(runner.0.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    runner.0.wait().unwrap();
    std::fs::read_to_string(&runner.1).unwrap_or_default()
}

/// The board that the file of Symphony's reference is about, a ticket on it, and the repository that it clones.
struct Reference {
    linear: Linear,
    id: String,
    bare: PathBuf,
    directory: PathBuf,
    scene: Scene,
    _origin: tempfile::TempDir,
}

impl Reference {
    /// `turn` is what the agent does in a turn, as a shell script.
    fn new(turn: impl FnOnce(&Linear, &str) -> String) -> Self {
        let linear = Linear::start();
        linear.add_team("SYM", &["Backlog", "Todo", "In Progress", "Human Review", "Merging", "Rework", "Done"]);
        linear.add_project("Symphony", "0c79b11b75ea", "SYM");
        let id = linear.add_issue_to("SYM", "Write something", "Todo", &[]);
        let project = linear.project_id("Symphony");
        linear.edit(&id, |issue| issue.project = Some(project));
        let origin = tempfile::tempdir().unwrap();
        let bare = origin.path().join("symphony.git");
        git_in(origin.path(), ["init", "-q", "--bare", "-b", "main", "symphony.git"]);
        let seed = Board::new("", "");
        git_in(&seed.repo(), ["push", "-q", &bare.display().to_string(), "main:main"]);
        let fake = include_str!("../../fakes/codex.sh").replace("    TURN\n", &turn(&linear, &id));
        // The clone address; the tools of the project's own language are not here.
        let workflow = REFERENCE.replace("https://example.com/symphony", &format!("file://{}", bare.display()));
        let scene = Scene::new(&workflow, "codex", &fake)
            .set("tracker.endpoint", linear.endpoint())
            .set("rollout.mode", "mutate");
        let directory = scene.board.scratch.dir.path().join("code/symphony-workspaces/SYM-1");
        Self { linear, id, bare, directory, scene, _origin: origin }
    }

    fn phase(&self) -> String {
        text(&self.scene.run(&["status", "SYM-1", "--field", "phase"]).stdout).trim().to_owned()
    }

    /// The agent's own workpads.
    fn workpads(&self) -> Vec<String> {
        self.linear.comments(&self.id).into_iter().filter(|said| said.contains("## Codex Workpad")).collect()
    }
}

/// A call of the agent's tool, in shell.
fn ask(query: &str, variables: &serde_json::Value) -> String {
    let arguments = serde_json::json!({"query": query, "variables": variables});
    format!("call linear_graphql '{arguments}'\nprintf '%s\\n' \"$heard\" >> \"$HOME/answers\"\n")
}

fn go(linear: &Linear, id: &str, state: &str) -> String {
    let query = "mutation($id: String!, $s: String!) { issueUpdate(id: $id, input: {stateId: $s}) { success } }";
    ask(query, &serde_json::json!({"id": "SYM-1", "s": linear.state_id(id, state)}))
}

fn begin_workpad() -> String {
    let query =
        "mutation($b: String!) { commentCreate(input: {issueId: \"SYM-1\", body: $b}) { success comment { id } } }";
    ask(query, &serde_json::json!({"b": "## Codex Workpad\n\n- [ ] write it"}))
}

const WORK: &str = "git config user.email a@b.c; git config user.name a
git checkout -q -b sym-1
echo x > made
git add made
git commit -qm 'Write something'
git push -q origin sym-1 2>/dev/null
";

/// What Symphony's own prompt has its agent do: move the ticket, keep a workpad of its own, commit, push, and move it on.
#[test]
fn spec_11_the_file_of_symphonys_reference_runs_as_it_is() {
    let reference = Reference::new(|linear, id| {
        format!("{}{}{WORK}{}", go(linear, id, "In Progress"), begin_workpad(), go(linear, id, "Done"))
    });
    let Reference { linear, id, bare, directory, scene, .. } = &reference;
    let doctor = said(&scene.run(&["doctor"]));
    assert!(doctor.contains("workers may move and comment on their own ticket"), "{doctor}");
    assert!(doctor.contains("SSH_AUTH_SOCK") && doctor.contains("the agent pushes"), "{doctor}");
    let mut runner = scene.start();
    until("the ticket is done", &mut runner, || linear.state_of(id) == "Done");
    until("its job is over and its directory gone", &mut runner, || {
        reference.phase() == "released" && !directory.exists()
    });
    let log = end(runner);
    assert!(log.contains("workers may move and comment"), "said at the start: {log}");
    for line in ["session started", "turn started", "turn completed", "session ended", "hook after_create started"] {
        assert!(
            log.lines().any(|said| said.contains(line) && said.contains("issue_identifier=\"SYM-1\"")),
            "{line}: {log}"
        );
    }
    assert!(log.contains("session_id=\"th-1-1\""), "thread and turn: {log}");
    let names = std::fs::read_to_string(scene.board.scratch.dir.path().join("thread-names")).unwrap_or_default();
    assert!(names.contains("SYM-1: Write something"), "the title: {names}");
    assert!(git_in(bare, ["log", "--oneline", "sym-1"]).contains("Write something"));
    assert_eq!(reference.workpads().len(), 1, "{:#?}", linear.comments(id));
    let told = said(&scene.run(&["explain", "SYM-1"]));
    assert!(told.contains("moved the ticket from `In Progress` to `Done`"), "{told}");
    let comments = linear.comments(id);
    assert!(!comments.iter().any(|text| text.contains("is ready on branch")), "nothing is claimed: {comments:#?}");
}

/// The board and the forge that the file of pi-symphony is about, a ticket on it, and the file with nothing changed but addresses and the times
/// that nobody here has.
fn pi_symphony(turn: &str) -> (Linear, Hub, String, Scene) {
    let (linear, hub) = (Linear::start(), Hub::start());
    linear.add_team("SYM", &["Backlog", "Todo", "In Progress", "In Review", "Merging", "Rework", "Done", "Canceled"]);
    linear.add_project("Pi", "db8e51049f48", "SYM");
    let id = linear.add_issue_to("SYM", "Write something", "Todo", &["symphony"]);
    let project = linear.project_id("Pi");
    linear.edit(&id, |issue| issue.project = Some(project));
    let fake = include_str!("../../fakes/pi.sh").replace("    TURN\n", turn);
    let scene = Scene::new(PI_SYMPHONY, "pi", &fake);
    let spaces = scene.board.scratch.dir.path().join("spaces").display().to_string();
    let scene = scene
        .set("tracker.endpoint", linear.endpoint())
        .set("pr.repo_slug", "acme/widgets")
        .set("pr.provider.api_url", hub.api())
        .set("server.port", "0")
        // Times: nobody here has minutes.
        .set("polling.interval_ms", "500")
        .set("merge.checks_grace_ms", "1")
        .with("GITHUB_TOKEN", "robot-token")
        .with("PI_SYMPHONY_WORKSPACE_ROOT", &spaces);
    git_in(&scene.board.repo(), ["push", "-q", "--force", &hub.git_folder().display().to_string(), "main:main"]);
    git_in(&scene.board.repo(), ["remote", "add", "origin", &hub.clone_url()]);
    (linear, hub, id, scene)
}

/// No key of the file is named as not built; its extensions are files that this place does not have.
fn nothing_is_missing(doctor: &str) {
    let idle = |line: &&str| line.contains("not in force");
    let unknown: Vec<&str> = doctor.lines().filter(idle).filter(|line| !line.contains("extension_paths")).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The review that the file asks for comes before a person is asked; the file merges nothing itself.
#[test]
fn a_file_of_pi_symphony_goes_from_linear_to_github_and_back() {
    let turn = "if [ \"$DIRIGENT_PHASE\" = reviewing ]; then say=\"# Review\\\\n- head: $(git rev-parse HEAD)\\\\n- findings: 0\"; return; fi\ngit config user.email a@b.c; git config user.name a\necho x >> made\ngit add made\ngit commit -qm 'Write something'\ntk done 'it is written'\n";
    let (linear, hub, id, scene) = pi_symphony(turn);
    let doctor = said(&scene.run(&["doctor"]));
    assert!(doctor.contains("linear-graphql/index.ts) is not there") && doctor.contains("`tk api`"), "{doctor}");
    nothing_is_missing(&doctor);
    let mut runner = scene.start();
    until("a pull request is open", &mut runner, || !hub.pulls().is_empty());
    let number = hub.pulls()[0];
    until("it is attached to the ticket", &mut runner, || linear.links(&id).len() == 1);
    assert!(linear.links(&id)[0].0.ends_with(&format!("/pull/{number}")), "{:?}", linear.links(&id));
    let head = hub.head(&hub.head_branch(number)).unwrap();
    hub.set_job(&head, "build", Some("success"), "fine\n");
    let field = |name: &str| text(&scene.run(&["status", "SYM-1", "--field", name]).stdout).trim().to_owned();
    until("the review stands on the pull request", &mut runner, || {
        hub.comments(number).iter().any(|said| said.body.contains("<!-- symphony-review -->"))
    });
    until("it waits for a person", &mut runner, || field("reason") == "approval");
    // A rework state is a round, and its head is read again.
    linear.shift(&linear.user("ada"), &id, "Rework");
    let head_now = || hub.head(&hub.head_branch(number)).unwrap();
    until("there is another head", &mut runner, || head_now() != head);
    hub.set_job(&head_now(), "build", Some("success"), "fine\n");
    until("it waits for a person again", &mut runner, || field("reason") == "approval" && field("head") == head_now());
    linear.shift(&linear.user("ada"), &id, "Merging");
    until("it is ready", &mut runner, || field("sentence").contains("ready for you to merge: "));
    assert!(hub.merges().is_empty(), "the file lets nobody but people merge");
    let workpads: Vec<String> =
        linear.comments(&id).into_iter().filter(|text| text.contains("## Symphony Workpad")).collect();
    assert_eq!(workpads.len(), 1, "{workpads:#?}");
    hub.merge("ada", number, Method::Squash);
    until("the ticket is done", &mut runner, || linear.state_of(&id) == "Done" && field("phase") == "done");
    let log = end(runner);
    assert!(log.contains("reviewing"), "the review was made: {log}");
    assert_eq!(linear.links(&id).len(), 1, "one attachment");
}

/// A worker that makes a mistake, a reviewer that sees it on its line, and a rework that answers.
const TEAM: &str = r##"git config user.email a@b.c; git config user.name a
if [ "$DIRIGENT_PHASE" = reviewing ]; then
  head=$(git rev-parse HEAD)
  if grep -q mistake made; then
    say="# Review\n- head: $head\n- findings: 1\n\n## F1: There is a mistake\n- severity: P1\n- place: made:1\n- summary: The word is wrong.\n- why_it_matters: People read it.\n- suggested_fix: Write another."
  else
    say="# Review\n- head: $head\n- findings: 0"
  fi
  return
fi
if [ "$DIRIGENT_PHASE" = rework ]; then
  echo better > made
  git commit -qam 'Mend it'
  tk answer F1 fixed 'wrote another'
else
  echo mistake > made
  git add made
  git commit -qm 'Write something'
fi
tk done 'it is written'
"##;

/// The same file with its two brakes released: a P1 finding, a rework that answers it, approval by the ticket's state, and the merge.
#[test]
fn a_file_of_pi_symphony_that_may_merge_reviews_reworks_and_lands() {
    let (linear, hub, id, scene) = pi_symphony(TEAM);
    let scene = scene.set("rollout.mode", "merge").set("merge.mode", "auto");
    hub.protect("main", Demands { checks: vec!["build".into()], conversations_resolved: true, ..Demands::default() });
    // The file asks for a preflight of exactly this configuration.
    let log = {
        let mut runner = scene.start();
        let reason = || text(&scene.run(&["status", "SYM-1", "--field", "reason"]).stdout);
        until("the preflight is missed", &mut runner, || reason().trim() == "preflight");
        end(runner)
    };
    assert!(hub.pulls().is_empty() && linear.comments(&id).is_empty(), "nothing was written: {log}");
    let doctor = said(&scene.run(&["doctor"]));
    nothing_is_missing(&doctor);

    let mut runner = scene.start();
    until("a pull request is open", &mut runner, || !hub.pulls().is_empty());
    let number = hub.pulls()[0];
    let head = || hub.head(&hub.head_branch(number)).unwrap_or_default();
    let first = head();
    hub.set_job(&first, "build", Some("success"), "fine\n");
    let about_it = || {
        let said = hub.comments(number).into_iter().map(|said| said.body);
        said.filter(|body| body.contains("<!-- symphony-review -->")).collect::<Vec<_>>()
    };
    until("the finding stands on its line", &mut runner, || {
        hub.thread_comments(number).first().is_some_and(|said| said[0].body.contains("F1 [P1] There is a mistake"))
    });
    until("there is another head", &mut runner, || head() != first);
    let second = head();
    until("the answer is in the comment", &mut runner, || about_it().concat().contains("fixed in"));
    hub.set_job(&second, "build", Some("success"), "fine\n");
    until("the second review is in", &mut runner, || about_it().concat().contains("nothing found"));
    let field = |name: &str| text(&scene.run(&["status", "SYM-1", "--field", name]).stdout).trim().to_owned();
    until("it waits for a person", &mut runner, || field("reason") == "approval");
    assert!(hub.merges().is_empty(), "nobody has approved it");
    linear.shift(&linear.user("ada"), &id, "Merging");
    until("the ticket is done", &mut runner, || linear.state_of(&id) == "Done" && field("phase") == "done");
    end(runner);

    assert_eq!(hub.merges().len(), 1);
    assert_eq!(git_in(&hub.git_folder(), ["show", "main:made"]).trim(), "better");
    assert_eq!(about_it().len(), 1, "one comment, kept up to date: {:#?}", about_it());
    let threads = hub.thread_comments(number);
    assert_eq!((threads.len(), threads[0].len()), (1, 2), "begun once and answered once: {threads:#?}");
    assert!(threads[0][1].body.contains("Fixed in"), "{threads:#?}");
    assert!(hub.is_resolved(number, hub.threads(number)[0]), "our own conversation waits for nobody");
    let told = said(&scene.run(&["explain", "SYM-1", "--json"]));
    let kinds: Vec<&str> =
        ["\"implement\"", "\"review\"", "\"rework\""].into_iter().filter(|kind| told.contains(kind)).collect();
    assert_eq!(kinds.len(), 3, "{told}");
}
