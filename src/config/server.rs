//! Section `server`: the HTTP API and the dashboard.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

/// The fewest characters of a token. A shorter one could be guessed.
const SHORTEST_TOKEN: usize = 16;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// The port to listen at. Without it there is no server; 0 takes any free port.
    pub port: Option<u16>,
    /// The address to listen at. If other machines can reach it, a token is needed, also for reading.
    pub host: String,
    /// Further host names by which people and proxies reach the server. A request for an unknown host name is refused.
    pub names: Vec<String>,
    /// The token that requests need to change something. If none is set, one is generated.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub token: Option<SecretString>,
    /// Further tokens, by the name of the person or program that has the token. This name is recorded in the ticket's history.
    #[serde(with = "wire::secret_map")]
    #[schemars(with = "BTreeMap<String, wire::SecretText>")]
    pub tokens: BTreeMap<String, SecretString>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { port: None, host: "127.0.0.1".to_owned(), names: Vec::new(), token: None, tokens: BTreeMap::new() }
    }
}

impl ServerSettings {
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.token.iter().chain(self.tokens.values())
    }

    /// Whether only this machine can reach the server. A host name other than `localhost` counts as reachable by others.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    /// Returns the address of `host`; `None` for a name other than `localhost`.
    pub fn address(&self) -> Option<IpAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        if host == "localhost" { Some(IpAddr::from([127, 0, 0, 1])) } else { host.parse().ok() }
    }

    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.address().is_none() {
            let message = format!("`server.host` is `{}`, which is not an address", self.host);
            problems.push(
                Problem::new("server.host", message).with_help("write an address such as `127.0.0.1` or `0.0.0.0`"),
            );
        }
        if !self.is_loopback() && self.port.is_some() && self.secrets().next().is_none() {
            let message = format!(
                "others can reach `{}`, and no token is configured: whoever comes by could read everything",
                self.host
            );
            problems.push(
                Problem::new("server.host", message)
                    .with_help("write `server.token: $NAME`, or leave `server.host` out"),
            );
        }
        let named = self.tokens.iter().map(|(name, token)| (format!("server.tokens.{name}"), token));
        for (key, token) in self.token.iter().map(|token| ("server.token".to_owned(), token)).chain(named) {
            if token.expose_secret().len() < SHORTEST_TOKEN {
                let message = format!("`{key}` has fewer than {SHORTEST_TOKEN} characters and could be guessed");
                problems.push(Problem::new(key, message).with_help("make one with `openssl rand -hex 32`"));
            }
        }
        for name in self.tokens.keys().filter(|name| !is_a_name(name)) {
            let message = format!("`{name}` is not a name that can stand in the story of a ticket");
            problems
                .push(Problem::new("server.tokens", message).with_help("use letters, digits and `-_.@`, at most 64"));
        }
        problems
    }
}

/// Whether the text can name the holder of a token in ticket histories and logs: letters, digits and `-_.@`, at most 64 bytes.
fn is_a_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || "-_.@".contains(c))
}
