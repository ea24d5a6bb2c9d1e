//! How often the board is asked in an hour, and that ten minutes of errors stop nobody. The driver and the poller are the real
//! ones; the board and the workers are made up, and thirty seconds between two polls pass in a moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dirigent::config::Settings;
use dirigent::config::policy::{ForgeKind, RolloutMode};
use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommentId, CommitId, TicketId, TicketKey};
use dirigent::domain::permit::Permit;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::{ProcessMark, RunOutcome, RunReport, StopReason};
use dirigent::domain::ticket::{Dispatchable, NewTicket, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::ledger::{LedgerReader, SqliteLedger};
use dirigent::runtime::{
    self, Adapters, Driver, DriverParts, GateOrder, Gatekeeper, HaltReceiver, PollerParts, RunHost, Until, plan_of,
};
use dirigent::tracker::memory::MemoryTracker;
use dirigent::tracker::{
    Account, Capabilities, CommentFound, Edited, Found, Move, Reaction, Tracker, TrackerError, Written,
};
use dirigent::worker::{Control, ReclaimOrder, Reclaimed, RunOrder, WorkerEvent};
use dirigent::workflow::{Templates, Texts};
use tokio::sync::{mpsc, watch};

use crate::support::board::PATIENCE;

/// Counts what is asked of a board far away, which does not tell of its changes by itself.
struct Counted {
    board: MemoryTracker,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    down: AtomicBool,
}

impl Counted {
    fn called(&self, name: &'static str) -> Result<(), TrackerError> {
        *self.calls.lock().unwrap().entry(name).or_default() += 1;
        match self.down.load(Ordering::SeqCst) {
            true => Err(TrackerError::Status { status: 500, detail: "internal error".into() }),
            false => Ok(()),
        }
    }

    /// Waits until the board was listed so often.
    async fn polled(&self, often: usize) {
        let listed = || self.calls.lock().unwrap().get("list").copied().unwrap_or_default();
        let began = Instant::now();
        while listed() < often {
            assert!(began.elapsed() < PATIENCE, "polled {} times of {often}", listed());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What was asked since the last time.
    fn count(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

#[async_trait]
impl Tracker for Counted {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        self.board.capabilities()
    }

    async fn whoami(&self) -> Result<Account, TrackerError> {
        self.called("whoami")?;
        self.board.whoami().await
    }

    async fn permission(&self, login: &str) -> Result<TrustLevel, TrackerError> {
        self.called("permission")?;
        self.board.permission(login).await
    }

    async fn fetch_by_states(&self, states: &[String]) -> Result<Vec<Ticket>, TrackerError> {
        self.called("list")?;
        self.board.fetch_by_states(states).await
    }

    async fn fetch_by_ids(&self, ids: &[TicketId]) -> Result<Vec<(TicketId, Found)>, TrackerError> {
        self.called("by id")?;
        self.board.fetch_by_ids(ids).await
    }

    async fn comments(&self, id: &TicketId, since: Option<Timestamp>) -> Result<Vec<Comment>, TrackerError> {
        self.called("comments")?;
        self.board.comments(id, since).await
    }

    async fn find_comment(&self, id: &TicketId, comment: &CommentId) -> Result<CommentFound, TrackerError> {
        self.called("find comment")?;
        self.board.find_comment(id, comment).await
    }

    async fn comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        key: &str,
        body: &str,
        decided_at: Timestamp,
    ) -> Result<Written, TrackerError> {
        self.called("comment")?;
        self.board.comment(permit, id, key, body, decided_at).await
    }

    async fn edit_comment(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        body: &str,
    ) -> Result<Edited, TrackerError> {
        self.called("edit")?;
        self.board.edit_comment(permit, id, comment, body).await
    }

    async fn move_ticket(
        &self,
        permit: &Permit,
        id: &TicketId,
        state: &str,
        expected_from: &[String],
    ) -> Result<Move, TrackerError> {
        self.called("move")?;
        self.board.move_ticket(permit, id, state, expected_from).await
    }

    async fn label(
        &self,
        permit: &Permit,
        id: &TicketId,
        add: &[String],
        remove: &[String],
    ) -> Result<(), TrackerError> {
        self.called("label")?;
        self.board.label(permit, id, add, remove).await
    }

    async fn react(
        &self,
        permit: &Permit,
        id: &TicketId,
        comment: &CommentId,
        reaction: Reaction,
    ) -> Result<(), TrackerError> {
        self.called("react")?;
        self.board.react(permit, id, comment, reaction).await
    }

    async fn attach_link(&self, permit: &Permit, id: &TicketId, url: &str, title: &str) -> Result<(), TrackerError> {
        self.called("link")?;
        self.board.attach_link(permit, id, url, title).await
    }

    async fn create_ticket(&self, permit: &Permit, new: &NewTicket, key: &str) -> Result<TicketId, TrackerError> {
        self.called("create")?;
        self.board.create_ticket(permit, new, key).await
    }

    async fn probe(&self) -> Result<String, TrackerError> {
        self.called("probe")?;
        self.board.probe().await
    }
}

fn ticket(number: usize) -> Ticket {
    let name = format!("t-{number:03}");
    Ticket {
        id: TicketId::new(name.as_str()),
        key: name.as_str().into(),
        title: format!("Candidate {number}"),
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
        labelled: Vec::new(),
    }
}

/// Workers that work until they are told to stop, and what they are told.
struct Patient {
    told: Arc<Mutex<Vec<StopReason>>>,
}

#[async_trait]
impl RunHost for Patient {
    async fn run(
        &self,
        _: Permit,
        order: RunOrder,
        mut control: mpsc::Receiver<Control>,
        events: mpsc::Sender<WorkerEvent>,
    ) -> RunReport {
        let commit = CommitId::new("1".repeat(40));
        let process = ProcessMark { pid: std::process::id() as i32, started_ticks: 1 };
        let (worktree, base) = (format!("/nowhere/{}", order.run).into(), commit.clone());
        let _ = events.send(WorkerEvent::Started { process, worktree, base: Some(base), head: Some(commit) }).await;
        loop {
            match control.recv().await {
                Some(Control::Stop(reason)) => {
                    self.told.lock().unwrap().push(reason.clone());
                    return RunReport::bare(RunOutcome::Killed { reason });
                }
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    async fn reclaim(&self, _: ReclaimOrder) -> Reclaimed {
        Reclaimed::default()
    }

    async fn gate(&self, _: Permit, _: GateOrder, _: HaltReceiver) -> Result<Vec<GateResult>, String> {
        Ok(Vec::new())
    }

    async fn base_commit(&self) -> Option<CommitId> {
        None
    }

    async fn clean_up(&self, _: Permit, _: TicketKey) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_with_five_hundred_candidates_and_ten_minutes_of_errors() {
    let dir = tempfile::tempdir().unwrap();
    let board = Arc::new(Counted {
        board: MemoryTracker::new((0..500).map(ticket)),
        calls: Mutex::default(),
        down: AtomicBool::new(false),
    });
    let mut settings = Settings::default();
    settings.rollout.mode = RolloutMode::Merge;
    let mut policy = settings.policy("hash", false);
    policy.pr.forge = ForgeKind::Local;
    assert_eq!(policy.polling_interval, Duration::from_secs(30), "an hour has 120 polls of the default period");
    policy.polling_interval = Duration::from_millis(50);
    let slots = policy.agent.max_concurrent;
    let policy = Arc::new(policy);
    let ledger = SqliteLedger::open(&dir.path().join("ledger.db")).unwrap();
    let state = ledger.load().unwrap();
    let moment = Arc::new(AtomicU64::new(state.moment().0));
    let told = Arc::new(Mutex::new(Vec::new()));
    let host = Arc::new(Patient { told: told.clone() });
    let kill_file = dir.path().join("pause");
    let (plan, plan_seen) = watch::channel(plan_of(&policy));
    let (kill_sender, _kill_seen) = watch::channel(kill_file.clone());
    let (poll_wanted, wanted) = mpsc::channel(1);
    let first = runtime::recover(&state, host.as_ref()).await;
    let texts = Arc::new(Texts::new(Templates::load(None).unwrap(), "workpad"));
    let (driver, handle) = Driver::new(DriverParts {
        state,
        policy,
        ledger: Box::new(ledger),
        keep_days: 180,
        adapters: Adapters { tracker: board.clone(), forge: None, host: host.clone(), texts },
        gatekeeper: Arc::new(Gatekeeper::new(&kill_file)),
        plan,
        kill_file: kill_sender,
        poll_wanted,
        until: Until::Told,
        recorder: None,
        moment: moment.clone(),
    });
    let (tracker, inbox) = (board.clone(), handle.inbox.clone());
    let parts = PollerParts { tracker, host, plan: plan_seen, wanted, inbox, moment };
    tokio::spawn(runtime::poll(parts));
    let running = tokio::spawn(driver.run(first));
    let working = || {
        let picture = handle.snapshots.borrow().clone();
        picture.jobs.iter().filter(|job| job.phase == Phase::Implementing).count()
    };

    // The board is read, and as many are started as there are slots.
    board.polled(3).await;
    while working() < slots {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let begin = board.count();
    let total = |calls: &BTreeMap<&str, usize>| calls.values().sum::<usize>();
    let beside = total(&begin) - begin["list"];
    assert!(beside <= 4 * slots, "the beginning: {begin:?}");
    // An hour: one request a poll, whatever is on the board.
    board.polled(120).await;
    let hour = board.count();
    println!("requests in an hour with 500 candidates and {slots} workers: {hour:?}");
    assert!(total(&hour) <= 150, "{hour:?}");
    // Ten minutes of errors: nobody is stopped, nobody is started, and the board is not asked more often for it.
    board.down.store(true, Ordering::SeqCst);
    board.polled(20).await;
    let outage = board.count();
    assert!(total(&outage) <= 2 * 20 + slots, "{outage:?}");
    assert!(handle.snapshots.borrow().tracker.last_error.as_ref().is_some_and(|error| error.contains("500")));
    assert_eq!(working(), slots);
    board.down.store(false, Ordering::SeqCst);
    board.polled(5).await;
    assert_eq!(working(), slots);
    assert!(told.lock().unwrap().is_empty(), "stopped: {:?}", told.lock().unwrap());
    running.abort();
}
