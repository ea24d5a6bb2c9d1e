//! Branch protection and rulesets.

use serde_json::{Value, json};

use crate::github::state::rules::{Demands, Ruleset};
use crate::github::state::{Repo, World};

use super::{joined, repo as repository};

pub fn protection(world: &World, repo: &Repo, branch: &str, demands: &Demands) -> Value {
    let url = format!("{}/branches/{branch}/protection", repository::api(world, repo));
    let mut out = json!({
        "url": url,
        "enforce_admins": {"url": format!("{url}/enforce_admins"), "enabled": false},
        "required_linear_history": {"enabled": false},
        "allow_force_pushes": {"enabled": false},
        "allow_deletions": {"enabled": false},
        "required_conversation_resolution": {"enabled": demands.conversations_resolved},
        "required_signatures": {"url": format!("{url}/required_signatures"), "enabled": demands.signatures},
    });
    if !demands.checks.is_empty() {
        out["required_status_checks"] = required_checks(&url, demands);
    }
    if demands.reviews > 0 {
        out["required_pull_request_reviews"] = json!({
            "url": format!("{url}/required_pull_request_reviews"), "dismiss_stale_reviews": demands.dismiss_stale,
            "require_code_owner_reviews": demands.code_owners, "required_approving_review_count": demands.reviews,
            "require_last_push_approval": false,
        });
    }
    out
}

fn required_checks(url: &str, demands: &Demands) -> Value {
    let checks: Vec<Value> = demands.checks.iter().map(|name| json!({"context": name, "app_id": null})).collect();
    json!({
        "url": format!("{url}/required_status_checks"), "strict": demands.up_to_date, "contexts": demands.checks,
        "contexts_url": format!("{url}/required_status_checks/contexts"), "checks": checks,
    })
}

/// What a branch shows of its protection to everybody.
pub fn summary(demands: Option<&Demands>) -> Value {
    let checks = demands.map(|demands| demands.checks.clone()).unwrap_or_default();
    let listed: Vec<Value> = checks.iter().map(|name| json!({"context": name, "app_id": null})).collect();
    let level = if checks.is_empty() { "off" } else { "non_admins" };
    json!({
        "enabled": demands.is_some(),
        "required_status_checks": {"enforcement_level": level, "contexts": checks, "checks": listed},
    })
}

/// The rules of a set, as plain rules.
pub fn rules(ruleset: &Ruleset) -> Vec<Value> {
    let demands = &ruleset.demands;
    let mut out = Vec::new();
    if !demands.checks.is_empty() {
        let checks: Vec<Value> = demands.checks.iter().map(|name| json!({"context": name})).collect();
        out.push(json!({"type": "required_status_checks", "parameters": {
            "required_status_checks": checks, "strict_required_status_checks_policy": demands.up_to_date,
        }}));
    }
    if demands.reviews > 0 || demands.code_owners || demands.conversations_resolved {
        out.push(json!({"type": "pull_request", "parameters": {
            "dismiss_stale_reviews_on_push": demands.dismiss_stale, "require_code_owner_review": demands.code_owners,
            "require_last_push_approval": false, "required_approving_review_count": demands.reviews,
            "required_review_thread_resolution": demands.conversations_resolved,
        }}));
    }
    if demands.signatures {
        out.push(json!({"type": "required_signatures"}));
    }
    if demands.merge_queue {
        out.push(json!({"type": "merge_queue", "parameters": {
            "check_response_timeout_minutes": 60, "grouping_strategy": "ALLGREEN", "max_entries_to_build": 5,
            "max_entries_to_merge": 5, "merge_method": "SQUASH", "min_entries_to_merge": 1,
            "min_entries_to_merge_wait_minutes": 5,
        }}));
    }
    out
}

/// The same, each with the set that it is from.
pub fn rules_of_branch(repo: &Repo, ruleset: &Ruleset) -> Vec<Value> {
    let origin =
        json!({"ruleset_source_type": "Repository", "ruleset_source": repo.full_name(), "ruleset_id": ruleset.id});
    rules(ruleset).into_iter().map(|rule| joined(rule, origin.clone())).collect()
}

pub fn ruleset(repo: &Repo, ruleset: &Ruleset, whole: bool) -> Value {
    let mut out = json!({
        "id": ruleset.id, "name": ruleset.name, "target": "branch", "source_type": "Repository",
        "source": repo.full_name(), "enforcement": "active", "node_id": format!("RRS_{}", ruleset.id),
    });
    if whole {
        out["conditions"] = json!({"ref_name": {"include": [format!("refs/heads/{}", ruleset.branch)], "exclude": []}});
        out["rules"] = json!(rules(ruleset));
    }
    out
}
