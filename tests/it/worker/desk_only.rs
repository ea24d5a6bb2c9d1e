//! A worker that knows nothing but `tk` completes a ticket of a board that is no `tk` store, through the runner: the
//! driver, a real process, a real worktree and the local forge; only the board is in memory.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use dirigent::config::merge::{MergeMode, NoChecks};
use dirigent::config::policy::{ForgeKind, Policy, RolloutMode};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::ids::{CommitId, TicketId, TicketKey};
use dirigent::domain::permit::Permit;
use dirigent::domain::phase::Phase;
use dirigent::domain::run::RunReport;
use dirigent::forge::local::LocalForge;
use dirigent::ledger::{LedgerReader, SqliteLedger};
use dirigent::runtime::{
    self, Adapters, Driver, DriverParts, GateLimits, GateOrder, Gatekeeper, HaltReceiver, KeptReceipt, Lanes,
    PollerParts, ReceiptOrder, RunHost, Until, plan_of,
};
use dirigent::tracker::Tracker;
use dirigent::tracker::memory::MemoryTracker;
use dirigent::worker::{Inbox, ReclaimOrder, Reclaimed, RunOrder, Worker, WorkerEvent, Workplace};
use dirigent::workflow::{Templates, Texts};
use tokio::sync::{mpsc, watch};

use super::bench::{Bench, PATIENCE, git};

const SCRIPT: &str = r#"set -eu
tk show | tee seen.txt
grep -q 'Make it work' seen.txt
rm seen.txt
tk comment 'I am looking into it'
echo answer > answer.txt
git add answer.txt
git -c user.name=agent -c user.email=agent@example.invalid commit -qm 'Answer'
tk evidence --type command --command 'cat answer.txt' --output answer --exit-code 0
tk done 'answer.txt holds the answer'
"#;

fn policy(bench: &Bench) -> Policy {
    let mut policy = bench.settings.policy("hash", false);
    policy.pr.forge = ForgeKind::Local;
    policy.merge.checks_grace = Duration::ZERO;
    policy.tracker.completion_state = Some("closed".into());
    policy
}

/// The real worker, with nothing to reclaim and nothing to check.
struct OneWorker(Worker);

#[async_trait]
impl RunHost for OneWorker {
    async fn run(&self, permit: Permit, order: RunOrder, heard: Inbox, events: mpsc::Sender<WorkerEvent>) -> RunReport {
        self.0.run(permit, order, heard, events).await
    }

    async fn reclaim(&self, order: ReclaimOrder) -> Reclaimed {
        self.0.reclaim(&order).await
    }

    async fn gate(&self, _: Permit, _: GateOrder, _: HaltReceiver) -> Result<Vec<GateResult>, String> {
        Ok(Vec::new())
    }

    async fn base_commit(&self) -> Option<CommitId> {
        let Workplace::Worktrees(workspaces) = &self.0.workplace else { return None };
        workspaces.base_commit("main").await.ok()
    }

    async fn keep_receipt(&self, _: Permit, order: ReceiptOrder) -> Result<KeptReceipt, String> {
        Ok(KeptReceipt { payload: order.payload, signature: None, unsigned: None })
    }

    async fn clean_up(&self, _: Permit, _: TicketId, _: TicketKey) -> Result<Option<String>, String> {
        Ok(None)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_tk_commands_completes_a_ticket_of_another_board() {
    let mut bench = Bench::new(&[]);
    std::fs::write(bench.path("agent.sh"), SCRIPT).unwrap();
    bench.settings.exec.command = format!("sh '{}'", bench.path("agent.sh").display());
    bench.settings.rollout.mode = RolloutMode::Merge;
    bench.settings.merge.no_checks = NoChecks::Pass;
    bench.settings.merge.mode = MergeMode::Auto;
    bench.settings.merge.require_human_approval = false;
    let ticket = bench.ticket.lock().unwrap().clone();
    let board = Arc::new(MemoryTracker::new([ticket]));
    let ledger_path = bench.path("ledger.db");
    let ledger = SqliteLedger::open(&ledger_path).unwrap();
    let state = ledger.load().unwrap();
    let forge = Arc::new(LocalForge::open(&bench.repo(), &ledger_path, Duration::from_secs(60)).unwrap());
    let policy = Arc::new(policy(&bench));
    let host = Arc::new(OneWorker(bench.worker()));
    let texts = Arc::new(Texts::new(Templates::load(None).unwrap(), "workpad"));
    let kill_file = bench.path("pause");
    let (plan, plan_seen) = watch::channel(plan_of(&policy));
    let (kill_sender, _kill_seen) = watch::channel(kill_file.clone());
    let (poll_wanted, wanted) = mpsc::channel(1);
    let first = runtime::recover(&state, host.clone()).await;
    let moment = Arc::new(AtomicU64::new(state.moment().0));
    let (lanes, lane_news) = Lanes::new(GateLimits::default());
    let lanes = Arc::new(lanes);
    let (driver, handle) = Driver::new(DriverParts {
        state,
        policy,
        ledger: Box::new(ledger),
        keep_days: 180,
        adapters: Adapters {
            tracker: board.clone(),
            forge: Some(forge),
            host: host.clone(),
            texts,
            lanes: lanes.clone(),
            gate_limits: GateLimits::default(),
        },
        gatekeeper: Arc::new(Gatekeeper::new(&kill_file)),
        plan,
        kill_file: kill_sender,
        poll_wanted,
        until: Until::Idle,
        recorder: None,
        moment: moment.clone(),
        lane_news,
        warnings: Vec::new(),
        policies: Vec::new(),
    });
    let inbox = handle.inbox.clone();
    let parts = PollerParts {
        tracker: board.clone(),
        host,
        lanes,
        plan: plan_seen,
        wanted,
        inbox,
        deliveries: Default::default(),
        refresh_waits: Default::default(),
        moment,
        told: None,
    };
    tokio::spawn(runtime::poll(parts));
    let end = tokio::time::timeout(PATIENCE, driver.run(first)).await.expect("it ends by itself").unwrap();

    let id = TicketId::new("t-1");
    assert_eq!(end.jobs[&id].stage.phase(), Phase::Done, "{:?}", end.jobs[&id]);
    assert_eq!(git(&bench.repo(), &["show", "main:answer.txt"]), "answer");
    assert_eq!(board.ticket(&id).unwrap().state, "closed");
    let said: Vec<String> = board.comments(&id, None).await.unwrap().into_iter().map(|comment| comment.body).collect();
    assert!(said.iter().any(|body| body.contains("I am looking into it")), "{said:#?}");
    assert!(said.iter().any(|body| body.contains("answer.txt holds the answer")), "{said:#?}");
}
