//! The real runner is killed at every named place of `src/` in turn and started again; git, tickets, processes and
//! worktrees are then looked at from outside.
//!
//! The places are read from the sources: one that the scenario does not reach fails the test. See docs/reliability.md.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Long enough for the slowest machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// Effects that no run of the scenario performs as a task of its own, and why.
const NOT_PERFORMED: [(&str, &str); 15] = [
    ("start_run", "has its own places: run.*"),
    ("stop_run", "only sends to a worker that is there"),
    ("steer", "only sends to a worker that is there"),
    ("notify", "only writes a log line"),
    ("add_labels", "only done where somebody asks for a run in a comment, and nobody does here"),
    ("acknowledge", "only done where somebody tells us something in a comment, and nobody does here"),
    ("dequeue", "only done where a forge has a merge queue of its own; the local one has none"),
    ("check_remark", "only asked for a remark that its ticket does not have any more, and nobody deletes one here"),
    ("answer_thread", "only done where a forge has conversations; the local one has none"),
    ("review_comment", "only done where a review is asked for; this board asks for none"),
    ("request_review", "only done where a forge has reviewers; the local one has none"),
    ("update_pr", "only done where a forge has drafts and texts of its own; the local one has none"),
    ("publish_gates", "only done where a forge shows statuses; the local one reads the gates themselves"),
    ("attach_link", "only done where a board keeps links; ticket files have none"),
    ("rerun_checks", "only done where a forge runs checks; the local one has the gates"),
];

/// One ticket goes well and asks for another one; one fails with uncommitted work the first time.
const AGENT: &str = r#"set -eu
key="$DIRIGENT_TICKET_KEY"
if [ "$key" = t-messy ] && [ ! -e "$HOME/messed" ]; then
  echo part > "part-$key.txt"
  git add -A
  git diff --cached --quiet || git commit -qm "Begin $key"
  echo precious > "precious-$key.txt"
  touch "$HOME/messed"
  exit 1
fi
echo work > "$key.txt"
git add -A
git diff --cached --quiet || git commit -qm "Do $key"
tk comment "I work on $key"
if [ "$key" = t-good ] && [ ! -e "$HOME/followed" ]; then
  touch "$HOME/followed"
  tk create "Something more"
fi
tk done "it is done"
"#;

const WORKFLOW: &str = "---
tracker: {kind: tk}
polling: {interval_ms: 300}
worker: {runtime: exec}
exec: {command: sh ./agent.sh}
agent: {stop_grace_ms: 1000, max_retry_backoff_ms: 50}
rollout: {mode: merge}
pr: {forge: local, closed_pr_policy: reopen}
merge: {mode: auto, no_checks: pass, require_human_approval: false}
gates: {task: [\"true\"], allow_followups: true}
hooks: {after_create: \"true\", before_run: \"true\", after_run: \"true\", before_remove: \"true\"}
orchestration: {phase_store: workpad, comment_min_interval_ms: 0}
---
";

struct Board {
    dir: tempfile::TempDir,
}

impl Board {
    fn new() -> Self {
        let board = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(board.repo().join(".tickets")).unwrap();
        board.git(&["init", "-q", "-b", "main"]);
        board.git(&["config", "user.name", "Somebody"]);
        board.git(&["config", "user.email", "somebody@example.invalid"]);
        board.git(&["config", "commit.gpgsign", "false"]);
        board.write("agent.sh", AGENT);
        board.write("WORKFLOW.md", WORKFLOW);
        // A person may change the workflow on the way, and the tree is looked at in the end.
        board.write(".gitignore", ".tickets/\n.dirigent/\nWORKFLOW.md\n");
        board.git(&["add", "-A"]);
        board.git(&["commit", "-q", "-m", "the board"]);
        for (id, title) in [("t-good", "Go well"), ("t-messy", "Fail once")] {
            let text = format!(
                "---\nid: {id}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# {title}\n\n"
            );
            board.write(&format!(".tickets/{id}.md"), &text);
        }
        board
    }

    fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.repo().join(file), text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").args(args).current_dir(self.repo()).env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("runner.log")).unwrap_or_default()
    }

    /// `run --once` to its end, by itself or at the place.
    fn run(&self, env: &[(&str, &str)]) -> ExitStatus {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.dir.path().join("runner.log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dirigent"))
            .args(["run", "--once", "--plain"])
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("DIRIGENT_HOME", self.home())
            .env("LANG", "C.UTF-8")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if began.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the runner does not end\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The ticket files by name.
    fn tickets(&self) -> BTreeMap<String, String> {
        std::fs::read_dir(self.repo().join(".tickets"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "md"))
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| {
                let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(entry.path()).unwrap())
            })
            .collect()
    }

    fn all_closed(&self) -> bool {
        self.tickets().values().all(|text| text.contains("\nstatus: closed\n"))
    }

    /// Works until everything waits for an approval; then a person deletes the branch of one pull request.
    fn lose_a_branch(&self) {
        self.write("WORKFLOW.md", &WORKFLOW.replace("require_human_approval: false", "require_human_approval: true"));
        let opened = |text: &String| text.contains("<!-- dirigent:pr:");
        for _ in 0..20 {
            let status = self.run(&[]);
            assert!(status.success(), "{status:?}\n{}", self.log());
            let tickets = self.tickets();
            if tickets.len() == 3 && tickets.values().all(opened) {
                let branch = self.git(&["branch", "--list", "--format=%(refname:short)", "dirigent/t-good*"]);
                self.git(&["branch", "-q", "-D", &branch]);
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("nothing waits for an approval: {:#?}\n{}", self.tickets(), self.log());
    }

    /// Starts again and again, as a service manager would, until the board is worked off.
    fn finish(&self) {
        for _ in 0..20 {
            let status = self.run(&[]);
            assert!(status.success(), "a start after the crash ended with {status:?}\n{}", self.log());
            if self.all_closed() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the board is not worked off: {:#?}\n{}", self.tickets(), self.log());
    }

    /// A runner dies in the middle, and the ledger is made one of the version before, as if it had been that one's.
    fn leave_an_older_ledger(&self) {
        let first = self.run(&[("DIRIGENT_FAILPOINT", "run.process_spawned")]);
        assert_eq!(first.signal(), Some(9), "nothing was begun");
        let ledger = folders(&self.home().join("repos")).pop().unwrap().join("ledger.db");
        let db = rusqlite::Connection::open(ledger).unwrap();
        let back = "PRAGMA auto_vacuum = NONE;
            DROP INDEX notes_by_age; DROP INDEX runs_by_age; DROP INDEX jobs_archived; DROP INDEX jobs_live;
            ALTER TABLE runs DROP COLUMN spared; ALTER TABLE jobs DROP COLUMN archived;
            PRAGMA user_version = 1; VACUUM;";
        db.execute_batch(back).unwrap();
    }

    /// The ledger is a whole one, can shrink, and of an older one exactly one copy was kept.
    fn check_ledger(&self, was_older: bool) {
        let folder = folders(&self.home().join("repos")).pop().unwrap();
        let db = rusqlite::Connection::open(folder.join("ledger.db")).unwrap();
        let answer = |sql: &str| db.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        assert_eq!(answer("PRAGMA integrity_check"), "ok".to_owned().into());
        assert_eq!(answer("PRAGMA auto_vacuum"), 2.into());
        let names = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        let mut kept: Vec<String> = names.filter(|name| name.starts_with("ledger.db.")).collect();
        kept.sort();
        assert_eq!(kept, if was_older { vec!["ledger.db.v1"] } else { Vec::new() });
    }

    fn processes(&self) -> Vec<i32> {
        let mark = format!("HOME={}", self.dir.path().display());
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok())
            .filter(|pid| {
                let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
            })
            .collect()
    }

    /// What must hold whatever happened before.
    fn check(&self) {
        let tickets = self.tickets();
        for (name, text) in &tickets {
            let mut seen = BTreeSet::new();
            for marker in text.lines().filter(|line| line.starts_with("<!-- dirigent:")) {
                assert!(seen.insert(marker), "{name} has {marker} twice:\n{text}");
            }
            assert_eq!(text.matches("## Dirigent Workpad").count(), 1, "the workpads of {name}:\n{text}");
        }
        let titles = self.git(&["log", "main", "--format=%s"]);
        let files = self.git(&["ls-tree", "--name-only", "main"]);
        for name in tickets.keys() {
            let merges = titles.lines().filter(|title| title.starts_with(&format!("{name}: "))).count();
            assert_eq!(merges, 1, "{name} was merged {merges} times:\n{titles}");
            assert!(files.lines().any(|file| file == format!("{name}.txt")), "{name} is not in main:\n{files}");
        }
        assert_eq!(titles.lines().count(), 1 + tickets.len(), "{titles}");
        for commit in self.git(&["log", "main", "--format=%H", "--grep=^Ticket: "]).lines() {
            let note = self.git(&["notes", "--ref=dirigent", "show", commit]);
            assert_eq!(note.matches("in-toto.io/Statement").count(), 1, "the receipts of {commit}:\n{note}");
        }
        assert_eq!(self.git(&["status", "--porcelain"]), "", "the user's tree does not follow");

        let salvaged = self.git(&["for-each-ref", "--format=%(refname)", "refs/dirigent/salvage"]);
        let kept = salvaged.lines().any(|name| {
            self.git(&["ls-tree", "--name-only", "-r", name]).lines().any(|file| file == "precious-t-messy.txt")
        });
        assert!(kept, "uncommitted work was lost; salvaged: {salvaged}");

        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
        let branches = self.git(&["branch", "--list", "--format=%(refname:short)"]);
        assert_eq!(branches, "main", "branches of merged work stay");
        let left: Vec<PathBuf> = folders(&self.home().join("workspaces"))
            .iter()
            .flat_map(|repo| folders(repo))
            .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let began = Instant::now();
        while !self.processes().is_empty() {
            assert!(began.elapsed() < PATIENCE, "processes are left: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The names of all effects, as the permit knows them.
fn effect_kinds(src: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(src.join("engine/permit.rs")).unwrap();
    let (_, names) = text.split_once("pub fn name(self)").unwrap();
    let (names, _) = names.split_once("\n    }\n").unwrap();
    let kinds: Vec<String> = names.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(kinds.len() > 10, "{kinds:?}");
    for (name, _) in NOT_PERFORMED {
        assert!(kinds.iter().any(|kind| kind == name), "{name} is no effect any more");
    }
    kinds.into_iter().filter(|kind| NOT_PERFORMED.iter().all(|(name, _)| name != kind)).collect()
}

/// Every place in the sources.
fn places() -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let kinds = effect_kinds(&src);
    let mut places = BTreeSet::new();
    for path in sources(&src).into_iter().filter(|path| !path.ends_with("failpoint.rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, opening) in text.match_indices("failpoint!(\"") {
            let (name, rest) = text[at + opening.len()..].split_once('"').unwrap();
            let names = if rest.starts_with(')') {
                vec![name.to_owned()]
            } else {
                kinds.iter().map(|kind| format!("{name}.{kind}")).collect()
            };
            for name in names {
                assert!(places.insert(name.clone()), "two places are called {name} ({})", path.display());
            }
        }
    }
    assert!(places.len() > 30, "{places:?}");
    places.into_iter().collect()
}

/// Kills there, starts again, looks. `None` when the place was not passed that often.
fn crash_at(place: &str, passage: u32) -> Option<()> {
    let board = Board::new();
    if place.starts_with("recovery.") {
        let first = board.run(&[("DIRIGENT_FAILPOINT", "run.process_spawned")]);
        assert_eq!(first.signal(), Some(9), "there is no run to recover");
    }
    let upgrades = place.starts_with("upgrade.");
    if upgrades {
        board.leave_an_older_ledger();
    }
    let reopens = place.ends_with(".reopen_pr");
    if reopens {
        board.lose_a_branch();
    }
    let armed = format!("{place}:{passage}");
    let mut status = board.run(&[("DIRIGENT_FAILPOINT", &armed)]);
    // A retry may only be due in the next start.
    for _ in 0..5 {
        if status.success() && !board.all_closed() {
            std::thread::sleep(Duration::from_millis(100));
            status = board.run(&[("DIRIGENT_FAILPOINT", &armed)]);
        }
    }
    if status.success() {
        return None;
    }
    assert_eq!(status.signal(), Some(9), "the runner ended by itself: {status:?}\n{}", board.log());
    if reopens {
        let status = board.run(&[]);
        assert!(status.success(), "{status:?}\n{}", board.log());
        let branch = board.git(&["branch", "--list", "--format=%(refname:short)", "dirigent/t-good*"]);
        assert_eq!(branch.lines().count(), 1, "the branch of the closed pull request is not back\n{}", board.log());
        board.write("WORKFLOW.md", WORKFLOW);
    }
    board.finish();
    board.check();
    board.check_ledger(upgrades);
    Some(())
}

/// Places that are passed at every step are tried at more than the first passage.
fn passages(place: &str) -> &'static [u32] {
    let often = ["driver.", "ledger.in_transaction", "ledger.committed"];
    if often.iter().any(|start| place.starts_with(start)) { &[1, 4, 9, 16, 25] } else { &[1] }
}

#[test]
fn a_crash_at_any_place_is_survived() {
    let mut work: Vec<(String, u32)> =
        places().iter().flat_map(|place| passages(place).iter().map(|passage| (place.clone(), *passage))).collect();
    if let Ok(only) = std::env::var("DIRIGENT_CRASH_ONLY") {
        work.retain(|(place, _)| place.contains(&only));
    }
    let total = work.len();
    let work = Mutex::new(work);
    let wrong = Mutex::new(Vec::new());
    let threads: usize = std::env::var("DIRIGENT_CRASH_THREADS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((place, passage)) = { work.lock().unwrap().pop() } {
                    let result = std::panic::catch_unwind(|| crash_at(&place, passage));
                    match result {
                        Ok(Some(())) => {}
                        Ok(None) if passage > 1 => {}
                        Ok(None) => wrong.lock().unwrap().push(format!("{place}: never reached")),
                        Err(panic) => {
                            let said = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "?".to_owned());
                            wrong.lock().unwrap().push(format!("{place}:{passage}: {said}"));
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {total} crashes were not survived:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn the_scenario_without_a_crash_holds_what_is_checked_after_one() {
    let board = Board::new();
    board.finish();
    board.check();
}
