//! Section `worker`: which agent runs, where, and with which environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::wire;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerSettings {
    /// The agent that does the work.
    pub runtime: Runtime,
    /// Where the agent's process runs.
    pub place: WorkerPlace,
    /// Names (or `PREFIX_*`) of variables that a worker gets from the runner's environment, in addition to the built-in list.
    pub env_pass: Vec<String>,
    /// Variables that are set for every worker; `$NAME` is expanded.
    #[serde(with = "wire::secret_map")]
    #[schemars(with = "BTreeMap<String, wire::SecretText>")]
    pub env: BTreeMap<String, SecretString>,
    /// Hosts that workers are distributed over.
    pub ssh_hosts: Vec<String>,
    /// The most workers on one host.
    #[schemars(range(min = 1))]
    pub max_concurrent_agents_per_host: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    #[default]
    Codex,
    Claude,
    Pi,
    Acp,
    Exec,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPlace {
    #[default]
    Local,
    Ssh,
}

impl Runtime {
    pub const ALL: [Runtime; 5] = [Self::Codex, Self::Claude, Self::Pi, Self::Acp, Self::Exec];

    pub fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Pi => "pi",
            Self::Acp => "acp",
            Self::Exec => "exec",
        }
    }

    /// Returns the variables that this agent needs from the runner's environment: its own API key and home directory.
    pub fn env_pass(self) -> &'static [&'static str] {
        match self {
            Self::Codex => &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"],
            Self::Claude => &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"],
            Self::Pi => &["PI_CODING_AGENT_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
            Self::Acp | Self::Exec => &[],
        }
    }
}

impl WorkerSettings {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for name in &self.env_pass {
            let stem = name.strip_suffix('*').unwrap_or(name);
            if stem.is_empty() || !is_variable_name(stem) {
                problems.push(
                    Problem::new("worker.env_pass", format!("`{name}` in `worker.env_pass` is not a variable name"))
                        .with_help("write a name such as `CARGO_HOME`, or a prefix such as `AWS_*`"),
                );
            }
        }
        for name in self.env.keys().filter(|name| !is_variable_name(name)) {
            problems.push(Problem::new(format!("worker.env.{name}"), format!("`{name}` is not a variable name")));
        }
        problems
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
