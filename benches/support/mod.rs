//! What the benches share: a board with the built program on it, and what a process costs.
#![allow(dead_code, reason = "each bench uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub struct Board {
    pub dir: tempfile::TempDir,
}

impl Board {
    pub fn new(agent: &str, max_agents: usize) -> Self {
        let settings = format!(
            "worker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\nagent: {{max_concurrent_agents: {max_agents}, stop_grace_ms: 1000}}\nrollout: {{mode: mutate}}"
        );
        Self::with(agent, &settings, 200)
    }

    /// A board whose repository has so many files.
    pub fn with(agent: &str, settings: &str, files: usize) -> Self {
        let board = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(board.repo().join(".tickets")).unwrap();
        std::fs::write(board.repo().join("agent.sh"), agent).unwrap();
        let workflow = format!("---\ntracker: {{kind: tk}}\n{settings}\npr: {{forge: local}}\n---\n");
        std::fs::write(board.repo().join("WORKFLOW.md"), workflow).unwrap();
        for n in 0..files {
            let folder = board.repo().join(format!("folder-{}", n % 100));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("file-{n}.txt")), "text\n".repeat(50)).unwrap();
        }
        git(&board.repo(), &["init", "-q", "-b", "main"]);
        git(&board.repo(), &["config", "user.name", "Somebody"]);
        git(&board.repo(), &["config", "user.email", "somebody@example.invalid"]);
        git(&board.repo(), &["add", "-A"]);
        git(&board.repo(), &["commit", "-qm", "first"]);
        board
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// The runner, once it answers.
    pub fn run(&self) -> Runner {
        let child = self.dirigent(&["run", "--plain"]).spawn().unwrap();
        let runner = Runner(child);
        // Without a runner there are no lanes.
        wait("the runner answers", || self.status()["lanes"].as_array().is_some_and(|lanes| !lanes.is_empty()));
        runner
    }

    pub fn status(&self) -> serde_json::Value {
        let status = self.dirigent(&["status", "--json"]).stdout(Stdio::piped()).output().unwrap();
        serde_json::from_slice(&status.stdout).unwrap_or_default()
    }

    /// How many jobs are in this phase.
    pub fn in_phase(&self, phase: &str) -> usize {
        self.status()["jobs"].as_array().into_iter().flatten().filter(|job| job["phase"] == phase).count()
    }

    pub fn dirigent(&self, args: &[&str]) -> Command {
        // Another build can be measured too.
        let built = std::env::var_os("DIRIGENT_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_dirigent").into());
        let mut command = Command::new(built);
        command
            .args(args)
            .current_dir(self.repo())
            .env("DIRIGENT_HOME", self.dir.path().join("home"))
            // A start reads the login shell once, and somebody's profile is not what is measured.
            .env("HOME", self.dir.path())
            .env("DIRIGENT_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub fn ticket(&self, id: &str) {
        let text = format!(
            "---\nid: {id}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# Ticket {id}\n\n"
        );
        let new = self.repo().join(format!(".tickets/.{id}"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.repo().join(format!(".tickets/{id}.md"))).unwrap();
    }
}

pub struct Runner(pub Child);

impl Drop for Runner {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.0.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

pub fn git(repo: &Path, args: &[&str]) {
    assert!(Command::new("git").args(args).current_dir(repo).status().unwrap().success());
}

pub fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a process holds in memory, in KB.
pub fn rss_kb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What a process has used of the processors so far, its threads that are over included.
pub fn cpu_ms(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks * 1e3 / nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).unwrap().unwrap() as f64
}

pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let gives_up = Instant::now() + Duration::from_secs(300);
    while !is_so() {
        assert!(Instant::now() < gives_up, "{what}: not within five minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}
