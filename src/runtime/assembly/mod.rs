//! Puts a runner together, once: builds the adapters, settles what an earlier process left, makes the driver, and starts the watchers of
//! the outside world. `cli` calls this module; this module never calls `cli`.

mod adapters;
mod error;
mod github;
mod host;
mod linear;
mod parts;
mod reload;

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::control::{self, Listening};
use super::driver::{Driver, DriverError, DriverParts, Until, plan_of};
use super::folder::RunnerFolder;
use super::gatekeeper::Gatekeeper;
use super::handle::{Handle, Message};
use super::host::RunHost;
use super::lanes::{GateLimits, Lanes};
use super::performer::Adapters;
use super::poller::{self, PollerParts};
use super::record::Recorder;
use super::{recovery, switches};
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::ledger::LedgerReader;
use crate::worker::{ReclaimOrder, Workplace};
use crate::workflow::{Env, Loaded, Texts, in_force};
use crate::workspace::Workspaces;

pub use adapters::{
    clone_repository, forge_kind, github_forge, locked_places, policy, policy_here, tracker, workspaces,
};
pub use error::AssemblyError;
pub use github::{GithubRepositories, github_access, github_board, github_repositories};
pub use parts::secrets;

use adapters::ForgeInUse;
use host::WorkflowHost;
use parts::WorkerParts;
use reload::WorkflowFollower;

/// A runner that is ready to work.
pub struct Runner {
    pub handle: Handle,
    /// For code that writes to the outside without an adapter, such as notifications.
    pub gatekeeper: Arc<Gatekeeper>,
    driver: Driver,
    first: Event,
    socket: Listening,
    watchers: JoinSet<()>,
}

impl Runner {
    /// Builds everything, settles what an earlier process left, and starts the watchers. Every event is recorded in the file `record`, if
    /// one is given.
    pub async fn start(
        env: &Env,
        loaded: &Loaded,
        folder: &RunnerFolder,
        until: Until,
        record: Option<&Path>,
    ) -> Result<Self, AssemblyError> {
        let settings = &loaded.settings;
        let gate_limits = GateLimits::of(&settings.gates);
        let (lanes, lane_news) = Lanes::new(gate_limits);
        let lanes = Arc::new(lanes);
        let mut parts = WorkerParts::open(env, loaded, folder, lanes.clone())?;
        let worker = parts.worker(loaded).await;
        if let Workplace::Worktrees(workspaces) = &parts.workplace {
            workspaces.try_signing().await?;
        }
        // The ledger is opened before the forge: the local forge keeps its pull requests in the ledger.
        let ledger = folder.open_ledger()?;
        let mut state = ledger.load()?;
        if state.meta.comment_key.is_empty() {
            // A ledger from before comments were marked. Two ULIDs hold 160 random bits.
            state.meta.comment_key = format!("{}{}", ulid::Ulid::generate(), ulid::Ulid::generate());
            state.changes.meta = true;
        }
        // A mark that cannot be read only costs one complete reading of the board.
        let told = ledger.board_mark().unwrap_or_else(|error| {
            tracing::warn!(%error, "the board is read anew");
            None
        });
        if let Some(told) = &told {
            state.ask_for(told.ask_for.clone());
        }
        let moment = Arc::new(AtomicU64::new(state.moment().0));
        let forge = ForgeInUse::open(settings, folder)?;
        let host = Arc::new(WorkflowHost::new(worker, forge.local()));
        let policy = Arc::new(policy(loaded, ledger.as_ref())?);
        let first = recovery::recover(&state, host.clone()).await;
        if let Ok(gates) = host.gates() {
            gates.clear_leftovers().await?;
        }
        reclaim_strays(&parts, &state, ledger.as_ref(), host.as_ref()).await?;

        let kill_file = settings.rollout.kill_switch_file.clone();
        let adapters = Adapters {
            tracker: parts.tracker.clone(),
            forge: forge.as_forge(),
            host: host.clone(),
            texts: Arc::new(texts(loaded)),
            lanes: lanes.clone(),
            gate_limits,
        };
        let (plan, plan_seen) = watch::channel(plan_of(&policy));
        let (kill_sender, kill_seen) = watch::channel(kill_file.clone());
        let (poll_wanted, wanted) = mpsc::channel(1);
        let secrets = host.worker().secrets.clone();
        let recorder = record.map(|path| Recorder::open(path, secrets)).transpose()?;
        let gatekeeper = Arc::new(Gatekeeper::new(&kill_file));
        let (driver, handle) = Driver::new(DriverParts {
            state,
            policy,
            ledger,
            keep_days: settings.ledger.keep_days,
            adapters,
            gatekeeper: gatekeeper.clone(),
            plan,
            kill_file: kill_sender,
            poll_wanted,
            until,
            recorder,
            moment: moment.clone(),
            lane_news,
            warnings: loaded.brief_warnings(),
            policies: in_force::policies(&loaded.settings),
        });
        let inbox = handle.inbox.clone();
        let mut watchers = JoinSet::new();
        watchers.spawn(switches::watch_kill_file(kill_seen, inbox.clone()));
        watchers.spawn(poller::poll(PollerParts {
            tracker: parts.tracker.clone(),
            host: host.clone(),
            lanes,
            plan: plan_seen,
            wanted,
            inbox: inbox.clone(),
            deliveries: handle.deliveries.clone(),
            moment,
            told,
        }));
        let socket = control::serve(&folder.socket, handle.clone())?;
        if let (true, Workplace::Worktrees(workspaces)) = (forge.as_forge().is_some(), &parts.workplace) {
            watchers.spawn(say_whether_receipts_are_signed(workspaces.clone()));
        }
        let follower = WorkflowFollower { folder: folder.clone(), parts, host, inbox };
        watchers.spawn(follower.start(env, loaded)?);
        Ok(Self { handle, gatekeeper, driver, first, socket, watchers })
    }

    /// Works until it is told to stop, or until it is idle. Returns the error of the last poll of the board, if that poll failed.
    pub async fn work(mut self) -> Result<Option<String>, DriverError> {
        let mut driving = pin!(self.driver.run(self.first));
        let mut broken = None;
        let result = loop {
            tokio::select! {
                result = &mut driving => break result,
                // Watchers stop with the driver. If one panics before that, the runner would no longer notice changes, so it shuts down.
                Some(Err(error)) = self.watchers.join_next() => {
                    tracing::error!(%error, "a part of the runner broke down; it is ended");
                    broken = Some(error.to_string());
                    let _ = self.handle.inbox.try_send(Message::Event(Event::Shutdown));
                }
            }
        };
        self.socket.end().await;
        let state = result?;
        match broken {
            Some(error) => Err(DriverError::BrokeDown(error)),
            None => Ok(state.tracker.last_error),
        }
    }
}

/// Logs once at the start whether receipts will be signed. After the first merge it would be too late to configure a key.
async fn say_whether_receipts_are_signed(workspaces: Workspaces) {
    match workspaces.try_receipt_key().await {
        Ok(Some(_)) => tracing::debug!("receipts are signed with git's key"),
        Ok(None) => tracing::info!("receipts are not signed: git has no user.signingkey"),
        Err(error) => tracing::warn!("receipts are not signed: {error}"),
    }
}

/// Returns the texts of comments and pull requests in the wording of this workflow.
pub fn texts(loaded: &Loaded) -> Texts {
    let orchestration = &loaded.settings.orchestration;
    let texts = Texts::new(loaded.prompts.templates().clone(), orchestration.workpad_marker());
    let texts = match loaded.settings.tracker.kind.has_accounts() {
        true => texts.naming(orchestration.mention),
        false => texts,
    };
    let texts = texts.with_review_marker(&loaded.settings.pr.review_comment_marker);
    texts.in_repository(adapters::github_repository(&loaded.settings))
}

/// Reclaims worktrees of runs that are not in the ledger: an earlier process made them and stopped before it could record them.
async fn reclaim_strays(
    parts: &WorkerParts,
    state: &State,
    ledger: &dyn LedgerReader,
    host: &dyn RunHost,
) -> Result<(), AssemblyError> {
    let Workplace::Worktrees(workspaces) = &parts.workplace else { return Ok(()) };
    for listed in workspaces.list().await? {
        let worktree = listed.worktree;
        if state.runs.contains(&worktree.run) || ledger.finished_run(&worktree.run)?.is_some() {
            continue;
        }
        tracing::info!(run_id = %worktree.run, path = %worktree.path.display(), "a worktree of an earlier life is reclaimed");
        let order = ReclaimOrder {
            run: worktree.run,
            key: worktree.key,
            branch: worktree.branch,
            process: None,
            worktree: Some(worktree.path),
        };
        host.reclaim(order).await;
    }
    Ok(())
}
