//! A repository, a ticket and a worker over them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dirigent::config::Settings;
use dirigent::config::policy::RolloutMode;
use dirigent::config::worker::Runtime;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::{RunId, TicketId};
use dirigent::domain::job::TicketFacts;
use dirigent::domain::job::Work;
use dirigent::domain::permit::Permit;
use dirigent::domain::run::RunKind;
use dirigent::domain::run::{Activity, RunReport};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::engine::permit::{Circumstances, EffectKind, permit};
use dirigent::engine::route;
use dirigent::launcher::environment::Secrets;
use dirigent::launcher::{Launcher, LocalLauncher};
use dirigent::worker::{
    Control, Inbox, RunOrder, ServiceAccess, TicketSource, Worker, WorkerEvent, Workplace, preparation_lane,
    transcript_path,
};
use dirigent::workflow::{Prompts, Templates};
use dirigent::workspace::{WorkspaceConfig, Workspaces};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Long enough for the slowest client on a busy machine; nothing waits for it when all is well.
pub const PATIENCE: Duration = Duration::from_secs(180);
pub const SECRET: &str = "lin_api_verysecret";

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub settings: Settings,
    pub ticket: Arc<Mutex<Ticket>>,
    pub workspaces: Workspaces,
    pub launcher: Arc<dyn Launcher>,
    pub environment: BTreeMap<String, String>,
    pub service: Option<Arc<dyn ServiceAccess>>,
}

/// A run under way.
pub struct Running {
    pub run: RunId,
    pub control: mpsc::Sender<Control>,
    pub events: mpsc::Receiver<WorkerEvent>,
    pub report: JoinHandle<RunReport>,
}

pub fn allowed(kind: EffectKind) -> Permit {
    let free = Circumstances { switch: None, rollout: RolloutMode::Merge, preflight_missing: false, owned: true };
    permit(kind, &free).unwrap()
}

pub fn fresh_run() -> RunId {
    RunId::new(ulid::Ulid::generate().to_string())
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub async fn poll(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ticket() -> Ticket {
    Ticket {
        id: "t-1".into(),
        key: "t-1".into(),
        title: "Make it work".into(),
        description: Some("Please.".into()),
        priority: None,
        state: "open".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: Some(Author::new("ann", TrustLevel::Admin)),
        labels: Vec::new(),
        blocked_by: Vec::new(),
        parent: None,
        dispatchable: Dispatchable::Yes,
        created_at: None,
        updated_at: None,
        native_ref: None,
        comments: Some(Vec::new()),
        state_changed: None,
        history: Default::default(),
    }
}

/// The board that a run sees: one ticket, which tests change under it.
struct ChangingTicket(Arc<Mutex<Ticket>>);

#[async_trait]
impl TicketSource for ChangingTicket {
    async fn read(&self, _: &TicketId) -> Result<Option<Ticket>, String> {
        Ok(Some(self.0.lock().unwrap().clone()))
    }
}

impl Bench {
    /// A worker whose agent does `acts`, in the words of tests/fakes/agent.sh.
    pub fn new(acts: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        fs::write(repo.join("README"), "hello\n").unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-qm", "Start"]);
        let workspaces = Workspaces::open(WorkspaceConfig::new(&repo, dir.path().join("root"), "main")).unwrap();
        let mut settings = Settings::default();
        settings.worker.runtime = Runtime::Exec;
        settings.tracker.active_states = vec!["open".into()];
        settings.tracker.terminal_states = vec!["closed".into()];
        settings.tracker.trusted = vec![TrustLevel::Admin];
        settings.agent.stop_grace = Duration::from_millis(300);
        // Not the home of whoever runs the tests: what an agent finds there is theirs.
        let environment = BTreeMap::from(
            [
                ("PATH", std::env::var("PATH").unwrap()),
                ("HOME", dir.path().display().to_string()),
                ("LINEAR_API_KEY", SECRET.to_owned()),
                ("COPY", SECRET.to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let launcher = Arc::new(LocalLauncher::start(&dir.path().join("scratch")).unwrap());
        let ticket = Arc::new(Mutex::new(ticket()));
        let mut bench = Self { dir, settings, ticket, workspaces, launcher, environment, service: None };
        bench.acts(acts);
        bench
    }

    pub fn acts(&mut self, acts: &[&str]) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/agent.sh");
        let acts: Vec<String> = acts.iter().map(|act| format!("'{act}'")).collect();
        self.settings.exec.command = format!("exec '{script}' {}", acts.join(" "));
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn worker(&self) -> Worker {
        let tools = self.path("bin");
        dirigent::launcher::environment::install_tools(&tools, Path::new(env!("CARGO_BIN_EXE_dirigent"))).unwrap();
        let ticket = Arc::clone(&self.ticket);
        let sockets = dirigent::worker::desk::socket_directory(None).unwrap();
        let secrets =
            Secrets { names: vec!["LINEAR_API_KEY".into()], values: vec![SecretString::from(SECRET.to_owned())] };
        Worker {
            settings: Arc::new(self.settings.clone()),
            workplace: Workplace::Worktrees(self.workspaces.clone()),
            launcher: Arc::clone(&self.launcher),
            prompts: self.prompts("Work on {{issue.key}}.\nSecond line.", "Go on, turn {{run.turn}}."),
            tickets: Arc::new(ChangingTicket(ticket)),
            preparing: preparation_lane(),
            environment: Arc::new(self.environment.clone()),
            secrets: Arc::new(secrets),
            state_dir: self.path("state"),
            tools,
            sockets,
        }
    }

    /// Prompts that are short enough to be recognised: the first one, and what each later one begins with.
    pub fn prompts(&self, first: &str, later: &str) -> Prompts {
        let own = self.path("templates");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("prompt.md"), first).unwrap();
        fs::write(own.join("continuation.md"), later).unwrap();
        fs::write(own.join("messages.md"), "{{#each messages}}{{text}}\n{{/each}}").unwrap();
        Prompts::new("", "WORKFLOW.md", 0, Templates::load(Some(&own)).unwrap())
    }

    pub fn order(&self) -> RunOrder {
        let policy = Arc::new(self.settings.policy("hash", false));
        let ticket = self.ticket.lock().unwrap().clone();
        let route = route::choose(&policy, &TicketFacts::of(&ticket), RunKind::Implement).unwrap().clone();
        RunOrder {
            run: fresh_run(),
            ticket,
            work: Work::Implement,
            attempt: 1,
            branch: "dirigent/t-1-make-it-work".into(),
            base_branch: "main".into(),
            resume: None,
            route,
            undelivered: Vec::new(),
            previous: None,
            policy,
            rework_cycles: 0,
            reviews: dirigent::domain::job::Reviews::default(),
            base: None,
            cost_left: None,
            service: self.service.clone(),
        }
    }

    pub fn start(&self) -> Running {
        self.start_with(self.worker())
    }

    pub fn start_with(&self, worker: Worker) -> Running {
        let order = self.order();
        let run = order.run.clone();
        let (control, heard) = mpsc::channel(64);
        let (teller, events) = mpsc::channel(64);
        let report =
            tokio::spawn(
                async move { worker.run(allowed(EffectKind::StartRun), order, Inbox::new(heard), teller).await },
            );
        Running { run, control, events, report }
    }

    pub async fn run(&self) -> RunReport {
        self.start().report().await
    }

    pub fn transcript(&self, run: &RunId) -> String {
        String::from_utf8_lossy(&fs::read(transcript_path(&self.path("state"), run)).unwrap()).into_owned()
    }

    /// Worktrees, sockets and processes of a run that should be over.
    pub fn assert_nothing_left(&self, run: &RunId) {
        let trees: Vec<_> = fs::read_dir(self.path("root"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect();
        assert!(trees.is_empty(), "worktrees are left: {trees:?}");
        assert_eq!(git(&self.repo(), &["worktree", "list"]).lines().count(), 1);
        assert_eq!(members(run), Vec::<i32>::new(), "processes are left");
    }

    /// A file's content in a salvage or on a branch.
    pub fn content(&self, revision: &str, file: &str) -> String {
        git(&self.repo(), &["show", &format!("{revision}:{file}")])
    }
}

impl Running {
    pub async fn report(self) -> RunReport {
        let _keep = self.control;
        tokio::time::timeout(PATIENCE, self.report).await.expect("the run ends").expect("the run reports")
    }

    /// Waits until the worker's process is there.
    pub async fn started(&mut self) -> WorkerEvent {
        self.event(|event| matches!(event, WorkerEvent::Started { .. })).await
    }

    pub async fn event(&mut self, wanted: impl Fn(&WorkerEvent) -> bool) -> WorkerEvent {
        let waiting = async {
            loop {
                let event = self.events.recv().await.expect("the run is still there");
                if wanted(&event) {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("the event comes")
    }

    pub async fn activity(&mut self, wanted: impl Fn(&Activity) -> bool) -> Activity {
        match self.event(|event| matches!(event, WorkerEvent::Activity(activity) if wanted(activity))).await {
            WorkerEvent::Activity(activity) => activity,
            WorkerEvent::Started { .. } => unreachable!("only activities were wanted"),
        }
    }
}

/// The processes that carry the run's id.
pub fn members(run: &RunId) -> Vec<i32> {
    let wanted = format!("DIRIGENT_RUN_ID={run}");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
        })
        .collect()
}
