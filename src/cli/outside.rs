//! What a run tells the outside world besides what its adapters do: `agent-state.json` and notifications.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::config::Settings;
use crate::config::observability::ModelTier;
use crate::publish::notify::{Mailer, NotifierParts};
use crate::publish::{Publication, TeamIdentity, TeamStateFile};
use crate::runtime::assembly::{Runner, secrets, texts};
use crate::runtime::{Handle, RunnerFolder};
use crate::workflow::Loaded;
use crate::workspace::exclude::keep_out_of_git;

use super::context::Context;

/// Nobody waits longer than this for a slow disk or receiver.
const LAST_WORDS: Duration = Duration::from_secs(6);

/// Starts everything that tells the outside something.
pub fn tell(context: &Context, loaded: &Loaded, place: &RunnerFolder, runner: &Runner) -> Vec<JoinHandle<()>> {
    let published = publish(loaded, place, &runner.handle);
    published.into_iter().chain(notify(context, loaded, place, runner)).collect()
}

/// `agent-state.json`, where there is a repository on this machine to put it into.
fn publish(loaded: &Loaded, place: &RunnerFolder, handle: &Handle) -> Option<JoinHandle<()>> {
    let settings = &loaded.settings;
    if settings.workspace.clone_of.is_some() {
        return None;
    }
    let path = &settings.observability.agent_state_file;
    if let Err(error) = keep_out_of_git(&settings.workspace.repo, Some(path)) {
        tracing::warn!(%error, "what the runner writes could not be kept out of git (.git/info/exclude)");
    }
    let publication = Publication {
        file: TeamStateFile::at(path),
        identity: identity(settings),
        state_dir: place.state_dir.clone(),
        secrets: secrets(loaded),
    };
    Some(tokio::spawn(crate::publish::publish(publication, handle.clone())))
}

/// Notifications, where somebody wants any.
fn notify(context: &Context, loaded: &Loaded, place: &RunnerFolder, runner: &Runner) -> Option<JoinHandle<()>> {
    let receivers = loaded.settings.observability.notify.clone();
    if receivers.is_empty() {
        return None;
    }
    let cwd = loaded.settings.workspace.repo.clone();
    let mailer = match Mailer::new(texts(loaded), secrets(loaded), cwd, context.env.vars()) {
        Ok(mailer) => mailer,
        Err(error) => {
            tracing::warn!(%error, "nobody can be notified");
            return None;
        }
    };
    let record = place.state_dir.join("notified.json");
    let parts = NotifierParts { receivers, mailer, gatekeeper: runner.gatekeeper.clone(), record };
    Some(tokio::spawn(crate::publish::notify::notify(parts, runner.handle.clone())))
}

/// Waits for their last words.
pub async fn ended(tellers: Vec<JoinHandle<()>>) {
    for teller in tellers {
        let _ = tokio::time::timeout(LAST_WORDS, teller).await;
    }
}

fn identity(settings: &Settings) -> TeamIdentity {
    let written = &settings.observability.agent_state;
    let repo = settings.workspace.repo.file_name().map(|name| name.to_string_lossy().into_owned());
    TeamIdentity {
        team_name: written.team_name.clone().or(repo).unwrap_or_default(),
        session_id: written.session_id.clone().unwrap_or_else(|| ulid::Ulid::generate().to_string()),
        cto_agent: written.cto_agent.unwrap_or_else(|| ModelTier::of(settings.default_model().unwrap_or_default())),
        pattern: written.orchestration_pattern,
    }
}
