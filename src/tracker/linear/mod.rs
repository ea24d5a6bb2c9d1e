//! The board of a Linear team or project, over its GraphQL API.
//!
//! The queries are in the `.graphql` files of this folder and are typed at compile time (`documents`). A personal key shares its
//! account with a person, so the runner's comments are recognised by their marks. The runner chooses the ids of what it creates
//! (`keys`), so that a repeated write does not create a second object.

mod adapter;
mod agent_api;
mod agent_document;
mod agent_reading;
mod attachments;
mod board;
mod budget;
mod client;
mod comments;
mod cursors;
mod documents;
mod keys;
mod listing;
mod marks;
mod people;
mod polling;
mod refusals;
mod scope;
mod survey;
mod ticket;
mod writes;

use std::sync::Mutex;
use std::time::Duration;

use secrecy::SecretString;

use super::TrackerError;
use client::LinearClient;
use listing::Unfinished;
use people::Accounts;
use polling::Digest;

pub use agent_api::api_tool;
pub use scope::{Assignee, Scope};
pub use survey::NamedStates;

/// The address of Linear's API.
pub const ENDPOINT: &str = "https://api.linear.app/graphql";

/// How often every issue on the board is compared, in addition to reading changes.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// The settings of a Linear board in the workflow file.
#[derive(Debug, Clone)]
pub struct LinearConfig {
    pub endpoint: String,
    pub api_key: SecretString,
    pub scope: Scope,
    pub states: NamedStates,
    /// Whether no person uses the account. `None`: decided by whether Linear calls the account an app.
    pub own_account: Option<bool>,
    /// Whether a missing label may be created.
    pub create_labels: bool,
    pub sweep_every: Duration,
}

impl LinearConfig {
    pub fn new(api_key: SecretString, scope: Scope) -> Self {
        Self {
            endpoint: ENDPOINT.to_owned(),
            api_key,
            scope,
            states: NamedStates::default(),
            own_account: None,
            create_labels: false,
            sweep_every: SWEEP_EVERY,
        }
    }
}

pub struct LinearTracker {
    client: LinearClient,
    scope: Scope,
    states: NamedStates,
    people: Accounts,
    create_labels: bool,
    sweep_every: Duration,
    /// The digest of each issue on the board, for the next sweep (a comparison of all issues).
    digests: Mutex<Option<Digest>>,
    left_out: Mutex<Vec<String>>,
    /// A listing that was interrupted.
    unfinished: tokio::sync::Mutex<Option<Unfinished>>,
}

impl LinearTracker {
    /// Makes a tracker. Nothing is sent yet.
    pub fn new(config: LinearConfig) -> Result<Self, TrackerError> {
        let client = LinearClient::new(&config.endpoint, &config.api_key)?;
        let people = Accounts::new(config.own_account, config.scope.team_key.clone());
        Ok(Self {
            client,
            people,
            scope: config.scope,
            states: config.states,
            create_labels: config.create_labels,
            sweep_every: config.sweep_every,
            digests: Mutex::default(),
            left_out: Mutex::default(),
            unfinished: tokio::sync::Mutex::default(),
        })
    }
}
