//! Section `pi`: the pi coding agent, driven over its RPC mode.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codex::Timeouts;
use super::problem::Problem;
use super::wire;

/// The pi coding agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PiSettings {
    pub command: String,
    pub model: Option<PiModel>,
    pub thinking_level: Option<String>,
    /// The name of the folder that holds pi's session files. It is made outside the worktree.
    pub session_dir_name: Option<String>,
    #[schemars(with = "Vec<wire::PathText>")]
    pub extension_paths: Vec<PathBuf>,
    /// Whether to run pi without the user's own extensions.
    pub disable_extensions: bool,
    pub disable_themes: bool,
    #[serde(flatten)]
    pub timeouts: Timeouts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PiModel {
    pub provider: Option<String>,
    pub model_id: String,
}

impl Default for PiSettings {
    fn default() -> Self {
        Self {
            command: "pi".to_owned(),
            model: None,
            thinking_level: None,
            session_dir_name: None,
            extension_paths: Vec::new(),
            disable_extensions: false,
            disable_themes: false,
            timeouts: Timeouts::default(),
        }
    }
}

impl PiSettings {
    pub fn check(&self) -> Vec<Problem> {
        let leaves = |name: &str| {
            let mut parts = std::path::Path::new(name).components();
            !matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
        };
        match self.session_dir_name.as_deref().filter(|name| leaves(name)) {
            Some(name) => vec![
                Problem::new(
                    "pi.session_dir_name",
                    format!("`pi.session_dir_name` `{name}` leaves the folder that sessions are kept in"),
                )
                .with_help("write the name of a folder, without any `/`"),
            ],
            None => Vec::new(),
        }
    }
}
