//! The real driver and the real poller over a board, a forge and workers that are made up.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dirigent::config::Settings;
use dirigent::config::merge::{MergeMode, NoChecks};
use dirigent::config::policy::{ForgeKind, Policy, RolloutMode};
use dirigent::domain::basis::BoardMark;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommitId, RunId, TicketId, TicketKey};
use dirigent::domain::job::Job;
use dirigent::domain::permit::Permit;
use dirigent::domain::remark::RemarkAnswer;
use dirigent::domain::run::{Activity, Declared, FinishedRun, ProcessMark, RunOutcome, RunReport};
use dirigent::domain::snapshot::{JobView, Snapshot};
use dirigent::domain::ticket::{Dispatchable, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::event::Event;
use dirigent::engine::state::{Changes, Note, State};
use dirigent::ledger::{Ledger, LedgerError, LedgerReader, Pruned, SqliteLedger};
use dirigent::runtime::{
    self, Adapters, Driver, DriverError, DriverParts, GateLimits, GateOrder, Gatekeeper, HaltReceiver, Handle,
    KeptReceipt, Lanes, PollerParts, ReceiptOrder, RunHost, Until, plan_of,
};
use dirigent::worker::{Control, Inbox, ReclaimOrder, Reclaimed, RunOrder, WorkerEvent};
use dirigent::workflow::{Templates, Texts};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::board::PATIENCE;
use super::troubled::{TroubledForge, TroubledTracker};

pub fn ticket(name: &str) -> Ticket {
    Ticket {
        id: TicketId::new(name),
        key: name.into(),
        title: format!("Candidate {name}"),
        description: None,
        priority: Some(2),
        state: "open".into(),
        branch_name: None,
        url: None,
        assignee: None,
        author: Some(Author::new("somebody", TrustLevel::Admin)),
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

/// What a made-up worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Works until it is told to stop.
    UntilStopped,
    /// Commits and declares its work done.
    Commits,
    Panics,
    /// Asks first; then commits when somebody says something, and says nothing about it; then declines everything.
    Converses,
}

/// Workers that are made up, and what they were told.
#[derive(Debug)]
pub struct MadeUpHost {
    pub play: Play,
    pub runs: AtomicUsize,
    pub heard: Mutex<Vec<Control>>,
    pub reclaimed: Mutex<Vec<RunId>>,
    pub reclaim_panics: AtomicBool,
    pub at_gates: AtomicUsize,
    pub most_at_gates: AtomicUsize,
    /// Gates go on while this is true.
    pub gates_open: watch::Sender<bool>,
}

impl MadeUpHost {
    pub fn new(play: Play) -> Self {
        Self {
            play,
            runs: AtomicUsize::new(0),
            heard: Mutex::default(),
            reclaimed: Mutex::default(),
            reclaim_panics: AtomicBool::new(false),
            at_gates: AtomicUsize::new(0),
            most_at_gates: AtomicUsize::new(0),
            gates_open: watch::channel(true).0,
        }
    }
}

fn commit(name: &str) -> CommitId {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    CommitId::new(format!("{digits:0<40.40}"))
}

#[async_trait]
impl RunHost for MadeUpHost {
    async fn run(&self, _: Permit, order: RunOrder, mut heard: Inbox, events: mpsc::Sender<WorkerEvent>) -> RunReport {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let base = Some(commit("base"));
        let process = ProcessMark { pid: std::process::id() as i32, started_ticks: 1 };
        let worktree = format!("/nowhere/{}", order.run).into();
        let _ = events.send(WorkerEvent::Started { process, worktree, head: base.clone() }).await;
        match self.play {
            Play::Panics => panic!("the worker panics on purpose"),
            Play::Commits => {
                let mut report = RunReport::bare(RunOutcome::Done);
                report.declared = Some(Declared::Done { summary: "done".into() });
                report.base = base.clone();
                report.head_before = base;
                report.head = Some(commit(&format!("{}{}", order.attempt, order.ticket.key)));
                report.commits_ahead = 1;
                report
            }
            Play::Converses => converse(&order, &mut heard, &events).await,
            Play::UntilStopped => loop {
                let control = heard.next().await;
                self.heard.lock().unwrap().push(control.clone());
                if let Control::Stop(reason) = control {
                    return RunReport::bare(RunOutcome::Killed { reason });
                }
            },
        }
    }

    async fn reclaim(&self, order: ReclaimOrder) -> Reclaimed {
        self.reclaimed.lock().unwrap().push(order.run);
        assert!(!self.reclaim_panics.load(Ordering::SeqCst), "reclaiming panics on purpose");
        Reclaimed::default()
    }

    async fn gate(&self, _: Permit, _: GateOrder, mut halt: HaltReceiver) -> Result<Vec<GateResult>, String> {
        let now = self.at_gates.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_gates.fetch_max(now, Ordering::SeqCst);
        let mut open = self.gates_open.subscribe();
        let halted = tokio::select! {
            _ = open.wait_for(|open| *open) => false,
            _ = halt.wait_for(Option::is_some) => true,
        };
        self.at_gates.fetch_sub(1, Ordering::SeqCst);
        if halted { Err("halted".into()) } else { Ok(Vec::new()) }
    }

    async fn base_commit(&self) -> Option<CommitId> {
        None
    }

    async fn keep_receipt(&self, _: Permit, order: ReceiptOrder) -> Result<KeptReceipt, String> {
        Ok(KeptReceipt { payload: order.payload, signature: None, unsigned: None })
    }

    async fn clean_up(&self, _: Permit, _: TicketId, _: TicketKey) -> Result<Option<String>, String> {
        Ok(None)
    }
}

/// A run of a worker that people talk to.
async fn converse(order: &RunOrder, heard: &mut Inbox, events: &mpsc::Sender<WorkerEvent>) -> RunReport {
    let tell = async |activity: Activity| drop(events.send(WorkerEvent::Activity(activity)).await);
    let mut report = RunReport::bare(RunOutcome::Done);
    let mut keys: Vec<_> = order.undelivered.iter().filter_map(|message| message.key.clone()).collect();
    tell(Activity::Delivered { remarks: keys.clone() }).await;
    if order.attempt == 1 {
        report.declared = Some(Declared::Blocked { reason: "which name?".into() });
        return report;
    }
    let mut waits = order.attempt == 2;
    while waits {
        match heard.next().await {
            Control::Steer(message) => {
                keys.extend(message.key);
                tell(Activity::Delivered { remarks: keys.clone() }).await;
                waits = false;
            }
            Control::Stop(reason) => return RunReport::bare(RunOutcome::Killed { reason }),
            _ => {}
        }
    }
    for remark in keys.into_iter().filter(|_| order.attempt > 2) {
        let answer = RemarkAnswer::Declined { text: "it has to be so".into() };
        tell(Activity::AnsweredRemark { remark, answer }).await;
    }
    report.declared = Some(Declared::Done { summary: "it is done".into() });
    report.base = Some(commit("base"));
    report.head_before = order.previous.as_ref().and_then(|run| run.head.clone()).or_else(|| report.base.clone());
    report.head = Some(commit(&format!("{}{}", order.attempt, order.ticket.key)));
    report.commits_ahead = order.attempt - 1;
    report
}

/// A ledger on a disk that may be full.
pub struct FullDisk {
    ledger: SqliteLedger,
    pub full: Arc<AtomicBool>,
}

impl LedgerReader for FullDisk {
    fn load(&self) -> Result<State, LedgerError> {
        self.ledger.load()
    }

    fn jobs(&self, ids: &[TicketId]) -> Result<Vec<Job>, LedgerError> {
        self.ledger.jobs(ids)
    }

    fn archived_named(&self, name: &str) -> Result<Vec<Job>, LedgerError> {
        self.ledger.archived_named(name)
    }

    fn archived(&self, newest: usize) -> Result<Vec<Job>, LedgerError> {
        self.ledger.archived(newest)
    }

    fn archived_count(&self) -> Result<usize, LedgerError> {
        self.ledger.archived_count()
    }

    fn notes(&self, ticket: Option<&TicketId>, newest: usize) -> Result<Vec<Note>, LedgerError> {
        self.ledger.notes(ticket, newest)
    }

    fn finished_runs(&self, ticket: &TicketId) -> Result<Vec<FinishedRun>, LedgerError> {
        self.ledger.finished_runs(ticket)
    }

    fn finished_run(&self, run: &RunId) -> Result<Option<FinishedRun>, LedgerError> {
        self.ledger.finished_run(run)
    }

    fn has_preflight(&self, hash: &str) -> Result<bool, LedgerError> {
        self.ledger.has_preflight(hash)
    }

    fn check(&self) -> Result<(), LedgerError> {
        self.ledger.check()
    }
}

impl Ledger for FullDisk {
    fn commit(&mut self, state: &State, changes: &Changes) -> Result<(), LedgerError> {
        if self.full.load(Ordering::SeqCst) {
            let source = std::io::Error::other("no space left on the device");
            return Err(LedgerError::Folder { path: "ledger.db".into(), source });
        }
        self.ledger.commit(state, changes)
    }

    fn board_mark(&self) -> Result<Option<BoardMark>, LedgerError> {
        self.ledger.board_mark()
    }

    fn keep_board_mark(&mut self, mark: &BoardMark) -> Result<(), LedgerError> {
        self.ledger.keep_board_mark(mark)
    }

    fn record_preflight(&mut self, hash: &str, at: Timestamp) -> Result<(), LedgerError> {
        self.ledger.record_preflight(hash, at)
    }

    fn prune(&mut self, now: Timestamp, keep_days: u32) -> Result<Pruned, LedgerError> {
        self.ledger.prune(now, keep_days)
    }
}

/// A runner in pieces, not yet going.
pub struct Stage {
    pub board: Arc<TroubledTracker>,
    pub forge: Arc<TroubledForge>,
    pub host: Arc<MadeUpHost>,
    pub policy: Policy,
    pub gates: GateLimits,
    pub disk_full: Arc<AtomicBool>,
    /// What an earlier life left; else there was none.
    pub past: Option<State>,
}

impl Stage {
    /// A board with these tickets. Everything may be done, and nothing but the worker stands before a merge.
    pub fn new(tickets: &[&str], play: Play) -> Self {
        let mut settings = Settings::default();
        settings.rollout.mode = RolloutMode::Merge;
        settings.merge.mode = MergeMode::Auto;
        settings.merge.no_checks = NoChecks::Pass;
        settings.merge.require_human_approval = false;
        let mut policy = settings.policy("hash", false);
        policy.pr.forge = ForgeKind::Github;
        policy.merge.checks_grace = Duration::ZERO;
        policy.polling_interval = Duration::from_secs(10);
        Self {
            board: Arc::new(TroubledTracker::new(tickets.iter().map(|name| ticket(name)))),
            forge: Arc::new(TroubledForge::default()),
            host: Arc::new(MadeUpHost::new(play)),
            policy,
            gates: GateLimits::default(),
            disk_full: Arc::new(AtomicBool::new(false)),
            past: None,
        }
    }

    /// Puts it together without letting it go.
    pub async fn assemble(self) -> (Ready, Handle) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&dir.path().join("ledger.db")).unwrap();
        let ledger = FullDisk { ledger, full: self.disk_full.clone() };
        let mut state = self.past.clone().unwrap_or_else(|| ledger.load().unwrap());
        state.meta.comment_key = "a key for tests".into();
        let moment = Arc::new(AtomicU64::new(state.moment().0));
        let first = runtime::recover(&state, self.host.clone()).await;
        let kill_file = dir.path().join("pause");
        let policy = Arc::new(self.policy.clone());
        let (plan, plan_seen) = watch::channel(plan_of(&policy));
        let (kill_sender, kill_seen) = watch::channel(kill_file.clone());
        let (poll_wanted, wanted) = mpsc::channel(1);
        let (lanes, lane_news) = Lanes::new(self.gates);
        let lanes = Arc::new(lanes);
        let adapters = Adapters {
            tracker: self.board.clone(),
            forge: Some(self.forge.clone()),
            host: self.host.clone(),
            texts: Arc::new(Texts::new(Templates::load(None).unwrap(), "workpad")),
            lanes: lanes.clone(),
            gate_limits: self.gates,
        };
        let (driver, handle) = Driver::new(DriverParts {
            state,
            policy,
            ledger: Box::new(ledger),
            keep_days: 180,
            adapters,
            gatekeeper: Arc::new(Gatekeeper::new(&kill_file)),
            plan,
            kill_file: kill_sender,
            poll_wanted,
            until: Until::Told,
            recorder: None,
            moment: moment.clone(),
            lane_news,
            warnings: Vec::new(),
            policies: Vec::new(),
        });
        let poller = PollerParts {
            tracker: self.board.clone(),
            host: self.host.clone(),
            lanes,
            plan: plan_seen,
            wanted,
            inbox: handle.inbox.clone(),
            deliveries: handle.deliveries.clone(),
            refresh_waits: handle.refresh_waits.clone(),
            moment,
            told: None,
        };
        (Ready { stage: self, driver, first, poller, handle: handle.clone(), dir, kill_seen }, handle)
    }

    pub async fn start(self) -> Driven {
        self.assemble().await.0.start()
    }
}

/// A runner that has everything and does not go yet: messages can be put into its inbox.
pub struct Ready {
    pub stage: Stage,
    driver: Driver,
    first: Event,
    poller: PollerParts,
    handle: Handle,
    dir: tempfile::TempDir,
    kill_seen: watch::Receiver<std::path::PathBuf>,
}

impl Ready {
    /// Whoever makes this file stops everything.
    pub fn kill_file(&self) -> std::path::PathBuf {
        self.dir.path().join("pause")
    }

    pub fn start(self) -> Driven {
        let mut driven = self.start_without_polls();
        let poller = driven.poller.take().unwrap();
        driven.polling = Some(tokio::spawn(runtime::poll(poller)));
        driven
    }

    /// For tests that tell the driver of the board themselves.
    pub fn start_without_polls(self) -> Driven {
        let running = tokio::spawn(self.driver.run(self.first));
        Driven {
            stage: self.stage,
            handle: self.handle,
            running,
            polling: None,
            poller: Some(self.poller),
            _kept: (self.dir, self.kill_seen),
        }
    }
}

/// A runner at work.
pub struct Driven {
    pub stage: Stage,
    pub handle: Handle,
    pub running: JoinHandle<Result<State, DriverError>>,
    pub polling: Option<JoinHandle<()>>,
    poller: Option<PollerParts>,
    _kept: (tempfile::TempDir, watch::Receiver<std::path::PathBuf>),
}

impl Driven {
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.handle.snapshot()
    }

    pub fn job(&self, key: &str) -> Option<JobView> {
        self.snapshot().jobs.iter().find(|job| job.key == key).cloned()
    }

    /// Waits in the clock of the test, which may be a quick one; the patience is real.
    pub async fn until(&self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let (began, told) = (Instant::now(), tokio::time::Instant::now());
        while !done(self) {
            let waited = told.elapsed();
            // An hour in a clock that passes by itself is as good as for ever.
            let hopeless = waited > Duration::from_secs(60 * 60) && began.elapsed() > PATIENCE / 4;
            assert!(
                !hopeless && began.elapsed() < PATIENCE,
                "still waiting after {waited:?}: {what}\n{:?}",
                self.snapshot()
            );
            assert!(!self.running.is_finished(), "the driver ended: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.running.abort();
        if let Some(polling) = &self.polling {
            polling.abort();
        }
    }
}
