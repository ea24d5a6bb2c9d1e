//! What GitHub requires before something is merged into a branch: rulesets, and the readable part of classic branch protection.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::Inner;
use crate::github::{GithubError, Purpose, segment};

const REMEMBERED: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct RuleBook {
    known: Mutex<HashMap<String, (Instant, Demands)>>,
}

/// The requirements of a branch, as far as the token can read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demands {
    /// Names of the required checks. `None` if they could not be read.
    pub checks: Option<Vec<String>>,
    pub reviews: u64,
    pub code_owners: bool,
    pub conversations_resolved: bool,
    pub signatures: bool,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: Value,
}

#[derive(Deserialize)]
struct Branch {
    protection: Option<Protection>,
}

#[derive(Deserialize)]
struct Protection {
    required_status_checks: Option<RequiredChecks>,
}

#[derive(Deserialize)]
struct RequiredChecks {
    #[serde(default)]
    enforcement_level: Option<String>,
    #[serde(default)]
    contexts: Vec<String>,
}

impl Inner {
    pub(super) async fn demands(&self, branch: &str) -> Demands {
        let known = self.rules.known.lock().unwrap_or_else(PoisonError::into_inner).get(branch).cloned();
        if let Some((_, demands)) = known.filter(|(at, _)| at.elapsed() < REMEMBERED) {
            return demands;
        }
        let demands = self.read_demands(branch).await;
        if demands.checks.is_some() {
            let mut known = self.rules.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(branch.to_owned(), (Instant::now(), demands.clone()));
        }
        demands
    }

    async fn read_demands(&self, branch: &str) -> Demands {
        let mut demands = Demands::default();
        let segment = segment(branch);
        let rules = self.path(&format!("/rules/branches/{segment}?per_page=100"));
        let rules: Result<Vec<Rule>, GithubError> = self.github.list(Purpose::Look, &rules).await;
        let protection = self.github.get::<Branch>(Purpose::Look, &self.path(&format!("/branches/{segment}"))).await;
        for rule in rules.iter().flatten() {
            demands.take_in(rule);
        }
        // Older Enterprise servers have no rulesets, and neither have private repositories of free accounts: there is nothing to read then.
        let ruled = match &rules {
            Ok(_) | Err(GithubError::NotFound(_)) => true,
            Err(GithubError::Refused(refusal)) => refusal.message.contains("Upgrade to GitHub"),
            Err(_) => false,
        };
        match protection {
            Ok(found) if ruled => {
                let mut names = demands.checks.take().unwrap_or_default();
                let required = found.protection.and_then(|protection| protection.required_status_checks);
                let required = required.filter(|checks| checks.enforcement_level.as_deref() != Some("off"));
                names.extend(required.map(|checks| checks.contexts).unwrap_or_default());
                names.sort();
                names.dedup();
                demands.checks = Some(names);
            }
            _ => demands.checks = None,
        }
        demands
    }
}

impl Demands {
    fn take_in(&mut self, rule: &Rule) {
        let told = |name: &str| rule.parameters[name].as_bool().unwrap_or_default();
        match rule.kind.as_str() {
            "required_status_checks" => {
                let listed = rule.parameters["required_status_checks"].as_array().into_iter().flatten();
                let names = listed.filter_map(|one| one["context"].as_str().map(str::to_owned));
                self.checks.get_or_insert_default().extend(names);
            }
            "pull_request" => {
                let reviews = rule.parameters["required_approving_review_count"].as_u64().unwrap_or_default();
                self.reviews = self.reviews.max(reviews);
                self.code_owners |= told("require_code_owner_review");
                self.conversations_resolved |= told("required_review_thread_resolution");
            }
            "required_signatures" => self.signatures = true,
            _ => {}
        }
    }
}

/// Describes the rules that block a merge, for people.
pub fn because(demands: &Demands, branch: &str, found: &RuledFacts<'_>) -> String {
    let mut reasons = Vec::new();
    match found.review_decision {
        Some("REVIEW_REQUIRED") => reasons.push(match demands.reviews {
            0 | 1 => format!("`{branch}` wants an approving review by somebody with write access"),
            count => format!("`{branch}` wants {count} approving reviews by people with write access"),
        }),
        Some("CHANGES_REQUESTED") => reasons.push("a reviewer requests changes".to_owned()),
        _ => {}
    }
    if demands.code_owners && found.review_decision != Some("APPROVED") {
        reasons.push("a code owner has to approve it".to_owned());
    }
    let open = found.open_conversations.len();
    if open > 0 && (demands.conversations_resolved || reasons.is_empty()) {
        let mut whose: Vec<&str> = found.open_conversations.clone();
        whose.sort_unstable();
        whose.dedup();
        reasons.push(format!("every conversation has to be resolved ({open} open, begun by {})", whose.join(", ")));
    }
    if demands.signatures {
        reasons.push("every commit has to be signed".to_owned());
    }
    if !found.missing_checks.is_empty() {
        reasons.push(format!("required checks have not passed: {}", found.missing_checks.join(", ")));
    }
    if reasons.is_empty() {
        reasons.push("GitHub blocks the merge by a rule that our token cannot read".to_owned());
    }
    reasons.join("; ")
}

/// The facts of a look that rules are about.
pub struct RuledFacts<'a> {
    pub review_decision: Option<&'a str>,
    /// Who began each open conversation.
    pub open_conversations: Vec<&'a str>,
    pub missing_checks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_that_blocks_is_named() {
        let rule = |kind: &str, parameters| Rule { kind: kind.to_owned(), parameters };
        let mut demands = Demands::default();
        demands.take_in(&rule(
            "pull_request",
            serde_json::json!({"required_approving_review_count": 2, "require_code_owner_review": true}),
        ));
        demands.take_in(&rule("required_signatures", Value::Null));
        demands.take_in(&rule("something_new", serde_json::json!({"a": 1})));
        let standing = RuledFacts {
            review_decision: Some("REVIEW_REQUIRED"),
            open_conversations: Vec::new(),
            missing_checks: Vec::new(),
        };
        let words = because(&demands, "main", &standing);
        for part in ["`main` wants 2 approving reviews", "code owner", "signed"] {
            assert!(words.contains(part), "{words}");
        }
        let nothing = RuledFacts { review_decision: None, open_conversations: Vec::new(), missing_checks: Vec::new() };
        assert!(because(&Demands::default(), "main", &nothing).contains("cannot read"));
        let talking = RuledFacts { open_conversations: vec!["rabbit[bot]", "ada", "rabbit[bot]"], ..nothing };
        let words = because(&Demands::default(), "main", &talking);
        assert_eq!(words, "every conversation has to be resolved (3 open, begun by ada, rabbit[bot])");
    }
}
