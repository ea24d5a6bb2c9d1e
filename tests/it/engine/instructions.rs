//! What people tell us in comments: done once, by the right people, answered where it was said.

use dirigent::config::policy::{OnComment, Policy};
use dirigent::domain::comment::{Acknowledgement, Comment, TrustLevel};
use dirigent::domain::ids::{CommentId, CommitId};
use dirigent::domain::job::{BlockCause, HumanWait, Stage};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::PullRequest;
use dirigent::domain::remark::{RemarkAnswer, RemarkEffect, RemarkStatus};
use dirigent::domain::run::RunReport;
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::{EffectError, EffectResult, Event};
use dirigent::engine::permit::Refusal;
use dirigent::engine::provenance::{marked_key, marker};
use dirigent::engine::state::PendingStatus;

use super::fixtures::{at_head, comment, commit, done_report, id, policy, thread, ticket, with_comments};
use super::machine::Machine;

/// A commit whose name people can type.
const HEAD: &str = "beef1567890abcdef";

fn approving() -> Policy {
    let mut policy = policy();
    policy.merge.require_human_approval = true;
    policy
}

/// Waits for approval of its head, whose name is in our comment.
fn waiting() -> Machine {
    let mut machine = Machine::working(approving());
    machine.run_delivers("a", HEAD);
    machine.seconds(61);
    machine.observe("a", machine.good_pr("a"));
    assert!(matches!(machine.stage("a"), Stage::WaitingForHuman { on: HumanWait::Approval { .. }, .. }));
    machine
}

fn member(number: u32, text: &str) -> Comment {
    comment(number, TrustLevel::Member, text)
}

/// The ticket with our own comment that names the head, and then these.
fn after_ours(machine: &Machine, comments: Vec<Comment>) -> Ticket {
    let named = machine.job("a").people.named.first().expect("a head was named").clone();
    let mut ours = member(500, "Pull request #1 is open.");
    (ours.id, ours.author) = (named.comment, dirigent::domain::comment::Author::ourselves());
    with_comments(ticket("a"), [vec![ours], comments].concat())
}

fn reads(machine: &mut Machine, comments: Vec<Comment>) {
    machine.poll(vec![with_comments(ticket("a"), comments)]);
}

fn reads_after_ours(machine: &mut Machine, comments: Vec<Comment>) {
    let ticket = after_ours(machine, comments);
    machine.poll(vec![ticket]);
}

/// What was answered, in the order in which it was decided: how, aloud or not, the words.
fn answers(machine: &Machine) -> Vec<(Acknowledgement, bool, String)> {
    let mut found = Vec::new();
    for (_, entry) in machine.state.outbox.iter() {
        if let Action::Acknowledge { how, aloud, said: Said::Reply { text, .. }, .. } = &entry.effect.action {
            found.push((*how, *aloud, text.clone()));
        }
    }
    found
}

fn is_acknowledged(action: &Action) -> bool {
    matches!(action, Action::Acknowledge { .. })
}

fn is_approved(machine: &Machine) -> bool {
    machine.job("a").people.approval.is_some()
}

fn head_of(machine: &Machine) -> CommitId {
    machine.job("a").current_head().expect("a head").clone()
}

#[test]
fn an_approval_by_head_counts_and_is_acknowledged_once() {
    let mut machine = waiting();
    let said = member(1, &format!("/dirigent approve {}", head_of(&machine)));
    reads(&mut machine, vec![said.clone()]);
    assert!(is_approved(&machine));
    assert_eq!(machine.job("a").people.approval.as_ref().map(|one| one.by.as_str()), Some("member"));
    assert_eq!(answers(&machine).len(), 1);
    assert!(matches!(answers(&machine)[0], (Acknowledgement::Seen, false, _)), "{:?}", answers(&machine));
    // The same reading again, an older one, and another life: nothing more is done.
    reads(&mut machine, vec![said.clone()]);
    machine.restart();
    reads(&mut machine, vec![said]);
    assert_eq!(
        machine.emitted(is_acknowledged),
        2,
        "once by the first life, once more by the second, which cannot know"
    );
    let decided: std::collections::BTreeSet<u64> =
        machine.effects.iter().filter(|one| is_acknowledged(&one.action)).map(|one| one.id.0).collect();
    assert_eq!(decided.len(), 1, "it is one decision");
    machine.perform_small();
    machine.lands("a");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 1);
}

#[test]
fn the_beginning_of_a_commits_name_is_enough_if_it_is_long_enough() {
    for (name, counts) in [(&HEAD[..7], true), (&HEAD[..12], true), ("beef156f", false)] {
        let mut machine = Machine::working(approving());
        machine.run_delivers("a", HEAD);
        machine.seconds(61);
        machine.observe("a", machine.good_pr("a"));
        let head = head_of(&machine);
        assert!(head.as_str().starts_with(HEAD));
        machine.operator(dirigent::engine::event::OperatorCommand::Approve {
            ticket: id("a"),
            head: Some(CommitId::new(name)),
            overrule: Vec::new(),
        });
        assert_eq!(is_approved(&machine), counts, "{name}");
    }
}

#[test]
fn an_approval_without_a_commit_needs_our_words_before_it() {
    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "/dirigent approve")]);
    assert!(!is_approved(&machine));
    let answered = answers(&machine);
    assert!(matches!(&answered[0], (Acknowledgement::Refused, true, text) if text.contains("/dirigent approve ")));

    let mut machine = waiting();
    reads_after_ours(&mut machine, vec![member(501, "/dirigent approve")]);
    assert!(is_approved(&machine), "{:?}", answers(&machine));

    // It was written before we named the head, and edited since.
    let mut machine = waiting();
    let ours = after_ours(&machine, Vec::new()).known_comments()[0].clone();
    reads(&mut machine, vec![member(1, "/dirigent approve"), ours]);
    assert!(!is_approved(&machine));
}

#[test]
fn our_answer_names_the_head_and_the_next_word_counts() {
    let mut machine = waiting();
    let first = member(1, "/dirigent approve");
    reads(&mut machine, vec![first.clone()]);
    let result = EffectResult::Commented { comment: CommentId::new("our-reply") };
    machine.succeed(is_acknowledged, result);
    let mut reply = member(2, "...");
    reply.id = CommentId::new("our-reply");
    reply.author = dirigent::domain::comment::Author::ourselves();
    reads(&mut machine, vec![first, reply, member(3, "/dirigent approve")]);
    assert!(is_approved(&machine));
}

#[test]
fn an_approval_of_what_is_gone_is_refused() {
    let mut machine = waiting();
    let old = head_of(&machine);
    machine.observe("a", at_head(machine.good_pr("a"), "pushed"));
    reads(&mut machine, vec![member(1, &format!("/dirigent approve {old}"))]);
    assert!(!is_approved(&machine));
    assert!(matches!(answers(&machine)[0], (Acknowledgement::Refused, true, _)));
}

#[test]
fn a_strangers_words_are_never_acted_upon() {
    let words = ["approve", "stop", "pause", "reject no", "retry", "run", "explain"];
    for word in words {
        let mut machine = waiting();
        let head = head_of(&machine);
        let word = if word == "approve" { format!("approve {head}") } else { word.to_owned() };
        let before = machine.job("a").stage.clone();
        reads(&mut machine, vec![comment(1, TrustLevel::Stranger, &format!("/dirigent {word}"))]);
        machine.observe(
            "a",
            with_comments_on_pr(&machine, vec![comment(2, TrustLevel::Bot, &format!("/dirigent {word}"))]),
        );
        let job = machine.job("a");
        assert_eq!(job.stage, before, "{word}");
        assert!(job.people.approval.is_none() && job.people.pause.is_none() && job.people.remarks.is_empty());
        assert_eq!(machine.emitted(is_acknowledged), 0, "{word}");
        // Not even when they are trusted one day: they were not when they said it.
        reads(&mut machine, vec![member(1, &format!("/dirigent {word}"))]);
        assert_eq!(machine.emitted(is_acknowledged), 0, "{word}");
    }
}

fn with_comments_on_pr(machine: &Machine, comments: Vec<Comment>) -> PullRequest {
    PullRequest { comments: Some(comments), ..machine.good_pr("a") }
}

#[test]
fn what_is_quoted_or_shown_is_not_an_instruction_and_our_own_words_are_none() {
    let mut machine = waiting();
    let head = head_of(&machine);
    let mut ours = member(9, &format!("/dirigent approve {head}"));
    ours.body.push_str(&marker(&marked_key(&machine.state.meta.comment_key, &id("a"), "worker:1")));
    let told = [
        member(1, &format!("> /dirigent approve {head}")),
        member(2, &format!("```\n/dirigent approve {head}\n```")),
        member(3, &format!("    /dirigent approve {head}")),
        ours,
    ];
    for said in told {
        reads(&mut machine, vec![said]);
        assert!(!is_approved(&machine));
    }
    assert_eq!(machine.emitted(is_acknowledged), 0);
}

#[test]
fn a_rejection_is_a_remark_that_starts_a_rework() {
    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "The name is taken.\n/dirigent reject use another")]);
    let remarks = &machine.job("a").people.remarks;
    assert_eq!(remarks.len(), 1);
    assert_eq!(remarks[0].text, "use another\nThe name is taken.");
    assert!(matches!(machine.stage("a"), Stage::Working { .. }), "{:?}", machine.stage("a"));
    machine.run_starts("a");
    assert!(matches!(machine.job("a").people.remarks[0].status, RemarkStatus::Delivered { .. }));
}

#[test]
fn opposite_instructions_are_followed_in_their_order() {
    let mut machine = waiting();
    let head = head_of(&machine);
    let (yes, no) = (format!("/dirigent approve {head}"), "/dirigent reject not yet");
    reads(&mut machine, vec![member(1, &yes), member(2, no)]);
    assert!(!is_approved(&machine), "the last word is no");
    assert!(matches!(machine.stage("a"), Stage::Working { .. }));

    let mut machine = waiting();
    reads(&mut machine, vec![member(1, no), member(2, &yes)]);
    assert!(!is_approved(&machine), "there is nothing left to approve, and it says so");
    assert_eq!(answers(&machine).iter().filter(|one| one.0 == Acknowledgement::Refused).count(), 1);
}

#[test]
fn anyway_overrules_what_was_there_and_nothing_that_came_later() {
    let mut machine = waiting();
    let head = head_of(&machine);
    let anyway = format!("/dirigent approve {head} --anyway");
    reads(&mut machine, vec![member(1, "wait"), member(2, &anyway)]);
    assert!(is_approved(&machine), "{:?}", answers(&machine));
    assert!(machine.job("a").people.holding().next().is_none());

    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "wait"), member(2, &anyway), member(3, "no, wait")]);
    assert_eq!(machine.job("a").people.holding().count(), 1);

    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "wait"), member(2, &format!("/dirigent approve {head}"))]);
    assert!(!is_approved(&machine));
    assert!(matches!(&answers(&machine)[0], (Acknowledgement::Refused, true, text) if text.contains("wait")));
}

#[test]
fn stop_retry_pause_and_resume_do_what_they_do_at_the_terminal() {
    let mut machine = Machine::working(policy());
    reads(&mut machine, vec![member(1, "/dirigent stop")]);
    assert!(machine.emitted_last(|action| matches!(action, Action::StopRun { .. })));
    machine.run_ends(
        "a",
        super::fixtures::report(dirigent::domain::run::RunOutcome::Killed {
            reason: dirigent::domain::run::StopReason::Operator,
        }),
    );
    assert!(matches!(machine.stage("a"), Stage::Blocked { cause: BlockCause::StoppedByOperator, .. }));
    reads(&mut machine, vec![member(1, "/dirigent stop"), member(2, "/dirigent stop")]);
    assert!(answers(&machine).iter().any(|one| one.0 == Acknowledgement::Refused), "there is nothing to stop");
    reads(&mut machine, vec![member(2, "/dirigent stop"), member(3, "/dirigent retry")]);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    reads(&mut machine, vec![member(4, "/dirigent pause")]);
    assert_eq!(machine.job("a").people.pause.as_ref().map(|pause| pause.by.as_str()), Some("member"));
    reads(&mut machine, vec![member(5, "/dirigent resume")]);
    assert!(machine.job("a").people.pause.is_none());
}

#[test]
fn under_a_switch_instructions_count_and_their_answers_wait() {
    let mut machine = waiting();
    machine.step(Event::SwitchesChanged { file: true });
    reads(&mut machine, vec![member(1, "/dirigent pause")]);
    assert!(machine.job("a").people.pause.is_some());
    let held = |entry: &dirigent::engine::state::Pending| {
        is_acknowledged(&entry.effect.action)
            && matches!(entry.status, PendingStatus::Held { refusal: Refusal::KillSwitch { .. } })
    };
    assert!(machine.state.outbox.iter().any(|(_, entry)| held(entry)));
    assert_eq!(machine.emitted(is_acknowledged), 0);
    machine.step(Event::SwitchesChanged { file: false });
    assert_eq!(machine.emitted(is_acknowledged), 0, "its own pause holds it");
    reads(&mut machine, vec![member(1, "/dirigent pause"), member(2, "/dirigent resume")]);
    assert_eq!(machine.emitted(is_acknowledged), 2, "both leave once it goes on");
}

#[test]
fn run_adds_the_labels_that_are_required_although_the_ticket_is_not_ours_yet() {
    let mut machine = Machine::new(labelled());
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.code("a"), "labels");
    reads(&mut machine, vec![member(1, "/dirigent run")]);
    let labels = |action: &Action| matches!(action, Action::AddLabels { labels, .. } if labels == &["agent"]);
    assert!(machine.emitted_last(labels));
    machine.succeed(labels, EffectResult::Plain);
    assert!(machine.emitted_last(|action| matches!(action, Action::RefreshTickets { .. })));
    let mut labelled = with_comments(ticket("a"), vec![member(1, "/dirigent run")]);
    labelled.labels = vec!["agent".into()];
    machine.refresh(labelled);
    assert_eq!(machine.phase("a"), Phase::Implementing);
    assert_eq!(machine.emitted(labels), 1);
}

fn labelled() -> Policy {
    let mut policy = policy();
    policy.tracker.required_labels = vec!["agent".into()];
    policy
}

#[test]
fn run_that_was_written_before_we_first_saw_the_ticket_counts_and_an_approval_does_not() {
    let mut machine = Machine::new(labelled());
    reads(&mut machine, vec![member(1, "/dirigent approve"), member(2, "/dirigent run"), member(3, "please")]);
    assert_eq!(machine.emitted(|action| matches!(action, Action::AddLabels { .. })), 1);
    assert_eq!(answers(&machine).len(), 1);

    let mut machine = Machine::new(policy());
    reads(&mut machine, vec![member(1, "/dirigent run"), member(2, &format!("/dirigent approve {}", commit(HEAD)))]);
    assert_eq!(machine.phase("a"), Phase::Implementing, "it has all that is required");
    assert_eq!(answers(&machine).len(), 0, "nothing was to be done");
    machine.run_starts("a");
    machine.run_delivers("a", HEAD);
    reads(&mut machine, vec![member(1, "/dirigent run"), member(2, &format!("/dirigent approve {}", commit(HEAD)))]);
    assert!(!is_approved(&machine));

    let mut machine = Machine::new(policy());
    reads(&mut machine, vec![member(1, "/dirigent stop"), member(2, "/dirigent resume"), member(3, "/dirigent pause")]);
    assert!(machine.job("a").people.pause.is_some());
    assert_eq!(machine.emitted(|action| matches!(action, Action::StartRun { .. })), 0);
}

#[test]
fn a_label_that_cannot_be_added_is_said_on_the_ticket() {
    let mut machine = Machine::new(labelled());
    reads(&mut machine, vec![member(1, "/dirigent run")]);
    let labels = |action: &Action| matches!(action, Action::AddLabels { .. });
    machine.fail(labels, EffectError::Permanent { detail: "no such label".into() });
    assert!(
        answers(&machine)
            .iter()
            .any(|(how, _, text)| *how == Acknowledgement::Refused && text.contains("no such label"))
    );
}

#[test]
fn an_edited_comment_repeats_nothing_and_takes_back_what_it_no_longer_says() {
    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "/dirigent retry")]);
    let once = answers(&machine).len();
    let mut edited = member(1, "/dirigent retry\nthanks");
    edited.updated_at = Some(Timestamp(9_000));
    reads(&mut machine, vec![edited]);
    assert_eq!(answers(&machine).len(), once, "the same instruction of the same comment");

    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "wait")]);
    assert_eq!(machine.job("a").people.holding().count(), 1);
    let mut edited = member(1, &format!("/dirigent approve {}", head_of(&machine)));
    edited.updated_at = Some(Timestamp(9_000));
    reads(&mut machine, vec![edited]);
    assert!(is_approved(&machine), "{:?}", answers(&machine));
    assert_eq!(machine.job("a").people.holding().count(), 0);
}

#[test]
fn a_deleted_comment_does_not_undo_what_was_done() {
    let mut machine = waiting();
    let said = member(1, &format!("/dirigent approve {}", head_of(&machine)));
    reads(&mut machine, vec![said]);
    reads(&mut machine, Vec::new());
    assert!(is_approved(&machine));
    assert_eq!(answers(&machine).len(), 1);
}

#[test]
fn words_beside_an_instruction_reach_the_next_run_and_hold_as_others_do() {
    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "Mind the gap.\n/dirigent explain")]);
    let remark = &machine.job("a").people.remarks[0];
    assert_eq!((remark.text.as_str(), remark.effect), ("Mind the gap.", RemarkEffect::Hold));

    let mut machine = waiting();
    let head = head_of(&machine);
    reads(&mut machine, vec![member(1, &format!("Rename it some day.\n/dirigent approve {head}"))]);
    assert!(is_approved(&machine));
    assert_eq!(machine.job("a").people.remarks[0].effect, RemarkEffect::None);
}

#[test]
fn an_instruction_is_not_evidence() {
    let mut policy = policy();
    policy.orchestration.on_comment = OnComment::Rework;
    let mut machine = Machine::working(policy);
    let before = machine.job("a").ticket.trusted_comments;
    reads(&mut machine, vec![member(1, "/dirigent explain")]);
    assert_eq!(machine.job("a").ticket.trusted_comments, before);
    assert!(machine.job("a").people.remarks.is_empty());
}

#[test]
fn explain_says_how_it_stands_and_what_is_not_understood_is_refused() {
    let mut machine = waiting();
    reads(&mut machine, vec![member(1, "/dirigent explain"), member(2, "/dirigent merge it")]);
    let answered = answers(&machine);
    assert!(matches!(&answered[0], (Acknowledgement::Seen, true, text) if text.contains("waits for approval")));
    assert!(matches!(&answered[1], (Acknowledgement::Refused, true, text) if text.contains("`merge` is not known")));
}

#[test]
fn instructions_on_the_pull_request_count_too() {
    let mut machine = waiting();
    let head = head_of(&machine);
    let said = vec![member(1, &format!("/dirigent approve {head}"))];
    machine.observe("a", with_comments_on_pr(&machine, said.clone()));
    assert!(is_approved(&machine), "{:?}", answers(&machine));
    assert!(machine.job("a").people.remarks.is_empty(), "it is not a remark");
    machine.observe("a", with_comments_on_pr(&machine, said));
    assert_eq!(machine.emitted(is_acknowledged), 1);

    let mut machine = waiting();
    machine.observe("a", with_comments_on_pr(&machine, vec![member(1, "/dirigent reject use another name")]));
    assert!(matches!(machine.stage("a"), Stage::Working { .. }), "{:?}", machine.stage("a"));
    machine.observe("a", with_comments_on_pr(&machine, vec![member(1, "/dirigent reject use another name")]));
    assert_eq!(machine.job("a").people.remarks.len(), 1);
    assert!(!machine.job("a").people.remarks[0].is_over(), "another look takes nothing back");
    let on_pr = |action: &Action| matches!(action, Action::Acknowledge { told, .. } if told.pr.is_some());
    assert!(machine.emitted_last(on_pr) || machine.emitted(on_pr) == 1);
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Fixed { text: "done".into() });
}

#[test]
fn a_rejection_during_a_merge_is_kept() {
    let mut machine = waiting();
    machine.approve("a");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
    reads(&mut machine, vec![member(1, "/dirigent reject not this")]);
    assert!(matches!(&answers(&machine)[0], (Acknowledgement::Refused, true, _)));
    machine.fail(
        |action| matches!(action, Action::MergePr { .. }),
        EffectError::NotNow { because: "something is in the way".into() },
    );
    machine.seconds(600);
    machine.lands("a");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 1, "not over somebody's words");
}

#[test]
fn every_head_that_people_decide_on_is_named_once() {
    let mut machine = waiting();
    let waits = |action: &Action| matches!(action, Action::Comment { said: Said::Waiting { .. }, .. });
    assert_eq!(machine.emitted(waits), 0, "the comment about the pull request names it");
    machine.observe("a", at_head(machine.good_pr("a"), "pushed"));
    machine.seconds(61);
    machine.observe("a", at_head(machine.good_pr("a"), "pushed"));
    assert_eq!(machine.emitted(waits), 1);
    machine.observe("a", at_head(machine.good_pr("a"), "pushed"));
    assert_eq!(machine.emitted(waits), 1);
}

/// Why an approval names what it is about: what a run made of somebody's words while the person wrote, they have not seen.
#[test]
fn an_approval_accepts_what_a_run_dealt_with_only_below_our_words_about_it() {
    let mut machine = waiting();
    let head = head_of(&machine);
    reads(&mut machine, vec![member(1, "@dirigent why?")]);
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Explained { text: "because".into() });
    machine.run_ends("a", RunReport { head_before: Some(head.clone()), ..done_report(&head) });
    machine.perform_small();
    if machine.pending(|action| matches!(action, Action::PushBranch { .. })).is_some() {
        machine.publish("a");
    }
    machine.observe("a", machine.good_pr("a"));
    machine.perform_small();
    assert_eq!(machine.code("a"), "remarks", "{:?}", machine.stage("a"));
    assert_eq!(head_of(&machine), head, "nothing new was made");
    let said = format!("/dirigent approve {head}");
    reads(&mut machine, vec![member(2, &said)]);
    assert!(!is_approved(&machine), "it was written before anybody was told");
    reads_after_ours(&mut machine, vec![member(501, &said)]);
    assert!(is_approved(&machine), "{:?}", answers(&machine));
    assert_eq!(machine.job("a").people.holding().count(), 0);
}

/// What a run made of somebody's words is in the head that it made: whoever names that head has seen it, also on the pull request, where
/// nothing of ours names it.
#[test]
fn an_approval_on_the_pull_request_accepts_what_the_run_that_made_its_head_dealt_with() {
    let mut machine = waiting();
    let asked = member(1, "@dirigent rename it");
    machine.observe("a", with_comments_on_pr(&machine, vec![asked.clone()]));
    machine.run_starts("a");
    machine.run_delivers("a", "cafe1567890abcdef");
    machine.seconds(61);
    machine.observe("a", with_comments_on_pr(&machine, vec![asked.clone()]));
    machine.perform_small();
    assert_eq!(machine.code("a"), "remarks", "{:?}", machine.stage("a"));
    let said = member(2, &format!("/dirigent approve {}", head_of(&machine).short()));
    machine.observe("a", with_comments_on_pr(&machine, vec![asked.clone(), said.clone()]));
    assert!(is_approved(&machine), "{:?}", answers(&machine));
    assert_eq!(machine.job("a").people.holding().count(), 0);
    machine.lands_as("a", with_comments_on_pr(&machine, vec![asked, said]));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

/// An explanation changes no head. Who wrote below our answer in the conversation has seen it.
#[test]
fn an_approval_on_the_pull_request_accepts_what_was_explained_above_it() {
    for (number, counts) in [(910, false), (920, true)] {
        let mut machine = waiting();
        let head = head_of(&machine);
        let asked = PullRequest { threads: Some(vec![thread(1, false)]), ..machine.good_pr("a") };
        machine.observe("a", asked.clone());
        machine.run_starts("a");
        let run = machine.run_of("a");
        machine.answers("a", RemarkAnswer::Explained { text: "because".into() });
        machine.run_ends("a", RunReport { head_before: Some(head.clone()), ..done_report(&head) });
        machine.perform_small();
        if machine.pending(|action| matches!(action, Action::PushBranch { .. })).is_some() {
            machine.publish("a");
        }
        machine.observe("a", asked.clone());
        machine.perform_small();
        assert_eq!(machine.code("a"), "remarks", "{:?}", machine.stage("a"));
        let mut answer = member(915, "because");
        answer.author = dirigent::domain::comment::Author::ourselves();
        answer.body.push_str(&marker(&marked_key(&machine.state.meta.comment_key, &id("a"), &format!("answer:{run}"))));
        let mut conversation = thread(1, false);
        conversation.comments.push(answer);
        let said = vec![member(number, &format!("/dirigent approve {head}"))];
        machine.observe("a", PullRequest { threads: Some(vec![conversation]), comments: Some(said), ..asked });
        assert_eq!(is_approved(&machine), counts, "{:?}", answers(&machine));
    }
}

#[test]
fn a_comment_that_is_deleted_while_the_merge_is_under_way_neither_repeats_nor_undoes_it() {
    let mut machine = waiting();
    let said = member(1, &format!("/dirigent approve {}", head_of(&machine)));
    reads(&mut machine, vec![said]);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
    reads(&mut machine, Vec::new());
    machine.fail(
        |action| matches!(action, Action::MergePr { .. }),
        EffectError::MaybeDone { detail: "the answer was lost".into() },
    );
    reads(&mut machine, Vec::new());
    assert!(is_approved(&machine), "what became of the merge is looked for, and nobody has to approve again");
    assert_eq!(machine.emitted(|action| matches!(action, Action::MergePr { .. })), 1);
    assert_eq!(answers(&machine).len(), 1);
}
