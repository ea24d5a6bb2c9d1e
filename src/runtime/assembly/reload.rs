//! Puts a changed workflow in force, or reports why it is not.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;

use super::super::folder::RunnerFolder;
use super::super::handle::{InForce, Message};
use super::super::lanes::GateLimits;
use super::adapters::{forge_kind, policy};
use super::host::WorkflowHost;
use super::parts::WorkerParts;
use super::{AssemblyError, texts};
use crate::config::Settings;
use crate::config::policy::{ForgeKind, Policy};
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
                        Message::ReloadFailed { error }
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
        self.host.replace(self.parts.worker(&loaded).await);
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

/// Returns the settings that the adapters were built from, by key. If one of them changes, a restart is needed. A value is only compared;
/// it is empty where this tracker or this forge does not use the key.
fn adapters_of(settings: &Settings) -> Vec<(&'static str, String)> {
    let Settings { workspace, tracker, pr, merge, .. } = settings;
    let forge = forge_kind(settings);
    let on_github = |value: String| if forge == ForgeKind::Github { value } else { String::new() };
    let for_boards = |kinds: &[TrackerKind], value: String| match kinds.contains(&tracker.kind) {
        true => value,
        false => String::new(),
    };
    let github = [TrackerKind::Github];
    let both = [TrackerKind::Github, TrackerKind::Linear];
    vec![
        ("pr.forge", format!("{forge:?}")),
        ("pr.repo_slug", format!("{:?}", pr.repo_slug)),
        ("pr.provider.api_url", format!("{:?}", pr.provider.api_url)),
        ("pr.provider", on_github(access_of(&pr.provider, [&pr.provider.token, &pr.provider.private_key, &None]))),
        ("pr.reuse_branch_pr", on_github(pr.reuse_branch_pr.to_string())),
        ("workspace.mode", workspace.mode.name().to_owned()),
        ("workspace.repo", workspace.repo.display().to_string()),
        ("workspace.commit", format!("{:?}", workspace.commit)),
        ("workspace.branch_prefix", workspace.branch_prefix.clone()),
        ("tracker.provider.dir", format!("{:?}", tracker.provider.dir)),
        ("tracker.provider", board_of(tracker)),
        ("tracker.required_labels", for_boards(&github, format!("{:?}", tracker.required_labels))),
        ("tracker.on_done", for_boards(&github, format!("{:?}", tracker.on_done))),
        ("tracker.active_states", for_boards(&both, format!("{:?}", tracker.active_states))),
        ("tracker.terminal_states", for_boards(&both, format!("{:?}", tracker.terminal_states))),
        ("merge.approval_states", for_boards(&both, format!("{:?}", merge.approval_states))),
        ("merge.completion_state", for_boards(&both, settings.completion_state().to_owned())),
        ("orchestration.states", for_boards(&[TrackerKind::Linear], format!("{:?}", settings.orchestration.states))),
    ]
}

/// Describes the access that the board was built with.
fn board_of(tracker: &TrackerSettings) -> String {
    let provider = &tracker.provider;
    access_of(provider, [&provider.token, &provider.api_key, &provider.private_key])
}

/// Describes settings that hold secrets. The secrets are included as a hash only.
fn access_of(settings: &impl std::fmt::Debug, secrets: [&Option<SecretString>; 3]) -> String {
    let known: Vec<&str> =
        secrets.into_iter().map(|secret| secret.as_ref().map_or("", |secret| secret.expose_secret())).collect();
    format!("{settings:?} {}", stable_hash(&known))
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

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
