//! Bots of `review.bots`: one round of work, a counter of its own, and never a word in what people decide.

use dirigent::config::policy::Policy;
use dirigent::domain::comment::{Author, TrustLevel};
use dirigent::domain::ids::CommentId;
use dirigent::domain::job::ReworkTrigger;
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{PullRequest, Review, ReviewThread, Verdict};
use dirigent::domain::remark::RemarkAnswer;
use dirigent::domain::run::RunReport;
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::OperatorCommand;

use super::fixtures::{comment, commit, done_report, id, policy, review, review_text, reviewed, thread};
use super::machine::Machine;

const BOT: &str = "rabbit[bot]";

fn with_bot() -> Policy {
    let mut policy = policy();
    policy.review.bots = vec!["Rabbit".into()];
    policy.merge.require_human_approval = true;
    policy
}

fn bot() -> Author {
    Author::new(BOT, TrustLevel::Bot)
}

fn bots_thread(number: u32) -> ReviewThread {
    let mut thread = thread(number, false);
    thread.comments[0].author = bot();
    thread
}

fn bots_review(number: u32, verdict: Verdict, head: &str) -> Review {
    Review { author: bot(), ..review(number, TrustLevel::Bot, verdict, &commit(head)) }
}

fn with_threads(pr: PullRequest, threads: Vec<ReviewThread>) -> PullRequest {
    PullRequest { threads: Some(threads), ..pr }
}

fn rounds(machine: &Machine) -> Vec<(u32, u32, ReworkTrigger)> {
    machine
        .effects
        .iter()
        .filter_map(|effect| match &effect.action {
            Action::Comment { said: Said::Rework { cycle, limit, cause }, .. } => Some((*cycle, *limit, cause.trigger)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_listed_bot_gets_one_round_with_a_counter_of_its_own() {
    let mut machine = Machine::with_pr(with_bot());
    let shown = with_threads(machine.good_pr("a"), vec![bots_thread(1)]);
    machine.observe("a", shown);
    assert_eq!(rounds(&machine), [(1, 1, ReworkTrigger::Bot)]);
    assert_eq!(machine.job("a").rework_cycles, 0, "none of the rounds of people and checks");
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Declined { text: "it is meant so".into() });
    machine.run_delivers("a", "two");
    let answered = |action: &Action| matches!(action, Action::AnswerThread { .. });
    assert_eq!(machine.emitted(answered), 1, "it is answered where it was said");

    // Whatever it says now, and however often, nothing more is paid for, and it holds nothing.
    let again = |machine: &Machine| {
        let mut edited = bots_thread(1);
        edited.comments[0].body = "I insist".into();
        let shown = with_threads(machine.good_pr("a"), vec![edited, bots_thread(2)]);
        PullRequest { reviews: Some(vec![bots_review(1, Verdict::ChangesRequested, "two")]), ..shown }
    };
    machine.observe("a", again(&machine));
    assert_eq!((rounds(&machine).len(), machine.code("a")), (1, "approval"));
    machine.approve("a");
    machine.lands_as("a", again(&machine));
    assert_eq!(machine.phase("a"), Phase::Merging, "{:?}", machine.stage("a"));
}

#[test]
fn the_round_of_the_bots_is_there_when_the_others_are_used_up_and_a_retry_gives_another() {
    let mut machine = Machine::with_pr(with_bot());
    machine.policy.orchestration.max_rework_cycles = 1;
    let people = with_threads(machine.good_pr("a"), vec![thread(1, false)]);
    machine.observe("a", people);
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Explained { text: "so".into() });
    machine.run_delivers("a", "two");
    let bots = with_threads(machine.good_pr("a"), vec![thread(1, true), bots_thread(2)]);
    machine.observe("a", bots);
    assert_eq!(
        rounds(&machine).iter().map(|round| round.2).collect::<Vec<_>>(),
        [ReworkTrigger::UnresolvedThread, ReworkTrigger::Bot]
    );
    machine.run_starts("a");
    machine.run_delivers("a", "three");
    let heard = with_threads(machine.good_pr("a"), vec![thread(1, true), bots_thread(2), bots_thread(3)]);
    machine.observe("a", heard);
    assert_eq!((rounds(&machine).len(), machine.code("a")), (2, "approval"));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    let again = with_threads(machine.good_pr("a"), vec![thread(1, true), bots_thread(2), bots_thread(3)]);
    machine.observe("a", again);
    assert_eq!(rounds(&machine).len(), 3, "a person asked for another go");
}

#[test]
fn what_a_person_says_in_the_thread_of_a_bot_is_the_persons() {
    let mut machine = Machine::with_pr(with_bot());
    let mut joined = bots_thread(1);
    joined.comments.push(comment(950, TrustLevel::Member, "it is right"));
    machine.observe("a", with_threads(machine.good_pr("a"), vec![joined]));
    assert_eq!(rounds(&machine), [(1, 3, ReworkTrigger::UnresolvedThread)]);
}

#[test]
fn a_bot_that_is_not_listed_is_left_out() {
    let mut policy = with_bot();
    policy.review.bots = vec!["another".into()];
    let mut machine = Machine::with_pr(policy);
    let shown = with_threads(machine.good_pr("a"), vec![bots_thread(1)]);
    machine
        .observe("a", PullRequest { reviews: Some(vec![bots_review(1, Verdict::ChangesRequested, "one")]), ..shown });
    assert_eq!((rounds(&machine).len(), machine.code("a")), (0, "approval"));
}

#[test]
fn a_bot_approves_commands_and_unblocks_nothing() {
    // Its review is no approval, also where the account has the rights of a person and is named as trusted.
    for trust in [TrustLevel::Bot, TrustLevel::Admin] {
        let mut policy = with_bot();
        policy.tracker.trusted_accounts = vec!["rabbit".into(), BOT.into()];
        let mut machine = Machine::with_pr(policy);
        let mut approving = bots_review(1, Verdict::Approved, "one");
        approving.author.trust = trust;
        let mut telling = comment(1, trust, "/dirigent approve --anyway");
        telling.author = Author::new(BOT, trust);
        let shown =
            PullRequest { reviews: Some(vec![approving]), comments: Some(vec![telling]), ..machine.good_pr("a") };
        machine.lands_as("a", shown);
        assert_eq!(machine.code("a"), "approval", "{trust:?}");
        assert!(machine.job("a").people.approval.is_none());
    }

    // Nor does it get a ticket out of where a person is needed.
    let mut policy = with_bot();
    policy.review.enabled = true;
    let mut machine = Machine::with_pr(policy);
    for _ in 0..2 {
        machine.observe("a", machine.good_pr("a"));
        machine.run_starts("a");
        machine.run_ends("a", reviewed("nothing to see"));
        machine.perform_small();
    }
    assert_eq!(machine.code("a"), "review_unreadable");
    machine.observe("a", with_threads(machine.good_pr("a"), vec![bots_thread(1)]));
    assert_eq!((machine.phase("a"), rounds(&machine).len()), (Phase::Blocked, 0));
}

#[test]
fn a_persons_approval_outranks_what_a_bot_has_said_and_will_say() {
    let mut machine = Machine::with_pr(with_bot());
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.code("a"), "approval");
    machine.approve("a");
    machine.lands_as("a", with_threads(machine.good_pr("a"), vec![bots_thread(1)]));
    assert_eq!((machine.phase("a"), rounds(&machine).len()), (Phase::Merging, 0), "approved, then a bot spoke");
}

#[test]
fn a_live_agent_is_not_told_what_a_bot_says_in_between() {
    let mut machine = Machine::with_pr(with_bot());
    let mut red = machine.good_pr("a");
    red.checks = Some(vec![super::fixtures::check("build", dirigent::domain::pr::CheckStatus::Failed)]);
    machine.observe("a", red.clone());
    machine.run_starts("a");
    machine.observe("a", with_threads(red, vec![bots_thread(1)]));
    assert_eq!(machine.emitted(|action| matches!(action, Action::Steer { .. })), 0);
    machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
    assert_eq!(rounds(&machine).last().map(|round| round.2), Some(ReworkTrigger::Bot), "it has its round afterwards");
}

#[test]
fn a_finding_of_ours_is_no_bots_word() {
    let mut policy = with_bot();
    policy.review.enabled = true;
    policy.review.bots = vec!["the review".into()];
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    machine.run_starts_silently("a");
    let head = machine.good_pr("a").head;
    machine.run_ends("a", reviewed(&review_text(&head, &[dirigent::domain::finding::Severity::P1])));
    machine.perform_small();
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(rounds(&machine).last().map(|round| round.2), Some(ReworkTrigger::ReviewFinding));
    assert!(machine.job("a").people.remarks.iter().all(|remark| remark.key.id != CommentId::new("") && !remark.by_bot));
}
