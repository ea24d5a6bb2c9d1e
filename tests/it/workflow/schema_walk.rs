//! Every key of the schema is read by something outside of `config/`, or the program says that it is not in force.

use std::collections::BTreeSet;
use std::path::Path;

use dirigent::workflow::{not_in_force, schema, unavailable};
use serde_json::Value as Json;

use super::behaviour::SHOWN_BY;

/// Key, the file that reads it (or what the policy makes of it), and the text that does.
const READERS: &[(&str, &str, &str)] = &[
    ("tracker.kind", "runtime/assembly/adapters.rs", "settings.tracker.kind"),
    ("tracker.provider.dir", "runtime/assembly/adapters.rs", "settings.tracker.provider.dir"),
    ("tracker.provider.repo", "runtime/assembly/github.rs", "provider.repo"),
    ("tracker.provider.token", "runtime/assembly/github.rs", "provider.written_token()"),
    ("tracker.provider.api_url", "runtime/assembly/github.rs", "provider.api_url"),
    ("tracker.provider.app_id", "runtime/assembly/github.rs", "provider.app_id"),
    ("tracker.provider.private_key", "runtime/assembly/github.rs", "provider.private_key"),
    ("tracker.provider.installation_id", "runtime/assembly/github.rs", "provider.installation_id"),
    ("tracker.provider.assignee", "runtime/assembly/github.rs", "provider.assignee"),
    ("tracker.provider.agent_tool", "worker/launch.rs", "provider.agent_tool"),
    ("tracker.provider.milestone", "runtime/assembly/github.rs", "provider.milestone"),
    ("tracker.provider.state_labels", "runtime/assembly/github.rs", "provider.state_labels"),
    ("tracker.provider.project.owner", "runtime/assembly/github.rs", "project.owner"),
    ("tracker.provider.project.number", "runtime/assembly/github.rs", "project.number"),
    ("tracker.provider.project.status_field", "runtime/assembly/github.rs", "project.status_field"),
    ("tracker.provider.account", "runtime/assembly/github.rs", "provider.is_shared_account()"),
    ("tracker.on_done.add_labels", "runtime/assembly/github.rs", "on_done.add_labels"),
    ("tracker.on_done.remove_labels", "runtime/assembly/github.rs", "on_done.remove_labels"),
    ("tracker.provider.api_key", "runtime/assembly/linear.rs", "provider.api_key"),
    ("tracker.provider.endpoint", "runtime/assembly/linear.rs", "provider.endpoint"),
    ("tracker.provider.team_key", "runtime/assembly/linear.rs", "provider.team_key"),
    ("tracker.provider.project_slug", "runtime/assembly/linear.rs", "provider.project_slug"),
    ("tracker.provider.create_labels", "runtime/assembly/linear.rs", "provider.create_labels"),
    ("tracker.required_labels", "engine/select.rs", "required_labels"),
    ("tracker.active_states", "engine/select.rs", "policy.tracker.active_states"),
    ("tracker.terminal_states", "engine/select.rs", "policy.tracker.terminal_states"),
    ("tracker.authors", "engine/select.rs", "policy.tracker.authors"),
    ("tracker.trusted", "engine/provenance.rs", "policy.tracker.trusted"),
    ("tracker.trusted_accounts", "engine/provenance.rs", "policy.tracker.trusted_accounts"),
    ("tracker.mention", "engine/provenance.rs", "policy.tracker.mention"),
    ("tracker.acknowledgements", "engine/provenance.rs", "policy.tracker.acknowledgements"),
    ("tracker.untrusted_text", "workflow/prompt/context.rs", "settings.tracker.untrusted_text"),
    ("polling.interval_ms", "runtime/driver.rs", "policy.polling_interval"),
    ("workspace.mode", "runtime/assembly/parts.rs", "settings.workspace.mode"),
    ("workspace.root", "runtime/assembly/adapters.rs", "settings.workspace.root"),
    ("workspace.commit.author", "workspace/commits.rs", "style.identity()"),
    ("workspace.commit.signoff", "workspace/commits.rs", "style.signoff"),
    ("workspace.commit.sign", "workspace/commits.rs", "style.sign"),
    ("workspace.repo", "runtime/assembly/adapters.rs", "settings.workspace.repo"),
    ("workspace.base", "runtime/assembly/adapters.rs", "settings.workspace.base"),
    ("workspace.branch", "engine/reconcile.rs", "policy.branch_by_tracker"),
    ("workspace.branch_prefix", "engine/reconcile.rs", "policy.branch_prefix"),
    ("workspace.keep", "worker/wrap_up.rs", "settings.workspace.keep"),
    ("workspace.on_dirty", "worker/wrap_up.rs", "settings.workspace.on_dirty"),
    ("worker.runtime", "worker/attempt.rs", "settings.worker.runtime"),
    ("worker.env_pass", "worker/launch.rs", "settings.worker.env_pass"),
    ("worker.env", "worker/launch.rs", "settings.worker.env.iter"),
    ("agent.pool", "engine/route.rs", "policy.agent.routes"),
    ("agent.max_concurrent_agents", "engine/hindrance.rs", "policy.agent.max_concurrent"),
    ("agent.max_concurrent_agents_by_state", "engine/hindrance.rs", "policy.agent.max_concurrent_by_state"),
    ("agent.max_turns", "engine/finish.rs", "policy.agent.max_turns"),
    ("agent.max_retries", "engine/finish.rs", "policy.agent.max_retries"),
    ("agent.max_retry_backoff_ms", "engine/finish.rs", "policy.agent.max_retry_backoff"),
    ("agent.max_run_ms", "engine/limits.rs", "policy.max_run"),
    ("agent.stop_grace_ms", "worker/attempt.rs", "settings.agent.stop_grace"),
    ("agent.tool_timeout_ms", "engine/limits.rs", "policy.tool_timeout"),
    ("agent.quiet_after_ms", "engine/limits.rs", "own.quiet"),
    ("agent.start_timeout_ms", "engine/limits.rs", "policy.start_timeout"),
    ("agent.order", "engine/settle.rs", "policy.agent.order"),
    ("agent.fresh_start_ms", "engine/limits.rs", "policy.fresh_start"),
    ("agent.routing[].match.labels", "engine/route.rs", ".labels"),
    ("agent.routing[].match.priority", "engine/route.rs", ".priority"),
    ("agent.routing[].match.state", "engine/route.rs", ".states"),
    ("agent.routing[].match.role", "engine/route.rs", ".role"),
    ("agent.routing[].runtime", "worker/route.rs", "route.runtime"),
    ("agent.routing[].model", "worker/route.rs", "route.model.clone"),
    ("agent.routing[].model_provider", "worker/launch.rs", "chosen.model_provider"),
    ("agent.routing[].thinking_level", "worker/route.rs", "route.thinking_level"),
    ("agent.routing[].prompt", "worker/route.rs", "route.prompt"),
    ("agent.on_request", "worker/questions.rs", "settings.on_request"),
    ("agent.allow[].tool", "worker/questions.rs", "settings.allow"),
    ("agent.allow[].pattern", "worker/questions.rs", "settings.allow"),
    ("agent.deny[].tool", "worker/questions.rs", "settings.deny"),
    ("agent.deny[].pattern", "worker/questions.rs", "settings.deny"),
    ("agent.ask_timeout_ms", "worker/interference.rs", "settings.agent.ask_timeout"),
    ("agent.ask_default", "worker/questions.rs", "settings.ask_default"),
    ("codex.command", "agent/plan.rs", "\"codex\", &settings.command"),
    ("codex.model", "worker/route.rs", "route.model.clone"),
    ("codex.reasoning_effort", "agent/codex/mod.rs", "opening.thinking_level"),
    ("codex.service_tier", "agent/plan.rs", "settings.service_tier"),
    ("codex.isolated_home", "worker/launch.rs", "settings.codex.isolated_home"),
    ("codex.approval_policy", "agent/plan.rs", "settings.approval_policy"),
    ("codex.thread_sandbox", "agent/plan.rs", "settings.thread_sandbox"),
    ("codex.turn_sandbox_policy", "agent/plan.rs", "settings.turn_sandbox_policy"),
    ("claude.command", "agent/plan.rs", "\"claude\", &settings.command"),
    ("claude.model", "agent/plan.rs", "settings.model"),
    ("claude.permission_mode", "agent/plan.rs", "settings.permission_mode"),
    ("claude.allowed_tools", "agent/plan.rs", "settings.allowed_tools"),
    ("claude.hooks", "agent/plan.rs", "settings.hooks"),
    ("pi.command", "agent/plan.rs", "\"pi\", &settings.command"),
    ("pi.model.provider", "agent/plan.rs", "model.provider"),
    ("pi.model.model_id", "agent/plan.rs", "model.model_id"),
    ("pi.thinking_level", "agent/plan.rs", "settings.thinking_level"),
    ("pi.session_dir_name", "agent/plan.rs", "settings.session_dir_name"),
    ("pi.extension_paths", "agent/plan.rs", "settings.extension_paths"),
    ("pi.disable_extensions", "agent/plan.rs", "settings.disable_extensions"),
    ("pi.disable_themes", "agent/plan.rs", "settings.disable_themes"),
    ("acp.model", "worker/launch.rs", "model: chosen.model.clone()"),
    ("acp.command", "agent/plan.rs", "settings.command.trim()"),
    ("exec.command", "worker/launch.rs", "settings.exec.command"),
    ("exec.events", "worker/launch.rs", "settings.exec.events"),
    ("*.turn_timeout_ms", "engine/limits.rs", "own.turn"),
    ("*.stall_timeout_ms", "engine/limits.rs", "own.stall"),
    ("*.read_timeout_ms", "worker/launch.rs", "timeouts(chosen.runtime).read"),
    ("orchestration.phase_store", "engine/workpad.rs", "policy.orchestration.workpad"),
    ("orchestration.max_rework_cycles", "engine/phases/moves.rs", "policy.orchestration.max_rework_cycles"),
    ("orchestration.rework_states", "engine/reconcile.rs", "policy.orchestration.rework_states"),
    ("orchestration.on_comment", "engine/remarks.rs", "policy.orchestration.on_comment"),
    ("orchestration.mention", "workflow/texts.rs", "self.mention"),
    ("orchestration.ownership.required_label", "engine/select.rs", "policy.orchestration.required_label"),
    ("orchestration.ownership.required_workpad_marker", "runtime/assembly/mod.rs", "workpad_marker()"),
    ("orchestration.states.*", "engine/phases/moves.rs", "policy.orchestration.states"),
    ("orchestration.comment_min_interval_ms", "engine/workpad.rs", "policy.orchestration.workpad_min_interval"),
    ("rollout.mode", "engine/settle.rs", "policy.rollout.mode"),
    ("rollout.preflight_required", "engine/hindrance.rs", "policy.rollout.preflight_missing"),
    ("rollout.kill_switch_label", "engine/settle.rs", "policy.rollout.kill_switch_label"),
    ("rollout.kill_switch_file", "runtime/assembly/mod.rs", "settings.rollout.kill_switch_file"),
    ("pr.forge", "runtime/assembly/adapters.rs", "settings.pr.resolve_forge"),
    ("pr.auto_create", "engine/delivery.rs", "policy.pr.auto_create"),
    ("pr.title", "workflow/mod.rs", "settings.pr.title"),
    ("pr.base_branch", "engine/landing.rs", "policy.pr.base_branch"),
    ("pr.closed_pr_policy", "engine/delivery.rs", "policy.pr.closed_pr"),
    ("pr.required_labels", "runtime/performer/write.rs", "pr.labels"),
    ("pr.draft", "runtime/performer/write.rs", "pr.draft"),
    ("merge.mode", "engine/hindrance.rs", "policy.merge.auto"),
    ("pr.publish_gates", "engine/delivery.rs", "policy.pr.publish_gates"),
    ("merge.rerun_failed_checks", "engine/assess.rs", "policy.merge.rerun_failed_checks"),
    ("pr.repo_slug", "runtime/assembly/adapters.rs", "settings.pr.slug("),
    ("pr.reviewers", "runtime/performer/write.rs", "pr.reviewers"),
    ("pr.reuse_branch_pr", "runtime/assembly/adapters.rs", "settings.pr.reuse_branch_pr"),
    ("pr.resolve_threads", "engine/answers.rs", "policy.pr.resolve_answered"),
    ("pr.provider.token", "runtime/assembly/adapters.rs", "access.token"),
    ("pr.provider.api_url", "runtime/assembly/adapters.rs", "access.api_url"),
    ("pr.provider.app_id", "runtime/assembly/adapters.rs", "access.app_id"),
    ("pr.provider.private_key", "runtime/assembly/adapters.rs", "access.private_key"),
    ("pr.provider.installation_id", "runtime/assembly/adapters.rs", "access.installation_id"),
    ("merge.method", "engine/landing.rs", "policy.merge.method"),
    ("merge.strategy", "engine/merge_line.rs", "policy.merge.queue"),
    ("merge.executor", "engine/assess.rs", "policy.merge.prepare"),
    ("merge.max_rebase_attempts", "engine/landing.rs", "policy.merge.max_rebase_attempts"),
    ("merge.require_green_checks", "engine/assess.rs", "policy.merge.require_green_checks"),
    ("merge.require_human_approval", "engine/assess.rs", "policy.merge.require_human_approval"),
    ("merge.approval_states", "engine/reconcile.rs", "policy.merge.approval_states"),
    ("merge.completion_state", "engine/delivery.rs", "policy.tracker.completion_state"),
    ("merge.checks_grace_ms", "engine/assess.rs", "policy.merge.checks_grace"),
    ("merge.no_checks", "engine/assess.rs", "policy.merge.no_checks_pass"),
    ("pr.attach_to_tracker", "engine/delivery.rs", "policy.pr.attach_to_tracker"),
    ("pr.review_comment_mode", "engine/reviewing.rs", "policy.review.comment"),
    ("pr.review_comment_marker", "runtime/assembly/mod.rs", "settings.pr.review_comment_marker"),
    ("review.enabled", "engine/reviewing.rs", "policy.review.enabled"),
    ("review.agent", "worker/attempt.rs", "review.agent"),
    ("review.runtime", "engine/route.rs", "policy.agent.routes"),
    ("review.model", "engine/route.rs", "policy.agent.routes"),
    ("review.model_provider", "engine/route.rs", "policy.agent.routes"),
    ("review.thinking_level", "engine/route.rs", "policy.agent.routes"),
    ("review.bots", "engine/provenance.rs", "policy.review.bots"),
    ("review.max_passes", "engine/reviewing.rs", "policy.review.max_passes"),
    ("review.fix_consideration_severities", "engine/reviewing.rs", "policy.review.fix_consideration_severities"),
    ("hooks.after_create", "worker/attempt.rs", "hooks.after_create"),
    ("hooks.before_run", "worker/attempt.rs", "hooks.before_run"),
    ("hooks.after_run", "worker/attempt.rs", "hooks.after_run"),
    ("hooks.before_remove", "worker/attempt.rs", "hooks.before_remove"),
    ("hooks.timeout_ms", "worker/attempt.rs", "hooks.timeout"),
    ("gates.task[].name", "gates/task.rs", "title()"),
    ("gates.task[].run", "gates/task.rs", "gate.run"),
    ("gates.task[].timeout_ms", "gates/task.rs", "timeout_of"),
    ("gates.timeout_ms", "gates/task.rs", "timeout_of"),
    ("gates.required_evidence", "engine/finish.rs", "policy.gates.required_evidence"),
    ("gates.allow_followups", "engine/runs.rs", "policy.gates.allow_followups"),
    ("gates.max_concurrent", "runtime/lanes/mod.rs", "settings.max_concurrent"),
    ("budget.max_turns", "engine/budget.rs", "caps.max_turns"),
    ("budget.max_tokens", "engine/budget.rs", "caps.max_tokens"),
    ("budget.max_cost_usd", "engine/budget.rs", "caps.max_cost_microusd"),
    ("budget.max_run_ms", "engine/budget.rs", "caps.max_run"),
    ("budget.prices", "worker/launch.rs", "budget.price_table()"),
    ("budget.daily.max_turns", "engine/hindrance.rs", "policy.budget.daily"),
    ("budget.daily.max_tokens", "engine/hindrance.rs", "policy.budget.daily"),
    ("budget.daily.max_cost_usd", "engine/hindrance.rs", "policy.budget.daily"),
    ("budget.daily.max_run_ms", "engine/hindrance.rs", "policy.budget.daily"),
    ("ledger.keep_days", "runtime/assembly/mod.rs", "settings.ledger.keep_days"),
    ("observability.dashboard_enabled", "cli/run.rs", "observability.dashboard_enabled"),
    ("observability.refresh_ms", "cli/live.rs", "settings.refresh"),
    ("observability.render_interval_ms", "cli/live.rs", "settings.render_interval"),
    ("polling.webhook.github.secret", "http/webhooks/mod.rs", "webhook.github.secret"),
    ("polling.webhook.linear.secret", "http/webhooks/mod.rs", "webhook.linear.secret"),
    ("observability.metrics", "http/mod.rs", "observability.metrics"),
    ("server.port", "http/mod.rs", "settings.port"),
    ("server.host", "http/mod.rs", "settings.address()"),
    ("server.names", "http/mod.rs", "settings.names"),
    ("server.token", "http/tokens.rs", "settings.token"),
    ("server.tokens", "http/tokens.rs", "settings.tokens"),
    ("observability.log", "cli/run.rs", "observability.log"),
    ("observability.notify[].when", "publish/notify/mod.rs", "receiver.when"),
    ("observability.notify[].to", "publish/notify/delivery.rs", "receiver.to"),
    ("observability.notify[].url", "publish/notify/delivery.rs", "receiver.url"),
    ("observability.notify[].command", "publish/notify/delivery.rs", "receiver.command"),
    ("observability.notify[].timeout_ms", "publish/notify/delivery.rs", "receiver.timeout"),
    ("observability.agent_state_file", "cli/outside.rs", "observability.agent_state_file"),
    ("observability.agent_state.team_name", "cli/outside.rs", "written.team_name"),
    ("observability.agent_state.cto_agent", "cli/outside.rs", "written.cto_agent"),
    ("observability.agent_state.orchestration_pattern", "cli/outside.rs", "written.orchestration_pattern"),
    ("observability.agent_state.session_id", "cli/outside.rs", "written.session_id"),
];

/// Keys with one value only, which is what happens.
const ONE_VALUE: &[&str] = &["budget.per", "review.output_format"];

fn pattern_fits(pattern: &str, key: &str) -> bool {
    if let Some(end) = pattern.strip_prefix("*.") {
        return key.split_once('.').is_some_and(|(_, rest)| rest == end);
    }
    match pattern.strip_suffix(".*") {
        Some(section) => key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.')),
        None => pattern == key,
    }
}

/// Every path that takes a value: `a.b`, `a.list[].c`.
fn keys(path: &str, schema: &Json, out: &mut BTreeSet<String>) {
    let alternatives: Vec<&Json> =
        schema.get("anyOf").and_then(Json::as_array).map(|all| all.iter().collect()).unwrap_or_default();
    let branches = alternatives.iter().copied().chain([schema]);
    let mut below = false;
    for branch in branches {
        for (name, child) in branch.get("properties").and_then(Json::as_object).into_iter().flatten() {
            below = true;
            keys(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, child, out);
        }
        if let Some(items) = branch.get("items") {
            let mut inside = BTreeSet::new();
            keys(&format!("{path}[]"), items, &mut inside);
            inside.remove(&format!("{path}[]"));
            below |= !inside.is_empty();
            out.extend(inside);
        }
    }
    if !below {
        out.insert(path.to_owned());
    }
}

/// The names of all functions that are marked as tests.
fn every_test() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut names) = (vec![root.join("src"), root.join("tests")], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let marked = text.split("#[test]").skip(1).chain(text.split("#[tokio::test").skip(1));
                let name = |rest: &str| Some(rest.split_once("fn ")?.1.split_once('(')?.0.to_owned());
                names.extend(marked.filter_map(name));
            }
        }
    }
    names
}

#[test]
fn every_key_has_a_reader_or_is_said_not_to_be_in_force() {
    let mut all = BTreeSet::new();
    keys("", &schema::json_schema(), &mut all);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut read, mut said, mut refused, mut both, mut fixed) = (0, 0, 0, 0, 0);
    let mut silent = Vec::new();
    for key in &all {
        let reader = READERS.iter().find(|(pattern, ..)| pattern_fits(pattern, key));
        // A list is spoken about as a whole.
        let whole = key.split("[]").next().unwrap_or(key);
        let spoken = not_in_force::is_spoken_about(key) || not_in_force::is_spoken_about(whole);
        match (reader, spoken) {
            (Some(_), true) => both += 1,
            (Some(_), false) => read += 1,
            (None, true) => said += 1,
            (None, false) if unavailable::refuses(whole) => refused += 1,
            (None, false) if ONE_VALUE.contains(&key.as_str()) => fixed += 1,
            (None, false) => silent.push(key.as_str()),
        }
    }
    let shown = |key: &String| SHOWN_BY.iter().any(|(pattern, _)| pattern_fits(pattern, key));
    let with_test = all.iter().filter(|key| shown(key)).count();
    let has_reader = |key: &&String| READERS.iter().any(|(pattern, ..)| pattern_fits(pattern, key));
    let without: Vec<&str> = all.iter().filter(has_reader).filter(|key| !shown(key)).map(String::as_str).collect();
    println!(
        "{} keys: {with_test} with a behaviour test, {} said not to be in force ({both} of them only in some modes), {refused} refused, \
         {fixed} with one value, {} silent ({read} are always in force)",
        all.len(),
        said + both,
        silent.len()
    );
    assert!(without.is_empty(), "keys without a test that their value changes something: {without:?}");
    let tests = every_test();
    for (pattern, test) in SHOWN_BY {
        assert!(all.iter().any(|key| pattern_fits(pattern, key)), "{pattern} is not a key");
        assert!(tests.contains(*test), "{pattern}: there is no test {test}");
    }
    assert!(silent.is_empty(), "accepted, read by nobody and not spoken about: {silent:?}");
    assert!(all.len() > 150, "the schema was not walked: {}", all.len());

    for (pattern, file, text) in READERS {
        assert!(all.iter().any(|key| pattern_fits(pattern, key)), "{pattern} is not a key");
        assert!(!file.starts_with("config/"), "{pattern}: {file} only knows the type");
        let code =
            std::fs::read_to_string(source.join(file)).unwrap_or_else(|error| panic!("{pattern}: {file}: {error}"));
        let code: String = code.split("#[cfg(test)]").next().unwrap().split_whitespace().collect();
        let text: String = text.split_whitespace().collect();
        assert!(code.contains(&text), "{pattern}: {file} does not contain `{text}`");
    }
}
