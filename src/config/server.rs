//! `server`: the HTTP API and dashboard.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::wire;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// Left out is off; 0 takes any free port.
    pub port: Option<u16>,
    pub host: String,
    /// Needed for anything that changes something. Generated where there is none.
    #[serde(with = "wire::secret")]
    #[schemars(with = "Option<wire::SecretText>")]
    pub token: Option<SecretString>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { port: None, host: "127.0.0.1".to_owned(), token: None }
    }
}
