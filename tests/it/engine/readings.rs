//! What a reading is worth: late, old, partial and contradicting ones start, approve and merge nothing.

use std::time::Duration;

use dirigent::config::policy::Policy;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, PullRequest};
use dirigent::domain::run::{Declared, RunOutcome, RunReport};
use dirigent::domain::ticket::{StateChange, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, Lookup, OperatorCommand};

use super::fixtures::{
    at_head, blocker, check, commit, done_report, exit, failed, id, in_state, policy, report, ticket,
};
use super::machine::Machine;

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

fn is_move(action: &Action) -> bool {
    matches!(action, Action::MoveTicket { .. })
}

fn is_look(action: &Action) -> bool {
    matches!(action, Action::InspectPr { .. })
}

fn red(pr: PullRequest) -> PullRequest {
    PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..pr }
}

fn with_columns() -> Policy {
    let mut policy = policy();
    policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    policy.orchestration.states.insert(Phase::Blocked, "Todo".into());
    policy
}

/// Why 2: a late look at the old head after our push used to start a second paid run.
#[test]
fn a_look_at_the_old_head_after_our_push_starts_no_second_run() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", red(machine.good_pr("a")));
    machine.run_starts("a");
    let before = machine.basis();
    machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
    machine.perform_small();
    // While the push is on its way, after it, and much later.
    machine.observe_asked("a", red(at_head(machine.good_pr("a"), "one")), before);
    machine.publish("a");
    for _ in 0..5 {
        machine.observe_asked("a", red(at_head(machine.good_pr("a"), "one")), before);
        machine.pass(Duration::from_secs(60));
    }
    assert_eq!(machine.emitted(is_start), 2);
    assert_eq!(machine.code("a"), "checks");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// A forge has been seen to show the old head for many minutes after a confirmed push.
#[test]
fn a_head_other_than_the_git_remotes_is_never_believed() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", red(machine.good_pr("a")));
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    for _ in 0..60 {
        let lagging = PullRequest { head: commit("one"), ..red(machine.good_pr("a")) };
        machine.observe("a", lagging);
        assert_eq!(machine.code("a"), "checks");
        machine.wake();
        assert!(machine.emitted_last(is_look), "it is looked at again soon");
        machine.pass(Duration::from_secs(60));
    }
    assert_eq!(machine.emitted(is_start), 2);
    // Nor one that nobody ever had.
    machine.lands_as("a", PullRequest { head: commit("nobody"), ..machine.good_pr("a") });
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 0);
}

/// A question that left later may be answered first.
#[test]
fn the_answer_to_an_earlier_question_does_not_undo_a_later_one() {
    let mut machine = Machine::with_pr(policy());
    let early = machine.basis();
    machine.refresh(in_state("a", "Rework"));
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::ReadyToMerge);
    machine.observe_asked("a", red(at_head(machine.good_pr("a"), "one")), early);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// Why 6: our own columns are not news, and an agent that does nothing is not paid six times.
#[test]
fn our_own_column_moves_are_no_new_evidence() {
    let mut machine = Machine::new(with_columns());
    let mut column = "Todo".to_owned();
    machine.poll(vec![ticket("a")]);
    for round in 0..40 {
        if machine.job("a").stage.run().is_some() {
            machine.run_starts("a");
            machine.run_ends("a", report(RunOutcome::Done));
        }
        while let Some(effect) = machine.pending(is_move) {
            if let Action::MoveTicket { state, .. } = &machine.state.outbox.get(&effect).unwrap().effect.action {
                column.clone_from(state);
            }
            machine.step(Event::EffectDone { effect, result: EffectResult::Moved { version: None } });
        }
        machine.perform_small();
        machine.pass(Duration::from_secs(if round % 2 == 0 { 30 } else { 400 }));
        machine.poll(vec![in_state("a", &column)]);
    }
    assert_eq!(machine.emitted(is_start), 1);
    assert_eq!(machine.code("a"), "no_new_evidence");
}

/// Why 20: the column on its way counts, not only the one that was confirmed.
#[test]
fn a_job_that_goes_back_before_its_column_arrived_moves_its_ticket_back_too() {
    let mut policy = policy();
    policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    policy.orchestration.states.insert(Phase::Queued, "Todo".into());
    let mut machine = Machine::new(policy);
    machine.poll(vec![ticket("a")]);
    assert!(machine.pending(is_move).is_some(), "to In Progress, and nobody has confirmed it");
    machine.run_ends("a", failed(exit()));
    let last = machine.effects.iter().rev().find(|effect| is_move(&effect.action)).cloned().unwrap();
    assert!(
        matches!(&last.action, Action::MoveTicket { state, from } if state == "Todo" && from.len() == 2),
        "{last:?}"
    );
}

/// A switch holds our move back. The ticket stays where it is, and that is nobody's doing.
#[test]
fn a_move_that_is_held_back_is_not_taken_for_a_persons() {
    let mut machine = Machine::new(with_columns());
    machine.poll(vec![ticket("a")]);
    machine.perform_small();
    machine.run_starts("a");
    machine.poll(vec![in_state("a", "In Progress")]);
    machine.operator(OperatorCommand::PauseAll);
    let asked = RunReport { declared: Some(Declared::Blocked { reason: "which?".into() }), ..report(RunOutcome::Done) };
    machine.run_ends("a", asked);
    for _ in 0..10 {
        machine.pass(Duration::from_secs(60));
        machine.poll(vec![in_state("a", "In Progress")]);
    }
    machine.operator(OperatorCommand::ResumeAll);
    assert_eq!(machine.code("a"), "worker_asked");
}

/// Two moves of ours follow each other, and a replica has seen neither of them. Then the second one is refused.
#[test]
fn a_replica_that_lags_behind_two_of_our_moves_shows_no_persons_doing() {
    for refused in [false, true] {
        let mut policy = with_columns();
        policy.orchestration.states.insert(Phase::Blocked, "Stuck".into());
        let mut machine = Machine::new(policy);
        machine.poll(vec![ticket("a")]);
        machine.run_starts("a");
        assert_eq!(machine.job("a").ticket.state, "In Progress");
        let asked =
            RunReport { declared: Some(Declared::Blocked { reason: "which?".into() }), ..report(RunOutcome::Done) };
        machine.run_ends("a", asked);
        machine.poll(vec![ticket("a")]);
        if refused {
            machine.fail(is_move, EffectError::Permanent { detail: "no such column".into() });
        }
        machine.poll(vec![ticket("a")]);
        machine.perform_small();
        machine.poll(vec![ticket("a")]);
        assert_eq!(machine.code("a"), "worker_asked", "refused: {refused}");
    }
}

/// A slow answer from before our own move is not a person who moved the ticket back, however late it comes.
#[test]
fn an_answer_from_before_our_move_is_never_a_persons_doing() {
    let mut machine = Machine::new(with_columns());
    machine.poll(vec![ticket("a")]);
    machine.run_starts("a");
    machine.poll(vec![in_state("a", "In Progress")]);
    let before = machine.basis();
    let asked = RunReport { declared: Some(Declared::Blocked { reason: "which?".into() }), ..report(RunOutcome::Done) };
    machine.run_ends("a", asked);
    machine.perform_small();
    machine.pass(Duration::from_secs(600));
    machine.poll_asked(vec![in_state("a", "In Progress")], before);
    assert_eq!(machine.code("a"), "worker_asked");
}

#[test]
fn a_move_that_was_given_up_does_not_keep_the_next_one_from_leaving() {
    let mut machine = Machine::new(with_columns());
    machine.poll(vec![ticket("a")]);
    machine.run_starts_silently("a");
    machine.perform_small();
    machine.refresh(in_state("a", "In Progress"));
    let asked = RunReport { declared: Some(Declared::Blocked { reason: "which?".into() }), ..report(RunOutcome::Done) };
    machine.run_ends("a", asked);
    machine.fail(is_move, EffectError::MaybeDone { detail: "504".into() });
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    // Back at work: the ticket is in In Progress already, or on its way from there.
    machine.run_starts("a");
    machine.perform_small();
    machine.pass(Duration::from_secs(120));
    machine.refresh(in_state("a", "Todo"));
    assert_eq!(machine.job("a").intended_column(), "Todo", "what is shown is where it is");
}

/// Why 4: the move to an approval state was made while the head before this one was there.
#[test]
fn a_move_to_an_approval_state_approves_the_head_that_was_there() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let moved = |at| Ticket {
        state_changed: Some(StateChange { at: Timestamp(at), by: Some(Author::new("ann", TrustLevel::Admin)) }),
        ..in_state("a", "Approved")
    };
    // Nobody dates the move: seen outside after the head was shown, or it does not count.
    let mut undated = Machine::with_pr(policy.clone());
    undated.observe("a", undated.good_pr("a"));
    let before = undated.basis();
    undated.poll(vec![ticket("a")]);
    undated.observe("a", at_head(undated.good_pr("a"), "theirs"));
    undated.poll_asked(vec![ticket("a")], before);
    undated.poll(vec![in_state("a", "Approved")]);
    undated.lands("a");
    assert_eq!(undated.code("a"), "approval", "it may have been about the head before");
    undated.poll(vec![ticket("a")]);
    undated.poll(vec![in_state("a", "Approved")]);
    undated.lands("a");
    assert_eq!(undated.phase("a"), Phase::Merging);

    let mut dated = Machine::with_pr(policy.clone());
    dated.observe("a", dated.good_pr("a"));
    let then = dated.now.0;
    dated.pass(Duration::from_secs(100));
    dated.observe("a", at_head(dated.good_pr("a"), "theirs"));
    dated.poll(vec![moved(then + 50_000)]);
    dated.lands("a");
    assert_eq!(dated.code("a"), "approval", "moved before this head was there");
    dated.pass(Duration::from_secs(60));
    dated.poll(vec![moved(then + 150_000)]);
    dated.lands("a");
    assert_eq!(dated.phase("a"), Phase::Merging, "and again after it");

    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.poll(vec![ticket("a")]);
    let mut by_bot = moved(machine.now.0 + 1);
    by_bot.state_changed.as_mut().unwrap().by = Some(Author::new("automation", TrustLevel::Bot));
    machine.poll(vec![by_bot]);
    machine.lands("a");
    assert_eq!(machine.code("a"), "approval", "an integration that moves columns is not a person");
}

#[test]
fn a_move_by_somebody_whose_words_do_not_count_approves_nothing() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.poll(vec![ticket("a")]);
    let moved = |at, trust| Ticket {
        state_changed: Some(StateChange { at, by: Some(Author::new("zoe", trust)) }),
        ..in_state("a", "Approved")
    };
    machine.seconds(10);
    let at = machine.now;
    machine.poll(vec![moved(at, TrustLevel::Stranger)]);
    machine.lands("a");
    assert_eq!(machine.code("a"), "approval");
    // A history may be shown a little later than the state. If it is not, nobody is known whose words count, and a date that turns
    // up in the end is no second move.
    machine.poll(vec![ticket("a")]);
    machine.seconds(10);
    machine.poll(vec![moved(Timestamp(0), TrustLevel::Stranger)]);
    let mut late = machine.clone();
    late.pass(Duration::from_secs(61));
    late.poll(vec![moved(Timestamp(0), TrustLevel::Stranger)]);
    late.poll(vec![moved(late.now, TrustLevel::Admin)]);
    late.lands("a");
    assert_eq!(late.code("a"), "approval");
    machine.poll(vec![moved(machine.now, TrustLevel::Admin)]);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// A list of GitHub's issues shows the label and not who put it on.
#[test]
fn a_list_that_does_not_say_who_moved_the_ticket_approves_nothing() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.poll(vec![ticket("a")]);
    let listed = || Ticket { comments: None, ..in_state("a", "Approved") };
    machine.seconds(10);
    let moved = machine.now;
    machine.poll(vec![listed()]);
    assert!(machine.job("a").people.approval.is_none());
    let by = |trust| Ticket {
        state_changed: Some(StateChange { at: moved, by: Some(Author::new("ann", trust)) }),
        ..in_state("a", "Approved")
    };
    let mut by_a_stranger = machine.clone();
    by_a_stranger.refresh(by(TrustLevel::Stranger));
    by_a_stranger.poll(vec![listed()]);
    by_a_stranger.lands("a");
    assert_eq!(by_a_stranger.code("a"), "approval");
    machine.refresh(by(TrustLevel::Admin));
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// `dirigent approve` refuses a head that has moved since it was shown.
#[test]
fn an_approval_that_names_another_head_approves_nothing() {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    let command = OperatorCommand::Approve { ticket: id("a"), head: Some(commit("one")), overrule: Vec::new() };
    assert!(dirigent::engine::objection(&machine.state, &command).is_some_and(|why| why.contains("is not its head")));
    machine.operator(command);
    machine.lands("a");
    assert_eq!(machine.code("a"), "approval");
}

#[test]
fn a_ticket_that_is_not_shown_is_kept_and_seen_again_wherever_it_appears() {
    for listed in [false, true] {
        let mut machine = Machine::with_pr(policy());
        machine.looked_up("a", Lookup::NotVisible);
        assert_eq!(machine.code("a"), "checks", "what waits keeps waiting");
        machine.refresh(in_state("a", "Rework"));
        machine.looked_up("a", Lookup::NotVisible);
        machine.run_ends("a", report(RunOutcome::Killed { reason: dirigent::domain::run::StopReason::NotVisible }));
        assert_eq!(machine.code("a"), "tracker");
        machine.looked_up("a", Lookup::Unreadable { because: "no state".into() });
        assert_eq!(machine.code("a"), "tracker");
        let shown = in_state("a", "In Progress");
        if listed {
            machine.poll(vec![shown])
        } else {
            machine.refresh(shown)
        }
        assert_eq!(machine.phase("a"), Phase::Rework, "listed: {listed}");
    }
}

#[test]
fn a_part_of_the_board_says_nothing_about_the_rest() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a"), ticket("b")]);
    machine.run_starts("a");
    let basis = machine.basis();
    machine.step(Event::PolledChanges { tickets: vec![in_state("b", "Done")], base: None, basis });
    assert!(machine.job("a").stage.run().is_some());
    assert!(matches!(machine.phase("b"), Phase::Implementing), "it is being stopped");
    assert_eq!(machine.emitted(|action| matches!(action, Action::StopRun { .. })), 1);
}

/// A ticket's own time of change does not move when its blocker closes.
#[test]
fn blockers_are_asked_for_themselves() {
    let mut machine = Machine::new(policy());
    let waiting = Ticket { blocked_by: vec![blocker("x", Some("Todo"))], ..ticket("a") };
    machine.poll(vec![waiting]);
    assert_eq!(machine.code("a"), "blocked_by");
    assert!(machine.emitted_last(|action| matches!(action, Action::RefreshTickets { ids } if ids.contains(&id("x")))));
    machine.refresh(in_state("x", "Done"));
    assert_eq!(machine.phase("a"), Phase::Implementing);
}

/// A check that was there and is not shown any more is awaited; it does not make what is left of them all there is.
#[test]
fn checks_that_disappear_are_awaited() {
    let listed = |required: bool, names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        (required.then(|| vec!["build".to_owned(), "slow".to_owned()]), names)
    };
    for required in [false, true] {
        let mut machine = Machine::with_pr(policy());
        let show = |machine: &mut Machine, names: &[&str]| {
            let (wanted, names) = listed(required, names);
            let checks = names.iter().map(|name| check(name, CheckStatus::Passed)).collect();
            let shown = PullRequest { checks: Some(checks), required_checks: wanted, ..machine.good_pr("a") };
            machine.lands_as("a", shown);
        };
        // Pending, so that nothing is merged with the first look.
        let mut both = machine.good_pr("a");
        both.checks = Some(vec![check("build", CheckStatus::Passed), check("slow", CheckStatus::Pending)]);
        both.required_checks = listed(required, &[]).0;
        machine.observe("a", both);
        machine.seconds(120);
        show(&mut machine, &["build"]);
        assert_eq!(
            (machine.phase("a"), machine.code("a")),
            (Phase::WaitingForChecks, "checks"),
            "required: {required}"
        );
        show(&mut machine, &[]);
        assert_eq!(
            (machine.phase("a"), machine.code("a")),
            (Phase::WaitingForChecks, "checks"),
            "required: {required}"
        );
        show(&mut machine, &["build", "slow"]);
        assert_eq!(machine.phase("a"), Phase::Merging, "required: {required}");
    }
}
