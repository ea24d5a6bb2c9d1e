//! Puts a changed workflow in force, or reports why it is not.

use std::sync::Arc;

use secrecy::ExposeSecret;
use tokio::sync::mpsc;

use super::super::folder::RunnerFolder;
use super::super::handle::{InForce, Message};
use super::super::lanes::GateLimits;
use super::adapters::{forge_kind, policy};
use super::host::WorkflowHost;
use super::parts::WorkerParts;
use super::{AssemblyError, texts};
use crate::config::Settings;
use crate::config::policy::Policy;
use crate::config::tracker::{TrackerKind, TrackerSettings};
use crate::domain::hash::stable_hash;
use crate::domain::words::each_once;
use crate::workflow::watch::{Reload, Watch};
use crate::workflow::{Env, Loaded, in_force};

/// Follows the workflow file. A changed file is put in force between two events; for a broken one the error is reported and the last good
/// workflow stays in force.
pub struct WorkflowFollower {
    pub folder: RunnerFolder,
    pub parts: WorkerParts,
    pub host: Arc<WorkflowHost>,
    pub inbox: mpsc::Sender<Message>,
}

impl WorkflowFollower {
    /// Starts the watch and returns the task that follows it until the driver is gone.
    pub fn start(
        mut self,
        env: &Env,
        loaded: &Loaded,
    ) -> Result<impl Future<Output = ()> + Send + use<>, AssemblyError> {
        let at_start = adapters_of(&loaded.settings);
        let (sender, mut changes) = mpsc::unbounded_channel();
        let watch = Watch::start(loaded, env.clone(), sender)?;
        Ok(async move {
            // The watch stops when it is dropped.
            let _watch = watch;
            while let Some(reload) = changes.recv().await {
                let message = match self.take_in(reload, &at_start).await {
                    Ok(in_force) => Message::Reload(Box::new(in_force)),
                    Err(error) => {
                        tracing::error!(error, "WORKFLOW.md as it is now is not in force; the last good one stays");
                        Message::ReloadFailed { error: Some(error) }
                    }
                };
                if self.inbox.send(message).await.is_err() {
                    return;
                }
            }
        })
    }

    async fn take_in(&mut self, reload: Reload, at_start: &[(&'static str, String)]) -> Result<InForce, String> {
        let (loaded, needs_restart) = match reload {
            Reload::Accepted { loaded, needs_restart } => (loaded, needs_restart),
            Reload::Rejected(error) => return Err(error.to_string()),
        };
        let policy = policy_of(&loaded, &self.folder, &needs_restart, at_start)?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        self.parts.read_login(&loaded).await;
        self.host.replace(self.parts.worker(&loaded));
        Ok(InForce {
            policy: Arc::new(policy),
            kill_file: loaded.settings.rollout.kill_switch_file.clone(),
            texts: Arc::new(texts(&loaded)),
            gates: GateLimits::of(&loaded.settings.gates),
            warnings: loaded.brief_warnings(),
            policies: in_force::policies(&loaded.settings),
        })
    }
}

/// Returns the settings that the adapters were built from, by key. If one of them changes, a restart is needed.
fn adapters_of(settings: &Settings) -> [(&'static str, String); 8] {
    let workspace = &settings.workspace;
    [
        ("pr.forge", format!("{:?}", forge_kind(settings))),
        ("pr.repo_slug", format!("{:?}", settings.pr.repo_slug)),
        ("pr.provider.api_url", format!("{:?}", settings.pr.provider.api_url)),
        ("workspace.mode", workspace.mode.name().to_owned()),
        ("workspace.repo", workspace.repo.display().to_string()),
        ("workspace.commit", format!("{:?}", workspace.commit)),
        ("tracker.provider.dir", format!("{:?}", settings.tracker.provider.dir)),
        ("tracker.provider", board_of(&settings.tracker)),
    ]
}

/// Describes the settings that the board was built from. Secrets are included as a hash only.
fn board_of(tracker: &TrackerSettings) -> String {
    let provider = &tracker.provider;
    let secrets = [&provider.token, &provider.api_key, &provider.private_key];
    let known: Vec<&str> =
        secrets.into_iter().map(|secret| secret.as_ref().map_or("", |s| s.expose_secret())).collect();
    let mut parts = vec![format!("{provider:?}"), stable_hash(&known).to_string()];
    if tracker.kind == TrackerKind::Github {
        parts.push(format!("{:?} {:?} {:?}", tracker.active_states, tracker.terminal_states, tracker.on_done));
    }
    parts.join(" ")
}

fn policy_of(
    loaded: &Loaded,
    folder: &RunnerFolder,
    needs_restart: &[&str],
    at_start: &[(&'static str, String)],
) -> Result<Policy, String> {
    let now = adapters_of(&loaded.settings);
    let changed = at_start.iter().zip(&now).filter(|(before, now)| before.1 != now.1).map(|(before, _)| before.0);
    let needs_restart: Vec<&str> = each_once(needs_restart.iter().copied().chain(changed));
    if !needs_restart.is_empty() {
        return Err(format!("a restart is needed for {}", needs_restart.join(", ")));
    }
    if let Some(missing) = loaded.unavailable.first() {
        return Err(missing.to_string());
    }
    let unreadable = |error| format!("the ledger cannot be read: {error}");
    let ledger = folder.read_ledger().map_err(unreadable)?;
    policy(loaded, ledger.as_ref()).map_err(unreadable)
}
