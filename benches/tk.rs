//! How `tk` and the tracker over its files compare with reading the files at all. Prints ratios; decides nothing.
//!
//! `cargo bench --bench tk`. The public tool is measured beside ours if its path is in `PUBLIC_TK`, or if a `ticket` is
//! on the `PATH`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dirigent::tracker::tk::TkTracker;
use dirigent::tracker::{Answer, Tracker};

const TICKETS: usize = 10_000;
const ROUNDS: usize = 7;

fn main() {
    let temp = tempfile::tempdir().unwrap();
    let project = temp.path();
    let store = project.join(".tickets");
    fill(&store);
    let tk = project.join("tk");
    symlink(env!("CARGO_BIN_EXE_dirigent"), &tk).unwrap();

    println!("{TICKETS} tickets, warm cache, best of {ROUNDS}");
    let cat = best(|| shell(project, "cat .tickets/*.md >/dev/null"));
    line("cat .tickets/*.md >/dev/null", cat, cat);
    let mut tools = vec![("tk", tk)];
    tools.extend(public_tool().map(|path| ("public tool", path)));
    for (name, path) in &tools {
        let rounds = if *name == "tk" { ROUNDS } else { 1 };
        for arguments in
            [&["ready"][..], &["ls"], &["blocked"], &["closed"], &["show", "t-00042"], &["query"], &["help"]]
        {
            let took = best_of(rounds, || call(project, path, arguments));
            line(&format!("{name} {}", arguments.join(" ")), took, cat);
        }
    }

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let states = ["open".to_owned(), "in_progress".to_owned()];
    let tracker = TkTracker::new(&store);
    let mut mark = None;
    let poll = |since: Option<&_>| runtime.block_on(tracker.poll(&states, since)).unwrap().answer;
    let first = time(|| match poll(None) {
        Answer::Listed { mark: given, .. } => mark = given,
        other => unreachable!("the first answer is a list: {other:?}"),
    });
    let tick = best(|| assert_eq!(poll(mark.as_ref()), Answer::Unchanged));
    let tenth = best(|| {
        for number in 0..TICKETS / 10 {
            fs::read(store.join(format!("t-{number:05}.md"))).unwrap();
        }
    });
    println!();
    line("re-reading one tenth of the files", tenth, tenth);
    line("the tracker's first look", first, tenth);
    line("a tick with nothing changed", tick, tenth);
}

fn fill(store: &Path) {
    fs::create_dir(store).unwrap();
    for number in 0..TICKETS {
        let status = match number % 10 {
            0 => "open",
            1 => "in_progress",
            _ => "closed",
        };
        let deps = match number {
            0..=2 => String::new(),
            _ => format!("t-{:05}, t-{:05}", number - 1, number / 2),
        };
        let text = format!(
            "---\nid: t-{number:05}\nstatus: {status}\ndeps: [{deps}]\nlinks: []\ncreated: 2026-01-02T03:04:05Z\ntype: task\npriority: {}\nassignee: Al Ice\ntags: [team, ui]\n---\n# Ticket number {number}\n\n{}\n\n## Notes\n\n**2026-01-02T03:04:05Z**\n\nA note of some length, as people write them.\n",
            number % 5,
            "A description of a few lines, which lists do not need. ".repeat(8)
        );
        fs::write(store.join(format!("t-{number:05}.md")), text).unwrap();
    }
}

fn public_tool() -> Option<PathBuf> {
    let named = std::env::var_os("PUBLIC_TK").map(PathBuf::from);
    named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join("ticket")).find(|candidate| candidate.is_file())
    })
}

fn call(project: &Path, program: &Path, arguments: &[&str]) {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{} {arguments:?}", program.display());
}

fn shell(project: &Path, script: &str) {
    assert!(Command::new("sh").args(["-c", script]).current_dir(project).status().unwrap().success());
}

fn best(work: impl FnMut()) -> Duration {
    best_of(ROUNDS, work)
}

fn best_of(rounds: usize, mut work: impl FnMut()) -> Duration {
    (0..rounds).map(|_| time(&mut work)).min().unwrap()
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn line(what: &str, took: Duration, unit: Duration) {
    println!("{what:<36} {:>9.2} ms {:>7.2} x", took.as_secs_f64() * 1e3, took.as_secs_f64() / unit.as_secs_f64());
}
