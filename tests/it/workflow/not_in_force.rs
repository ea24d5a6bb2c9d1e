//! What a file asks for and does not get is said, with the reason, and never passed over.

use super::Desk;

fn said(yaml: &str) -> Vec<String> {
    let loaded = Desk::new().good(yaml);
    loaded.warnings.iter().map(|warning| format!("{}: {}", warning.line().unwrap_or(0), warning.message)).collect()
}

#[test]
fn a_key_without_an_effect_is_said_with_its_line_and_reason() {
    let exec = "worker: {runtime: exec}\nexec: {command: 'true'}\n";
    for (yaml, sentence) in [
        (
            "server:\n  names: [board.example]",
            "6: `server.names` is not in force: nothing is served (there is no `server.port`)",
        ),
        (
            "gates:\n  failure_action: warn",
            "6: `gates.failure_action` is not in force: a failed check always leads to rework of the same ticket",
        ),
        (
            "pr:\n  forge: local\n  reviewers: [ada]",
            "7: `pr.reviewers` is not in force: the local forge has nothing like it",
        ),
        ("codex:\n  approval_policy: never", "6: `codex.approval_policy` is not in force: no run uses this agent"),
        (
            "agent:\n  routing: [{match: {labels: a}, thinking_level: high}]",
            "6: `agent.routing[0].thinking_level` is not in force: a program that `exec` runs is not told",
        ),
        (
            "merge:\n  require_head_match: false",
            "6: `merge.require_head_match` is not in force: the head that was checked is always the head that is merged",
        ),
        (
            "review:\n  max_passes: 3",
            "6: `review.max_passes` is not in force: no review is made (`review.enabled` is false)",
        ),
        (
            "review:\n  enabled: true\n  model: big",
            "7: `review.model` is not in force: a program that `exec` runs is not told",
        ),
        (
            "pi:\n  response_timeout_ms: 5000\n  read_timeout_ms: 1",
            "6: `pi.response_timeout_ms` is not in force: it is pi-symphony's name for `pi.read_timeout_ms`, which is written as well",
        ),
    ] {
        let said = said(&format!("{exec}{yaml}"));
        assert_eq!(said.first().map(String::as_str), Some(sentence), "{yaml}: {said:?}");
    }
    // What says what happens anyway, and what another agent takes over, has its effect.
    for yaml in [
        "gates: {failure_action: reopen}",
        "merge: {strategy: queue, require_head_match: true, executor: local}",
        "codex: {stall_timeout_ms: 7m, turn_timeout_ms: 1h}",
        "review: {enabled: false}",
        "review: {enabled: true, agent: strict, max_passes: 1, fix_consideration_severities: [P0]}\npr: {review_comment_mode: create}",
    ] {
        assert_eq!(said(&format!("{exec}{yaml}")), Vec::<String>::new(), "{yaml}");
    }
}

#[test]
fn in_directory_mode_nothing_about_branches_is_in_force() {
    let keys: Vec<String> = Desk::new()
        .good("workspace: {mode: directory, base: x, keep: always}\npr: {forge: local}\nmerge: {mode: auto}\ngates: {task: [make]}")
        .warnings
        .into_iter()
        .map(|warning| warning.key)
        .collect();
    assert_eq!(keys, ["workspace.base", "workspace.keep", "pr.forge", "merge.mode", "gates.task"]);
}

#[test]
fn a_guard_that_is_not_in_force_is_part_of_the_policy_and_does_not_keep_anything_from_starting() {
    let loaded = Desk::new().good("gates: {final: [make], forbidden_patterns: [FIXME]}\nmerge: {mode: auto}");
    assert!(loaded.unavailable.is_empty(), "{:?}", loaded.unavailable);
    let policy = loaded.settings.policy(&loaded.hash, false);
    assert_eq!(policy.merge.guards_not_in_force, ["gates.final", "gates.forbidden_patterns"]);
    assert!(!policy.merge.auto, "nothing is merged");
    let said = &loaded.warnings[0].message;
    assert!(said.contains("this version has no wave or final check; until it has, nothing is merged"), "{said}");
}

#[test]
fn a_cap_on_cost_that_nobody_counts_is_refused() {
    let codex = Desk::new().good("budget: {max_cost_usd: 2, daily: {max_cost_usd: 9}}");
    let keys: Vec<&str> = codex.unavailable.iter().map(|missing| missing.key).collect();
    assert_eq!(keys, ["budget.max_cost_usd", "budget.daily.max_cost_usd"]);
    assert!(Desk::new().good("worker: {runtime: claude}\nbudget: {max_cost_usd: 2}").unavailable.is_empty());
}

#[test]
fn a_review_is_routed_by_its_own_keys() {
    use dirigent::domain::job::TicketFacts;
    use dirigent::domain::run::RunKind;
    use dirigent::engine::route;
    let yaml = "worker: {runtime: claude}\nreview: {enabled: true, runtime: pi, model: {provider: openai, model_id: small}, thinking_level: low}";
    let loaded = Desk::new().good(yaml);
    let policy = loaded.settings.policy(&loaded.hash, false);
    let ticket = TicketFacts::of(&crate::engine::fixtures::ticket("a"));
    let review = route::choose(&policy, &ticket, RunKind::Review).unwrap();
    assert_eq!((review.runtime.as_str(), review.pool.as_str()), ("pi", "pi"), "with credentials of its own");
    assert_eq!((review.model.as_deref(), review.model_provider.as_deref()), (Some("small"), Some("openai")));
    assert_eq!(review.thinking_level.as_deref(), Some("low"));
    assert_eq!(route::choose(&policy, &ticket, RunKind::Implement).unwrap().runtime, "claude");
}
