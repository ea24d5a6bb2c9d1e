//! What trusted people want: nothing is merged past it, nothing is paid for twice, and nobody is forgotten.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::job::{HumanWait, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, Mergeability, PullRequest, Review, ReviewThread, Verdict};
use dirigent::domain::remark::{RemarkAnswer, RemarkKey, RemarkKind, RemarkStatus};
use dirigent::domain::run::{Activity, RunReport};
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::{Event, OperatorCommand, RemarkFound};
use dirigent::engine::objection;

use super::fixtures::{
    at_head, check, comment, comment_key, commit, done_report, id, policy, review, thread, ticket, with_comments,
};
use super::machine::Machine;

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_start(action: &Action) -> bool {
    matches!(action, Action::StartRun { .. })
}

fn wants_changes(number: u32, head: &str) -> Review {
    review(number, TrustLevel::Member, Verdict::ChangesRequested, &commit(head))
}

fn with_reviews(pr: PullRequest, reviews: Vec<Review>) -> PullRequest {
    PullRequest { reviews: Some(reviews), ..pr }
}

fn with_threads(pr: PullRequest, threads: Vec<ReviewThread>) -> PullRequest {
    PullRequest { threads: Some(threads), ..pr }
}

fn red(pr: PullRequest) -> PullRequest {
    PullRequest { checks: Some(vec![check("build", CheckStatus::Failed)]), ..pr }
}

fn explained() -> RemarkAnswer {
    RemarkAnswer::Explained { text: "it has to be so".into() }
}

/// A rework of head `one` is under way because its build is red.
fn reworking() -> Machine {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", red(machine.good_pr("a")));
    machine.run_starts("a");
    machine
}

/// The run delivers `two`, and says nothing about what it was told.
fn delivered_two(mut machine: Machine) -> Machine {
    machine.run_delivers("a", "two");
    machine
}

/// Why 1: only the reviews of the current head used to count.
#[test]
fn changes_requested_while_a_rework_of_that_head_runs_are_not_merged_over() {
    for told in [false, true] {
        let mut machine = reworking();
        let reviews = vec![wants_changes(1, "one")];
        machine.observe("a", with_reviews(machine.good_pr("a"), reviews.clone()));
        assert!(machine.emitted_last(|action| matches!(action, Action::Steer { .. })), "the live run is told at once");
        if told {
            machine.delivers("a");
        }
        machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("two")) });
        machine.perform_small();
        if told {
            machine.publish("a");
        }
        machine.lands_as("a", at_head(with_reviews(machine.good_pr("a"), reviews), "two"));
        assert_eq!(machine.emitted(is_merge), 0, "told: {told}");
        if told {
            assert_eq!(machine.code("a"), "remarks", "it was dealt with, and its author has not said so");
        } else {
            assert_eq!(machine.phase("a"), Phase::Rework, "nobody has read it");
        }
    }
}

/// Why 1: a conflict or a red check used to end the assessment before the reviews were read.
#[test]
fn changes_requested_beside_a_red_check_or_a_conflict_are_not_forgotten() {
    let conflict = Mergeability::Conflicting { files: vec!["x".into()] };
    for mergeability in [Mergeability::Clean, conflict] {
        let mut machine = Machine::with_pr(policy());
        let mut shown = with_reviews(red(machine.good_pr("a")), vec![wants_changes(1, "one")]);
        shown.mergeability = mergeability;
        machine.observe("a", shown.clone());
        machine.run_starts("a");
        let mut machine = delivered_two(machine);
        let good = PullRequest { reviews: shown.reviews, ..machine.good_pr("a") };
        machine.lands_as("a", good);
        assert_eq!(machine.emitted(is_merge), 0);
        assert_eq!(machine.code("a"), "remarks");
        assert_eq!(machine.job("a").rework_cycles, 1, "one round took care of both");
    }
}

#[test]
fn a_verdict_stands_until_its_own_author_approves_or_it_is_dismissed() {
    let stuck = || {
        let mut machine = Machine::with_pr(policy());
        machine.observe("a", with_reviews(machine.good_pr("a"), vec![wants_changes(1, "one")]));
        machine.run_starts("a");
        machine.progress("a", Activity::Committed { head: commit("two") });
        machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
        let mut machine = delivered_two(machine);
        machine.lands_as("a", with_reviews(machine.good_pr("a"), vec![wants_changes(1, "one")]));
        assert_eq!(machine.code("a"), "remarks", "answered, and it still stands");
        assert!(matches!(machine.job("a").people.remarks[0].status, RemarkStatus::Answered { .. }));
        machine
    };
    let mut other = stuck();
    let mut by_admin = review(2, TrustLevel::Admin, Verdict::Approved, &commit("two"));
    other.lands_as("a", with_reviews(other.good_pr("a"), vec![wants_changes(1, "one"), by_admin.clone()]));
    assert_eq!(other.code("a"), "remarks", "another reviewer's approval does not outrank it");

    let mut author = stuck();
    by_admin.author.name = "member".into();
    author.lands_as("a", with_reviews(author.good_pr("a"), vec![wants_changes(1, "one"), by_admin]));
    assert_eq!(author.phase("a"), Phase::Merging);

    let mut dismissed = stuck();
    let taken_back = Review { verdict: Verdict::Dismissed, ..wants_changes(1, "one") };
    dismissed.lands_as("a", with_reviews(dismissed.good_pr("a"), vec![taken_back]));
    assert_eq!(dismissed.phase("a"), Phase::Merging);

    let mut commented = stuck();
    let word = Review { verdict: Verdict::Commented, ..wants_changes(3, "two") };
    commented.lands_as("a", with_reviews(commented.good_pr("a"), vec![wants_changes(1, "one"), word]));
    assert_eq!(commented.code("a"), "remarks", "a mere comment takes nothing back");
}

#[test]
fn a_look_that_lacks_a_review_takes_nothing_back() {
    let mut machine = Machine::with_pr(policy());
    machine.policy.orchestration.max_rework_cycles = 0;
    machine.observe("a", with_reviews(machine.good_pr("a"), vec![wants_changes(1, "one")]));
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    machine.run_starts("a");
    let mut machine = delivered_two(machine);
    machine.lands("a");
    assert_eq!(machine.code("a"), "remarks", "missing from a page is nothing");
    assert!(machine.emitted_last(|action| matches!(action, Action::CheckRemark { kind: RemarkKind::Verdict, .. })));
    let checked = |found| Event::RemarkChecked {
        ticket: id("a"),
        kind: RemarkKind::Verdict,
        id: wants_changes(1, "one").id,
        found,
    };
    for found in [RemarkFound::NotVisible, RemarkFound::There] {
        machine.step(checked(found));
        machine.lands("a");
        assert_eq!(machine.code("a"), "remarks", "{found:?}");
    }
    machine.step(checked(RemarkFound::Gone));
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "gone when it was asked for by its id");
}

#[test]
fn what_a_run_explains_or_declines_holds_until_somebody_accepts_it() {
    for answer in [explained(), RemarkAnswer::Declined { text: "no".into() }] {
        let mut machine = Machine::with_pr(policy());
        machine.observe("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
        machine.run_starts("a");
        machine.answers("a", answer);
        let before = machine.job("a").delivery.head.clone();
        machine.run_ends("a", RunReport { head_before: before, ..done_report(&commit("one")) });
        machine.perform_small();
        machine.publish("a");
        let shown = with_threads(machine.good_pr("a"), vec![thread(1, false)]);
        machine.lands_as("a", shown.clone());
        assert!(matches!(machine.stage("a"), Stage::WaitingForHuman { on: HumanWait::Remarks { .. }, .. }));
        let starts = machine.emitted(is_start);
        machine.lands_as("a", shown.clone());
        assert_eq!(machine.emitted(is_start), starts, "no further rework for it");
        machine.approve("a");
        machine.lands_as("a", shown);
        assert_eq!(machine.phase("a"), Phase::Merging, "whoever approves this head has seen what came of it");
    }
}

#[test]
fn fixed_counts_only_with_a_commit_made_since() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
    assert!(matches!(machine.job("a").people.remarks[0].status, RemarkStatus::Delivered { .. }));
    machine.progress("a", Activity::Committed { head: commit("two") });
    machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
    assert!(matches!(machine.job("a").people.remarks[0].status, RemarkStatus::Answered { .. }));
    let mut machine = delivered_two(machine);
    machine.lands_as("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// A rework run that changes nothing and answers nothing is a failed run, never a passed one.
#[test]
fn a_rework_for_words_that_answers_nothing_has_failed() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
    machine.run_starts("a");
    let before = machine.job("a").delivery.head.clone();
    machine.run_ends("a", RunReport { head_before: before, ..done_report(&commit("one")) });
    assert_eq!(machine.code("a"), "retry");
    machine.wake();
    assert_eq!(machine.code("a"), "no_new_evidence", "and its like is not paid for again");
}

#[test]
fn an_edit_after_the_delivery_opens_a_remark_again() {
    let mut machine = Machine::with_pr(policy());
    let mut said = comment(1, TrustLevel::Member, "@dirigent rename it");
    machine.poll(vec![with_comments(ticket("a"), vec![said.clone()])]);
    machine.run_starts("a");
    let mut machine = delivered_two(machine);
    said.body = "@dirigent rename it to lower case".into();
    said.updated_at = Some(machine.now);
    machine.poll(vec![with_comments(ticket("a"), vec![said])]);
    assert_eq!(machine.phase("a"), Phase::Rework);
    assert_eq!(machine.job("a").rework_cycles, 2);
}

#[test]
fn a_plain_comment_holds_an_acknowledgement_does_not_and_our_name_starts_a_rework() {
    let said = |text| with_comments(ticket("a"), vec![comment(1, TrustLevel::Member, text)]);
    let mut plain = Machine::with_pr(policy());
    plain.poll(vec![said("why not the other way?")]);
    plain.lands("a");
    assert_eq!(plain.code("a"), "remarks");
    let key = comment_key(&comment(1, TrustLevel::Member, "why not the other way?"));
    let approve = |overrule: Vec<RemarkKey>| OperatorCommand::Approve { ticket: id("a"), head: None, overrule };
    assert!(objection(&plain.state, &approve(Vec::new())).is_some_and(|why| why.contains("--anyway")));
    plain.operator(approve(vec![key]));
    plain.lands("a");
    assert_eq!(plain.phase("a"), Phase::Merging);

    let mut thanks = Machine::with_pr(policy());
    thanks.poll(vec![said("LGTM!")]);
    thanks.lands("a");
    assert_eq!(thanks.phase("a"), Phase::Merging);

    let mut addressed = Machine::with_pr(policy());
    addressed.poll(vec![said("@dirigent the other way, please")]);
    assert_eq!(addressed.phase("a"), Phase::Rework);
}

#[test]
fn an_approval_that_overrules_remarks_overrules_nothing_that_came_later() {
    let mut machine = Machine::with_pr(policy());
    let first = comment(1, TrustLevel::Member, "hm");
    machine.poll(vec![with_comments(ticket("a"), vec![first.clone()])]);
    machine.observe("a", machine.good_pr("a"));
    let seen = vec![comment_key(&first)];
    machine.poll(vec![with_comments(ticket("a"), vec![first, comment(2, TrustLevel::Member, "and this?")])]);
    machine.operator(OperatorCommand::Approve { ticket: id("a"), head: Some(commit("one")), overrule: seen });
    machine.lands("a");
    assert_eq!(machine.code("a"), "remarks");
}

/// A person approves what they have seen. What the live run makes of a remark is not in it.
#[test]
fn an_approval_does_not_accept_what_a_live_run_is_just_explaining() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
    machine.run_starts("a");
    machine.answers("a", explained());
    machine.approve("a");
    let mut machine = delivered_two(machine);
    machine.lands_as("a", with_threads(machine.good_pr("a"), vec![thread(1, false)]));
    assert_eq!(machine.code("a"), "remarks");
}

/// A replica shows a thread as resolved that somebody has opened again: nobody knows which of the two is old.
#[test]
fn a_thread_that_looks_disagree_about_is_not_merged_over() {
    let mut machine = Machine::with_pr(policy());
    let open = with_threads(machine.good_pr("a"), vec![thread(1, false)]);
    machine.observe("a", open.clone());
    machine.run_starts("a");
    let mut machine = delivered_two(machine);
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread(1, true)]));
    machine.lands_as("a", at_head(open.clone(), "two"));
    assert_eq!(machine.emitted(is_merge), 0);
    machine.seconds(61);
    machine.lands_as("a", at_head(open, "two"));
    assert_eq!(machine.emitted(is_merge), 0, "what lasts is believed");
    assert_eq!(machine.phase("a"), Phase::Rework, "it was opened again");
}

/// Why 16: the prompt carried a comment that no reading had brought yet.
#[test]
fn a_comment_that_the_first_prompt_carried_is_part_of_the_task() {
    let mut machine = Machine::new(policy());
    machine.poll(vec![ticket("a")]);
    let late = comment(1, TrustLevel::Member, "@dirigent in lower case");
    machine.run_starts("a");
    machine.progress("a", Activity::Delivered { remarks: vec![comment_key(&late)] });
    machine.poll(vec![with_comments(ticket("a"), vec![late])]);
    assert_eq!(machine.emitted(|action| matches!(action, Action::Steer { .. })), 0, "it has been told");
    machine.run_delivers("a", "one");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging, "{}", machine.code("a"));
    assert_eq!(machine.emitted(is_start), 1, "no second run is paid for it");
}

/// The same in a later run: it is dealt with, and still a remark.
#[test]
fn a_comment_that_a_later_prompt_carried_holds_like_any_other() {
    let mut machine = Machine::with_pr(policy());
    machine.observe("a", red(machine.good_pr("a")));
    let late = comment(1, TrustLevel::Member, "@dirigent in lower case");
    machine.run_starts("a");
    machine.progress("a", Activity::Delivered { remarks: vec![comment_key(&late)] });
    let mut machine = delivered_two(machine);
    machine.poll(vec![with_comments(ticket("a"), vec![late])]);
    machine.lands("a");
    assert_eq!(machine.code("a"), "remarks", "whoever wrote it has not accepted what came of it");
    assert_eq!(machine.emitted(is_start), 2, "and no third run is paid for it");
}

/// Why 16: a failed handshake loses no words.
#[test]
fn words_that_no_run_delivered_are_in_the_next_prompt() {
    let mut machine = Machine::with_pr(policy());
    machine.poll(vec![with_comments(ticket("a"), vec![comment(1, TrustLevel::Member, "@dirigent more")])]);
    machine.run_starts_silently("a");
    let failure = dirigent::domain::failure::RunFailure::Handshake { detail: "no answer".into() };
    machine.run_ends("a", super::fixtures::failed(failure));
    machine.wake();
    assert!(
        machine.emitted_last(|action| matches!(action, Action::StartRun { undelivered, .. } if undelivered.len() == 1))
    );
}

/// What a run made of a question belongs where it was asked, once, and after the work is on the forge.
#[test]
fn what_a_run_answered_is_told_in_its_conversation_and_to_its_reviewer() {
    let told = |action: &Action| matches!(action, Action::AnswerThread { .. } | Action::RequestReview { .. });
    let mut machine = Machine::with_pr(policy());
    let asked = with_reviews(machine.good_pr("a"), vec![wants_changes(1, "one")]);
    machine.observe("a", with_threads(asked, vec![thread(7, false)]));
    machine.run_starts("a");
    assert_eq!(machine.emitted(told), 0, "nothing is answered yet");
    let mut machine = delivered_two(machine);
    let answered = |action: &Action| matches!(action, Action::AnswerThread { resolve: false, .. });
    let requested = |action: &Action| matches!(action, Action::RequestReview { .. });
    assert_eq!((machine.emitted(answered), machine.emitted(requested)), (1, 1));
    machine.observe("a", red(at_head(machine.good_pr("a"), "two")));
    machine.run_starts("a");
    machine.run_delivers("a", "three");
    assert_eq!((machine.emitted(answered), machine.emitted(requested)), (1, 1), "once");
}

#[test]
fn words_that_stand_against_a_merge_are_answered_on_the_ticket_once() {
    let mut machine = Machine::with_pr(policy());
    let told = |machine: &Machine| {
        let waits = |action: &Action| match action {
            Action::Comment { said: Said::Waiting { sentence, next, .. }, .. } => {
                Some((sentence.clone(), next.clone()))
            }
            _ => None,
        };
        machine.effects.iter().filter_map(|effect| waits(&effect.action)).collect::<Vec<_>>()
    };
    let say = |machine: &mut Machine, count: u32| {
        let comments = (1..=count).map(|number| comment(number, TrustLevel::Admin, &format!("words {number}")));
        machine.refresh(with_comments(ticket("a"), comments.collect()));
        machine.observe("a", machine.good_pr("a"));
    };
    say(&mut machine, 1);
    assert_eq!(machine.code("a"), "remarks");
    let first = told(&machine);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].0.contains("words of admin stand against merging"), "{first:?}");
    assert!(first[0].1.contains("--anyway") && first[0].1.contains("reject a WHY"), "{first:?}");
    for count in 2..6 {
        say(&mut machine, count);
    }
    assert_eq!(told(&machine).len(), 1, "further ones are in `status`");
}

#[test]
fn whoever_has_said_several_things_is_named_once() {
    let mut machine = Machine::with_pr(policy());
    let said = |number, trust| comment(number, trust, "wait for me");
    let words = [said(1, TrustLevel::Member), said(2, TrustLevel::Admin), said(3, TrustLevel::Member)];
    machine.poll(vec![with_comments(ticket("a"), words.to_vec())]);
    machine.observe("a", machine.good_pr("a"));
    let Stage::WaitingForHuman { on: HumanWait::Remarks { by, .. }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert_eq!(*by, ["member", "admin"]);
    let sentence = dirigent::engine::reason(&machine.state, &machine.policy, machine.job("a"), machine.now).sentence;
    assert_eq!(sentence.matches("member").count(), 1, "{sentence}");
}

#[test]
fn only_a_comment_that_begins_with_our_name_is_addressed_to_us() {
    let addressed = ["@dirigent rename it", " @Dirigent, no", "> old\n\n@dirigent no", "@dirigent"];
    let others = [
        "> @dirigent x\n\nno",
        "```\n@dirigent x\n```\nno",
        "    @dirigent x",
        "`@dirigent x`",
        "ask @dirigent about it",
        "no\n@dirigent",
        "@dirigent-bot x",
        "@dirigents x",
        "me@dirigent.example",
        "",
    ];
    for (text, wanted) in addressed.map(|text| (text, true)).into_iter().chain(others.map(|text| (text, false))) {
        assert_eq!(dirigent::engine::provenance::is_addressed(text, &policy()), wanted, "{text}");
        let mut machine = Machine::with_pr(policy());
        machine.poll(vec![with_comments(ticket("a"), vec![comment(1, TrustLevel::Member, text)])]);
        assert_eq!(machine.phase("a") == Phase::Rework, wanted, "{text}");
    }
}
