//! A board that the built binary works on: a repository, ticket files, a scripted agent, a home of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dirigent::ledger::open_for_reading;

use super::Scratch;

/// Long enough for the slowest machine; nothing waits for it when all is well.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Board {
    pub scratch: Scratch,
    /// Where the binary finds other programs.
    path: OsString,
}

/// The front matter besides tracker and agent.
pub const MUTATE: &str = "rollout: {mode: mutate}\npr: {forge: local}\nmerge: {no_checks: pass}\n";
pub const MERGE: &str =
    "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass, require_human_approval: false}\n";

impl Board {
    /// `agent` is a shell script; it is committed as `agent.sh`. `more` is further front matter.
    pub fn new(agent: &str, more: &str) -> Self {
        let board = Self { scratch: Scratch::new(), path: std::env::var_os("PATH").unwrap() };
        board.scratch.write("agent.sh", agent);
        board.workflow(more);
        board.scratch.write(".tickets/.gitignore", ".*\n");
        board.scratch.commit("the board");
        board
    }

    /// As on a machine that has nothing to make a namespace with: every program but those that do is still found.
    pub fn without_namespaces(mut self) -> Self {
        let programs = self.scratch.dir.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        for folder in std::env::split_paths(&self.path) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name() != "bwrap" && entry.file_name() != "unshare" {
                    // The first one of a name counts, as on the PATH.
                    let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
                }
            }
        }
        self.path = programs.into();
        self
    }

    pub fn workflow(&self, more: &str) {
        let text = format!(
            "---\ntracker: {{kind: tk}}\npolling: {{interval_ms: 500}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {{stop_grace_ms: 1000}}\n{more}---\n"
        );
        self.scratch.write("WORKFLOW.md", &text);
    }

    pub fn repo(&self) -> PathBuf {
        self.scratch.repo()
    }

    pub fn home(&self) -> PathBuf {
        self.scratch.dir.path().join("home")
    }

    /// The binary in the repository, with an environment of its own.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dirigent"));
        command
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.scratch.dir.path())
            .env("DIRIGENT_HOME", self.home())
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// The same for a user who is not root, whoever runs the tests. From then on the board is theirs.
    pub fn command_of_an_ordinary_user(&self, args: &[&str]) -> Command {
        let plain = self.command(args);
        if !nix::unistd::geteuid().is_root() {
            return plain;
        }
        let place = self.scratch.dir.path();
        // Nobody may go where the binary was built.
        let binary = place.join("dirigent");
        if !binary.exists() {
            std::fs::copy(plain.get_program(), &binary).unwrap();
            let given = Command::new("chown").args(["-R", "65534:65534"]).arg(place).status().unwrap();
            assert!(given.success());
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(binary);
        command.args(plain.get_args()).current_dir(self.repo()).env_clear().stdin(Stdio::null());
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs to the end and wants success; answers stdout. A run that ended by itself went well even where its tickets did not:
    /// tests that care for its exit code ask for it.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let ended_by_itself = args.contains(&"--once") && matches!(output.status.code(), Some(10..=12));
        assert!(output.status.success() || ended_by_itself, "dirigent {args:?}: {:?}\n{out}\n{err}", output.status);
        out
    }

    /// Runs to the end and wants this exit code; answers stderr.
    pub fn fails(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "dirigent {args:?}\n{out}\n{err}");
        err
    }

    /// A ticket with this id.
    pub fn ticket(&self, id: &str, title: &str) {
        self.ticket_with(id, title, "");
    }

    /// `more` is further front matter of the ticket.
    pub fn ticket_with(&self, id: &str, title: &str, more: &str) {
        let text = format!(
            "---\nid: {id}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n{more}---\n# {title}\n\n"
        );
        // As an editor would: whole or not at all.
        let place = self.repo().join(format!(".tickets/.{id}.new"));
        std::fs::write(&place, text).unwrap();
        std::fs::rename(place, self.ticket_path(id)).unwrap();
    }

    pub fn ticket_path(&self, id: &str) -> PathBuf {
        self.repo().join(format!(".tickets/{id}.md"))
    }

    pub fn ticket_text(&self, id: &str) -> String {
        std::fs::read_to_string(self.ticket_path(id)).unwrap()
    }

    /// Starts `run` in the background.
    pub fn start(&self) -> Runner {
        self.start_with(&[])
    }

    /// The same with more in its environment.
    pub fn start_with(&self, more: &[(&str, &str)]) -> Runner {
        let log = self.scratch.dir.path().join("runner.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child = self
            .command(&["run", "--plain"])
            .envs(more.iter().copied())
            .stderr(file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Runner { child, log }
    }

    /// One value of `status`.
    pub fn status(&self, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["status", "--json"];
        all.extend(args);
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    /// What a command answers as JSON.
    pub fn status_of(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    pub fn phase(&self, id: &str) -> String {
        let output = self.run(&["status", id, "--field", "phase"]);
        text(&output.stdout).trim().to_owned()
    }

    /// Looks until it holds.
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            if began.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.scratch.dir.path().join("runner.log")).unwrap_or_default();
                panic!("never came about: {what}\n{}\n{log}", self.stories());
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Why tickets are where they are, and what is left to be written, for a failure's message.
    fn stories(&self) -> String {
        let seen: serde_json::Value =
            serde_json::from_slice(&self.run(&["status", "--json"]).stdout).unwrap_or_default();
        let ids = seen["jobs"].as_array().into_iter().flatten().filter_map(|job| job["id"].as_str());
        let stories: String = ids.take(10).map(|id| text(&self.run(&["explain", id]).stdout)).collect();
        format!("{stories}\nleft to be written: {:#?}", self.outbox())
    }

    /// What is written down and not confirmed.
    pub fn outbox(&self) -> Vec<String> {
        let folders = std::fs::read_dir(self.home().join("repos")).into_iter().flatten().flatten();
        let ledgers = folders.filter_map(|folder| open_for_reading(&folder.path().join("ledger.db")).ok()?.load().ok());
        ledgers
            .flat_map(|state| state.outbox.values().map(|pending| format!("{pending:?}")).collect::<Vec<_>>())
            .collect()
    }

    pub fn worktrees(&self) -> Vec<PathBuf> {
        let root = self.home().join("workspaces");
        let mut found = Vec::new();
        for repo in std::fs::read_dir(root).into_iter().flatten().flatten() {
            for entry in std::fs::read_dir(repo.path()).into_iter().flatten().flatten() {
                if !entry.file_name().to_string_lossy().starts_with('.') {
                    found.push(entry.path());
                }
            }
        }
        found
    }

    /// Processes of this board's workers, by a word that only they have in their environment.
    pub fn worker_processes(&self) -> Vec<i32> {
        let mark = "DIRIGENT_SOCKET=";
        let home = self.home().display().to_string();
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok())
            .filter(|pid| {
                let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let environ = text(&environ);
                environ.contains(mark) && environ.contains(&home)
            })
            .collect()
    }
}

/// Whether something is being pushed from below `folder`.
pub fn is_pushing(folder: &std::path::Path) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    entries.into_iter().any(|process| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let pushes = command.split(|byte| *byte == 0).any(|word| word == b"push" || word == b"send-pack");
        pushes && std::fs::read_link(process.join("cwd")).is_ok_and(|place| place.starts_with(folder))
    })
}

/// A runner in the background; ends with the test.
pub struct Runner {
    pub child: Child,
    pub log: PathBuf,
}

impl Runner {
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to end and waits for that. One that has only just been started does not listen to signals yet.
    pub fn end(mut self) {
        let began = std::time::Instant::now();
        while !self.listens_to_term() && began.elapsed() < std::time::Duration::from_secs(60) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.signal(nix::sys::signal::Signal::SIGTERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status:?}\n{}", self.log());
    }
}

impl Runner {
    fn listens_to_term(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & (1 << (nix::sys::signal::Signal::SIGTERM as u32 - 1)) != 0)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
