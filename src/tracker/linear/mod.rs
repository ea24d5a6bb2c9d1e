//! The board of a Linear team or project, over its GraphQL API.
//!
//! Queries are in the `.graphql` files beside this one and typed when they are compiled (`documents`). A personal key is shared with
//! its person, so what is ours is told by its marker; ids of what we make are our own (`keys`), so that a repetition is not a second
//! one.

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

/// Where Linear itself answers.
pub const ENDPOINT: &str = "https://api.linear.app/graphql";

/// How often every issue on the board is looked at, whatever the changes say.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// What a workflow says about its Linear board.
#[derive(Debug, Clone)]
pub struct LinearConfig {
    pub endpoint: String,
    pub api_key: SecretString,
    pub scope: Scope,
    pub states: NamedStates,
    /// Whether no person uses the account; by what Linear says of it where it is not written.
    pub own_account: Option<bool>,
    /// Whether a label that is not there may be made.
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
    /// What is known of each issue on the board, for the next sweep.
    digests: Mutex<Option<Digest>>,
    left_out: Mutex<Vec<String>>,
    /// A list that broke off.
    unfinished: tokio::sync::Mutex<Option<Unfinished>>,
}

impl LinearTracker {
    /// Asks nothing yet.
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
