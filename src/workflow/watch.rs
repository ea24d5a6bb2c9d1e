//! Watches the workflow file: a valid edit is handed over; an invalid one is reported, and the last valid one stays in force.
//!
//! The watch runs on a thread of its own, which stops with it. It watches the directory, not the file, because editors rename. It also
//! compares the content every few seconds, because not every file system reports changes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use super::hook_scripts;
use super::templates::{self, templates_directory};
use super::{Env, Loaded, Overrides, WorkflowError, content_hash, front_matter, identity, load_with};
use crate::config::Settings;

/// An edit is read when the file has been quiet for this long.
const QUIET: Duration = Duration::from_millis(150);
/// How often the content is compared when no change was reported.
const LOOK: Duration = Duration::from_secs(5);

/// The result of an edit.
#[derive(Debug)]
pub enum Reload {
    Accepted {
        loaded: Box<Loaded>,
        /// Keys whose change takes effect only after a restart. While there are any, the caller must not put the edit in force.
        needs_restart: Vec<&'static str>,
    },
    /// The file cannot be used as it is now; the last valid workflow stays in force.
    Rejected(WorkflowError),
}

#[derive(Debug, Error)]
#[error("the watch on {} cannot be started: {source}", .path.display())]
pub struct WatchError {
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// The file is watched until this is dropped.
#[derive(Debug)]
pub struct Watch {
    signals: mpsc::Sender<Signal>,
}

#[derive(Debug, PartialEq, Eq)]
enum Signal {
    Edited,
    End,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may have stopped already.
        let _ = self.signals.send(Signal::End);
    }
}

impl Watch {
    /// Starts watching. `current` is the workflow in force. Reloads are sent to `to`; the watch stops when its receiver is gone.
    pub fn start(current: &Loaded, env: Env, to: UnboundedSender<Reload>) -> Result<Self, WatchError> {
        let path = current.path.clone();
        let (signals, hear) = mpsc::channel();
        // Without a watcher (for example because of a limit of the system), the regular comparison remains.
        let watcher = watcher(&path, signals.clone());
        let mut edits = Edits {
            path: path.clone(),
            env,
            overrides: current.overrides.clone(),
            seen: Seen { file: Some(current.hash.clone()), templates: templates_hash(&current.settings) },
            good: current.settings.clone(),
            to,
        };
        std::thread::Builder::new()
            .name("workflow-watch".to_owned())
            .spawn(move || {
                let _watcher = watcher;
                edits.follow(&hear);
            })
            .map_err(|source| WatchError { path, source })?;
        Ok(Self { signals })
    }
}

/// The content that is compared to find edits.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// `None` when it could not be read.
    file: Option<String>,
    /// A hash of the repository's own template files, and of which hook scripts exist.
    templates: String,
}

struct Edits {
    path: PathBuf,
    env: Env,
    overrides: Overrides,
    /// The content at the last comparison.
    seen: Seen,
    /// The settings in force, as far as the watch knows.
    good: Settings,
    to: UnboundedSender<Reload>,
}

impl Edits {
    fn follow(&mut self, hear: &mpsc::Receiver<Signal>) {
        // The first comparison finds an edit between loading and watching.
        while self.look().is_some() && !self.to.is_closed() {
            let mut signal = hear.recv_timeout(LOOK);
            while signal == Ok(Signal::Edited) {
                signal = hear.recv_timeout(QUIET);
            }
            if matches!(signal, Ok(Signal::End) | Err(RecvTimeoutError::Disconnected)) {
                return;
            }
        }
    }

    /// Compares the content and sends a reload if it changed. `None` when the receiver is gone.
    fn look(&mut self) -> Option<()> {
        let file = front_matter::read(&self.path).ok().map(|bytes| identity(&bytes, &self.overrides));
        let seen = Seen { file, templates: templates_hash(&self.good) };
        if seen == self.seen {
            return Some(());
        }
        self.seen = seen;
        let reload = match load_with(&self.path, &self.env, &self.overrides) {
            Ok(Loaded { broken_prompt: Some(finding), .. }) => Reload::Rejected(WorkflowError::TemplateParse(finding)),
            Ok(loaded) => {
                self.seen.file = Some(loaded.hash.clone());
                let needs_restart = needs_restart(&self.good, &loaded.settings);
                // An edit that needs a restart is not in force. If it is taken back, nothing has changed.
                if needs_restart.is_empty() {
                    self.good = loaded.settings.clone();
                }
                Reload::Accepted { loaded: Box::new(loaded), needs_restart }
            }
            Err(error) => Reload::Rejected(error),
        };
        self.to.send(reload).ok()
    }
}

fn templates_hash(settings: &Settings) -> String {
    let mut content = Vec::new();
    for path in templates::files(&templates_directory(settings)) {
        let text = std::fs::read(&path).unwrap_or_default();
        content.extend(path.as_os_str().as_encoded_bytes());
        content.extend(content_hash(&text).into_bytes());
    }
    content.extend(hook_scripts::mark(settings).into_bytes());
    content_hash(&content)
}

fn watcher(path: &Path, heard: mpsc::Sender<Signal>) -> Option<notify::RecommendedWatcher> {
    let name = path.file_name()?.to_owned();
    let directory = path.parent()?;
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let concerns = match &event {
            Ok(event) => {
                !event.kind.is_access() && event.paths.iter().any(|path| path.file_name() == Some(name.as_os_str()))
            }
            Err(_) => true,
        };
        if concerns {
            // The receiver is gone only when the watch is over.
            let _ = heard.send(Signal::Edited);
        }
    })
    .ok()?;
    watcher.watch(directory, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}

/// Returns who is notified, and of what. The addresses are secret and only compared.
fn told(settings: &Settings) -> Vec<(serde_json::Value, Option<String>)> {
    let notify = settings.observability.notify.iter();
    notify
        .map(|receiver| {
            let address = exposed(receiver.url.as_ref());
            (serde_json::json!(receiver), address)
        })
        .collect()
}

fn exposed(secret: Option<&SecretString>) -> Option<String> {
    secret.map(|secret| secret.expose_secret().to_owned())
}

/// Returns the tokens of people who may change something, by their names.
fn tokens(settings: &Settings) -> Vec<(&str, Option<String>)> {
    settings.server.tokens.iter().map(|(name, token)| (name.as_str(), exposed(Some(token)))).collect()
}

fn webhook_secrets(settings: &Settings) -> [Option<String>; 2] {
    let webhook = settings.polling.webhook.as_ref();
    [webhook.map(|webhook| &webhook.github), webhook.map(|webhook| &webhook.linear)]
        .map(|sender| exposed(sender.and_then(|sender| sender.secret.as_ref())))
}

/// Returns the keys whose change takes effect only after a restart, apart from those that only adapters are built from.
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    [
        ("tracker.kind", old.tracker.kind != new.tracker.kind),
        ("tracker.provider.dir", old.tracker.provider.dir != new.tracker.provider.dir),
        ("workspace.mode", old.workspace.mode != new.workspace.mode),
        ("workspace.root", old.workspace.root != new.workspace.root),
        ("workspace.repo", old.workspace.repo != new.workspace.repo),
        ("pr.forge", old.pr.forge != new.pr.forge),
        ("ledger.keep_days", old.ledger.keep_days != new.ledger.keep_days),
        ("observability.agent_state_file", old.observability.agent_state_file != new.observability.agent_state_file),
        ("observability.agent_state", old.observability.agent_state != new.observability.agent_state),
        ("observability.notify", told(old) != told(new)),
        ("server.port", old.server.port != new.server.port),
        ("server.host", old.server.host != new.server.host),
        ("server.names", old.server.names != new.server.names),
        ("server.token", exposed(old.server.token.as_ref()) != exposed(new.server.token.as_ref())),
        ("server.tokens", tokens(old) != tokens(new)),
        ("polling.webhook", webhook_secrets(old) != webhook_secrets(new)),
        ("observability.log", old.observability.log != new.observability.log),
        ("observability.dashboard_enabled", old.observability.dashboard_enabled != new.observability.dashboard_enabled),
        ("observability.refresh_ms", old.observability.refresh != new.observability.refresh),
        ("observability.render_interval_ms", old.observability.render_interval != new.observability.render_interval),
        ("observability.metrics", old.observability.metrics != new.observability.metrics),
    ]
    .into_iter()
    .filter_map(|(key, changed)| changed.then_some(key))
    .collect()
}
