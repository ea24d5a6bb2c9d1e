//! The last step to the base branch: when a merge may leave, and what happens when it does not go through.

use std::time::Duration;

use dirigent::config::policy::Policy;
use dirigent::domain::job::{BlockCause, DoneHow, ReleaseReason, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{Mergeability, PrState, PullRequest};
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};

use super::fixtures::{at_head, commit, done_report, id, in_state, policy, pr, ticket};
use super::machine::Machine;

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_update(action: &Action) -> bool {
    matches!(action, Action::UpdateBranch { .. })
}

fn transient() -> EffectError {
    EffectError::Transient { detail: "502".into(), retry_after: None }
}

fn approved_only() -> Policy {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    policy
}

/// Two jobs with open pull requests, `a` with number 1 and `b` with number 2.
fn two_open() -> Machine {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a"), ticket("b")]);
    for (name, number) in [("a", 1), ("b", 2)] {
        machine.run_starts(name);
        let head = commit(name);
        machine.run_ends(name, done_report(&head));
        machine.perform_small();
        machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let shown = pr(number, &machine.job(name).delivery.branch.name, &head);
        machine.succeed(|action| matches!(action, Action::OpenPr { .. }), EffectResult::Opened { pr: shown });
    }
    machine.perform_small();
    machine
}

/// Fails the merge of `a` in the given way until it is not tried any more.
fn merges_until_it_steps_aside(machine: &mut Machine, error: &EffectError) {
    for _ in 0..50 {
        machine.lands("a");
        if machine.pending(is_merge).is_some() {
            machine.fail(is_merge, error.clone());
        }
        machine.seconds(3600);
    }
}

/// Why 3: a merge that fails for a passing reason used to be tried without end.
#[test]
fn a_merge_that_fails_for_a_passing_reason_is_tried_a_bounded_number_of_times() {
    let lost = EffectError::MaybeDone { detail: "504".into() };
    for error in [transient(), EffectError::NotNow { because: "a dirty work tree".into() }, lost] {
        let mut machine = Machine::with_pr(policy());
        merges_until_it_steps_aside(&mut machine, &error);
        assert_eq!(machine.emitted(is_merge), 5, "{error:?}");
        assert_eq!(machine.code("a"), "merge_stuck");
        machine.operator(OperatorCommand::Retry { ticket: id("a") });
        machine.lands("a");
        assert_eq!(machine.phase("a"), Phase::Merging, "a person says when to try again");
    }
}

/// Why 3: the one that fails holds the slot of nobody.
#[test]
fn a_merge_that_fails_lets_the_next_one_go_first() {
    let mut machine = two_open();
    machine.lands("a");
    machine.lands("b");
    assert_eq!(machine.phase("a"), Phase::Merging);
    machine.fail(is_merge, transient());
    machine.observe("b", machine.good_pr("b"));
    assert_eq!(machine.phase("b"), Phase::Merging);
}

/// The forge says nothing about the one whose turn it is.
#[test]
fn a_turn_without_an_answer_passes_to_the_next() {
    let mut machine = two_open();
    machine.observe("a", machine.good_pr("a"));
    machine.observe("b", machine.good_pr("b"));
    assert_eq!((machine.code("a"), machine.phase("b")), ("merge_queue", Phase::ReadyToMerge));
    for _ in 0..3 {
        machine.wake();
    }
    machine.observe("b", machine.good_pr("b"));
    assert_eq!(machine.phase("b"), Phase::Merging, "a: {}, b: {}", machine.code("a"), machine.code("b"));
}

/// Why 3: neither `stop` nor closing used to end it.
#[test]
fn stopping_and_closing_end_a_merge_that_fails_again_and_again() {
    let mut stopped = Machine::with_pr(policy());
    stopped.lands("a");
    stopped.operator(OperatorCommand::Stop { ticket: id("a") });
    assert_eq!(stopped.phase("a"), Phase::Merging, "what is under way is not called back");
    for error in [
        transient(),
        EffectError::NotNow { because: "dirty".into() },
        EffectError::MaybeDone { detail: "504".into() },
        EffectError::HeadMoved { actual: commit("theirs") },
        EffectError::OtherBase { actual: "develop".into() },
        EffectError::Conflict { files: Vec::new() },
        EffectError::Auth { detail: "401".into() },
    ] {
        let mut machine = stopped.clone();
        machine.fail(is_merge, error.clone());
        assert_eq!(machine.code("a"), "set_aside", "{error:?}");
        machine.lands("a");
        assert_eq!(machine.emitted(is_merge), 1, "{error:?}");
    }
    let mut closed = Machine::with_pr(policy());
    closed.lands("a");
    closed.fail(is_merge, transient());
    closed.observe("a", PullRequest { state: PrState::Closed, ..closed.good_pr("a") });
    assert!(matches!(closed.stage("a"), Stage::Blocked { cause: BlockCause::PrClosed { .. }, .. }));
}

/// Why 3: a person gave the pull request another base, and it was merged into that one.
#[test]
fn a_pull_request_with_another_base_is_not_merged() {
    let mut machine = Machine::with_pr(policy());
    let elsewhere = PullRequest { base_branch: "develop".into(), ..machine.good_pr("a") };
    machine.lands_as("a", elsewhere.clone());
    assert_eq!(machine.code("a"), "other_base");
    assert_eq!(machine.emitted(is_merge), 0);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "it was set back");
    assert!(
        machine
            .pending(|action| matches!(action, Action::MergePr { base_branch, .. } if base_branch == "main"))
            .is_some()
    );
    machine.fail(is_merge, EffectError::OtherBase { actual: "develop".into() });
    assert_eq!(machine.code("a"), "other_base", "changed between the look and the merge");
    machine.observe("a", elsewhere);
    assert_eq!(machine.emitted(is_merge), 1);
}

#[test]
fn a_merge_leaves_only_with_a_complete_look_that_was_asked_in_its_turn() {
    let parts: [fn(&mut PullRequest); 5] = [
        |pr| pr.checks = None,
        |pr| pr.reviews = None,
        |pr| pr.threads = None,
        |pr| pr.comments = None,
        |pr| pr.ref_head = None,
    ];
    for part in parts {
        let mut machine = Machine::with_pr(policy());
        let mut partial = machine.good_pr("a");
        part(&mut partial);
        machine.observe("a", machine.good_pr("a"));
        machine.observe("a", partial.clone());
        machine.lands_as("a", partial);
        assert_eq!(machine.emitted(is_merge), 0);
        machine.lands("a");
        assert_eq!(machine.phase("a"), Phase::Merging);
    }
    let mut machine = Machine::with_pr(policy());
    let before = machine.basis();
    machine.observe("a", machine.good_pr("a"));
    machine.observe_asked("a", machine.good_pr("a"), before);
    assert_eq!(machine.emitted(is_merge), 0, "that look was asked before its turn");
}

/// A switch that is pulled while the deciding look is under way.
#[test]
fn a_merge_that_the_permit_refuses_is_not_kept_for_later() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", machine.good_pr("a"));
    machine.state.switch_file = Some(machine.now);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::ReadyToMerge);
    assert!(machine.pending(is_merge).is_none());
    machine.step(Event::SwitchesChanged { file: false });
    assert_eq!(machine.emitted(is_merge), 0, "another look decides");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// Looks that were asked before our own merge moved the base say nothing about what can be merged.
#[test]
fn a_look_from_before_our_own_merge_lets_nobody_be_merged() {
    let mut machine = two_open();
    machine.lands("a");
    let before = machine.basis();
    machine.merge_succeeds();
    for _ in 0..3 {
        machine.observe_asked("b", machine.good_pr("b"), before);
    }
    assert_ne!(machine.phase("b"), Phase::ReadyToMerge);
    machine.lands("b");
    assert_eq!(machine.phase("b"), Phase::Merging);
}

/// Why 4: a pull request that merely waits for a person is not updated again and again, nor blocked for it.
#[test]
fn what_waits_for_approval_is_not_updated_onto_a_moving_base() {
    let mut machine = Machine::with_pr(approved_only());
    let behind = |machine: &Machine| PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("a") };
    for _ in 0..20 {
        machine.observe("a", behind(&machine));
        machine.pass(Duration::from_secs(900));
    }
    assert_eq!(machine.emitted(is_update), 0);
    assert_eq!(machine.code("a"), "approval");
    machine.approve("a");
    machine.lands_as("a", behind(&machine));
    assert_eq!(machine.emitted(is_update), 1, "once, when it is about to be merged");
    let updated = EffectResult::Updated { head: commit("updated"), same_diff: true };
    machine.succeed(is_update, updated);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "the approval holds for the same change");
}

#[test]
fn an_update_that_changes_the_diff_needs_another_approval() {
    let mut machine = Machine::with_pr(approved_only());
    machine.observe("a", machine.good_pr("a"));
    for round in 0..10 {
        machine.approve("a");
        machine.lands_as("a", PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("a") });
        let head = commit(&format!("update{round}x"));
        machine.succeed(is_update, EffectResult::Updated { head, same_diff: false });
        machine.lands("a");
        assert_eq!(machine.code("a"), "approval", "round {round}");
    }
    assert_eq!(machine.emitted(is_merge), 0);
}

/// Why 5: `Closes #n` closes the ticket in the moment of the merge, and the ticket is read first.
#[test]
fn a_ticket_closed_by_the_merge_of_its_pull_request_is_done() {
    let merged = |machine: &Machine| PullRequest { state: PrState::Merged { commit: None }, ..machine.good_pr("a") };
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", machine.good_pr("a"));
    machine.refresh(in_state("a", "Done"));
    assert!(machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })), "the forge is asked first");
    // The forge lags behind the board.
    machine.observe("a", machine.good_pr("a"));
    machine.observe("a", merged(&machine));
    assert!(matches!(machine.stage("a"), Stage::Done { how: DoneHow::Merged { by_us: false, .. }, .. }));
    assert!(machine.emitted_last(|action| matches!(action, Action::CleanUp { merged_head: Some(_), .. })));

    let mut working = Machine::with_pr(policy());
    working.refresh(in_state("a", "Rework"));
    working.run_starts("a");
    working.refresh(in_state("a", "Done"));
    let killed = dirigent::domain::run::RunOutcome::Killed { reason: dirigent::domain::run::StopReason::TerminalState };
    working.run_ends("a", super::fixtures::report(killed));
    working.observe("a", merged(&working));
    assert_eq!(working.phase("a"), Phase::Done);
}

#[test]
fn a_ticket_closed_beside_its_open_pull_request_is_given_back_when_that_lasts() {
    let mut machine = Machine::with_pr(policy());
    machine.refresh(in_state("a", "Cancelled"));
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.code("a"), "ticket_closed_with_pr");
    machine.seconds(60);
    machine.observe("a", machine.good_pr("a"));
    assert!(matches!(machine.stage("a"), Stage::Released { why: ReleaseReason::TicketClosed { .. }, .. }));

    let mut both = Machine::with_pr(policy());
    both.policy.pr.closed_pr = dirigent::config::policy::ClosedPrPolicy::Reopen;
    both.refresh(in_state("a", "Cancelled"));
    both.observe("a", PullRequest { state: PrState::Closed, ..both.good_pr("a") });
    assert_eq!(both.phase("a"), Phase::Released, "nothing is opened again for a ticket that is closed");
    assert_eq!(both.emitted(|action| matches!(action, Action::ReopenPr { .. })), 0);
}

/// Why 23: `Refused` used to pass as clean.
#[test]
fn a_forge_that_refuses_for_now_is_not_a_pass() {
    let mut machine = Machine::with_pr(policy());
    let because = "two reviews are required".to_owned();
    machine.lands_as("a", PullRequest { mergeability: Mergeability::Refused { because }, ..machine.good_pr("a") });
    assert_eq!(machine.code("a"), "forge_rule");
    assert_eq!(machine.emitted(is_merge), 0);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// Why 23: what our access was refused for is held, never dropped; and a merge comes again as often as it takes.
#[test]
fn a_401_drops_nothing() {
    let auth = || EffectError::Auth { detail: "401".into() };
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.succeed(is_merge, EffectResult::Merged { commit: None });
    let is_comment = |action: &Action| matches!(action, Action::Comment { .. });
    let is_move = |action: &Action| matches!(action, Action::MoveTicket { .. });
    for _ in 0..100 {
        machine.fail(is_comment, auth());
        machine.fail(is_move, auth());
        machine.seconds(3600);
    }
    assert!(machine.pending(is_comment).is_some() && machine.pending(is_move).is_some());
    assert!(machine.emitted_last(is_comment) && machine.emitted_last(is_move), "it is tried on");

    let mut merging = Machine::with_pr(policy());
    merges_until_it_steps_aside(&mut merging, &auth());
    assert_ne!(merging.code("a"), "merge_stuck", "nobody has to say anything but mend the access");
    merging.lands("a");
    assert_eq!(merging.phase("a"), Phase::Merging);
}

/// Rule 9: a person pushed while a run was making another head.
#[test]
fn a_persons_commits_are_joined_with_ours_and_checked_together() {
    let mut policy = policy();
    policy.gates.has_task_gates = true;
    let is_gate = |action: &Action| matches!(action, Action::RunGate { .. });
    let is_push = |action: &Action| matches!(action, Action::PushBranch { .. });
    let mut machine = Machine::working(policy);
    machine.run_ends("a", done_report(&commit("one")));
    machine.succeed(is_gate, EffectResult::Gated { results: Vec::new() });
    machine.publish("a");
    machine.refresh(in_state("a", "Rework"));
    machine.run_starts("a");
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    let before = Some(commit("one"));
    machine.run_ends("a", dirigent::domain::run::RunReport { head_before: before, ..done_report(&commit("two")) });
    machine.succeed(is_gate, EffectResult::Gated { results: Vec::new() });
    let mut conflicting = machine.clone();
    machine.succeed(is_push, EffectResult::Updated { head: commit("both"), same_diff: false });
    assert!(
        machine.pending(|action| matches!(action, Action::RunGate { head, .. } if *head == commit("both"))).is_some()
    );
    assert_eq!(machine.code("a"), "gates");
    conflicting.fail(is_push, EffectError::Conflict { files: vec!["x".into()] });
    assert_eq!(conflicting.phase("a"), Phase::Rework);
}

/// Rule 9: our gates look at what a person pushed. It is not ours to push, and what takes its place is judged in its place.
#[test]
fn a_persons_head_goes_through_our_gates_and_is_not_pushed_by_us() {
    let mut policy = policy();
    policy.gates.has_task_gates = true;
    let is_push = |action: &Action| matches!(action, Action::PushBranch { .. });
    let gate_on = |name: &str| {
        let head = commit(name);
        move |action: &Action| matches!(action, Action::RunGate { head: on, .. } if *on == head)
    };
    let mut machine = Machine::working(policy);
    machine.run_ends("a", done_report(&commit("one")));
    machine.succeed(gate_on("one"), EffectResult::Gated { results: Vec::new() });
    machine.publish("a");
    let pushes = machine.emitted(is_push);
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    assert!(machine.pending(gate_on("theirs")).is_some(), "{}", machine.code("a"));
    let late = machine.pending(gate_on("theirs")).unwrap();
    machine.observe("a", at_head(machine.good_pr("a"), "again"));
    assert!(machine.pending(gate_on("again")).is_some(), "{}", machine.code("a"));
    machine.step(Event::EffectDone { effect: late, result: EffectResult::Gated { results: Vec::new() } });
    assert_eq!(machine.code("a"), "gates", "that was about another head");
    machine.succeed(gate_on("again"), EffectResult::Gated { results: Vec::new() });
    assert_eq!(machine.emitted(is_push), pushes, "it is there already");
    machine.lands_as("a", at_head(machine.good_pr("a"), "again"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_guard_that_is_not_in_force_holds_every_merge() {
    let mut policy = policy();
    policy.merge.guards_not_in_force = vec!["review.enabled".into()];
    let mut machine = Machine::with_pr(policy);
    let good = machine.good_pr("a");
    machine.observe("a", good);
    assert!(matches!(
        machine.job("a").stage,
        Stage::WaitingForHuman { on: dirigent::domain::job::HumanWait::Rule { .. }, .. }
    ));
    assert!(machine.pending(|action| matches!(action, Action::MergePr { .. })).is_none());
}

/// A forge with a queue of its own takes the merge and answers at once; the job must neither hang nor ask without end.
#[test]
fn a_merge_that_waits_in_the_forges_queue_is_seen_and_does_not_hang() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.succeed(is_merge, EffectResult::Queued);
    assert_eq!(machine.code("a"), "in_queue");
    machine.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..machine.good_pr("a") });
    assert_eq!(machine.phase("a"), Phase::Done);

    let mut machine = Machine::with_pr(policy());
    for _ in 0..50 {
        machine.lands("a");
        if machine.pending(is_merge).is_some() {
            machine.succeed(is_merge, EffectResult::Queued);
        }
        machine.seconds(3600);
    }
    assert_eq!(machine.emitted(is_merge), 5);
    assert_eq!(machine.code("a"), "merge_stuck");
}

/// Seven commits of the user within a second are no fault of the branch: it lets others go first, comes again, and tells a person only when that
/// goes on and on.
#[test]
fn a_base_that_moves_after_each_update_puts_the_job_aside_and_blocks_nobody() {
    let mut machine = two_open();
    machine.policy.merge.max_rebase_attempts = 2;
    let behind = |machine: &Machine| PullRequest { mergeability: Mergeability::Behind, ..machine.good_pr("a") };
    let (mut updates, mut other_landed, mut stepped_back) = (0, false, false);
    for _ in 0..400 {
        machine.observe("a", behind(&machine));
        if machine.pending(is_update).is_some() {
            updates += 1;
            let head = commit(&format!("a{updates}x"));
            machine.succeed(is_update, EffectResult::Updated { head, same_diff: true });
        }
        stepped_back |= machine.code("a") == "merge_held";
        if stepped_back && !other_landed {
            machine.lands("b");
            other_landed = machine.phase("b") == Phase::Merging;
            if other_landed {
                machine.merge_succeeds();
            }
        }
        machine.seconds(30);
    }
    assert!(other_landed, "the other one went first");
    assert_eq!((updates, machine.code("a")), (10, "merge_stuck"), "two in each of five turns, then a person is told");
    let reason = machine.job("a").stage.reason(machine.now);
    assert!(reason.sentence.contains("the base has gone on after each of 2 updates"), "{reason:?}");
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    machine.observe("a", machine.good_pr("a"));
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "and a retry goes on");
}
