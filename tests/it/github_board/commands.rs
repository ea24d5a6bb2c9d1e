//! The built program with a board on GitHub: `init`, `doctor`, and one ticket from its label to its branch.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::github::Hub;
use crate::support::Scratch;

const TOKEN: &str = "robot-token";

/// A repository with a workflow whose board is on GitHub and whose forge is the repository itself.
struct Desk {
    scratch: Scratch,
}

impl Desk {
    fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    fn path(&self) -> PathBuf {
        self.scratch.repo()
    }

    fn write(&self, hub: &Hub) {
        let text = format!(
            "---
tracker:
  kind: github
  provider: {{repo: acme/widgets, api_url: '{}', account: own}}
  required_labels: [agent]
  on_done: {{add_labels: [shipped], remove_labels: [agent]}}
worker: {{runtime: exec}}
exec: {{command: sh ./agent.sh}}
gates: {{task: ['true']}}
rollout: {{mode: merge}}
pr: {{forge: local, base_branch: main}}
merge: {{mode: auto, require_human_approval: false, no_checks: pass}}
polling: {{interval_ms: 300}}
---
",
            hub.api()
        );
        self.scratch.write("WORKFLOW.md", &text);
        let agent = "env > environment.txt\necho done > note.txt\ngit add .\ngit commit -qm note\ntk done 'a note'\n";
        self.scratch.write("agent.sh", agent);
        self.scratch.commit("the workflow");
    }

    fn command(&self, token: Option<&str>, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dirigent"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.scratch.dir.path())
            .env("DIRIGENT_HOME", self.scratch.dir.path().join("home"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null());
        if let Some(token) = token {
            command.env("GITHUB_TOKEN", token);
        }
        command
    }

    fn run_with(&self, token: Option<&str>, arguments: &[&str]) -> Output {
        self.command(token, arguments).output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(Some(TOKEN), arguments)
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn doctor_names_what_is_missing_and_makes_the_labels() {
    let hub = Hub::start();
    let desk = Desk::new();
    desk.write(&hub);
    let said = text(&desk.run(&["doctor"]));
    assert!(said.contains("github: the issues of acme/widgets (private), as robot (write)"), "{said}");
    assert!(said.contains("the repository has no label `agent`"), "{said}");
    assert_eq!(hub.writes().len(), 0, "nothing is made without being asked: {}", hub.print());
    let said = text(&desk.run(&["doctor", "--fix", "--yes"]));
    assert!(said.contains("made agent, shipped"), "{said}");
    assert_eq!(hub.count("issues/create-label"), 2);
    hub.revoke(TOKEN);
    let refused = desk.run(&["doctor"]);
    let said = text(&refused);
    assert!(!refused.status.success() && said.contains("the token is wrong, expired or revoked"), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
}

#[test]
fn a_board_without_a_token_says_how_to_give_one() {
    let hub = Hub::start();
    let desk = Desk::new();
    desk.write(&hub);
    let output = desk.run_with(None, &["doctor"]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("set GITHUB_TOKEN or GH_TOKEN"), "{said}");
}

#[test]
fn a_labelled_issue_is_worked_merged_closed_and_relabelled() {
    let hub = Hub::start();
    let desk = Desk::new();
    desk.write(&hub);
    let ours = hub.add_issue("ada", "Write a note", "Please.", &["agent", "docs"]);
    let theirs = hub.add_issue("ada", "Not for the agent", "", &["docs"]);
    let output = desk.run(&["run", "--once"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}\n{}", hub.print());
    assert!(!hub.is_open(ours), "{said}\n{}", hub.print());
    assert_eq!(hub.labels(ours), ["docs", "shipped"]);
    assert!(hub.is_open(theirs) && hub.comments(theirs).is_empty() && hub.labels(theirs) == ["docs"]);
    assert_eq!(desk.scratch.git(["show", "main:note.txt"]), "done");
    let environment = desk.scratch.git(["show", "main:environment.txt"]);
    assert!(environment.contains("DIRIGENT_") && !environment.contains("GITHUB_TOKEN"), "{environment}");
    let writes = hub.writes();
    assert!(writes.iter().all(|entry| entry.path.contains(&format!("/issues/{ours}"))), "{}", hub.print());
    println!("{} requests, {} of them changed something", hub.count("*"), writes.len());

    // The token is nowhere but in the environment of the runner.
    let mut found = Vec::new();
    files(desk.scratch.dir.path(), &mut found);
    for file in found {
        let bytes = std::fs::read(&file).unwrap();
        let holds = bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
        assert!(!holds, "{} holds the token", file.display());
    }
    assert!(hub.comments(ours).iter().all(|comment| !comment.body.contains(TOKEN)));

    // Once more: nothing is left to do, and nothing is said twice.
    let before = (hub.writes().len(), hub.comments(ours).len());
    assert!(desk.run(&["run", "--once"]).status.success());
    assert_eq!((hub.writes().len(), hub.comments(ours).len()), before, "{}", hub.print());
}

#[test]
fn init_in_a_clone_of_a_repository_on_github_is_about_its_issues() {
    let desk = Desk::new();
    desk.scratch.git(["remote", "add", "origin", "git@github.com:acme/widgets.git"]);
    let said = text(&desk.run(&["init", "--agent", "true"]));
    assert!(said.contains("the issues of acme/widgets with the label `agent`"), "{said}");
    let written = std::fs::read_to_string(desk.path().join("WORKFLOW.md")).unwrap();
    for line in ["kind: github", "repo: acme/widgets", "required_labels: [agent]", "mode: mutate", "mode: disabled"] {
        assert!(written.contains(line), "{line}: {written}");
    }
    assert!(!written.contains("no_checks: pass") && !written.contains("{{"), "{written}");
    assert!(!desk.path().join(".tickets").exists());
    let shown = text(&desk.run(&["config", "show"]));
    assert!(shown.contains("acme/widgets") && !shown.contains(TOKEN), "{shown}");
}

/// A field of `/proc/PID/status`, in kilobytes.
fn kilobytes(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Hundredths of a second of processor time.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').skip(11).take(2).map(|number| number.parse::<u64>().unwrap()).sum()
}

#[test]
fn an_idle_runner_on_a_thousand_issues_is_small_and_asks_one_thing() {
    const POLLS: usize = 40;
    let hub = Hub::start();
    for number in 0..1000 {
        hub.add_issue("ada", &format!("Issue {number}"), &"A few words. ".repeat(50), &["docs"]);
    }
    hub.advance(3600);
    hub.comment("ada", 1, "the last that happened");
    hub.advance(60);
    let desk = Desk::new();
    desk.write(&hub);
    let mut runner = desk.command(Some(TOKEN), &["run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let unchanged = || hub.requests().iter().filter(|entry| entry.status == Some(304)).count();
    let wait = |polls: usize| {
        let begun = std::time::Instant::now();
        while unchanged() < polls && begun.elapsed() < crate::support::board::PATIENCE {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait(3);
    // Once, each of them is read by its number as well: who did what, and what was said.
    let begun = std::time::Instant::now();
    let mut read = 0;
    while hub.count("graphql*") != read && begun.elapsed() < crate::support::board::PATIENCE {
        read = hub.count("graphql*");
        wait(unchanged() + 4);
    }
    println!("{read} questions for the rest of a thousand issues, a hundred at once");
    hub.forget_requests();
    let before = ticks(runner.id());
    wait(POLLS);
    let spent = ticks(runner.id()) - before;
    let (asked, idle) = (hub.count("*"), unchanged());
    let (all, own) = (kilobytes(runner.id(), "VmRSS"), kilobytes(runner.id(), "RssAnon"));
    runner.kill().unwrap();
    runner.wait().unwrap();
    let each = spent as f64 * 10.0 / idle as f64;
    println!("{idle} idle polls, {asked} requests, {each:.2} ms of processor time per poll");
    println!("{all} kB resident, {own} kB of it its own");
    assert!(idle >= POLLS && asked == idle, "{}", hub.print());
    // What is promised of the program that people get; this one is built to be debugged.
    let most = if cfg!(debug_assertions) { 10.0 } else { 3.0 };
    assert!(each <= most, "{each} ms");
    // Measured: 12 to 15 MB in a debug build, by what the allocator keeps of the first listing.
    assert!(own < 24 * 1024, "{own} kB");
}
