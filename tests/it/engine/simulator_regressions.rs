//! Faults that the simulator has found, each as the few events that were needed for it.

use std::time::Duration;

use dirigent::config::policy::ClosedPrPolicy;
use dirigent::domain::comment::{Comment, TrustLevel};
use dirigent::domain::evidence::GateResult;
use dirigent::domain::job::{ReleaseReason, Stage, Work};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, PrState, PullRequest, Verdict};
use dirigent::domain::remark::{RemarkAnswer, RemarkKind, RemarkStatus};
use dirigent::domain::run::{Activity, Declared, RunOutcome, RunReport, StopReason};
use dirigent::domain::ticket::{StateChange, Ticket};
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, OperatorCommand};
use dirigent::engine::{objection, select};

use super::fixtures::{
    SWITCH_LABEL, at_head, blocker, check, comment, commit, done_report, exit, failed, id, in_state, labelled, policy,
    report, review, thread, ticket, with_comments,
};
use super::machine::Machine;

fn is_reopen(action: &Action) -> bool {
    matches!(action, Action::ReopenPr { .. })
}

fn is_move(action: &Action) -> bool {
    matches!(action, Action::MoveTicket { .. })
}

fn closed(machine: &Machine) -> PullRequest {
    PullRequest { state: PrState::Closed, ..machine.good_pr("a") }
}

fn at(updated: i64, ticket: Ticket) -> Ticket {
    Ticket { updated_at: Some(Timestamp(updated)), ..ticket }
}

#[test]
fn giving_back_a_finished_ticket_forgets_nothing() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    machine.merge_succeeds();
    machine.operator(OperatorCommand::Forget { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::Done);
    assert!(machine.job("a").delivery.pr.is_some(), "what was merged is known");
}

#[test]
fn giving_back_during_a_merge_waits_for_the_merge() {
    let mut machine = Machine::with_pr(policy());
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
    machine.operator(OperatorCommand::Forget { ticket: id("a") });
    machine.merge_succeeds();
    assert_eq!(machine.phase("a"), Phase::Done);
    assert!(machine.emitted(|action| matches!(action, Action::CleanUp { merged_head: Some(_), .. })) > 0);
}

#[test]
fn what_a_label_holds_back_on_a_released_ticket_goes_on_when_the_label_goes() {
    let mut machine = Machine::with_pr(policy());
    let said =
        |n, ticket: Ticket| Ticket { comments: Some(vec![comment(n, TrustLevel::Member, "@dirigent more")]), ..ticket };
    machine.refresh(labelled("a", &[SWITCH_LABEL]));
    machine.refresh(said(1, labelled("a", &[SWITCH_LABEL])));
    machine.refresh(said(1, Ticket { state: "Backlog".into(), ..labelled("a", &[SWITCH_LABEL]) }));
    assert_eq!(machine.phase("a"), Phase::Released);
    assert!(
        machine.pending(|action| matches!(action, Action::Comment { .. })).is_some(),
        "the round is still to be told"
    );
    machine.poll(Vec::new());
    assert!(
        machine.emitted_last(|action| matches!(action, Action::RefreshTickets { ids } if ids.contains(&id("a")))),
        "somebody has to look whether the label is gone"
    );
    machine.refresh(said(1, in_state("a", "Backlog")));
    machine.perform_small();
    assert!(machine.state.outbox.is_empty(), "{:?}", machine.state.outbox);
}

#[test]
fn a_label_on_the_pull_request_of_a_finished_ticket_is_still_looked_at() {
    let mut machine = Machine::with_pr(policy());
    let stopped = PullRequest { labels: vec![SWITCH_LABEL.into()], ..machine.good_pr("a") };
    machine.observe("a", stopped.clone());
    machine.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..stopped });
    assert_eq!(machine.phase("a"), Phase::Done);
    assert!(machine.pending(is_move).is_some(), "the column waits for the label to go");
    machine.poll(vec![ticket("a")]);
    assert!(machine.emitted_last(|action| matches!(action, Action::InspectPr { .. })));
    machine.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..machine.good_pr("a") });
    assert!(machine.emitted_last(is_move), "{:?}", machine.last);
}

#[test]
fn the_head_that_a_look_brings_is_written_down_even_if_nothing_else_is_new() {
    let mut machine = Machine::with_pr(policy());
    let moved = at_head(machine.good_pr("a"), "theirs");
    machine.observe("a", moved.clone());
    // The machine compares the ledger with the state after each step.
    machine.observe("a", moved);
    assert_eq!(machine.job("a").delivery.head, Some(commit("theirs")));
}

#[test]
fn a_ticket_reopened_before_anybody_saw_it_closed_starts_anew() {
    let mut machine = Machine::with_pr(policy());
    machine.refresh(at(1, ticket("a")));
    machine.lands("a");
    let before = machine.basis();
    let merged = EffectResult::Merged { commit: None };
    machine.succeed(|action| matches!(action, Action::MergePr { .. }), merged);
    machine.succeed(is_move, EffectResult::Moved { version: Some(Timestamp(2)) });
    machine.refresh(at(1, ticket("a")));
    assert_eq!(machine.phase("a"), Phase::Done, "a reading older than our own move");
    machine.pass(Duration::from_secs(300));
    machine.refresh_asked(at(1, ticket("a")), before);
    assert_eq!(machine.phase("a"), Phase::Done, "however late it comes");
    machine.refresh(at(3, ticket("a")));
    assert_eq!(machine.phase("a"), Phase::Implementing, "somebody opened it again");
}

#[test]
fn a_start_that_was_decided_on_is_called_off_when_a_blocker_opens_again() {
    let policy = policy();
    let facts = |state| {
        let ticket = Ticket { blocked_by: vec![blocker("b", Some(state))], ..ticket("a") };
        dirigent::domain::job::TicketFacts::of(&ticket)
    };
    assert_eq!(select::too_late(Some(&facts("Done")), &policy), None);
    assert_eq!(select::too_late(Some(&facts("Rework")), &policy), Some(StopReason::BlockerOpened));
    assert_eq!(select::too_late(None, &policy), Some(StopReason::NotActive));
}

#[test]
fn nothing_is_reopened_for_a_ticket_that_is_given_back_in_the_same_breath() {
    let mut reopening = policy();
    reopening.pr.closed_pr = ClosedPrPolicy::Reopen;
    let mut machine = Machine::with_pr(reopening);
    machine.operator(OperatorCommand::Pause { ticket: id("a") });
    machine.observe("a", closed(&machine));
    assert!(machine.pending(is_reopen).is_some());
    machine.refresh(Ticket { comments: Some(vec![comment(1, TrustLevel::Member, "@dirigent more")]), ..ticket("a") });
    machine.refresh(labelled("a", &[SWITCH_LABEL]));
    machine.operator(OperatorCommand::Resume { ticket: id("a") });
    machine.refresh(in_state("a", "Backlog"));
    let given_back = matches!(machine.stage("a"), Stage::Released { why: ReleaseReason::NotActive { .. }, .. });
    assert!(given_back, "{:?}", machine.stage("a"));
    assert!(!machine.emitted_last(is_reopen), "{:?}", machine.last);
}

#[test]
fn a_closed_pull_request_is_not_reopened_beside_the_one_that_is_being_opened() {
    let mut reopening = policy();
    reopening.pr.closed_pr = ClosedPrPolicy::Reopen;
    let mut machine = Machine::with_pr(reopening);
    machine.observe("a", closed(&machine));
    let down = EffectError::Transient { detail: "down".into(), retry_after: None };
    machine.fail(is_reopen, down);
    // A round is asked for meanwhile; its end opens a pull request of its own.
    machine.refresh(Ticket { comments: Some(vec![comment(1, TrustLevel::Member, "@dirigent more")]), ..ticket("a") });
    machine.run_starts("a");
    let before = machine.job("a").delivery.head.clone();
    let report = super::fixtures::done_report(&commit("two"));
    machine.run_ends("a", dirigent::domain::run::RunReport { head_before: before, ..report });
    machine.perform_small();
    machine.seconds(600);
    assert!(machine.pending(is_reopen).is_none(), "two would be open");
}

#[test]
fn an_old_look_after_reopening_does_not_close_the_pull_request_again() {
    let mut afresh = policy();
    afresh.pr.closed_pr = ClosedPrPolicy::NewBranch;
    afresh.orchestration.max_rework_cycles = 0;
    let mut machine = Machine::with_pr(afresh);
    let branch = machine.job("a").delivery.branch.clone();
    machine.policy.pr.closed_pr = ClosedPrPolicy::Stop;
    machine.observe("a", closed(&machine));
    assert_eq!(machine.phase("a"), Phase::Blocked);
    machine.policy.pr.closed_pr = ClosedPrPolicy::NewBranch;
    let late = closed(&machine);
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    machine.succeed(is_reopen, EffectResult::Plain);
    machine.observe("a", late.clone());
    assert_eq!(machine.job("a").delivery.branch, branch, "the look was under way while it was opened again");
    machine.pass(Duration::from_secs(300));
    machine.observe("a", late);
    assert_ne!(machine.job("a").delivery.branch, branch, "what lasts is believed");
}

#[test]
fn a_workpad_that_is_under_way_wakes_nobody() {
    let mut shown = policy();
    shown.orchestration.workpad = true;
    shown.agent.timeouts.clear();
    let mut machine = Machine::new(shown);
    machine.poll(vec![ticket("a")]);
    assert!(machine.pending(|action| matches!(action, Action::WriteWorkpad { .. })).is_some());
    let run = machine.run_of("a");
    machine.operator(OperatorCommand::Stop { ticket: id("a") });
    machine.run_ends(
        "a",
        super::fixtures::report(dirigent::domain::run::RunOutcome::Killed { reason: StopReason::Operator }),
    );
    machine.pass(Duration::from_secs(3600));
    assert_eq!(dirigent::engine::next_due(&machine.state, &machine.policy), None);
    let comment = dirigent::domain::ids::CommentId::new("pad");
    machine.succeed(|action| matches!(action, Action::WriteWorkpad { .. }), EffectResult::Commented { comment });
    let shown = machine.emitted_last(|action| matches!(action, Action::WriteWorkpad { .. }));
    assert!(shown, "what {run} left is shown when the answer is there");
}

#[test]
fn no_second_pull_request_is_opened_for_one_that_somebody_merged_meanwhile() {
    let mut machine = Machine::with_pr(policy());
    let first = machine.good_pr("a");
    machine.refresh(Ticket { comments: Some(vec![comment(1, TrustLevel::Member, "@dirigent more")]), ..ticket("a") });
    machine.run_starts("a");
    let before = machine.job("a").delivery.head.clone();
    let report = super::fixtures::done_report(&commit("two"));
    machine.run_ends("a", dirigent::domain::run::RunReport { head_before: before, ..report });
    machine.perform_small();
    let opened = |machine: &Machine| machine.emitted(|action| matches!(action, Action::OpenPr { .. }));
    let before = opened(&machine);
    machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
    assert_eq!(opened(&machine), before, "the open one shows what was pushed");
    machine.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..first });
    assert_eq!(machine.phase("a"), Phase::Done);
}

#[test]
fn a_late_gate_result_is_not_taken_for_the_new_head() {
    let mut gated = policy();
    gated.gates.has_task_gates = true;
    let mut machine = Machine::working(gated);
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    let first = machine.pending(|action| matches!(action, Action::RunGate { .. })).expect("a gate");
    machine.refresh(in_state("a", "Rework"));
    machine.run_starts("a");
    machine.run_ends("a", super::fixtures::done_report(&commit("two")));
    let passed = EffectResult::Gated { results: Vec::new() };
    machine.step(dirigent::engine::event::Event::EffectDone { effect: first, result: passed });
    assert_eq!(machine.emitted(|action| matches!(action, Action::PushBranch { .. })), 0, "nobody has judged `two` yet");
    let second = machine.pending(|action| matches!(action, Action::RunGate { head, .. } if *head == commit("two")));
    assert!(second.is_some());
}

/// A reading that looked old is believed if it lasts. A board that only says "unchanged" must be asked, or it never would be.
#[test]
fn a_column_that_was_doubted_is_asked_for_while_the_board_is_unchanged() {
    let mut policy = policy();
    policy.orchestration.states.insert(Phase::Implementing, "In Progress".into());
    let mut machine = Machine::working(policy);
    machine.perform_small();
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.job("a").ticket.state, "In Progress", "it may be an old reading");
    machine.pass(Duration::from_secs(3600));
    machine.unchanged();
    let asked = |action: &Action| matches!(action, Action::RefreshTickets { ids } if ids.contains(&id("a")));
    assert!(machine.emitted_last(asked));
    machine.refresh(ticket("a"));
    assert_eq!(machine.job("a").ticket.state, "Todo", "what lasts is believed");
    machine.unchanged();
    assert!(!machine.emitted_last(asked), "and is not asked for any more");
}

/// The gates failed on a head; the ticket was taken away and brought back. That they have looked at it is no pass.
#[test]
fn a_head_that_failed_its_gates_is_gated_again_when_its_ticket_comes_back() {
    let mut gated = policy();
    gated.gates.has_task_gates = true;
    gated.pr.forge = dirigent::config::policy::ForgeKind::Local;
    let mut machine = Machine::working(gated);
    let gate = |passed| dirigent::domain::evidence::GateResult {
        name: "check".into(),
        command: "true".into(),
        passed,
        exit_code: Some(i32::from(!passed)),
        timed_out: false,
        output_tail: String::new(),
        duration_ms: 1,
    };
    machine.run_ends("a", super::fixtures::done_report(&commit("one")));
    let of = |action: &Action| matches!(action, Action::RunGate { .. });
    machine.succeed(of, EffectResult::Gated { results: vec![gate(true)] });
    machine.publish("a");
    let pushed = at_head(machine.good_pr("a"), "two");
    machine.observe("a", pushed.clone());
    machine.succeed(of, EffectResult::Gated { results: vec![gate(false)] });
    assert_eq!(machine.code("a"), "rework");
    machine.refresh(in_state("a", "Done"));
    machine.run_ends(
        "a",
        super::fixtures::report(dirigent::domain::run::RunOutcome::Killed { reason: StopReason::TerminalState }),
    );
    machine.pass(Duration::from_secs(60));
    machine.observe("a", pushed.clone());
    assert_eq!(machine.phase("a"), Phase::Released);
    machine.poll(vec![ticket("a")]);
    machine.observe("a", pushed);
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 0);
    assert!(machine.pending(of).is_some(), "{}", machine.code("a"));
}

/// The run ends well with this head, and the gates let it through.
fn passes_the_gates(machine: &mut Machine, head: &str) {
    machine.run_ends("a", done_report(&commit(head)));
    let result = EffectResult::Gated { results: Vec::new() };
    machine.succeed(|action| matches!(action, Action::RunGate { .. }), result);
}

#[test]
fn an_approval_of_the_published_head_does_not_accept_what_was_made_since() {
    let mut workflow = policy();
    workflow.gates.has_task_gates = true;
    let mut machine = Machine::working(workflow);
    passes_the_gates(&mut machine, "one");
    machine.publish("a");
    let with_thread = |pr: PullRequest| PullRequest { threads: Some(vec![thread(1, false)]), ..pr };
    machine.observe("a", with_thread(machine.good_pr("a")));
    machine.run_starts("a");
    machine.delivers("a");
    machine.run_ends("a", done_report(&commit("two")));
    // The second commit is at the gates when somebody approves the first.
    let approval = review(1, TrustLevel::Member, Verdict::Approved, &commit("one"));
    let approved = |pr: PullRequest| PullRequest { reviews: Some(vec![approval.clone()]), ..with_thread(pr) };
    machine.observe("a", approved(machine.good_pr("a")));
    let result = EffectResult::Gated { results: Vec::new() };
    machine.succeed(|action| matches!(action, Action::RunGate { .. }), result);
    machine.publish("a");
    machine.observe("a", approved(machine.good_pr("a")));
    machine.seconds(61);
    machine.observe("a", approved(machine.good_pr("a")));
    assert_eq!(machine.code("a"), "remarks", "nobody has seen what the second commit made of it");
}

#[test]
fn a_rework_is_not_begun_for_a_head_that_somebody_has_replaced() {
    let mut workflow = policy();
    workflow.agent.max_concurrent = 1;
    let mut machine = Machine::with_pr(workflow);
    machine.poll(vec![ticket("a"), ticket("b")]);
    machine.run_starts("b");
    let red = PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..machine.good_pr("a") };
    machine.observe("a", red);
    assert_eq!(machine.phase("a"), Phase::Queued, "the only slot is taken");
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    assert_eq!(machine.phase("a"), Phase::ReadyToMerge, "their commit is judged first");
    assert_eq!(machine.job("a").rework_cycles, 0, "no run was spent on it");
    machine.run_ends("b", failed(exit()));
    let reworks = |action: &Action| matches!(action, Action::StartRun { work: Work::Rework { .. }, .. });
    assert_eq!(machine.emitted(reworks), 0, "no worker for what is mended");
}

#[test]
fn a_retry_of_a_rework_looks_at_the_head_that_somebody_has_pushed_since() {
    let mut workflow = policy();
    workflow.orchestration.max_rework_cycles = 1;
    workflow.agent.max_retries = 0;
    let mut machine = Machine::with_pr(workflow);
    let red = PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..machine.good_pr("a") };
    machine.observe("a", red);
    machine.run_starts("a");
    machine.run_ends("a", failed(exit()));
    assert_eq!(machine.phase("a"), Phase::Blocked);
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    assert_eq!(machine.phase("a"), Phase::WaitingForChecks, "it may be mended: nobody is paid before that is known");
}

#[test]
fn a_listing_that_has_a_ticket_twice_is_read_to_its_newer_words() {
    let mut machine = Machine::with_pr(policy());
    machine.poll(vec![at(2_000, ticket("a"))]);
    let words = vec![comment(1, TrustLevel::Member, "@dirigent not like this")];
    let newer = Ticket { comments: Some(words), ..at(3_000, ticket("a")) };
    machine.poll(vec![at(2_000, ticket("a")), newer]);
    assert_eq!(machine.phase("a"), Phase::Rework, "the second page had the comment");
}

#[test]
fn words_in_a_reading_that_is_older_than_our_own_move_are_heard() {
    let mut workflow = policy();
    workflow.orchestration.states.insert(Phase::WaitingForChecks, "In Review".into());
    let mut machine = Machine::working(workflow);
    let asked = machine.basis();
    machine.run_delivers("a", "one");
    let words = vec![comment(1, TrustLevel::Member, "wait for me")];
    machine.poll_asked(vec![Ticket { comments: Some(words), ..ticket("a") }], asked);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.code("a"), "remarks", "the column in it is old, and the comment is not");
}

/// Nobody can have looked at what is not there to be looked at: an approval without an open pull request accepts nothing.
#[test]
fn an_approval_while_no_pull_request_is_open_accepts_nothing() {
    let mut machine = Machine::with_pr(policy());
    let said = comment(1, TrustLevel::Member, "@dirigent mind the gap");
    machine.poll(vec![with_comments(ticket("a"), vec![said.clone()])]);
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    assert_eq!(machine.job("a").people.dealt_with().count(), 1, "{:?}", machine.job("a").people.remarks);
    machine.observe("a", PullRequest { state: PrState::Closed, ..machine.good_pr("a") });
    assert_eq!(machine.phase("a"), Phase::Blocked);
    machine.approve("a");
    assert_eq!(machine.job("a").people.dealt_with().count(), 1, "nobody has seen what came of it");
    assert!(machine.job("a").people.approval.is_none());
}

/// Somebody closes the pull request, and what they asked for before is resolved: nobody wants a rework for it.
#[test]
fn what_is_resolved_on_a_closed_pull_request_starts_no_rework() {
    let mut machine = Machine::with_pr(policy());
    machine.operator(OperatorCommand::Reject { ticket: id("a"), text: "do it again".into() });
    machine.run_starts("a");
    machine.observe("a", PullRequest { threads: Some(vec![thread(2, false)]), ..machine.good_pr("a") });
    let resolved = PullRequest { threads: Some(vec![thread(2, true)]), ..closed(&machine) };
    machine.observe("a", resolved.clone());
    if machine.job("a").stage.run().is_some() {
        machine.run_ends("a", report(RunOutcome::Killed { reason: StopReason::Operator }));
    }
    machine.perform_small();
    machine.observe("a", resolved);
    let open: Vec<_> =
        machine.job("a").people.remarks.iter().filter(|remark| remark.key.kind == RemarkKind::Thread).collect();
    assert!(open.iter().all(|remark| remark.is_over()), "{open:?}");
}

/// A closed ticket with a closed pull request is opened again in an approval state: that accepts nothing of the old work.
#[test]
fn an_approval_state_says_nothing_about_a_closed_pull_request() {
    let mut machine = Machine::with_pr(policy());
    machine.poll(vec![ticket("a")]);
    machine.observe("a", closed(&machine));
    machine.perform_small();
    machine.poll(vec![in_state("a", "Approved")]);
    assert!(machine.job("a").people.approval.is_none());
}

/// Seed 34463071: somebody puts words in the place of an instruction, and a replica still shows the instruction.
#[test]
fn an_older_version_of_a_comment_takes_back_nothing_of_the_newer_one() {
    let mut machine = Machine::with_pr(policy());
    let instruction = comment(1, TrustLevel::Member, "/dirigent resume");
    let words = Comment { updated_at: Some(Timestamp(9_000)), ..comment(1, TrustLevel::Member, "wait for me") };
    machine.poll(vec![with_comments(ticket("a"), vec![words])]);
    machine.poll(vec![with_comments(ticket("a"), vec![instruction.clone()])]);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.code("a"), "remarks", "the words are newer");
    let back = Comment { updated_at: Some(Timestamp(9_500)), ..instruction };
    machine.poll(vec![with_comments(ticket("a"), vec![Comment { body: format!("{} ", back.body), ..back }])]);
    machine.observe("a", machine.good_pr("a"));
    assert_ne!(machine.code("a"), "remarks", "now they are gone");
}

/// Seed 35444756: the move was made before the head was there, and a replica went on showing the old column after it.
#[test]
fn a_replica_that_lags_does_not_make_a_move_approve_what_came_after_it() {
    let mut workflow = policy();
    workflow.merge.require_human_approval = true;
    let mut machine = Machine::with_pr(workflow);
    let before = StateChange { at: Timestamp(1), by: None };
    machine.observe("a", machine.good_pr("a"));
    machine.poll(vec![ticket("a")]);
    machine.poll(vec![Ticket { state_changed: Some(before.clone()), ..in_state("a", "Approved") }]);
    assert!(machine.job("a").people.approval.is_none());
    machine.poll(vec![ticket("a")]);
    machine.pass(Duration::from_secs(60));
    let after = StateChange { at: machine.now, ..before };
    machine.poll(vec![Ticket { state_changed: Some(after), ..in_state("a", "Approved") }]);
    assert!(machine.job("a").people.approval.is_some(), "moved again, after it was there");
}

/// Seed 984771113: a person's approval accepted what a run had made of a remark, while no pull request was there to be looked at.
#[test]
fn an_approval_without_an_open_pull_request_accepts_nothing() {
    let approve = || OperatorCommand::Approve { ticket: id("a"), head: None, overrule: Vec::new() };
    let is_addressed = |machine: &Machine| {
        let remark = &machine.job("a").people.remarks[0];
        assert!(matches!(remark.status, RemarkStatus::Addressed { .. }), "{remark:?}");
        assert!(machine.job("a").people.approval.is_none());
    };
    // Before one is opened: the branch is on its way.
    let mut machine = Machine::working(policy());
    machine.refresh(with_comments(ticket("a"), vec![comment(1, TrustLevel::Member, "@dirigent more")]));
    machine.delivers("a");
    machine.run_ends("a", done_report(&commit("one")));
    is_addressed(&machine);
    assert!(objection(&machine.state, &approve()).is_some_and(|said| said.contains("no pull request is open")));
    machine.operator(approve());
    is_addressed(&machine);
    machine.publish("a");
    machine.lands("a");
    assert_eq!(machine.code("a"), "remarks", "somebody has to look at it first");
    machine.approve("a");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);

    // After somebody closed it.
    let mut machine = Machine::with_pr(policy());
    let asked = PullRequest { threads: Some(vec![thread(1, false)]), ..machine.good_pr("a") };
    machine.observe("a", asked);
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    is_addressed(&machine);
    machine.observe("a", PullRequest { threads: Some(vec![thread(1, false)]), ..closed(&machine) });
    assert!(objection(&machine.state, &approve()).is_some());
    machine.operator(approve());
    is_addressed(&machine);
}

/// Seed 70028864: a reviewer had a question, and somebody's rejection was taken for the answer to it, which no reviewer is told.
#[test]
fn a_rejection_answers_no_question_and_is_not_merged_over() {
    for by_reviewer in [false, true] {
        let mut workflow = policy();
        workflow.review.enabled = by_reviewer;
        let mut machine = Machine::with_pr(workflow);
        let rejected = || {
            let said = comment(1, TrustLevel::Member, "/dirigent reject the other way");
            PullRequest { comments: Some(vec![said]), ..machine.good_pr("a") }
        };
        let rejected = rejected();
        match by_reviewer {
            true => machine.observe("a", machine.good_pr("a")),
            false => machine.refresh(in_state("a", "Rework")),
        }
        machine.run_starts("a");
        let asks = Some(Declared::Blocked { reason: "which?".into() });
        machine.run_ends("a", RunReport { declared: asks, ..report(RunOutcome::Done) });
        assert_eq!(machine.code("a"), "worker_asked");
        machine.observe("a", rejected.clone());
        assert_eq!(machine.phase("a"), Phase::Rework, "by a reviewer: {by_reviewer}");
        assert!(matches!(machine.stage("a"), Stage::Working { work: Work::Rework { .. }, .. }));
        machine.run_starts("a");
        machine.run_delivers("a", "two");
        machine.lands_as("a", at_head(rejected, "two"));
        assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 0);
    }
}

/// What people write while a reviewer waits for an answer is for the next worker: it counts like all their words.
#[test]
fn words_that_come_while_a_reviewer_waits_for_an_answer_are_kept() {
    for (text, phase) in [("@dirigent the other way", Phase::Rework), ("why not the other way?", Phase::Reviewing)] {
        let mut workflow = policy();
        workflow.review.enabled = true;
        let mut machine = Machine::with_pr(workflow);
        machine.observe("a", machine.good_pr("a"));
        machine.run_starts("a");
        let asks = Some(Declared::Blocked { reason: "which?".into() });
        machine.run_ends("a", RunReport { declared: asks, ..report(RunOutcome::Done) });
        machine.poll(vec![with_comments(ticket("a"), vec![comment(1, TrustLevel::Member, text)])]);
        assert_eq!(machine.phase("a"), phase, "{text}");
        assert_eq!(machine.job("a").people.holding().count(), 1, "{text}");
    }
}

/// Seed 70048922: runs dealt with somebody's words in commits that never got past the gates, a person pushed something else, and
/// whoever approved that accepted what nobody had seen.
#[test]
fn what_never_got_to_the_forge_is_no_answer_to_anybody() {
    for fixed in [false, true] {
        let mut machine = Machine::with_pr(policy());
        machine.policy.gates.has_task_gates = true;
        machine.policy.orchestration.max_rework_cycles = 1;
        let asked = |machine: &Machine| PullRequest { threads: Some(vec![thread(1, false)]), ..machine.good_pr("a") };
        machine.observe("a", asked(&machine));
        machine.run_starts("a");
        machine.delivers("a");
        if fixed {
            machine.progress("a", Activity::Committed { head: commit("two") });
            machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
        }
        machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
        let failed = GateResult {
            name: "check".into(),
            command: "false".into(),
            passed: false,
            exit_code: Some(1),
            timed_out: false,
            output_tail: String::new(),
            duration_ms: 1,
        };
        machine
            .succeed(|action| matches!(action, Action::RunGate { .. }), EffectResult::Gated { results: vec![failed] });
        assert_eq!(machine.code("a"), "rework_limit_exceeded");
        let theirs = at_head(asked(&machine), "theirs");
        machine.lands_as("a", theirs.clone());
        machine.succeed(|action| matches!(action, Action::RunGate { .. }), EffectResult::Gated { results: Vec::new() });
        machine.lands_as("a", theirs.clone());
        assert_eq!(machine.code("a"), "remarks", "fixed: {fixed}");
        let approve = |overrule| OperatorCommand::Approve { ticket: id("a"), head: Some(commit("theirs")), overrule };
        assert!(objection(&machine.state, &approve(Vec::new())).is_some_and(|said| said.contains("--anyway")));
        machine.approve("a");
        machine.lands_as("a", theirs.clone());
        assert_eq!(machine.code("a"), "remarks", "nobody has seen what came of it; fixed: {fixed}");
        let key = machine.job("a").people.remarks[0].key.clone();
        machine.operator(approve(vec![key]));
        machine.lands_as("a", theirs);
        assert_eq!(machine.phase("a"), Phase::Merging, "fixed: {fixed}");
    }
}
