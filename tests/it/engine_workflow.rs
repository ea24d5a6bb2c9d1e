//! The engine together with the workflow: values as the file has them, held against what comes of the default, the whole way from
//! the key to the decision; and a workpad in the words that are really written.

use std::time::Duration;

use dirigent::config::policy::Policy;
use dirigent::domain::comment::{Author, Comment, TrustLevel};
use dirigent::domain::ids::SessionId;
use dirigent::domain::job::TicketFacts;
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{MergeMethod, PrState, PullRequest};
use dirigent::domain::run::{Activity, RunKind, RunReport, StopReason};
use dirigent::domain::usage::Usage;
use dirigent::engine::effect::Action;
use dirigent::engine::event::EffectResult;
use dirigent::engine::route::choose;
use dirigent::workflow::{self, Env, Overrides, Templates, Texts};

use crate::engine::fixtures::{
    comment, commit, done_report, exit, failed, id, in_state, policy, pr, ticket, with_comments,
};
use crate::engine::machine::Machine;
use crate::engine::marks::{member, waiting};

const FILE: &str = "---
tracker: {kind: memory, active_states: [Todo, In Progress], terminal_states: [Done, Cancelled]}
rollout: {mode: merge}
pr: {forge: github, repo_slug: acme/widgets, base_branch: main}
merge: {mode: auto, require_human_approval: false, completion_state: Done}
agent: {fresh_start_ms: 0}
---
";

/// What the engine sees of a file in which these keys have these values.
fn with(words: &[&str]) -> Policy {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo).unwrap();
    let file = repo.join("WORKFLOW.md");
    std::fs::write(&file, FILE).unwrap();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let home = dir.path().join("home").display().to_string();
    let loaded = workflow::load_with(&file, &Env::of([("HOME", &*home)]), &Overrides::parse(&words).unwrap());
    let loaded = loaded.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    loaded.settings.policy(&loaded.hash, false)
}

/// How many failures it takes until it is not tried again.
fn failures_until_blocked(words: &[&str]) -> usize {
    let mut machine = Machine::working(with(words));
    for failures in 1..20 {
        machine.run_ends("a", failed(exit()));
        if machine.code("a") == "retries_exhausted" {
            return failures;
        }
        machine.wake();
        machine.run_starts("a");
    }
    panic!("it is tried for ever");
}

#[test]
fn a_failed_ticket_is_tried_again_as_often_as_the_file_says() {
    assert_eq!(failures_until_blocked(&[]), 6);
    assert_eq!(failures_until_blocked(&["agent.max_retries=2"]), 3);
    assert_eq!(failures_until_blocked(&["agent.max_retries=0"]), 1);
}

#[test]
fn a_retry_waits_no_longer_than_the_file_says() {
    let third_wait = |words: &[&str]| {
        let mut machine = Machine::working(with(words));
        for _ in 0..2 {
            machine.run_ends("a", failed(exit()));
            machine.wake();
            machine.run_starts("a");
        }
        let failed_at = machine.now;
        machine.run_ends("a", failed(exit()));
        machine.wake();
        machine.now.since(failed_at)
    };
    assert!(third_wait(&[]) >= Duration::from_secs(36), "{:?}", third_wait(&[]));
    let capped = third_wait(&["agent.max_retry_backoff_ms=12s"]);
    assert!(capped <= Duration::from_millis(13_200), "{capped:?}");
}

fn is_stop(action: &Action) -> bool {
    matches!(action, Action::StopRun { reason: StopReason::Limit { .. }, .. })
}

/// Whether the run has been stopped after so many seconds.
fn is_stopped_after(seconds: u64, machine: &Machine) -> bool {
    let mut machine = machine.clone();
    machine.seconds(seconds);
    machine.emitted(is_stop) > 0
}

#[test]
fn the_start_has_the_time_that_the_file_gives_it() {
    let started = |words: &[&str]| {
        let mut machine = Machine::new(with(words));
        machine.poll(vec![ticket("a")]);
        machine
    };
    assert!(!is_stopped_after(8, &started(&[])));
    assert!(is_stopped_after(8, &started(&["agent.start_timeout_ms=7s"])));
}

#[test]
fn a_tool_has_the_time_that_the_file_gives_it() {
    let in_a_tool = |words: &[&str]| {
        let mut machine = Machine::working(with(words));
        let open = Some(machine.now);
        machine.progress("a", Activity::Agent { usage: Usage::default(), tool_open_since: open, said: None });
        machine
    };
    assert!(!is_stopped_after(61, &in_a_tool(&[])));
    assert!(is_stopped_after(61, &in_a_tool(&["agent.tool_timeout_ms=60s"])));
}

#[test]
fn a_whole_run_has_the_time_that_the_file_gives_it() {
    let chatty = |words: &[&str]| {
        let mut machine = Machine::working(with(words));
        machine.progress("a", Activity::SessionKnown { session: SessionId::new("talk") });
        machine
    };
    assert!(!is_stopped_after(100, &chatty(&[])));
    assert!(is_stopped_after(100, &chatty(&["agent.max_run_ms=100s"])));
}

#[test]
fn runtimes_share_a_pool_where_the_file_names_one() {
    let pool = |words: &[&str], kind| {
        let ticket = TicketFacts::of(&ticket("a"));
        choose(&with(words), &ticket, kind).unwrap().pool.to_string()
    };
    let review = ["review.enabled=true", "review.runtime=claude"];
    assert_eq!((pool(&review, RunKind::Implement), pool(&review, RunKind::Review)), ("codex".into(), "claude".into()));
    assert_eq!(pool(&["agent.pool=team"], RunKind::Implement), "team");
}

#[test]
fn a_merge_is_made_in_the_way_that_the_file_names() {
    for (words, expected) in [
        (&[][..], MergeMethod::Squash),
        (&["merge.method=merge"], MergeMethod::Merge),
        (&["merge.method=rebase"], MergeMethod::Rebase),
    ] {
        let mut machine = Machine::with_pr(with(words));
        machine.seconds(600);
        machine.lands("a");
        let made = |action: &Action| matches!(action, Action::MergePr { method, .. } if *method == expected);
        assert_eq!(machine.emitted(made), 1, "{words:?}");
    }
}

#[test]
fn nothing_is_merged_where_the_file_disables_it() {
    let mut machine = Machine::with_pr(with(&["merge.mode=disabled"]));
    machine.seconds(600);
    machine.lands("a");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 0);
    assert_eq!(machine.code("a"), "ready_for_you");
}

#[test]
fn a_pull_request_is_merged_into_the_base_that_the_file_names() {
    let into = |words: &[&str], base: &str| {
        let mut machine = Machine::with_pr(with(words));
        machine.seconds(600);
        machine.lands_as("a", PullRequest { base_branch: base.into(), ..machine.good_pr("a") });
        machine.emitted(|action| matches!(action, Action::MergePr { base_branch, .. } if base_branch == base))
    };
    assert_eq!((into(&[], "main"), into(&[], "develop")), (1, 0));
    assert_eq!((into(&["pr.base_branch=develop"], "main"), into(&["pr.base_branch=develop"], "develop")), (0, 1));
}

#[test]
fn a_rework_state_is_one_that_the_file_names() {
    let moved_to = |words: &[&str], state: &str| {
        let mut machine = Machine::with_pr(with(words));
        machine.poll(vec![in_state("a", state)]);
        machine.job("a").rework_cycles
    };
    assert_eq!((moved_to(&[], "Rework"), moved_to(&[], "Again")), (1, 0));
    let own = ["orchestration.rework_states=[Again]"];
    assert_eq!((moved_to(&own, "Rework"), moved_to(&own, "Again")), (0, 1));
}

#[test]
fn an_approval_state_is_one_that_the_file_names() {
    let moved_to = |state: &str| {
        let mut machine =
            Machine::with_pr(with(&["merge.require_human_approval=true", "merge.approval_states=[Good to go]"]));
        machine.seconds(600);
        machine.observe("a", machine.good_pr("a"));
        machine.poll(vec![ticket("a")]);
        machine.poll(vec![in_state("a", state)]);
        machine.job("a").people.approved_head().is_some()
    };
    assert!(moved_to("Good to go"));
    assert!(!moved_to("In Progress"));
}

#[test]
fn a_merged_ticket_is_moved_to_the_state_that_the_file_names() {
    let ends_in = |words: &[&str]| {
        let mut machine = Machine::with_pr(with(words));
        machine.seconds(600);
        machine.lands("a");
        let result = EffectResult::Merged { commit: Some(commit("merged")) };
        machine.succeed(|action| matches!(action, Action::MergePr { .. }), result);
        let moves = machine.effects.iter().rev().filter_map(|effect| match &effect.action {
            Action::MoveTicket { state, .. } => Some(state.clone()),
            _ => None,
        });
        moves.into_iter().next()
    };
    assert_eq!(ends_in(&[]).as_deref(), Some("Done"));
    assert_eq!(ends_in(&["merge.completion_state=Cancelled"]).as_deref(), Some("Cancelled"));
}

#[test]
fn a_head_without_checks_waits_as_long_as_the_file_says() {
    let after_a_minute = |words: &[&str]| {
        let mut machine = Machine::with_pr(with(words));
        let none = PullRequest { checks: Some(Vec::new()), required_checks: None, ..machine.good_pr("a") };
        machine.observe("a", none.clone());
        machine.pass(Duration::from_secs(60));
        machine.observe("a", none);
        machine.code("a")
    };
    assert_eq!(after_a_minute(&[]), "checks");
    assert_eq!(after_a_minute(&["merge.checks_grace_ms=60s"]), "no_checks");
}

#[test]
fn a_closed_pull_request_is_met_as_the_file_says() {
    let met = |words: &[&str]| {
        let mut machine = Machine::with_pr(with(words));
        let closed = PullRequest { state: PrState::Closed, ..pr(1, "x", &commit("one")) };
        let closed = PullRequest { head_branch: machine.job("a").delivery.branch.name.clone(), ..closed };
        machine.observe("a", closed.clone());
        machine.observe("a", closed);
        let reopened = machine.emitted(|action| matches!(action, Action::ReopenPr { .. }));
        (machine.code("a"), reopened, machine.job("a").delivery.branch.name.clone())
    };
    let (stopped, reopened, branch) = met(&[]);
    assert_eq!((stopped, reopened), ("pr_closed", 0));
    assert_eq!(met(&["pr.closed_pr_policy=reopen"]).1, 1);
    assert_ne!(met(&["pr.closed_pr_policy=new_branch"]).2, branch, "another branch");
}

#[test]
fn a_workpad_is_kept_on_the_ticket_where_the_file_says_so() {
    let written = |words: &[&str]| {
        let mut machine = Machine::working(with(words));
        machine.run_ends("a", RunReport { head_before: None, ..done_report(&commit("one")) });
        machine.perform_small();
        machine.emitted(|action| matches!(action, Action::WriteWorkpad { .. })) > 0
    };
    assert!(!written(&[]) && written(&["orchestration.phase_store=workpad"]));
}

/// The ledger is another one, and so is its code: the marker and the account have to do.
#[test]
fn a_workpad_of_another_machine_restores_the_counters_and_approves_nothing() {
    let mut first = waiting();
    first.approve("a");
    first.state.jobs.edit(&id("a"), |job| job.rework_cycles = 2);
    first.seconds(120);
    let shown = first.effects.iter().rev().find_map(|effect| match &effect.action {
        Action::WriteWorkpad { shows } => Some(shows.clone()),
        _ => None,
    });
    let texts = Texts::new(Templates::load(None).unwrap(), "## Dirigent Workpad");
    let text = texts.workpad(first.job("a"), &shown.unwrap(), None, "dirigent", first.now).unwrap();
    assert!(text.contains("rework_cycles: 2"), "{text}");
    let pad = format!("{text}\n<!-- dirigent:workpad#0123456789abcdef -->");
    let seen = |name: &str, author: Author, body: &str| {
        let mut second = Machine::new(policy());
        let said = Comment { author, ..comment(1, TrustLevel::Member, body) };
        second.poll(vec![with_comments(ticket(name), vec![said])]);
        (second.job(name).rework_cycles, second.job(name).people.approval.is_some(), second.phase(name))
    };
    assert_eq!(seen("a", Author::ourselves(), &pad), (2, false, Phase::Implementing));
    assert_eq!(seen("a", member(), &pad), (2, false, Phase::Implementing), "on an account that we share");
    let stranger = Author::new("mallory", TrustLevel::Stranger);
    for (name, author, body) in [
        ("a", stranger, pad.clone()),
        ("b", member(), pad.clone()),
        ("a", member(), pad.replace("schema_version: 1", "schema_version: 1000")),
        ("a", member(), pad.replace("rework_cycles: 2", "rework_cycles: two")),
        ("a", member(), pad.replace("```", "")),
        ("a", member(), pad.replace("dirigent:workpad#", "dirigent:worker:1#")),
    ] {
        assert_eq!(seen(name, author, &body).0, 0, "{name}: {body}");
    }
}
