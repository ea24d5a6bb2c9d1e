//! Promises about what is believed and what is kept, each with the one reading or answer that would break it.

use std::time::Duration;

use dirigent::domain::failure::TurnError;
use dirigent::domain::ids::PoolName;
use dirigent::domain::job::{HumanWait, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, PullRequest};
use dirigent::domain::run::RunReport;
use dirigent::domain::ticket::{StateChange, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult};

use super::fixtures::{
    SWITCH_LABEL, at_head, check, commit, done_report, failed, in_state, policy, ticket, turn_error,
};
use super::machine::Machine;

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_push(action: &Action) -> bool {
    matches!(action, Action::PushBranch { .. })
}

#[test]
fn a_pull_request_into_another_base_is_not_merged() {
    let mut machine = Machine::with_pr(policy());
    machine.lands_as("a", PullRequest { base_branch: "develop".into(), ..machine.good_pr("a") });
    assert_eq!(machine.emitted(is_merge), 0);
    assert!(
        matches!(machine.stage("a"), Stage::WaitingForHuman { on: HumanWait::OtherBase { base, .. }, .. } if base == "develop")
    );
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "somebody put it right");
}

#[test]
fn only_a_look_that_was_asked_in_the_jobs_turn_merges() {
    let mut machine = Machine::with_pr(policy());
    let early = machine.basis();
    machine.observe("a", machine.good_pr("a"));
    assert!(matches!(machine.stage("a"), Stage::ReadyToMerge { turn: Some(_), .. }));
    machine.observe_asked("a", machine.good_pr("a"), early);
    assert_eq!(machine.emitted(is_merge), 0, "it shows how things were before the turn came");
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.emitted(is_merge), 1);
}

#[test]
fn a_switch_that_only_the_last_look_shows_stops_the_merge() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", machine.good_pr("a"));
    machine.observe("a", PullRequest { labels: vec![SWITCH_LABEL.into()], ..machine.good_pr("a") });
    assert_eq!(machine.emitted(is_merge), 0);
    machine.lands("a");
    assert_eq!(machine.emitted(is_merge), 1, "the label is gone");
}

#[test]
fn a_look_that_was_asked_before_our_push_was_answered_says_nothing_about_the_head() {
    let mut machine = Machine::with_pr(policy());
    let before = machine.good_pr("a");
    machine
        .observe("a", PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..machine.good_pr("a") });
    machine.run_starts("a");
    machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
    machine.perform_small();
    let early = machine.basis();
    machine.succeed(is_push, EffectResult::Plain);
    machine.observe_asked("a", before, early);
    assert_eq!(machine.job("a").delivery.remote_head, Some(commit("two")), "the old head is nobody's push");
    assert_eq!(machine.job("a").delivery.head, Some(commit("two")));
    machine.lands("a");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { head, .. } if *head == commit("two"))), 1);
}

#[test]
fn a_head_that_the_git_remote_does_not_have_is_not_merged() {
    let mut machine = Machine::with_pr(policy());
    machine.lands_as("a", PullRequest { ref_head: Some(commit("theirs")), ..machine.good_pr("a") });
    assert_eq!(machine.emitted(is_merge), 0, "the forge has not heard of the push yet");
    machine.lands_as("a", at_head(machine.good_pr("a"), "theirs"));
    assert_eq!(
        machine.emitted(|action| matches!(action, Action::MergePr { head, .. } if *head == commit("theirs"))),
        1
    );
}

#[test]
fn refused_access_holds_a_write_until_somebody_mends_it() {
    let mut machine = Machine::working(policy());
    machine.run_ends("a", done_report(&commit("one")));
    machine.perform_small();
    for _ in 0..20 {
        machine.fail(is_push, EffectError::Auth { detail: "401".into() });
        assert!(machine.pending(is_push).is_some(), "held, never dropped");
        machine.seconds(60);
        assert!(machine.emitted_last(is_push));
    }
    machine.publish("a");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn workers_that_meet_one_usage_limit_together_are_one_guess() {
    let mut machine = Machine::new(policy());
    let names = ["a", "b", "c"];
    machine.poll(names.map(ticket).to_vec());
    for name in names {
        machine.run_starts(name);
    }
    for name in names {
        machine.run_ends(name, failed(turn_error(TurnError::RateLimit)));
    }
    let pool = &machine.state.meta.pools[&PoolName::new("default")];
    assert_eq!(pool.guesses, 1);
    assert_eq!(pool.paused_until, Some(machine.now + Duration::from_secs(5 * 60)));
}

#[test]
fn a_move_to_an_approval_state_does_not_approve_a_head_that_came_after_it() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.lands("a");
    machine.seconds(10);
    let moved = machine.now;
    machine.seconds(10);
    let theirs = at_head(machine.good_pr("a"), "theirs");
    machine.lands_as("a", theirs.clone());
    let approved =
        |at: Timestamp| Ticket { state_changed: Some(StateChange { at, by: None }), ..in_state("a", "Approved") };
    machine.poll(vec![approved(moved)]);
    machine.lands_as("a", theirs.clone());
    assert_eq!(machine.code("a"), "approval", "whoever moved it had not seen this head");
    let mut skewed = machine.clone();
    skewed.poll(vec![approved(skewed.now + Duration::from_secs(30 * 60))]);
    skewed.lands_as("a", theirs.clone());
    assert_eq!(skewed.code("a"), "approval", "the board's clock is far from ours: its date says nothing");
    machine.seconds(10);
    machine.poll(vec![approved(machine.now)]);
    machine.lands_as("a", theirs);
    assert_eq!(machine.phase("a"), Phase::Merging);
}
