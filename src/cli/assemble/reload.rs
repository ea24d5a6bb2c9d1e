//! Puts a changed workflow in force, or says why it is not.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::mpsc;

use super::crew::Current;
use super::workshop::Workshop;
use super::{Failure, forge_kind, policy};
use crate::cli::place::{Context, Place};
use crate::config::Settings;
use crate::config::policy::Policy;
use crate::runtime::Message;
use crate::workflow::Loaded;
use crate::workflow::templates::Templates;
use crate::workflow::watch::{Reload, Watch};

/// A changed workflow is put in force between ticks; a broken one is reported and the last good one stays.
pub fn follow_workflow(
    context: &Context,
    loaded: &Loaded,
    place: Place,
    workshop: Workshop,
    worker: Current,
    templates: Arc<RwLock<Templates>>,
    inbox: mpsc::Sender<Message>,
) -> Result<(), Failure> {
    let at_start = adapters_of(&loaded.settings);
    let (sender, mut changes) = mpsc::unbounded_channel();
    let watch = Watch::start(loaded, context.env.clone(), sender).map_err(Failure::plain)?;
    tokio::spawn(async move {
        // The watch lives as long as somebody listens to it.
        let _watch = watch;
        while let Some(reload) = changes.recv().await {
            let message = match reload {
                Reload::Accepted { loaded, needs_restart } => {
                    match in_force(&loaded, &place, &needs_restart, &at_start) {
                        Ok(policy) => {
                            for warning in &loaded.warnings {
                                tracing::warn!("{warning}");
                            }
                            *templates.write().unwrap_or_else(PoisonError::into_inner) =
                                loaded.prompts.templates().clone();
                            *worker.write().unwrap_or_else(PoisonError::into_inner) =
                                Arc::new(workshop.worker(&loaded));
                            let kill_file = loaded.settings.rollout.kill_switch_file.clone();
                            Message::Reload { policy: Arc::new(policy), kill_file }
                        }
                        Err(error) => Message::ReloadFailed { error: Some(error) },
                    }
                }
                Reload::Rejected(error) => Message::ReloadFailed { error: Some(error.to_string()) },
            };
            if let Message::ReloadFailed { error: Some(error) } = &message {
                tracing::error!(error, "WORKFLOW.md as it is now is not in force; the last good one stays");
            }
            if inbox.send(message).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// What the adapters were built from: another value needs another start.
fn adapters_of(settings: &Settings) -> [(&'static str, String); 4] {
    let workspace = &settings.workspace;
    [
        ("pr.forge", format!("{:?}", forge_kind(settings))),
        ("workspace.mode", workspace.mode.name().to_owned()),
        ("workspace.repo", workspace.repo.display().to_string()),
        ("tracker.provider.dir", format!("{:?}", settings.tracker.provider.dir)),
    ]
}

fn in_force(
    loaded: &Loaded,
    place: &Place,
    needs_restart: &[&str],
    at_start: &[(&'static str, String)],
) -> Result<Policy, String> {
    let now = adapters_of(&loaded.settings);
    let changed = at_start.iter().zip(&now).filter(|(before, now)| before.1 != now.1).map(|(before, _)| before.0);
    let mut needs_restart: Vec<&str> = needs_restart.iter().copied().chain(changed).collect();
    needs_restart.dedup();
    if !needs_restart.is_empty() {
        return Err(format!("a restart is needed for {}", needs_restart.join(", ")));
    }
    if let Some(missing) = loaded.unavailable.first() {
        return Err(missing.to_string());
    }
    let ledger = place.read_ledger().map_err(|_| "the ledger cannot be read".to_owned())?;
    policy(loaded, ledger.as_ref()).map_err(|_| "the ledger cannot be read".to_owned())
}
