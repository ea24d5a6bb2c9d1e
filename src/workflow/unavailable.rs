//! What the schema knows and this version does not do yet. Building a feature means deleting its line here.

use super::tree::Node;
use crate::config::Settings;
use crate::config::merge::MergeExecutor;
use crate::config::policy::ForgeKind;
use crate::config::tracker::TrackerKind;
use crate::config::worker::WorkerPlace;

/// A setting that asks for something that is not there yet. `doctor` reports it; `run` does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub key: &'static str,
    pub line: Option<u32>,
    pub what: &'static str,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: `{}`: {} is not available in this version", self.key, self.what),
            None => write!(out, "`{}`: {} is not available in this version", self.key, self.what),
        }
    }
}

struct Feature {
    key: &'static str,
    what: &'static str,
    used: fn(&Settings) -> bool,
}

const NOT_YET: &[Feature] = &[
    Feature { key: "tracker.kind", what: "the GitHub tracker", used: |s| s.tracker.kind == TrackerKind::Github },
    Feature { key: "tracker.kind", what: "the Linear tracker", used: |s| s.tracker.kind == TrackerKind::Linear },
    Feature { key: "polling.webhook", what: "a webhook", used: |s| s.polling.webhook.is_some() },
    Feature { key: "workspace.repo", what: "a repository by its address", used: |s| s.workspace.repo_is_url() },
    Feature {
        key: "worker.place",
        what: "a worker on another machine",
        used: |s| s.worker.place != WorkerPlace::Local,
    },
    Feature { key: "worker.ssh_hosts", what: "a worker over SSH", used: |s| !s.worker.ssh_hosts.is_empty() },
    Feature { key: "pr.forge", what: "the GitHub forge", used: |s| s.pr.forge == Some(ForgeKind::Github) },
    Feature { key: "review.enabled", what: "the review run", used: |s| s.review.enabled },
    Feature { key: "merge.executor", what: "a merge by prompt", used: |s| s.merge.executor == MergeExecutor::Prompt },
    Feature { key: "gates.wave", what: "a wave gate", used: |s| !s.gates.wave.is_empty() },
    Feature { key: "gates.final", what: "a final gate", used: |s| !s.gates.final_.is_empty() },
    Feature {
        key: "gates.forbidden_patterns",
        what: "the pattern scan",
        used: |s| !s.gates.forbidden_patterns.is_empty(),
    },
    Feature { key: "waves.enabled", what: "waves", used: |s| s.waves.enabled },
    Feature { key: "observability.metrics", what: "the metrics endpoint", used: |s| s.observability.metrics },
    Feature { key: "server.port", what: "the HTTP server", used: |s| s.server.port.is_some() },
];

/// Everything the settings ask for that is not there yet.
pub fn unavailable(settings: &Settings, root: &Node) -> Vec<Unavailable> {
    NOT_YET
        .iter()
        .filter(|feature| (feature.used)(settings))
        .map(|feature| Unavailable {
            key: feature.key,
            line: root.at(feature.key).map(|node| node.place.line),
            what: feature.what,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::schema::json_schema;

    #[test]
    fn every_line_names_a_key_of_the_schema_and_is_off_by_default() {
        let schema = json_schema();
        let settings = Settings::default();
        for feature in NOT_YET {
            let pointer = format!("/properties/{}", feature.key.replace('.', "/properties/"));
            assert!(schema.pointer(&pointer).is_some(), "{} is not a key", feature.key);
            assert!(!(feature.used)(&settings), "{} is on by default", feature.key);
        }
    }
}
