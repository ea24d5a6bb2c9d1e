//! The HTTP API, the dashboard and the webhooks. They read published pictures (snapshots of the state), the ledger and transcripts, and
//! send commands through a handle, as people do over the control socket. They never see the engine's state, nor delay the scheduler.
//!
//! `listen` accepts connections, `guard` decides who may make a request, and `routes` is the table of all addresses. `shapes` are the types
//! of the responses. `pictures` renders each published picture once, for all clients.

mod body;
mod clean;
mod commands;
mod error;
mod events;
mod guard;
mod listen;
mod logs;
mod metrics;
mod openapi;
pub mod page;
mod patient_stream;
mod pictures;
mod records;
mod routes;
pub mod shapes;
mod tokens;
mod webhooks;
mod workspaces;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::config::Settings;
use crate::config::server::ServerSettings;
use crate::config::workspace::WorkspaceMode;
use crate::launcher::environment::Secrets;
use crate::runtime::assembly;
use crate::runtime::{Handle, RefusalLog, RunnerFolder};

pub use clean::Clean;
pub use error::ApiError;
pub use guard::{Bearer, Caller, RequestPace, ServedNames, TOKEN_COOKIE};
pub use listen::{CONNECTIONS, ListenError};
pub use metrics::PhaseClock;
pub use openapi::{openapi, openapi_text};
pub use pictures::{Missed, Pictures, Rendered};
pub use records::{RunRecords, TicketRecord, find};
use webhooks::Webhooks;

pub use tokens::{Tokens, read_generated, token_file};

/// The state that every route shares.
#[derive(Debug)]
pub struct Site {
    pub handle: Handle,
    pub pictures: Arc<Pictures>,
    pub records: RunRecords,
    pub tokens: Tokens,
    pub names: ServedNames,
    pub pace: RequestPace,
    pub refusals: RefusalLog,
    /// Limits how many clients follow events or logs at the same time.
    pub followers: Arc<Semaphore>,
    pub clean: Arc<Clean>,
    pub webhooks: Webhooks,
    /// Whether `/metrics` is served: `observability.metrics`.
    pub serves_metrics: bool,
    pub phases: Arc<PhaseClock>,
}

/// A server whose port is bound and that serves nothing yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    tokens: Tokens,
    names: ServedNames,
}

/// What the server needs from the runner.
pub struct Served {
    pub handle: Handle,
    pub folder: RunnerFolder,
    pub secrets: Secrets,
    /// The user's home, which is hidden in responses.
    pub home: Option<PathBuf>,
}

impl HttpServer {
    /// Binds the port and loads the tokens. `None` if `server.port` is not set.
    pub async fn open(settings: &ServerSettings, folder: &RunnerFolder) -> Result<Option<Self>, ListenError> {
        let Some(port) = settings.port else { return Ok(None) };
        let host = settings.address().ok_or_else(|| ListenError::Host(settings.host.clone()))?;
        let tokens = Tokens::of(settings, &folder.state_dir).map_err(|source| ListenError::Token {
            file: token_file(&folder.state_dir).display().to_string(),
            source,
        })?;
        let wanted = SocketAddr::new(host, port);
        let listener = listen::bind(wanted).await?;
        let address = listener.local_addr().map_err(|source| ListenError::Bind { address: wanted, source })?;
        let names = ServedNames::new(&settings.host, &settings.names, address.port(), !settings.is_loopback());
        Ok(Some(Self { listener, address, tokens, names }))
    }

    /// Returns the address for a browser on this machine.
    pub fn url(&self) -> String {
        let (ip, port) = (self.address.ip(), self.address.port());
        match ip {
            _ if ip.is_unspecified() => format!("http://localhost:{port}"),
            _ if ip.is_ipv6() => format!("http://[{ip}]:{port}"),
            _ => format!("http://{ip}:{port}"),
        }
    }

    /// Serves until the driver is gone.
    pub async fn serve(self, settings: &Settings, hash: &str, served: Served) {
        let Served { handle, folder, mut secrets, home } = served;
        if settings.server.secrets().next().is_none() {
            // The generated token is in no workflow file, but it is a secret all the same.
            secrets.values.extend(read_generated(&folder.state_dir).ok());
        }
        let _ = handle.served_at.set(self.url());
        let clean = Arc::new(clean_of(settings, &folder, secrets, &home.unwrap_or_default()));
        let records = RunRecords {
            ledger: folder.ledger.clone(),
            state_dir: folder.state_dir.clone(),
            policy: Arc::new(assembly::policy_here(settings, hash, false)),
            workspaces: assembly::workspaces(settings)
                .ok()
                .filter(|_| settings.workspace.mode == WorkspaceMode::Worktree),
            base_branch: settings.pr.base_branch.clone(),
            exec_events: settings.exec.events,
            clean: clean.clone(),
        };
        let pictures = Pictures::new(&handle, clean.clone());
        let (mut snapshots, webhook_handle) = (handle.snapshots.clone(), handle.clone());
        let site = Site {
            handle,
            pictures,
            records,
            tokens: self.tokens,
            names: self.names,
            pace: RequestPace::default(),
            refusals: RefusalLog::default(),
            followers: Arc::new(Semaphore::new(events::FOLLOWERS)),
            clean,
            webhooks: Webhooks::new(settings, &webhook_handle),
            serves_metrics: settings.observability.metrics,
            phases: PhaseClock::start(&webhook_handle),
        };
        let over = async move { while snapshots.changed().await.is_ok() {} };
        listen::serve(self.listener, routes::all(Arc::new(site)), over).await;
    }
}

fn clean_of(settings: &Settings, folder: &RunnerFolder, secrets: Secrets, home: &Path) -> Clean {
    let boards = folder.state_dir.parent().unwrap_or(&folder.state_dir);
    let places: [(&Path, &str); 5] = [
        (&settings.workspace.root, "<workspaces>"),
        (&folder.state_dir, "<runner>"),
        (boards, "<runners>"),
        (&settings.workspace.repo, "<repo>"),
        (home, "~"),
    ];
    Clean::new(secrets, &places)
}
