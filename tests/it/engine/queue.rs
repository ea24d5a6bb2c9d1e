//! The line to the base branch: one at a time, each updated in its turn; the forge's own queue; and what is shown of the conditions.

use dirigent::config::policy::Policy;
use dirigent::domain::condition::{ConditionName, ConditionStatus};
use dirigent::domain::ids::PrNumber;
use dirigent::domain::job::{ReworkTrigger, Stage, Work};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest};
use dirigent::domain::run::RunReport;
use dirigent::engine::assess::{Assessment, assess};
use dirigent::engine::conditions;
use dirigent::engine::effect::Action;
use dirigent::engine::event::{EffectError, EffectResult, Event, OperatorCommand};
use dirigent::engine::snapshot;

use super::fixtures::{
    SWITCH_LABEL, at_head, check, commit, done_report, id, labelled, policy, review_text, reviewed, thread, ticket,
};
use super::machine::Machine;

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_update(action: &Action) -> bool {
    matches!(action, Action::UpdateBranch { .. })
}

fn is_dequeue(action: &Action) -> bool {
    matches!(action, Action::Dequeue { .. })
}

/// These tickets, each with a pull request of its own that nobody has looked at yet.
fn with_prs(policy: Policy, names: &[&str]) -> Machine {
    let mut machine = Machine::new(policy);
    machine.poll(names.iter().map(|name| ticket(name)).collect());
    for (index, name) in names.iter().enumerate() {
        machine.run_starts(name);
        let head = format!("{name}1");
        machine.run_ends(name, RunReport { head_before: None, ..done_report(&commit(&head)) });
        machine.perform_small();
        machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
        let branch = machine.job(name).delivery.branch.name.clone();
        let opened = PullRequest {
            number: PrNumber(index as u64 + 1),
            checks: None,
            ..super::fixtures::pr(1, &branch, &commit(&head))
        };
        machine.succeed(|action| matches!(action, Action::OpenPr { .. }), EffectResult::Opened { pr: opened });
        machine.perform_small();
    }
    machine
}

fn behind(pr: PullRequest) -> PullRequest {
    PullRequest { mergeability: Mergeability::Behind, ..pr }
}

fn shown(machine: &Machine, name: &str) -> PullRequest {
    let facts = machine.job(name).delivery.pr.clone().expect("a pull request");
    PullRequest { number: facts.number, ..machine.good_pr(name) }
}

#[test]
fn what_is_behind_is_updated_once_in_its_turn_and_the_line_waits_for_its_checks() {
    let mut machine = with_prs(policy(), &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        machine.observe(name, behind(shown(&machine, name)));
        machine.pass(std::time::Duration::from_secs(1));
    }
    assert_eq!(machine.emitted(is_update), 0, "nobody had the turn yet");
    machine.observe("a", behind(shown(&machine, "a")));
    machine.observe("b", behind(shown(&machine, "b")));
    machine.observe("c", behind(shown(&machine, "c")));
    assert_eq!(machine.emitted(is_update), 1, "only the first in line");
    machine.succeed(is_update, EffectResult::Updated { head: commit("a2"), same_diff: true });
    let mut pending = at_head(shown(&machine, "a"), "a2");
    pending.checks = Some(vec![check("build", CheckStatus::Pending)]);
    machine.observe("a", pending);
    machine.observe("b", shown(&machine, "b"));
    machine.observe("b", shown(&machine, "b"));
    assert_eq!((machine.emitted(is_merge), machine.code("b")), (0, "merge_queue"), "the line waits");
    machine.lands_as("a", at_head(shown(&machine, "a"), "a2"));
    assert_eq!(machine.phase("a"), Phase::Merging);
    machine.succeed(is_merge, EffectResult::Merged { commit: Some(commit("m1")) });
    for name in ["b", "c", "b"] {
        machine.observe(name, behind(shown(&machine, name)));
    }
    assert_eq!(machine.emitted(is_update), 2, "b kept its place");
    machine.succeed(is_update, EffectResult::Updated { head: commit("b2"), same_diff: true });
    assert_eq!(machine.job("b").delivery.head, Some(commit("b2")));
}

#[test]
fn whoever_cannot_go_steps_aside_and_the_next_goes() {
    let mut machine = with_prs(policy(), &["a", "b"]);
    for name in ["a", "b", "a"] {
        machine.observe(name, behind(shown(&machine, name)));
    }
    machine.succeed(is_update, EffectResult::Updated { head: commit("a2"), same_diff: true });
    let mut red = at_head(shown(&machine, "a"), "a2");
    red.checks = Some(vec![check("build", CheckStatus::Failed)]);
    let mut never = machine.clone();
    machine.observe("a", red);
    assert_eq!(machine.phase("a"), Phase::Rework, "aside, with its reason");
    machine.observe("b", shown(&machine, "b"));
    machine.observe("b", shown(&machine, "b"));
    assert_eq!(machine.phase("b"), Phase::Merging);

    // A required check that never reports holds the line for a bounded time.
    let mut pending = at_head(shown(&never, "a"), "a2");
    pending.checks = Some(Vec::new());
    never.observe("a", pending.clone());
    never.observe("b", shown(&never, "b"));
    never.observe("b", shown(&never, "b"));
    assert_eq!(never.emitted(is_merge), 0);
    never.seconds(3601);
    never.observe("a", pending);
    never.observe("b", shown(&never, "b"));
    never.observe("b", shown(&never, "b"));
    assert_eq!(never.phase("b"), Phase::Merging);
    assert_eq!(never.code("a"), "checks", "it says what it waits for");
}

#[test]
fn the_strategy_is_the_files_to_say() {
    for (queue, merges) in [(true, 1), (false, 3)] {
        let mut policy = policy();
        policy.merge.queue = queue;
        let mut machine = with_prs(policy, &["a", "b", "c"]);
        for name in ["a", "b", "c"] {
            machine.observe(name, shown(&machine, name));
        }
        for name in ["a", "b", "c"] {
            machine.observe(name, shown(&machine, name));
        }
        assert_eq!(machine.emitted(is_merge), merges, "queue: {queue}");
    }
    let mut policy = policy();
    policy.merge.queue = false;
    let mut machine = with_prs(policy, &["a", "b"]);
    for name in ["a", "b"] {
        machine.observe(name, behind(shown(&machine, name)));
    }
    assert_eq!(machine.emitted(is_update), 2, "at once");
}

/// In the forge's own queue.
fn queued(policy: Policy) -> Machine {
    let mut machine = Machine::with_pr(policy);
    machine.lands("a");
    machine.succeed(is_merge, EffectResult::Queued);
    machine.observe("a", PullRequest { in_queue: true, ..machine.good_pr("a") });
    assert_eq!(machine.code("a"), "in_queue");
    machine
}

#[test]
fn what_is_in_the_forges_queue_is_left_there_until_something_stands_against_it() {
    let mut machine = queued(policy());
    let mut checked_again = PullRequest { in_queue: true, ..machine.good_pr("a") };
    checked_again.checks = Some(vec![check("build", CheckStatus::Pending)]);
    checked_again.mergeability = Mergeability::Unknown;
    machine.observe("a", checked_again);
    machine.seconds(600);
    machine.observe("a", PullRequest { in_queue: true, ..machine.good_pr("a") });
    assert_eq!((machine.code("a"), machine.emitted(is_dequeue)), ("in_queue", 0));

    let mut remarked = machine.clone();
    let threads = Some(vec![thread(1, false)]);
    remarked.observe("a", PullRequest { in_queue: true, threads, ..remarked.good_pr("a") });
    assert_eq!((remarked.phase("a"), remarked.emitted(is_dequeue)), (Phase::Rework, 1), "a remark takes it out");

    let mut stopped = machine.clone();
    stopped.operator(OperatorCommand::Stop { ticket: id("a") });
    assert_eq!((stopped.phase("a"), stopped.emitted(is_dequeue)), (Phase::Blocked, 1));

    let mut merged = machine.clone();
    merged.observe("a", PullRequest { state: PrState::Merged { commit: None }, ..merged.good_pr("a") });
    assert_eq!((merged.phase("a"), merged.emitted(is_dequeue)), (Phase::Done, 0));

    machine.observe("a", machine.good_pr("a"));
    assert_eq!((machine.code("a"), machine.emitted(is_dequeue)), ("merge_held", 0), "thrown out");
}

#[test]
fn what_is_given_back_leaves_the_forges_queue() {
    let mut machine = queued(policy());
    machine.operator(OperatorCommand::Forget { ticket: id("a") });
    assert_eq!((machine.phase("a"), machine.emitted(is_dequeue)), (Phase::Released, 1));
    machine.fail(is_dequeue, EffectError::Transient { detail: "502".into(), retry_after: None });
    machine.seconds(600);
    assert!(machine.emitted_last(is_dequeue), "until it is confirmed");
    machine.succeed(is_dequeue, EffectResult::Plain);
    assert!(machine.pending(is_dequeue).is_none() && machine.job("a").delivery.pr.is_none());
}

#[test]
fn a_switch_takes_it_out_of_the_forges_queue_and_nothing_else_leaves() {
    let pulls: [fn(&mut Machine); 4] = [
        |machine| {
            machine.step(Event::SwitchesChanged { file: true });
        },
        |machine| machine.operator(OperatorCommand::PauseAll),
        |machine| machine.operator(OperatorCommand::Pause { ticket: id("a") }),
        |machine| machine.poll(vec![labelled("a", &[SWITCH_LABEL])]),
    ];
    for pull in pulls {
        let mut machine = queued(policy());
        pull(&mut machine);
        assert_eq!(machine.emitted(is_dequeue), 1);
        let left: Vec<&Action> = machine.last.iter().map(|effect| &effect.action).collect();
        assert!(
            left.iter().all(|action| is_dequeue(action)
                || matches!(action, Action::InspectPr { .. } | Action::RefreshTickets { .. })),
            "{left:?}"
        );
        machine.succeed(is_dequeue, EffectResult::Plain);
        machine.lands("a");
        assert_eq!(machine.emitted(is_merge), 1, "not while the switch is on");
    }
}

#[test]
fn the_conditions_say_what_the_assessment_does() {
    let changes: [fn(&mut PullRequest); 11] = [
        |_| {},
        |pr| pr.base_branch = "develop".into(),
        |pr| pr.threads = None,
        |pr| pr.checks = Some(vec![check("build", CheckStatus::Pending)]),
        |pr| pr.checks = Some(vec![check("build", CheckStatus::Failed)]),
        |pr| pr.mergeability = Mergeability::Unknown,
        |pr| pr.mergeability = Mergeability::Behind,
        |pr| pr.mergeability = Mergeability::Conflicting { files: vec!["a".into()] },
        |pr| pr.mergeability = Mergeability::Refused { because: "protected".into() },
        |pr| pr.draft = true,
        |pr| pr.threads = Some(vec![thread(1, false)]),
    ];
    for (approval, review, prepare) in
        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
    {
        for change in changes {
            let mut policy = policy();
            policy.merge.require_human_approval = approval;
            policy.review.enabled = review;
            policy.merge.prepare = prepare;
            let mut machine = Machine::with_pr(policy);
            let mut look = machine.good_pr("a");
            change(&mut look);
            machine.observe("a", look.clone());
            let job = machine.job("a");
            let assessment = assess(job, &look, &machine.policy, machine.now);
            let all = conditions::of_look(job, &look, &machine.policy, machine.now);
            let failing: Vec<ConditionName> = all.iter().filter(|one| !one.passes()).map(|one| one.name).collect();
            match assessment {
                Assessment::Ready { .. } => assert_eq!(failing, []),
                Assessment::NeedsUpdate { .. } => assert_eq!(failing, [ConditionName::Mergeable]),
                other => assert!(!failing.is_empty(), "{other:?}"),
            }
        }
    }
}

#[test]
fn each_condition_is_shown_with_since_when() {
    let mut machine = Machine::with_pr(policy());
    let mut pending = machine.good_pr("a");
    pending.checks = Some(vec![check("build", CheckStatus::Pending)]);
    machine.observe("a", pending.clone());
    let first = machine.now;
    machine.seconds(60);
    machine.observe("a", pending);
    let view = snapshot(&machine.state, &machine.policy, machine.now);
    let checks = view.jobs[0].conditions.iter().find(|one| one.name == ConditionName::Checks).unwrap();
    assert_eq!((checks.status, checks.since), (ConditionStatus::Pending, first));
    machine.seconds(60);
    machine.observe("a", machine.good_pr("a"));
    let view = snapshot(&machine.state, &machine.policy, machine.now);
    let checks = view.jobs[0].conditions.iter().find(|one| one.name == ConditionName::Checks).unwrap();
    assert_eq!((checks.status, checks.since), (ConditionStatus::Pass, machine.now));
}

#[test]
fn a_run_prepares_each_head_where_the_file_says_so_and_the_merge_stays_ours() {
    let mut policy = policy();
    policy.merge.prepare = true;
    policy.merge.require_human_approval = true;
    policy.orchestration.max_rework_cycles = 1;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    let Stage::Working { work: Work::Rework { cause }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert_eq!(cause.trigger, ReworkTrigger::Landing);
    machine.run_starts("a");
    let mut nothing = machine.clone();
    machine.run_delivers("a", "two");
    let two = at_head(machine.good_pr("a"), "two");
    machine.observe("a", two.clone());
    assert_eq!(
        (machine.code("a"), machine.job("a").rework_cycles),
        ("approval", 0),
        "the prepared head is what is approved"
    );
    machine.approve("a");
    machine.lands_as("a", two);
    assert_eq!(machine.phase("a"), Phase::Merging);

    nothing.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("one")) });
    nothing.observe("a", nothing.good_pr("a"));
    assert_eq!(nothing.code("a"), "approval", "nothing had to be done");
}

#[test]
fn with_a_review_the_prepared_head_is_read() {
    let mut policy = policy();
    policy.merge.prepare = true;
    policy.review.enabled = true;
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    machine.observe("a", at_head(machine.good_pr("a"), "two"));
    assert_eq!(machine.phase("a"), Phase::Reviewing);
    machine.run_starts_silently("a");
    machine.run_ends("a", reviewed(&review_text(&commit("two"), &[])));
    machine.lands_as("a", at_head(machine.good_pr("a"), "two"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}
