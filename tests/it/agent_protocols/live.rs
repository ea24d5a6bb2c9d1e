//! The same scenarios with the real clients. Skipped, with a word about it, where they are not installed. With
//! `DIRIGENT_RECORD=1` each conversation is written down as the fixture of `replay`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dirigent::agent::{AgentEvent, Protocol, Reaction};
use dirigent::domain::ids::SessionId;

use super::clients::{Client, Place, git, opening};
use super::model_server::ModelServer;
use super::recording::{self, Entry};
use super::scenarios::{self, Fact, STEERING, Scenario, Step, Until};

const PATIENCE: Duration = Duration::from_secs(120);

/// The client's program under the prefix, or a word about why there is none.
pub fn installed(client: Client) -> Option<PathBuf> {
    let Some(prefix) = std::env::var_os("DIRIGENT_AGENTS_PREFIX").map(PathBuf::from) else {
        println!("skipped: DIRIGENT_AGENTS_PREFIX is not set (tests/agents/install.sh PREFIX)");
        return None;
    };
    if !prefix.join("bin").join(client.program()).exists() {
        println!("skipped: no {} under {}", client.program(), prefix.display());
        return None;
    }
    Some(prefix)
}

struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    protocol: Box<dyn Protocol>,
}

impl Process {
    fn end(mut self) {
        drop(self.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let group = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

struct Stage<'a> {
    scenario: &'a Scenario,
    place: &'a Place,
    process: Option<Process>,
    session: Option<SessionId>,
    asked: Option<String>,
    events: Vec<AgentEvent>,
    /// Events before this one were already waited for.
    seen: usize,
    record: Vec<Entry>,
}

impl Stage<'_> {
    fn open(&mut self, resume: Option<SessionId>) {
        if let Some(process) = self.process.take() {
            process.end();
        }
        let (client, setup) = (self.scenario.client, self.scenario.setup);
        let plan = self.place.plan(client, setup, resume.clone());
        let mut child = Command::new("bash")
            .args(["-c", &plan.line])
            .current_dir(self.place.worktree())
            .env_clear()
            .envs(self.place.env(client, setup.asks))
            .envs(plan.env)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(stdout.read_until(b'\n', &mut line), Ok(count) if count > 0) {
                if sender.send(line.trim_ascii_end().to_vec()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        self.process = Some(Process { child, stdin, lines, protocol: plan.protocol });
        self.record.push(Entry::Open { resume: resume.clone() });
        let opening = opening(&self.place.worktree(), setup, resume);
        self.act(|protocol| protocol.open(&opening));
    }

    fn act(&mut self, action: impl FnOnce(&mut dyn Protocol) -> Reaction) {
        let process = self.process.as_mut().unwrap();
        let reaction = action(process.protocol.as_mut());
        self.take(reaction);
    }

    fn take(&mut self, reaction: Reaction) {
        let process = self.process.as_mut().unwrap();
        for line in reaction.send {
            // A client that has just died is seen as the end of its lines.
            let _ = process.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes());
            self.record.push(Entry::Sent(line));
        }
        for event in reaction.events {
            match &event {
                AgentEvent::SessionStarted { id } => self.session = Some(id.clone()),
                AgentEvent::Asked { ask, .. } => self.asked = Some(ask.clone()),
                _ => {}
            }
            self.events.push(event);
        }
    }

    fn until(&mut self, until: Until) {
        let wanted = |event: &AgentEvent| match until {
            Until::Ready => matches!(event, AgentEvent::Ready),
            Until::TurnStarted => matches!(event, AgentEvent::TurnStarted),
            Until::ToolStarted => matches!(event, AgentEvent::ToolStarted { .. }),
            Until::Asked => matches!(event, AgentEvent::Asked { .. }),
            Until::TurnEnded => matches!(event, AgentEvent::TurnEnded(_)),
            Until::ResumeFailed => matches!(event, AgentEvent::ResumeFailed { .. }),
            Until::Error => matches!(event, AgentEvent::Error { .. }),
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.events[self.seen..].iter().position(wanted) {
                self.seen += at + 1;
                return;
            }
            let label = format!("{:?}/{} waits for {until:?}", self.scenario.client, self.scenario.name);
            let process = self.process.as_mut().unwrap();
            match process.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let reaction = process.protocol.line(&line);
                    self.record.push(Entry::Got(String::from_utf8_lossy(&line).into_owned()));
                    self.take(reaction);
                }
                Err(RecvTimeoutError::Disconnected) => panic!("{label}, but the client has ended: {:?}", self.events),
                Err(RecvTimeoutError::Timeout) => panic!("{label} for too long: {:?}", self.events),
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Open => self.open(self.session.clone()),
            Step::OpenLost => self.open(Some(SessionId::new("01999999-0000-4000-8000-000000000000"))),
            Step::Prompt(text) => {
                self.record.push(Entry::Prompt((*text).to_owned()));
                self.act(|protocol| protocol.prompt(text));
            }
            Step::Steer(text) => {
                self.record.push(Entry::Steer((*text).to_owned()));
                self.act(|protocol| protocol.steer(text).unwrap());
            }
            Step::Interrupt => {
                self.record.push(Entry::Interrupt);
                self.act(|protocol| protocol.interrupt().unwrap());
            }
            Step::Answer(answer) => {
                let ask = self.asked.take().unwrap();
                self.record.push(Entry::Answer { ask: ask.clone(), answer: answer.clone() });
                self.act(|protocol| protocol.answer(&ask, answer));
            }
            Step::Until(until) => self.until(*until),
        }
    }
}

fn run(scenario: &Scenario, prefix: &Path) {
    let logs = tempfile::tempdir().unwrap();
    let model = ModelServer::start(&logs.path().join("requests.jsonl"));
    let place = Place::new(prefix, model.port);
    let mut stage = Stage {
        scenario,
        place: &place,
        process: None,
        session: None,
        asked: None,
        events: Vec::new(),
        seen: 0,
        record: Vec::new(),
    };
    for step in &scenario.steps {
        stage.step(step);
        if matches!(step, Step::Until(Until::TurnEnded)) {
            facts_after_a_turn(scenario, &place, &stage.events);
        }
    }
    stage.process.take().unwrap().end();
    end_all_in(&place.worktree());
    scenarios::check(scenario, &stage.events);
    if scenario.facts.contains(&Fact::ModelSawSteering) {
        assert!(model.heard().contains(STEERING), "{:?}: the model was never told", scenario.client);
    }
    if scenario.facts.contains(&Fact::SteeringNotLost) {
        let told = stage.events.iter().any(|event| matches!(event, AgentEvent::SteerFailed { .. }));
        assert!(told || model.heard().contains(STEERING), "{:?}: {:?}", scenario.client, stage.events);
    }
    if std::env::var_os("DIRIGENT_RECORD").is_some() {
        recording::save(&recording::file(scenario.client, scenario.name), &stage.record, &place);
    }
}

fn facts_after_a_turn(scenario: &Scenario, place: &Place, events: &[AgentEvent]) {
    let worktree = place.worktree();
    for fact in &scenario.facts {
        match fact {
            Fact::Committed => {
                let subject = git(&worktree, &["log", "-1", "--format=%s"]);
                assert_eq!(subject, "Add hello.txt", "{:?}: {events:?}", scenario.client);
            }
            Fact::NothingWritten => assert!(!worktree.join("written.txt").exists()),
            Fact::NoChildLeft => no_sleeper_left(&worktree),
            Fact::ModelSawSteering | Fact::SteeringNotLost => {}
        }
    }
}

/// What the client's shell left behind must not outlive the scenario.
fn end_all_in(worktree: &Path) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == worktree);
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|_| here) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// How many of the `sleep 600` of an endless command run in the worktree.
pub fn sleepers(worktree: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == worktree))
        .filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(b"sleep\x00600")))
        .count()
}

fn no_sleeper_left(worktree: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while sleepers(worktree) > 0 {
        assert!(Instant::now() < deadline, "the interrupted command is still running");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn run_all(client: Client) {
    let Some(prefix) = installed(client) else { return };
    let only = std::env::var("DIRIGENT_SCENARIO").ok();
    let mut failed = Vec::new();
    for scenario in scenarios::all().iter().filter(|scenario| scenario.client == client) {
        if only.as_deref().is_none_or(|only| only == scenario.name) {
            println!("{client:?}/{}", scenario.name);
            if std::panic::catch_unwind(|| run(scenario, &prefix)).is_err() {
                failed.push(scenario.name);
            }
        }
    }
    assert!(failed.is_empty(), "{client:?} failed: {failed:?}");
}

#[test]
fn codex_holds_its_conversations() {
    run_all(Client::Codex);
}

#[test]
fn claude_holds_its_conversations() {
    run_all(Client::Claude);
}

#[test]
fn pi_holds_its_conversations() {
    run_all(Client::Pi);
}

#[test]
fn opencode_holds_its_conversations() {
    run_all(Client::Opencode);
}
