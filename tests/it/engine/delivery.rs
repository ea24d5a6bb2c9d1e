//! From a finished run to a merged branch: publishing, checks, approval, the merge itself, and what people do meanwhile.

use std::time::Duration;

use dirigent::config::policy::{ClosedPrPolicy, ForgeKind, RolloutMode};
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::job::{BlockCause, DoneHow, HumanWait, Stage, Work};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest, Verdict};
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};
use dirigent::engine::state::PendingStatus;

use super::fixtures::{at_head, check, commit, done_report, id, in_state, policy, pr, review, ticket};
use super::machine::Machine;

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_move(action: &Action) -> bool {
    matches!(action, Action::MoveTicket { .. })
}

fn transient() -> EffectError {
    EffectError::Transient { detail: "502".into(), retry_after: None }
}

#[test]
fn a_ticket_goes_from_the_board_to_done() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    machine.run_starts("a");
    machine.run_delivers("a", "one");
    assert_eq!(machine.code("a"), "checks");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
    machine.merge_succeeds();
    assert!(matches!(machine.stage("a"), Stage::Done { how: DoneHow::Merged { by_us: true, .. }, .. }));
    assert!(
        machine
            .effects
            .iter()
            .any(|effect| matches!(&effect.action, Action::MoveTicket { state, .. } if state == "Done"))
    );
    assert!(machine.state.outbox.is_empty(), "{:?}", machine.state.outbox);
}

#[test]
fn done_comes_only_after_a_confirmed_merge_and_the_ticket_write_is_retried_alone() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.fail(is_merge, transient());
    assert_eq!(machine.phase("a"), Phase::ReadyToMerge, "an unconfirmed merge is not done");
    machine.wake();
    machine.observe("a", machine.good_pr("a"));
    let merges = machine.emitted(is_merge);
    machine.succeed(is_merge, EffectResult::Merged { commit: None });
    assert_eq!(machine.phase("a"), Phase::Done);
    for _ in 0..4 {
        machine.fail(is_move, transient());
        machine.wake();
    }
    machine.succeed(is_move, EffectResult::Plain);
    assert_eq!(machine.emitted(is_merge), merges, "the merge was repeated");
    assert_eq!(machine.phase("a"), Phase::Done);
}

#[test]
fn a_person_may_merge_in_any_phase() {
    let merged = |machine: &Machine| PullRequest {
        state: PrState::Merged { commit: Some(commit("theirs")) },
        ..machine.good_pr("a")
    };
    let mut waiting = Machine::with_pr(policy());
    waiting.observe("a", merged(&waiting));
    assert!(matches!(waiting.stage("a"), Stage::Done { how: DoneHow::Merged { by_us: false, .. }, .. }));

    let mut blocked = Machine::with_pr(policy());
    blocked.operator(OperatorCommand::Stop { ticket: id("a") });
    assert_eq!(blocked.phase("a"), Phase::Blocked);
    blocked.observe("a", merged(&blocked));
    assert_eq!(blocked.phase("a"), Phase::Done);

    let mut working = Machine::with_pr(policy());
    let mut conflicting = working.good_pr("a");
    conflicting.mergeability = Mergeability::Conflicting { files: vec!["x".into()] };
    working.observe("a", conflicting);
    working.run_starts("a");
    assert_eq!(working.phase("a"), Phase::Rework);
    working.observe("a", merged(&working));
    assert!(working.emitted_last(|action| matches!(action, Action::StopRun { .. })));
    working.run_delivers_nothing("a");
    assert_eq!(working.phase("a"), Phase::Done);
    assert_eq!(working.emitted(is_merge), 0);
}

impl Machine {
    fn run_delivers_nothing(&mut self, name: &str) {
        use dirigent::domain::run::{RunOutcome, StopReason};
        let outcome = RunOutcome::Killed { reason: StopReason::Superseded };
        self.run_ends(name, super::fixtures::report(outcome));
    }
}

fn closed(machine: &Machine) -> PullRequest {
    PullRequest { state: PrState::Closed, ..machine.good_pr("a") }
}

#[test]
fn a_closed_pr_stops_the_job_and_an_opened_again_one_goes_on() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", closed(&machine));
    assert!(matches!(machine.stage("a"), Stage::Blocked { cause: BlockCause::PrClosed { .. }, .. }));
    machine.observe("a", closed(&machine));
    assert_eq!(machine.code("a"), "pr_closed");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_retry_of_a_closed_pr_opens_it_again() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", closed(&machine));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert!(machine.emitted_last(|action| matches!(action, Action::ReopenPr { .. })));
    machine.observe("a", closed(&machine));
    assert_ne!(machine.phase("a"), Phase::Blocked, "it is being opened again");
    machine.succeed(|action| matches!(action, Action::ReopenPr { .. }), EffectResult::Plain);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_closed_pr_is_reopened_once_when_the_policy_says_so() {
    let mut policy = policy();
    policy.pr.closed_pr = ClosedPrPolicy::Reopen;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", closed(&machine));
    machine.observe("a", closed(&machine));
    machine.observe("a", closed(&machine));
    assert_eq!(machine.emitted(|action| matches!(action, Action::ReopenPr { .. })), 1);
    machine.succeed(|action| matches!(action, Action::ReopenPr { .. }), EffectResult::Plain);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_closed_pr_leads_to_a_really_new_branch_when_the_policy_says_so() {
    let mut policy = policy();
    policy.pr.closed_pr = ClosedPrPolicy::NewBranch;
    let mut machine = Machine::with_pr(policy);
    let old = machine.job("a").delivery.branch.clone();
    machine.observe("a", closed(&machine));
    let job = machine.job("a");
    assert_ne!(job.delivery.branch.name, old.name);
    assert_eq!(job.delivery.branch.generation, old.generation + 1);
    assert_eq!(job.rework_cycles, 1);
    assert!(job.delivery.pr.is_none());
    assert!(machine.emitted_last(
        |action| matches!(action, Action::StartRun { branch, .. } if *branch == machine.job("a").delivery.branch.name)
    ));
}

#[test]
fn a_pr_closed_during_rework_follows_the_policy_too() {
    let rework = |mut machine: Machine| {
        let mut failing = machine.good_pr("a");
        failing.checks = Some(vec![check("build", CheckStatus::Failed)]);
        machine.observe("a", failing);
        machine.run_starts("a");
        machine
    };
    let mut stopped = rework(Machine::with_pr(policy()));
    stopped.observe("a", closed(&stopped));
    stopped.run_delivers_nothing("a");
    assert_eq!(stopped.code("a"), "pr_closed");

    let mut queued = Machine::with_pr(policy());
    queued.policy.agent.max_concurrent = 0;
    let mut failing = queued.good_pr("a");
    failing.checks = Some(vec![check("build", CheckStatus::Failed)]);
    queued.observe("a", failing);
    assert_eq!(queued.phase("a"), Phase::Queued);
    queued.observe("a", closed(&queued));
    assert_eq!(queued.code("a"), "pr_closed");
}

#[test]
fn a_pr_closed_while_gates_run_on_new_work_does_not_lose_that_work() {
    let mut policy = policy();
    policy.pr.closed_pr = ClosedPrPolicy::Reopen;
    let mut machine = Machine::with_pr(policy);
    let mut failing = machine.good_pr("a");
    failing.checks = Some(vec![check("build", CheckStatus::Failed)]);
    machine.observe("a", failing);
    machine.policy.gates.has_task_gates = true;
    machine.run_starts("a");
    let before = machine.job("a").delivery.head.clone();
    let report = super::fixtures::done_report(&commit("two"));
    machine.run_ends("a", dirigent::domain::run::RunReport { head_before: before, ..report });
    assert_eq!(machine.code("a"), "gates");
    machine.observe("a", closed(&machine));
    let result = EffectResult::Gated { results: Vec::new() };
    machine.succeed(|action| matches!(action, Action::RunGate { .. }), result);
    assert!(
        machine.pending(|action| matches!(action, Action::PushBranch { head, .. } if *head == commit("two"))).is_some(),
        "the new head must still be pushed: {:?}",
        machine.stage("a")
    );
}

#[test]
fn no_checks_are_pending_until_the_grace_is_over_and_then_wait_for_a_person() {
    let mut machine = Machine::with_pr(policy());
    let none = PullRequest { checks: Some(Vec::new()), required_checks: None, ..machine.good_pr("a") };
    machine.observe("a", none.clone());
    assert_eq!(machine.code("a"), "checks");
    machine.pass(Duration::from_secs(59));
    machine.observe("a", none.clone());
    assert_eq!(machine.code("a"), "checks");
    machine.pass(Duration::from_secs(1));
    machine.observe("a", none.clone());
    assert_eq!(machine.code("a"), "no_checks");
    machine.approve("a");
    machine.lands_as("a", none);
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn no_checks_pass_after_the_grace_when_the_policy_says_so() {
    let mut policy = policy();
    policy.merge.no_checks_pass = true;
    let mut machine = Machine::with_pr(policy);
    let none = PullRequest { checks: Some(Vec::new()), required_checks: None, ..machine.good_pr("a") };
    machine.observe("a", none.clone());
    assert_eq!(machine.code("a"), "checks", "CI may still register its checks");
    machine.pass(Duration::from_secs(60));
    machine.lands_as("a", none);
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn optional_checks_never_block_where_the_forge_names_the_required_ones() {
    let mut machine = Machine::with_pr(policy());
    let mut shown = machine.good_pr("a");
    shown.checks = Some(vec![
        check("build", CheckStatus::Passed),
        check("lint", CheckStatus::Failed),
        check("slow", CheckStatus::Pending),
        check("docs", CheckStatus::Neutral),
    ]);
    machine.lands_as("a", shown.clone());
    assert_eq!(machine.phase("a"), Phase::Merging);

    // One that is required and has not registered yet is still to come.
    let mut machine = Machine::with_pr(policy());
    shown.required_checks = Some(vec!["build".into(), "deploy".into()]);
    machine.observe("a", shown.clone());
    assert_eq!(machine.code("a"), "checks");

    // Where nobody can say which are required, every check counts.
    for unknown in [None, Some(Vec::new())] {
        let mut machine = Machine::with_pr(policy());
        machine.observe("a", PullRequest { required_checks: unknown, ..shown.clone() });
        assert_eq!(machine.phase("a"), Phase::Rework, "lint has failed");
    }
}

/// A fast lint must not pass for a build that has not registered yet.
#[test]
fn without_a_list_of_required_checks_the_grace_applies_to_every_head() {
    let mut machine = Machine::with_pr(policy());
    let shown = |machine: &Machine| PullRequest { required_checks: None, ..machine.good_pr("a") };
    machine.observe("a", shown(&machine));
    assert_eq!(machine.code("a"), "checks", "others may still register");
    machine.pass(Duration::from_secs(60));
    machine.lands_as("a", shown(&machine));
    assert_eq!(machine.phase("a"), Phase::Merging);

    // A name that was seen on another head counts as pending until it reports.
    let mut machine = Machine::with_pr(policy());
    let mut both = shown(&machine);
    both.checks = Some(vec![check("build", CheckStatus::Passed), check("deploy", CheckStatus::Pending)]);
    machine.observe("a", both);
    let pushed = at_head(shown(&machine), "theirs");
    machine.observe("a", pushed.clone());
    machine.pass(Duration::from_secs(600));
    machine.observe("a", pushed);
    assert_eq!(machine.code("a"), "checks", "deploy has not reported on this head");
}

#[test]
fn unknown_mergeability_is_pending_never_a_pass() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", PullRequest { mergeability: Mergeability::Unknown, ..machine.good_pr("a") });
    assert_eq!(machine.code("a"), "mergeability");
    assert_eq!(machine.emitted(is_merge), 0);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn approval_is_bound_to_the_head_it_was_given_for() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    assert!(matches!(machine.stage("a"), Stage::WaitingForHuman { on: HumanWait::Approval { .. }, .. }));
    machine.approve("a");
    let pushed = at_head(machine.good_pr("a"), "theirs");
    machine.observe("a", pushed.clone());
    assert_eq!(machine.code("a"), "approval", "a commit after the approval needs a new one");
    let approved = |trust, head: &str| PullRequest {
        reviews: Some(vec![review(1, trust, Verdict::Approved, &commit(head))]),
        ..pushed.clone()
    };
    machine.observe("a", approved(TrustLevel::Member, "one"));
    assert_eq!(machine.code("a"), "approval", "an approval of an old head");
    machine.observe("a", approved(TrustLevel::Stranger, "theirs"));
    assert_eq!(machine.code("a"), "approval", "a stranger's approval");
    let mut ours = approved(TrustLevel::Admin, "theirs");
    ours.reviews.as_mut().unwrap()[0].author = Author { ourselves: true, ..Author::new("dirigent", TrustLevel::Admin) };
    machine.observe("a", ours);
    assert_eq!(machine.code("a"), "approval", "our own approval");
    machine.lands_as("a", approved(TrustLevel::Member, "theirs"));
    assert_eq!(machine.phase("a"), Phase::Merging);
    assert!(
        machine.pending(|action| matches!(action, Action::MergePr { head, .. } if *head == commit("theirs"))).is_some()
    );
}

#[test]
fn moving_the_ticket_to_an_approval_state_approves_the_current_head() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.poll(vec![ticket("a")]);
    machine.poll(vec![in_state("a", "Approved")]);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn requested_changes_on_this_head_are_never_merged_over() {
    let mut machine = Machine::with_pr(policy());
    machine.policy.orchestration.max_rework_cycles = 0;
    let mut shown = machine.good_pr("a");
    shown.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::ChangesRequested, &shown.head)]);
    machine.observe("a", shown.clone());
    assert_eq!(machine.code("a"), "rework_limit_exceeded");
    machine.observe("a", shown);
    assert_eq!(machine.emitted(is_merge), 0);
}

#[test]
fn changes_requested_while_blocked_are_not_forgotten() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.fail(is_merge, EffectError::Permanent { detail: "protected branch".into() });
    assert_eq!(machine.code("a"), "merge_refused");
    let mut shown = machine.good_pr("a");
    shown.reviews = Some(vec![review(1, TrustLevel::Member, Verdict::ChangesRequested, &shown.head)]);
    machine.observe("a", shown.clone());
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    machine.observe("a", shown);
    assert_eq!(machine.phase("a"), Phase::Rework, "the reviewer was not heard");
}

#[test]
fn a_merge_race_is_looked_at_again_and_the_new_head_is_judged_anew() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.fail(is_merge, EffectError::HeadMoved { actual: commit("theirs") });
    assert_eq!(machine.code("a"), "mergeability");
    assert!(machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })));
    let mut pushed = at_head(machine.good_pr("a"), "theirs");
    pushed.checks = Some(vec![check("build", CheckStatus::Pending)]);
    machine.observe("a", pushed);
    assert_eq!(machine.code("a"), "checks");
}

#[test]
fn one_merge_at_a_time_and_the_others_are_looked_at_again_after_it() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a"), ticket("b")]);
    for (name, number) in [("a", 1), ("b", 2)] {
        machine.run_starts(name);
        let head = commit(name);
        machine.run_ends(name, super::fixtures::done_report(&head));
        machine.perform_small();
        machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let shown = pr(number, &machine.job(name).delivery.branch.name, &head);
        machine.succeed(|action| matches!(action, Action::OpenPr { .. }), EffectResult::Opened { pr: shown });
    }
    machine.lands("a");
    machine.lands("b");
    assert_eq!(machine.phase("a"), Phase::Merging);
    let waits = dirigent::engine::reason(&machine.state, &machine.policy, machine.job("b"), machine.now);
    assert_eq!(waits.sentence, "ready; a is merged first");
    machine.merge_succeeds();
    assert_eq!(machine.code("b"), "mergeability", "what was ready was ready against the old base");
    // Once to stand in line, and once more in its turn.
    machine.lands_as("b", PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("b") });
    assert_eq!(machine.code("b"), "branch_update");
    let updated = EffectResult::Updated { head: commit("updated"), same_diff: true };
    machine.succeed(|action| matches!(action, Action::UpdateBranch { .. }), updated);
    machine.lands("b");
    assert_eq!(machine.phase("b"), Phase::Merging);
    assert!(
        machine
            .pending(|action| matches!(action, Action::MergePr { head, .. } if *head == commit("updated")))
            .is_some()
    );
}

#[test]
fn a_branch_update_that_never_shows_is_asked_for_again_and_then_a_person_is_told() {
    let mut machine = Machine::with_pr(policy());
    let behind = PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("a") };
    for _ in 0..1000 {
        machine.observe("a", behind.clone());
        if let Some(effect) = machine.pending(|action| matches!(action, Action::UpdateBranch { .. })) {
            machine.step(Event::EffectDone { effect, result: EffectResult::Plain });
        }
        machine.pass(Duration::from_secs(60));
    }
    assert_eq!(machine.code("a"), "merge_stuck");
    let sentence = machine.job("a").stage.reason(machine.now).sentence;
    assert!(sentence.contains("no update has shown"), "{sentence}");
    assert_eq!(
        machine.emitted(|action| matches!(action, Action::UpdateBranch { .. })),
        15,
        "three in each of five turns"
    );
}

#[test]
fn something_in_the_way_of_a_merge_is_tried_again_later_and_lets_others_pass() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.fail(is_merge, EffectError::NotNow { because: "src/x.rs is dirty".into() });
    assert_eq!(machine.code("a"), "merge_held");
    assert!(machine.job("a").stage.reason(machine.now).sentence.contains("src/x.rs"));
    machine.seconds(59);
    assert_eq!(machine.code("a"), "merge_held");
    machine.seconds(1);
    assert!(machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })), "{:?}", machine.last);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn mutate_never_merges_and_says_so() {
    let mut policy = policy();
    policy.rollout.mode = RolloutMode::Mutate;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.code("a"), "ready_for_you");
    machine.seconds(3600);
    assert_eq!(machine.emitted(is_merge), 0);
    machine.policy.rollout.mode = RolloutMode::Merge;
    machine.step(Event::PolicyReloaded);
    assert_eq!(machine.emitted(is_merge), 0, "its turn has come, and one more look decides");
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_merge_that_fell_out_of_the_mode_is_not_tried_again() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.fail(is_merge, transient());
    machine.policy.rollout.mode = RolloutMode::Mutate;
    machine.step(Event::PolicyReloaded);
    machine.seconds(3600);
    assert_eq!(machine.emitted(is_merge), 1);
    assert_eq!(machine.code("a"), "ready_for_you");
}

#[test]
fn a_label_that_makes_it_ours_is_asked_for_before_the_merge() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", PullRequest { mergeability: Mergeability::Unknown, ..machine.good_pr("a") });
    machine.policy.orchestration.required_label = Some("agent".into());
    machine.step(Event::PolicyReloaded);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.emitted(is_merge), 0);
    assert_eq!(machine.phase("a"), Phase::Released);
}

#[test]
fn without_a_forge_the_branch_is_the_result() {
    let mut policy = policy();
    policy.pr.forge = ForgeKind::None;
    let mut machine = Machine::working(policy);
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    assert_eq!(machine.code("a"), "branch_ready");
    machine.refresh(in_state("a", "Done"));
    assert_eq!(machine.phase("a"), Phase::Released);
}

#[test]
fn a_refused_push_blocks_with_the_reason_and_a_retry_goes_on() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    machine.fail(
        |action| matches!(action, Action::PushBranch { .. }),
        EffectError::Permanent { detail: "no write access".into() },
    );
    assert_eq!(machine.code("a"), "effect_refused");
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.code("a"), "opening_pr", "the finished work is not paid for again");
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 1);
}

#[test]
fn a_look_at_another_pull_request_changes_nothing() {
    let mut machine = Machine::with_pr(policy());
    let before = machine.state.clone();
    let other = PullRequest { state: PrState::Merged { commit: None }, ..pr(99, "elsewhere", &commit("theirs")) };
    machine.observe("a", other);
    assert_eq!(machine.state.jobs, before.jobs);
    assert!(machine.last.is_empty(), "{:?}", machine.last);
}

#[test]
fn late_news_of_effects_change_nothing() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    let merge = machine.pending(is_merge).unwrap();
    machine.merge_succeeds();
    let before = machine.state.clone();
    for event in [
        Event::EffectDone { effect: merge, result: EffectResult::Merged { commit: None } },
        Event::EffectFailed { effect: merge, error: transient() },
        Event::EffectFailed { effect: merge, error: EffectError::Conflict { files: Vec::new() } },
        Event::PrObserved { ticket: id("a"), pr: pr(1, "x", &commit("one")), basis: machine.basis() },
        Event::PrObserved { ticket: id("nobody"), pr: pr(1, "x", &commit("one")), basis: machine.basis() },
    ] {
        machine.step(event.clone());
        assert_eq!(machine.state, before, "{event:?}");
    }
}

#[test]
fn an_old_column_is_never_written_after_a_newer_one() {
    let mut policy = policy();
    policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    policy.orchestration.states.insert(Phase::WaitingForChecks, "In Review".into());
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a")]);
    let old = machine.pending(is_move).unwrap();
    machine.run_starts_only("a");
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    assert_eq!(machine.state.outbox.values().filter(|entry| is_move(&entry.effect.action)).count(), 2);
    machine.step(Event::EffectFailed { effect: old, error: transient() });
    let waiting = machine.state.outbox.get(&old).map(|entry| entry.status.clone());
    assert!(!matches!(waiting, Some(PendingStatus::Due { .. })), "In Progress would be written after In Review");
}

impl Machine {
    fn run_starts_only(&mut self, name: &str) {
        let run = self.run_of(name);
        let process = dirigent::domain::run::ProcessMark { pid: 1, started_ticks: 1 };
        let head = Some(commit("base"));
        self.step(Event::RunStarted { run, process, worktree: "/w".into(), head });
    }
}

#[test]
fn a_persons_push_that_contradicts_ours_is_a_rework_on_top_of_theirs() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    machine.perform_small();
    let apart = EffectError::Apart { files: vec!["src/a.rs".into()], kept: "refs/dirigent/kept/x/one".into() };
    machine.fail(|action| matches!(action, Action::PushBranch { .. }), apart);
    assert_eq!(machine.phase("a"), Phase::Rework);
    let Stage::Working { work: Work::Rework { cause }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert!(
        cause.summary.contains("src/a.rs") && cause.summary.contains("refs/dirigent/kept/x/one"),
        "{}",
        cause.summary
    );
}

#[test]
fn two_sides_that_were_joined_are_checked_as_one() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    machine.perform_small();
    let both = EffectResult::Updated { head: commit("both"), same_diff: false };
    machine.succeed(|action| matches!(action, Action::PushBranch { .. }), both);
    let again = |action: &Action| matches!(action, Action::PushBranch { head, .. } if *head == commit("both"));
    assert!(machine.pending(again).is_some(), "{:?}", machine.stage("a"));
    assert_eq!(machine.job("a").delivery.pushed_head, Some(commit("both")));
}

#[test]
fn failed_jobs_run_again_before_a_rework_is_paid_for() {
    let again = |action: &Action| matches!(action, Action::RerunChecks { .. });
    let mut policy = policy();
    policy.merge.rerun_failed_checks = 1;
    let mut machine = Machine::with_pr(policy);
    let red = PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..machine.good_pr("a") };
    machine.observe("a", red.clone());
    assert_eq!((machine.emitted(again), machine.phase("a")), (1, Phase::WaitingForChecks));
    machine.succeed(again, EffectResult::Plain);
    machine.observe("a", red.clone());
    assert_eq!(machine.phase("a"), Phase::WaitingForChecks, "a replica may still show the old result");
    machine.pass(Duration::from_secs(120));
    machine.observe("a", red);
    assert_eq!((machine.emitted(again), machine.phase("a")), (1, Phase::Rework));
}

#[test]
fn a_draft_becomes_ready_when_its_checks_pass() {
    let ready = |action: &Action| matches!(action, Action::UpdatePr { ready: true, .. });
    let mut policy = policy();
    policy.pr.draft = true;
    let mut machine = Machine::with_pr(policy.clone());
    let draft = PullRequest { draft: true, ..machine.good_pr("a") };
    machine.observe("a", draft.clone());
    assert_eq!(
        (machine.emitted(ready), machine.phase("a")),
        (0, Phase::WaitingForHuman),
        "a draft of a person's is theirs"
    );
    policy.pr.ready_when_green = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", PullRequest { checks: Some(vec![check("build", CheckStatus::Pending)]), ..draft.clone() });
    assert_eq!(machine.emitted(ready), 0);
    machine.observe("a", draft);
    assert_eq!(machine.emitted(ready), 1);
    machine.succeed(ready, EffectResult::Plain);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}
