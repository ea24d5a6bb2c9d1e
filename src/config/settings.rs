//! All sections together, and the policy that the engine gets from them.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::acp::AcpSettings;
use super::agent::{self, AgentSettings};
use super::budget::BudgetSettings;
use super::claude::ClaudeSettings;
use super::codex::{CodexSettings, Timeouts};
use super::exec::ExecSettings;
use super::gates::GatesSettings;
use super::hooks::HooksSettings;
use super::ledger::LedgerSettings;
use super::merge::{MergeExecutor, MergeMode, MergeSettings, MergeStrategy, NoChecks};
use super::observability::ObservabilitySettings;
use super::orchestration::{OrchestrationSettings, PhaseStore};
use super::pi::PiSettings;
use super::policy::{
    AgentPolicy, BudgetPolicy, ForgeKind, GatesPolicy, MergePolicy, OrchestrationPolicy, Policy, PrPolicy,
    ReviewPolicy, RolloutMode, RolloutPolicy, RoutePolicy, RuntimeTimeouts, TrackerPolicy,
};
use super::polling::PollingSettings;
use super::pr::{DraftMode, PrSettings, ResolveThreads};
use super::problem::Problem;
use super::review::ReviewSettings;
use super::rollout::RolloutSettings;
use super::server::ServerSettings;
use super::tracker::{TrackerKind, TrackerSettings};
use super::waves::WavesSettings;
use super::worker::{Runtime, WorkerSettings};
use super::workspace::{BranchSource, WorkspaceMode, WorkspaceSettings};
use crate::domain::ids::PoolName;
use crate::domain::route::Route;
use crate::domain::time::LocalDays;

/// How long finished jobs stay visible: people want to see what was done during the last day.
const ARCHIVE_AFTER: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// The whole front matter of the workflow file, with every value resolved.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    pub tracker: TrackerSettings,
    pub polling: PollingSettings,
    pub workspace: WorkspaceSettings,
    pub worker: WorkerSettings,
    pub agent: AgentSettings,
    pub codex: CodexSettings,
    pub claude: ClaudeSettings,
    pub pi: PiSettings,
    pub acp: AcpSettings,
    pub exec: ExecSettings,
    pub orchestration: OrchestrationSettings,
    pub rollout: RolloutSettings,
    pub pr: PrSettings,
    pub review: ReviewSettings,
    pub merge: MergeSettings,
    pub hooks: HooksSettings,
    pub gates: GatesSettings,
    pub waves: WavesSettings,
    pub budget: BudgetSettings,
    pub ledger: LedgerSettings,
    pub observability: ObservabilitySettings,
    pub server: ServerSettings,
}

impl Settings {
    /// Returns what the engine sees. `content_hash` is the hash of the workflow file. `preflight_missing` says that `doctor` has not passed
    /// for this content; it only matters when `rollout.preflight_required` is on. Which forge is in use and when a day begins is known to
    /// `runtime::assembly` only, which completes this.
    pub fn policy(&self, content_hash: &str, preflight_missing: bool) -> Policy {
        let guards = self.guards_not_in_force();
        Policy {
            hash: content_hash.to_owned(),
            tracker: TrackerPolicy {
                active_states: self.tracker.active_states.clone(),
                terminal_states: self.tracker.terminal_states.clone(),
                required_labels: self.tracker.required_labels.iter().map(|label| lower(label)).collect(),
                authors: self.tracker.authors.clone(),
                trusted: self.tracker.trusted.clone(),
                trusted_accounts: self.tracker.trusted_accounts.clone(),
                mention: self.tracker.mention.clone(),
                acknowledgements: self.tracker.acknowledgements.iter().map(|word| lower(word)).collect(),
                completion_state: Some(self.completion_state().to_owned()),
            },
            agent: AgentPolicy {
                routes: self.routes(),
                timeouts: Runtime::ALL
                    .into_iter()
                    .map(|runtime| {
                        let own = self.timeouts(runtime);
                        let quiet = self.agent.quiet_after.unwrap_or(own.stall / 2);
                        (runtime.name().to_owned(), RuntimeTimeouts { stall: own.stall, turn: own.turn, quiet })
                    })
                    .collect(),
                max_concurrent: self.agent.max_concurrent_agents,
                max_concurrent_by_state: self
                    .agent
                    .max_concurrent_agents_by_state
                    .iter()
                    .map(|(state, limit)| (lower(state), *limit))
                    .collect(),
                max_turns: self.agent.max_turns,
                max_retries: self.agent.max_retries,
                max_retry_backoff: self.agent.max_retry_backoff,
                max_run: self.agent.max_run,
                fresh_start: self.agent.fresh_start,
                tool_timeout: self.agent.tool_timeout,
                start_timeout: self.agent.start_timeout,
                order: self.agent.order,
            },
            orchestration: OrchestrationPolicy {
                max_rework_cycles: self.orchestration.max_rework_cycles,
                rework_states: self.orchestration.rework_states.clone(),
                required_label: self.orchestration.ownership.required_label.as_deref().map(lower),
                on_comment: self.orchestration.on_comment,
                workpad: self.orchestration.phase_store == PhaseStore::Workpad,
                workpad_min_interval: self.orchestration.comment_min_interval,
                states: self.orchestration.states.clone(),
            },
            rollout: RolloutPolicy {
                mode: self.rollout.mode,
                kill_switch_label: Some(lower(&self.rollout.kill_switch_label)),
                preflight_missing: self.rollout.preflight_required && preflight_missing,
            },
            pr: PrPolicy {
                forge: self.pr.resolve_forge(None),
                auto_create: self.pr.auto_create,
                base_branch: self.pr.base_branch.clone(),
                closed_pr: self.pr.closed_pr_policy,
                draft: self.pr.draft != DraftMode::Never,
                ready_when_green: self.pr.draft == DraftMode::UntilGreen,
                publish_gates: self.pr.publish_gates,
                attach_to_tracker: self.pr.attach_to_tracker,
                has_links: self.tracker.kind.keeps_links(),
                labels: self.pr.required_labels.clone(),
                reviewers: self.pr.reviewers.clone(),
                resolve_answered: self.pr.resolve_threads == ResolveThreads::Answered,
            },
            review: ReviewPolicy {
                enabled: self.review.enabled,
                max_passes: self.review.max_passes,
                bots: self.review.bots.clone(),
                fix_consideration_severities: self.review.fix_consideration_severities.clone(),
                comment: self.pr.review_comment_mode,
            },
            merge: MergePolicy {
                auto: self.merge.mode == MergeMode::Auto && guards.is_empty(),
                method: self.merge.method,
                queue: self.merge.strategy == MergeStrategy::Queue,
                prepare: self.merge.executor == MergeExecutor::Prompt,
                max_rebase_attempts: self.merge.max_rebase_attempts,
                require_green_checks: self.merge.require_green_checks,
                require_head_match: self.merge.require_head_match,
                require_human_approval: self.merge.require_human_approval,
                approval_states: self.merge.approval_states.clone(),
                checks_grace: self.merge.checks_grace,
                no_checks_pass: self.merge.no_checks == NoChecks::Pass,
                rerun_failed_checks: self.merge.rerun_failed_checks,
                guards_not_in_force: guards,
            },
            gates: GatesPolicy {
                has_task_gates: self.gates.judges_tasks(),
                task_names: self.gates.task_names(),
                required_evidence: self.gates.required_evidence.iter().map(|kind| kind.name().to_owned()).collect(),
                allow_followups: self.gates.allow_followups,
            },
            budget: BudgetPolicy {
                ticket: self.budget.caps.caps(),
                daily: self.budget.daily.caps(),
                days: LocalDays::default(),
            },
            branch_prefix: self.workspace.branch_prefix.clone(),
            branch_by_tracker: self.workspace.branch == BranchSource::Tracker,
            directories: self.workspace.mode == WorkspaceMode::Directory,
            polling_interval: self.polling.interval,
            archive_after: ARCHIVE_AFTER,
        }
    }

    /// Returns the routes of the workflow file, then the route for reviews, and last the route for every other ticket.
    fn routes(&self) -> Vec<RoutePolicy> {
        let review = (self.review.enabled || self.review.runtime.is_some() || self.review.model.is_some()).then(|| {
            agent::RouteSettings {
                when: agent::RouteMatch { role: Some("review".to_owned()), ..agent::RouteMatch::default() },
                runtime: self.review.runtime,
                model: self.review.model.clone(),
                model_provider: self.review.model_provider.clone(),
                thinking_level: self.review.thinking_level.clone(),
                prompt: None,
            }
        });
        let every = [agent::RouteSettings::default()];
        self.agent.routing.iter().chain(&review).chain(&every).map(|route| self.route_policy(route)).collect()
    }

    fn route_policy(&self, written: &agent::RouteSettings) -> RoutePolicy {
        let runtime = written.runtime.unwrap_or(self.worker.runtime);
        let own_level = self.codex.reasoning_effort.as_ref().filter(|_| runtime == Runtime::Codex);
        let own_model = match runtime {
            Runtime::Codex => self.codex.model.clone(),
            Runtime::Claude => self.claude.model.clone(),
            Runtime::Acp => self.acp.model.clone(),
            Runtime::Pi | Runtime::Exec => None,
        };
        RoutePolicy {
            labels: written.when.labels.iter().map(|label| lower(label)).collect(),
            priority: written.when.priority.clone(),
            states: written.when.state.clone(),
            role: written.when.role.clone(),
            route: Route {
                runtime: runtime.name().to_owned(),
                model: written.model.clone().or(own_model),
                model_provider: written.model_provider.clone(),
                thinking_level: written.thinking_level.as_ref().or(own_level).cloned(),
                prompt: written.prompt.clone(),
                pool: self.pool(runtime),
            },
        }
    }

    /// Returns the model that a worker gets if no route sets another. `None` if the workflow file names none.
    pub fn default_model(&self) -> Option<&str> {
        match self.worker.runtime {
            Runtime::Codex => self.codex.model.as_deref(),
            Runtime::Claude => self.claude.model.as_deref(),
            Runtime::Acp => self.acp.model.as_deref(),
            Runtime::Pi => self.pi.model.as_ref().map(|model| model.model_id.as_str()),
            Runtime::Exec => None,
        }
    }

    /// Returns the command line that starts an agent of this runtime. It may be empty.
    pub fn command(&self, runtime: Runtime) -> &str {
        match runtime {
            Runtime::Codex => &self.codex.command,
            Runtime::Claude => &self.claude.command,
            Runtime::Pi => &self.pi.command,
            Runtime::Acp => &self.acp.command,
            Runtime::Exec => &self.exec.command,
        }
    }

    pub fn timeouts(&self, runtime: Runtime) -> &Timeouts {
        match runtime {
            Runtime::Codex => &self.codex.timeouts,
            Runtime::Claude => &self.claude.timeouts,
            Runtime::Pi => &self.pi.timeouts,
            Runtime::Acp => &self.acp.timeouts,
            Runtime::Exec => &self.exec.timeouts,
        }
    }

    /// Returns the credential pool of this runtime: its workers share one usage limit.
    pub fn pool(&self, runtime: Runtime) -> PoolName {
        PoolName::new(self.agent.pool.as_deref().unwrap_or(runtime.name()))
    }

    /// Returns the state that a ticket is moved to when its work is merged.
    pub fn completion_state(&self) -> &str {
        self.merge.completion_state.as_deref().unwrap_or(self.tracker.kind.completion_state())
    }

    /// Returns the secrets of tracker, forge, webhooks, server and notifications, so that none reaches a worker. `pr.provider.token` is not
    /// included: the caller adds it where the forge uses it.
    pub fn secrets(&self) -> Vec<SecretString> {
        let provider = &self.tracker.provider;
        [
            provider.written_token(),
            provider.private_key.as_ref(),
            provider.api_key.as_ref(),
            self.pr.provider.private_key.as_ref(),
        ]
        .into_iter()
        .flatten()
        .chain(self.polling.secrets())
        .chain(self.server.secrets())
        .chain(self.observability.notify.iter().filter_map(|notify| notify.url.as_ref()))
        .cloned()
        .collect()
    }

    /// Returns the problems of the settings that their types alone do not rule out.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = self.tracker.check();
        problems.extend(self.workspace.check());
        problems.extend(self.worker.check());
        problems.extend(self.agent.check());
        problems.extend(self.pi.check());
        problems.extend(self.orchestration.check());
        problems.extend(self.rollout.check());
        problems.extend(self.pr.check());
        problems.extend(self.merge.check());
        problems.extend(self.check_executor());
        problems.extend(self.check_whose());
        problems.extend(self.check_approval_states());
        problems.extend(self.gates.check());
        problems.extend(self.observability.check());
        problems.extend(self.polling.check());
        problems.extend(self.server.check());
        problems.extend(self.check_commands());
        problems
    }

    /// Checks that the merge executor fits the forge: a pull request on GitHub cannot be merged locally, and without a forge a run cannot
    /// prepare merges.
    fn check_executor(&self) -> Vec<Problem> {
        let because = match (self.merge.executor, self.pr.forge) {
            (MergeExecutor::Local, Some(ForgeKind::Github)) => {
                "a pull request is merged by its forge: write `executor: forge`"
            }
            (MergeExecutor::Prompt, Some(ForgeKind::None)) => {
                "without a forge nothing is merged: choose one with `pr.forge`"
            }
            _ => return Vec::new(),
        };
        let forge = if self.pr.forge == Some(ForgeKind::None) { "none" } else { "github" };
        let executor = if self.merge.executor == MergeExecutor::Local { "local" } else { "prompt" };
        let message = format!("`merge.executor: {executor}` does not go with `pr.forge: {forge}`");
        vec![Problem::new("merge.executor", message).with_help(because).depending_on("pr.forge")]
    }

    /// Checks that a workflow file for GitHub says whose issues are worked on, unless the mode is `observe`: anybody can open one there.
    fn check_whose(&self) -> Option<Problem> {
        let tracker = &self.tracker;
        let said = !tracker.required_labels.is_empty()
            || !tracker.authors.is_empty()
            || tracker.provider.assignee.is_some()
            || self.orchestration.ownership.required_label.is_some();
        if tracker.kind != TrackerKind::Github || self.rollout.mode == RolloutMode::Observe || said {
            return None;
        }
        let message = "`rollout.mode` lets issues be worked on, and nothing says which: anybody can open one on GitHub";
        let help = "name a label in `tracker.required_labels` that only people with triage rights can put on, or say whose issues are meant with `tracker.authors` or `tracker.provider.assignee`";
        Some(Problem::new("rollout.mode", message).with_help(help).depending_on("tracker.kind"))
    }

    /// Checks that a state can approve. GitHub does not say who moved a card of a project.
    fn check_approval_states(&self) -> Option<Problem> {
        let tracker = &self.tracker;
        let by_project = tracker.kind == TrackerKind::Github && tracker.provider.project.is_some();
        if !by_project || self.merge.approval_states.is_empty() {
            return None;
        }
        let message = "GitHub does not say who moved a card of a project, so moving one cannot approve anything";
        let help = "leave `merge.approval_states` out and approve with `/dirigent approve` in a comment, with a review, or with `dirigent approve`; or take the states from labels (`tracker.provider.state_labels`)";
        let problem = Problem::new("merge.approval_states", message).with_help(help);
        Some(problem.depending_on("tracker.kind").depending_on("tracker.provider.project"))
    }

    fn check_commands(&self) -> Vec<Problem> {
        let mut used = vec![("worker.runtime".to_owned(), self.worker.runtime)];
        for (index, route) in self.agent.routing.iter().enumerate() {
            used.extend(route.runtime.map(|runtime| (format!("agent.routing[{index}].runtime"), runtime)));
        }
        if self.review.enabled {
            used.extend(self.review.runtime.map(|runtime| ("review.runtime".to_owned(), runtime)));
        }
        used.into_iter()
            .filter(|(_, runtime)| self.command(*runtime).trim().is_empty())
            .map(|(path, runtime)| {
                let name = runtime.name();
                Problem::new(path.clone(), format!("`{path}` is `{name}`, but `{name}.command` is not set"))
                    .with_help(format!("say under `{name}:` which `command` to run"))
                    .depending_on(format!("{name}.command"))
            })
            .collect()
    }
}

fn lower(text: &str) -> String {
    text.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_is_careful() {
        let policy = Settings::default().policy("hash", true);
        assert_eq!(policy.rollout.mode, RolloutMode::Observe);
        assert!(!policy.rollout.preflight_missing, "only when rollout.preflight_required asks for it");
        assert!(!policy.merge.auto && policy.merge.require_human_approval && policy.merge.require_green_checks);
        assert_eq!(policy.tracker.completion_state.as_deref(), Some("closed"));
        assert_eq!(policy.agent.routes.last().unwrap().route.pool.as_str(), "codex");
    }

    #[test]
    fn spec_6_per_state_limits_have_normalised_keys() {
        let mut settings = Settings::default();
        settings.agent.max_concurrent_agents_by_state.insert(" In Progress ".into(), 2);
        assert_eq!(settings.policy("", false).agent.max_concurrent_by_state.get("in progress"), Some(&2));
    }

    #[test]
    fn a_runtime_without_a_command_is_a_problem() {
        let mut settings = Settings::default();
        settings.worker.runtime = Runtime::Exec;
        let problems = settings.check();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].message.contains("`exec.command` is not set"));
    }

    #[test]
    fn a_card_that_anybody_may_have_moved_approves_nothing() {
        let mut settings = Settings::default();
        settings.merge.approval_states = vec!["Approved".to_owned()];
        assert_eq!(settings.check_approval_states(), None);
        settings.tracker.kind = TrackerKind::Github;
        assert_eq!(settings.check_approval_states(), None, "states from labels have events with names");
        settings.tracker.provider.project = serde_json::from_value(serde_json::json!({"number": 7})).unwrap();
        let problem = settings.check_approval_states().unwrap();
        assert!(problem.path == "merge.approval_states" && problem.help.is_some(), "{problem:?}");
        settings.merge.approval_states.clear();
        assert_eq!(settings.check_approval_states(), None);
    }

    #[test]
    fn an_open_tracker_needs_a_word_about_whose_issues_are_meant() {
        type Say = fn(&mut Settings);
        let problems = |mode: RolloutMode, say: Say| {
            let mut settings = Settings::default();
            settings.tracker.kind = TrackerKind::Github;
            settings.rollout.mode = mode;
            say(&mut settings);
            settings.check_whose().map(|problem| problem.path)
        };
        let nothing: Say = |_| {};
        assert_eq!(problems(RolloutMode::Mutate, nothing).as_deref(), Some("rollout.mode"));
        assert_eq!(problems(RolloutMode::Merge, nothing).as_deref(), Some("rollout.mode"));
        assert_eq!(problems(RolloutMode::Observe, nothing), None);
        let ways: [Say; 4] = [
            |settings| settings.tracker.required_labels = vec!["agent".into()],
            |settings| settings.tracker.authors = vec!["ada".into()],
            |settings| settings.tracker.provider.assignee = Some("me".into()),
            |settings| settings.orchestration.ownership.required_label = Some("agent".into()),
        ];
        for say in ways {
            assert_eq!(problems(RolloutMode::Merge, say), None);
        }
        assert_eq!(problems(RolloutMode::Merge, |settings| settings.tracker.kind = TrackerKind::Tk), None);
    }
}
