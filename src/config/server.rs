//! `server`: the HTTP API and dashboard.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

/// A token that is shorter could be guessed.
const SHORTEST_TOKEN: usize = 16;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// Left out is off; 0 takes any free port.
    pub port: Option<u16>,
    /// Where to listen. Anything but this machine itself needs a token, for looking too.
    pub host: String,
    /// Other names that people and proxies reach it by. A request for a name that is not known is refused.
    pub names: Vec<String>,
    /// Needed for anything that changes something. Generated where there is none.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub token: Option<SecretString>,
    /// More of them, each with the name of whoever has it: that name is in the story of a ticket.
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

    /// Whether only this machine can reach it. A name that is not an address may be anything.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    /// `None` for a name other than `localhost`.
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

/// What stands in stories and logs: one short word.
fn is_a_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || "-_.@".contains(c))
}
