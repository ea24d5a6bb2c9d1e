//! A runner put together: the past settled, the driver ready, everything that watches the outside started.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{mpsc, watch};

use super::crew::{Current, crew, current, gates_of};
use super::reload::follow_workflow;
use super::workshop::Workshop;
use super::{Failure, forge_kind, policy};
use crate::cli::place::{Context, Place};
use crate::config::Settings;
use crate::config::policy::ForgeKind;
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::forge::Forge;
use crate::forge::local::LocalForge;
use crate::ledger::LedgerReader;
use crate::runtime::{
    self, Adapters, BurialOrder, Crew, Driver, DriverParts, Gatekeeper, Handle, Listening, PollerParts, Recorder,
    Until, Words,
};
use crate::worker::Workplace;
use crate::workflow::Loaded;
use crate::workflow::templates::{TemplateName, Templates};
use crate::workspace::WorkspaceConfig;

/// A runner, ready to go.
pub struct Runner {
    pub handle: Handle,
    driver: Driver,
    first: Event,
    socket: Listening,
    /// Whoever asked for one round wants to know that it could not be made.
    once: bool,
}

impl Runner {
    /// Builds everything, settles the past, and starts what watches the outside.
    pub async fn start(
        context: &Context,
        loaded: &Loaded,
        place: &Place,
        until: Until,
        record: Option<&Path>,
    ) -> Result<Self, Failure> {
        let settings = &loaded.settings;
        let workshop = Workshop::open(context, loaded, place)?;
        let worker: Current = Arc::new(RwLock::new(Arc::new(workshop.worker(loaded))));
        // The ledger is made first: the local forge keeps its pull requests in it.
        let ledger = place.open_ledger()?;
        let state = ledger.load()?;
        let (forge, local_forge) = forge(settings, place)?;
        if let Some(forge) = &local_forge {
            let in_force = worker.clone();
            forge.count_only(Box::new(move || current(&in_force).settings.gates.task_names()));
        }
        let crew = crew(&worker, local_forge);
        let policy = Arc::new(policy(loaded, ledger.as_ref())?);
        let first = runtime::recover(&state, &crew).await;
        if let Ok(gates) = gates_of(&current(&worker)) {
            gates.clear_leftovers().await.map_err(Failure::plain)?;
        }
        bury_strays(&workshop, &state, ledger.as_ref(), &crew).await?;

        let kill_file = settings.rollout.kill_switch_file.clone();
        let gatekeeper = Arc::new(Gatekeeper::new(&kill_file));
        let templates = Arc::new(RwLock::new(loaded.prompts.templates().clone()));
        let words = Words::new(renderer(templates.clone()), settings.orchestration.workpad_marker());
        let adapters = Adapters { tracker: workshop.tracker.clone(), forge, crew: crew.clone(), words };
        let (plan, plan_seen) = watch::channel(runtime::plan_of(&policy));
        let (kill_sender, kill_seen) = watch::channel(kill_file);
        let (poll_wanted, wanted) = mpsc::channel(1);
        let secrets = current(&worker).secrets.clone();
        let recorder = record.map(|path| Recorder::open(path, secrets)).transpose().map_err(Failure::plain)?;
        let (driver, handle) = Driver::new(DriverParts {
            state,
            policy,
            ledger,
            keep_days: settings.ledger.keep_days,
            adapters,
            gatekeeper,
            plan,
            kill_file: kill_sender,
            poll_wanted,
            until,
            recorder,
        });
        let inbox = handle.inbox.clone();
        tokio::spawn(runtime::watch_kill_file(kill_seen, inbox.clone()));
        tokio::spawn(runtime::poll(PollerParts {
            tracker: workshop.tracker.clone(),
            crew,
            plan: plan_seen,
            wanted,
            inbox: inbox.clone(),
        }));
        let socket = runtime::serve(&place.socket, handle.clone())?;
        follow_workflow(context, loaded, place.clone(), workshop, worker, templates, inbox)?;
        Ok(Self { handle, driver, first, socket, once: until == Until::Idle })
    }

    /// Works until told to stop, or until idle.
    pub async fn work(self) -> Result<(), Failure> {
        let result = self.driver.run(self.first).await;
        self.socket.end().await;
        match result.map_err(Failure::plain)?.tracker.last_error {
            Some(error) if self.once => Err(Failure::plain(format!("the board could not be read: {error}"))),
            _ => Ok(()),
        }
    }
}

/// The forge, and the same one again where it is the local one, whose checks are our gates' results.
type Forges = (Option<Arc<dyn Forge>>, Option<Arc<LocalForge>>);

fn forge(settings: &Settings, place: &Place) -> Result<Forges, Failure> {
    match forge_kind(settings) {
        ForgeKind::None => Ok((None, None)),
        ForgeKind::Local => {
            let forge = LocalForge::open(&settings.workspace.repo, &place.ledger, WorkspaceConfig::GIT_TIMEOUT)
                .map_err(Failure::plain)?;
            let forge = Arc::new(forge);
            Ok((Some(forge.clone()), Some(forge)))
        }
        ForgeKind::Github => Err(Failure::plain(
            "the remote is on GitHub, and the GitHub forge is not available in this version\n  fix: set pr.forge: local (merge here) or pr.forge: none (leave branches) in WORKFLOW.md",
        )),
    }
}

type Render = Arc<dyn Fn(&str, &serde_json::Value) -> Result<String, String> + Send + Sync>;

fn renderer(templates: Arc<RwLock<Templates>>) -> Render {
    Arc::new(move |name, data| {
        let templates = templates.read().unwrap_or_else(PoisonError::into_inner);
        let text = match name {
            "pr_body" => templates.pr_body(data),
            "workpad" => templates.get(TemplateName::Workpad).render(data),
            kind => templates.comment(kind, data),
        };
        text.map_err(|error| error.to_string())
    })
}

/// Worktrees of runs that the ledger has never heard of: made by a life that ended before it could write that down.
async fn bury_strays(
    workshop: &Workshop,
    state: &State,
    ledger: &dyn LedgerReader,
    crew: &Crew,
) -> Result<(), Failure> {
    let Workplace::Worktrees(workspaces) = &workshop.workplace else { return Ok(()) };
    for listed in workspaces.list().await.map_err(Failure::plain)? {
        let worktree = listed.worktree;
        if state.runs.contains_key(&worktree.run) || ledger.finished_run(&worktree.run)?.is_some() {
            continue;
        }
        tracing::info!(run = %worktree.run, path = %worktree.path.display(), "a worktree of an earlier life is buried");
        let order = BurialOrder {
            run: worktree.run,
            key: worktree.key,
            branch: worktree.branch,
            process: None,
            worktree: Some(worktree.path),
        };
        (crew.bury)(order).await;
    }
    Ok(())
}
