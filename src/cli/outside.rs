//! Starts what tells the outside world about a runner, apart from the adapters: `agent-state.json`, notifications, and the HTTP server.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::config::Settings;
use crate::config::observability::ModelTier;
use crate::http::{HttpServer, Served};
use crate::publish::notify::{Mailer, NotifierParts};
use crate::publish::{Publication, TeamIdentity, TeamStateFile};
use crate::runtime::assembly::{Runner, secrets, texts};
use crate::runtime::{Handle, RunnerFolder};
use crate::workflow::Loaded;
use crate::workspace::exclude::keep_out_of_git;

use super::context::Context;
use super::logging::Loudness;
use super::output;

/// How long a stopping runner waits for each of these tasks, whose disk or receiver may be slow.
const LAST_WORDS: Duration = Duration::from_secs(6);

/// Starts the tasks that write `agent-state.json` and send notifications.
pub fn tell(context: &Context, loaded: &Loaded, place: &RunnerFolder, runner: &Runner) -> Vec<JoinHandle<()>> {
    let published = publish(loaded, place, &runner.handle);
    published.into_iter().chain(notify(context, loaded, place, runner)).collect()
}

/// Starts writing `agent-state.json`. Returns `None` if the repository is Dirigent's own clone: then there is no work tree of the user to
/// put the file into.
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

/// Starts sending notifications, if receivers are configured.
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

/// Serves the API and the dashboard until the runner stops.
pub fn serve(
    server: HttpServer,
    context: &Context,
    loaded: &Loaded,
    place: &RunnerFolder,
    runner: &Runner,
) -> JoinHandle<()> {
    let served = Served {
        handle: runner.handle.clone(),
        folder: place.clone(),
        secrets: secrets(loaded),
        home: context.env.home(),
    };
    let (settings, hash) = (loaded.settings.clone(), loaded.hash.clone());
    tokio::spawn(async move { server.serve(&settings, &hash, served).await })
}

/// Prints the address of the server and which token changes need.
pub fn announce(server: &HttpServer, settings: &Settings, loudness: Loudness) {
    let url = server.url();
    tracing::debug!(url, "the API and the dashboard are served");
    if loudness == Loudness::Quiet {
        return;
    }
    let token = match settings.server.secrets().next() {
        Some(_) => "changes need a token of `server.token` or `server.tokens`",
        None => "changes need the token that `dirigent token` prints",
    };
    output::complain(&format!("dashboard and API: {url} ({token})"));
}

/// Waits for the tasks to finish, each for a limited time.
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
