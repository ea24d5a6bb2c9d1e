//! Features that this version does not have and that would be unsafe to ignore. Building a feature means deleting its line here. Keys that
//! can safely be ignored are in `not_in_force`.

use super::tree::Node;
use crate::config::Settings;
use crate::config::worker::{Runtime, WorkerPlace};

/// A setting for a feature that is not available yet. `doctor` reports it; `run` does not start.
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
    Feature {
        key: "worker.place",
        what: "a worker on another machine",
        used: |s| s.worker.place != WorkerPlace::Local,
    },
    Feature { key: "worker.ssh_hosts", what: "a worker over SSH", used: |s| !s.worker.ssh_hosts.is_empty() },
    Feature {
        key: "budget.max_cost_usd",
        what: UNSEEN_COST,
        used: |s| s.budget.caps.max_cost_usd.is_some() && costs_unseen(s),
    },
    Feature {
        key: "budget.daily.max_cost_usd",
        what: UNSEEN_COST,
        used: |s| s.budget.daily.max_cost_usd.is_some() && costs_unseen(s),
    },
];

const UNSEEN_COST: &str = "a cap on cost with Codex, which names no cost, without `budget.prices`";

/// Whether some agent reports no cost and has no prices, so that a cap on cost would never be reached.
fn costs_unseen(settings: &Settings) -> bool {
    let routed = settings.agent.routing.iter().filter_map(|route| route.runtime);
    let reviewer = settings.review.runtime.filter(|_| settings.review.enabled);
    settings.budget.prices.is_empty()
        && routed.chain(reviewer).chain([settings.worker.runtime]).any(|runtime| runtime == Runtime::Codex)
}

/// Returns every feature that the settings use and that is not available yet.
pub fn unavailable(settings: &Settings, root: &Node) -> Vec<Unavailable> {
    NOT_YET
        .iter()
        .filter(|feature| (feature.used)(settings))
        .map(|feature| Unavailable {
            key: feature.key,
            line: root.at(feature.key).and_then(|node| node.place.in_file()).map(|place| place.line),
            what: feature.what,
        })
        .collect()
}

/// Whether some value of this key is refused.
pub fn refuses(key: &str) -> bool {
    NOT_YET.iter().any(|feature| feature.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::schema::json_schema;

    #[test]
    fn a_cap_on_cost_needs_prices_for_a_reviewer_that_names_no_cost() {
        let mut settings = Settings::default();
        settings.worker.runtime = Runtime::Claude;
        settings.budget.caps.max_cost_usd = Some(5.0);
        let refused = |settings: &Settings| unavailable(settings, &Node::empty_map()).len();
        assert_eq!(refused(&settings), 0);
        settings.review.runtime = Some(Runtime::Codex);
        assert_eq!(refused(&settings), 0, "there is no review");
        settings.review.enabled = true;
        assert_eq!(refused(&settings), 1);
    }

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
