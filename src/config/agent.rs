//! Section `agent`: how many workers run, for how long and in which order, and what happens when an agent asks for an approval or an
//! answer.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::Order;
use super::problem::Problem;
use super::wire;
use super::worker::Runtime;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSettings {
    /// The name of the credential pool: workers in one pool share one usage limit. Default: one pool per runtime.
    pub pool: Option<String>,
    /// The most workers that run at the same time.
    #[schemars(range(min = 1))]
    pub max_concurrent_agents: usize,
    /// The most workers that run at the same time on tickets in one state, by state. State names are compared trimmed and in lower case.
    #[schemars(with = "BTreeMap<String, std::num::NonZeroUsize>")]
    pub max_concurrent_agents_by_state: BTreeMap<String, usize>,
    /// The most turns of one run. A turn is one exchange with the agent.
    #[schemars(range(min = 1))]
    pub max_turns: u32,
    /// How many runs may fail in a row before the ticket is blocked.
    pub max_retries: u32,
    /// The longest wait between two attempts.
    #[serde(rename = "max_retry_backoff_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub max_retry_backoff: Duration,
    /// The most time that a whole run may take, however active its agent is. 0 is off.
    #[serde(rename = "max_run_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub max_run: Duration,
    /// The time between asking a worker to stop and killing it.
    #[serde(rename = "stop_grace_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub stop_grace: Duration,
    /// A live run without an event for this long is shown as quiet, and its agent gets one message. Default: half of its
    /// `stall_timeout_ms`; 0 is off.
    #[serde(rename = "quiet_after_ms", with = "wire::optional_millis")]
    #[schemars(with = "Option<wire::Millis>")]
    pub quiet_after: Option<Duration>,
    /// How long an open tool call may produce no output.
    #[serde(rename = "tool_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub tool_timeout: Duration,
    /// The time from the start of a run until its agent must be ready.
    #[serde(rename = "start_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub start_timeout: Duration,
    /// Which ticket starts first among tickets of the same rank.
    pub order: Order,
    /// A run older than this without a commit or evidence is stopped and queued again. 0 is off.
    #[serde(rename = "fresh_start_ms", with = "wire::millis")]
    #[schemars(with = "wire::Millis")]
    pub fresh_start: Duration,
    /// Routes; the first one that matches a ticket decides which runtime, model and prompt it gets.
    pub routing: Vec<RouteSettings>,
    /// What happens when an agent asks for an approval or an answer. `auto` allows what the agent's own sandbox allows.
    pub on_request: OnRequest,
    /// Requests that are allowed without asking a person.
    pub allow: Vec<RequestRule>,
    /// Requests that are refused without asking a person. Takes precedence over `allow`.
    pub deny: Vec<RequestRule>,
    /// How long a question that was put on the ticket waits for an answer.
    #[serde(rename = "ask_timeout_ms", with = "wire::millis")]
    #[schemars(with = "wire::PositiveMillis")]
    pub ask_timeout: Duration,
    /// The answer that the agent gets when nobody answered in time.
    pub ask_default: AskDefault,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteSettings {
    /// The conditions of this route. All that are given must hold.
    #[serde(rename = "match")]
    pub when: RouteMatch,
    pub runtime: Option<Runtime>,
    pub model: Option<String>,
    /// The model's provider, for agents that need one.
    pub model_provider: Option<String>,
    pub thinking_level: Option<String>,
    /// The prompt: the name of a template file in `.dirigent/templates/`, without its extension.
    pub prompt: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteMatch {
    /// The ticket has one of these labels.
    #[serde(deserialize_with = "wire::one_or_many")]
    #[schemars(with = "wire::OneOrMany<String>")]
    pub labels: Vec<String>,
    /// The ticket has one of these priorities.
    #[serde(deserialize_with = "wire::one_or_many")]
    #[schemars(with = "wire::OneOrMany<i64>")]
    pub priority: Vec<i64>,
    /// The ticket is in one of these states.
    #[serde(deserialize_with = "wire::one_or_many")]
    #[schemars(with = "wire::OneOrMany<String>")]
    pub state: Vec<String>,
    /// The run has this purpose, such as `review`.
    pub role: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRequest {
    #[default]
    Auto,
    Ask,
    Fail,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskDefault {
    Approve,
    #[default]
    Deny,
}

/// A rule for agents' requests: the name of a tool alone, or a tool and a pattern, in which `*` stands for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenRule")]
pub struct RequestRule {
    pub tool: String,
    pub pattern: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenRule {
    Tool(String),
    Full(FullRule),
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FullRule {
    /// The tool's name; `*` stands for any text.
    tool: String,
    /// What the request is about (a command, a path). Left out, the rule matches any request of the tool.
    pattern: Option<String>,
}

impl From<WrittenRule> for RequestRule {
    fn from(written: WrittenRule) -> Self {
        match written {
            WrittenRule::Tool(tool) => Self { tool, pattern: None },
            WrittenRule::Full(FullRule { tool, pattern }) => Self { tool, pattern },
        }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            pool: None,
            max_concurrent_agents: 10,
            max_concurrent_agents_by_state: BTreeMap::new(),
            max_turns: 20,
            max_retries: 5,
            max_retry_backoff: Duration::from_secs(300),
            max_run: Duration::ZERO,
            stop_grace: Duration::from_secs(10),
            quiet_after: None,
            tool_timeout: Duration::from_secs(30 * 60),
            start_timeout: Duration::from_secs(120),
            order: Order::Oldest,
            fresh_start: Duration::from_secs(3600),
            routing: Vec::new(),
            on_request: OnRequest::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            ask_timeout: Duration::from_secs(3600),
            ask_default: AskDefault::default(),
        }
    }
}

impl AgentSettings {
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.pool.as_deref().is_some_and(|pool| pool.trim().is_empty()) {
            problems.push(Problem::new("agent.pool", "`agent.pool` is empty"));
        }
        for (index, route) in self.routing.iter().enumerate() {
            if *route == (RouteSettings { when: route.when.clone(), ..RouteSettings::default() }) {
                let path = format!("agent.routing[{index}]");
                problems.push(
                    Problem::new(path.clone(), format!("`{path}` changes nothing"))
                        .with_help("give it one of runtime, model, thinking_level, prompt"),
                );
            }
        }
        for (key, rules) in [("agent.allow", &self.allow), ("agent.deny", &self.deny)] {
            for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.tool.trim().is_empty()) {
                let path = format!("{key}[{index}]");
                let about = rule.pattern.as_deref().unwrap_or("no pattern");
                problems.push(
                    Problem::new(path.clone(), format!("`{path}` ({about}) names no tool"))
                        .with_help("write `tool: \"*\"` for any tool"),
                );
            }
        }
        problems
    }
}

impl RequestRule {
    /// Whether the rule applies to a request: the tool's name and what the request is about.
    pub fn matches(&self, tool: &str, about: &str) -> bool {
        wildcard(&self.tool, tool) && self.pattern.as_deref().is_none_or(|pattern| wildcard(pattern, about))
    }
}

/// Whether the whole text matches the pattern, in which `*` stands for any characters, also none.
fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tool: &str, pattern: Option<&str>) -> RequestRule {
        RequestRule { tool: tool.into(), pattern: pattern.map(Into::into) }
    }

    #[test]
    fn request_rules_match_tool_and_pattern() {
        assert!(rule("shell", None).matches("shell", "rm -rf /"));
        assert!(!rule("shell", None).matches("shell2", ""));
        assert!(rule("*", Some("git *")).matches("shell", "git status"));
        assert!(!rule("*", Some("git *")).matches("shell", "legit status"));
        assert!(rule("sh*", Some("*cargo*test*")).matches("shell", "cd x; cargo -q test --lib"));
        assert!(!rule("sh*", Some("a*ba")).matches("shell", "aba-"));
        assert!(rule("x", Some("a*ba")).matches("x", "aba"));
    }
}
