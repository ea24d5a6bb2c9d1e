//! Our own review of a head: when it is asked for, what its words mean, and that nothing is merged past it.

use dirigent::config::policy::{Policy, ReviewComment};
use dirigent::domain::comment::TrustLevel;
use dirigent::domain::finding::Severity;
use dirigent::domain::ids::SessionId;
use dirigent::domain::job::{ReworkTrigger, Stage, Work};
use dirigent::domain::phase::Phase;
use dirigent::domain::pr::{CheckStatus, PullRequest, ReviewThread};
use dirigent::domain::remark::{RemarkAnswer, RemarkKind};
use dirigent::domain::run::{Activity, RunOutcome, RunReport, StopReason};
use dirigent::engine::effect::{Action, Said};
use dirigent::engine::event::{EffectResult, OperatorCommand};
use dirigent::engine::provenance;
use dirigent::engine::review_format::{self, Unreadable};
use proptest::prelude::*;

use super::fixtures::{
    at_head, check, comment, commit, done_report, exit, failed, id, policy, report, review_text, reviewed, thread,
    ticket,
};
use super::machine::Machine;

fn with_review() -> Policy {
    let mut policy = policy();
    policy.review.enabled = true;
    policy
}

fn is_merge(action: &Action) -> bool {
    matches!(action, Action::MergePr { .. })
}

fn is_comment(action: &Action) -> bool {
    matches!(action, Action::ReviewComment { .. })
}

/// The pull request is green, and a reviewer is at it.
fn under_review(policy: Policy) -> Machine {
    let mut machine = Machine::with_pr(policy);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Reviewing, "{:?}", machine.stage("a"));
    machine.run_starts_silently("a");
    machine
}

fn review_ends(machine: &mut Machine, severities: &[Severity]) {
    let Stage::Working { work: Work::Review { head }, .. } = machine.stage("a").clone() else {
        panic!("{:?}", machine.stage("a"))
    };
    machine.run_ends("a", reviewed(&review_text(&head, severities)));
}

#[test]
fn a_green_head_is_reviewed_before_it_is_merged_and_a_red_one_is_not() {
    let mut machine = Machine::with_pr(with_review());
    let mut red = machine.good_pr("a");
    red.checks = Some(vec![check("build", CheckStatus::Pending)]);
    machine.observe("a", red);
    assert_eq!(machine.phase("a"), Phase::WaitingForChecks, "nobody is paid to read what is not green");
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Reviewing);
    machine.run_starts_silently("a");
    machine.lands("a");
    assert_eq!(machine.emitted(is_merge), 0);
    review_ends(&mut machine, &[]);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
    assert_eq!(machine.job("a").delivery.reviews.passes, 1);
}

#[test]
fn a_reviewer_has_a_conversation_of_its_own_and_changes_nothing_about_the_job() {
    let mut machine = Machine::working(with_review());
    machine.progress("a", Activity::SessionKnown { session: SessionId::new("worker's") });
    machine.run_delivers("a", "one");
    machine.observe("a", machine.good_pr("a"));
    let start = machine.last.iter().find_map(|effect| match &effect.action {
        Action::StartRun { resume, undelivered, .. } => Some((resume.clone(), undelivered.len())),
        _ => None,
    });
    assert_eq!(start, Some((None, 0)));
    machine.run_starts_silently("a");
    let head = machine.job("a").delivery.head.clone();
    machine.progress("a", Activity::SessionKnown { session: SessionId::new("reviewer's") });
    machine.progress("a", Activity::Committed { head: commit("smuggled") });
    // What a person says meanwhile is for whoever can change something.
    machine.says("a", "@dirigent rename it");
    assert!(!machine.last.iter().any(|effect| matches!(effect.action, Action::Steer { .. })));
    let smuggled =
        RunReport { head: Some(commit("smuggled")), commits_ahead: 2, ..reviewed(&review_text(&commit("one"), &[])) };
    machine.run_ends("a", smuggled);
    let job = machine.job("a");
    assert_eq!((job.session.as_ref().map(SessionId::as_str), &job.delivery.head), (Some("worker's"), &head));
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Rework, "the person was not forgotten");
}

#[test]
fn a_finding_is_reworked_answered_and_reviewed_again() {
    let mut machine = under_review(with_review());
    review_ends(&mut machine, &[Severity::P1, Severity::P4]);
    assert_eq!(machine.emitted(is_comment), 1);
    machine.observe("a", machine.good_pr("a"));
    let Stage::Working { work: Work::Rework { cause }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert_eq!(cause.trigger, ReworkTrigger::ReviewFinding);
    assert_eq!(cause.evidence.len(), 1, "what is listed in fix_consideration_severities");
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Declined { text: "it is meant so".into() });
    machine.progress("a", Activity::Committed { head: commit("two") });
    machine.run_delivers("a", "two");
    assert_eq!(machine.emitted(is_comment), 2, "with the answers");
    machine.observe("a", at_head(machine.good_pr("a"), "two"));
    assert_eq!(machine.phase("a"), Phase::Reviewing, "another head");
    machine.run_starts_silently("a");
    review_ends(&mut machine, &[]);
    let reviews = &machine.job("a").delivery.reviews;
    assert_eq!((reviews.passes, reviews.settled.len(), reviews.findings.len()), (2, 2, 0));
    machine.lands_as("a", at_head(machine.good_pr("a"), "two"));
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn a_declined_finding_holds_until_a_person_approves_that_head() {
    let mut machine = under_review(with_review());
    review_ends(&mut machine, &[Severity::P0]);
    machine.observe("a", machine.good_pr("a"));
    machine.run_starts("a");
    machine.answers("a", RemarkAnswer::Declined { text: "it is meant so".into() });
    machine.run_ends("a", RunReport { head_before: Some(commit("one")), ..done_report(&commit("one")) });
    machine.perform_small();
    machine.succeed(|action| matches!(action, Action::PushBranch { .. }), EffectResult::Plain);
    machine.lands("a");
    assert_eq!(machine.code("a"), "remarks", "{:?}", machine.stage("a"));
    machine.approve("a");
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn what_is_not_listed_leads_to_no_rework() {
    let mut policy = with_review();
    policy.review.fix_consideration_severities = vec![Severity::P0];
    let mut machine = under_review(policy);
    review_ends(&mut machine, &[Severity::P1]);
    machine.lands("a");
    assert_eq!(machine.phase("a"), Phase::Merging);
}

#[test]
fn no_more_than_max_passes_and_then_a_person_reads_it() {
    let mut policy = with_review();
    policy.review.max_passes = 1;
    let mut machine = under_review(policy);
    review_ends(&mut machine, &[Severity::P1]);
    machine.observe("a", machine.good_pr("a"));
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    let two = at_head(machine.good_pr("a"), "two");
    machine.lands_as("a", two.clone());
    assert_eq!((machine.phase("a"), machine.code("a")), (Phase::WaitingForHuman, "review_limit"));
    machine.lands_as("a", two.clone());
    assert_eq!(machine.emitted(is_merge), 0);
    let mut approved = machine.clone();
    approved.approve("a");
    approved.lands_as("a", two.clone());
    assert_eq!(approved.phase("a"), Phase::Merging, "whoever approves it has read it");
    machine.operator(OperatorCommand::Retry { ticket: id("a") });
    machine.observe("a", two);
    assert_eq!(machine.phase("a"), Phase::Reviewing, "another set of reviews");
}

#[test]
fn a_review_that_cannot_be_read_is_asked_for_once_more_and_then_a_person_is_told() {
    for words in [None, Some("Looks good to me!".to_owned()), Some(review_text(&commit("zero"), &[]))] {
        let mut machine = under_review(with_review());
        machine.progress("a", Activity::SessionKnown { session: SessionId::new("reviewer's") });
        let end = RunReport { said: words.clone(), ..report(RunOutcome::Done) };
        machine.run_ends("a", end.clone());
        assert_eq!(machine.phase("a"), Phase::Reviewing, "{words:?}");
        let resumed = machine.last.iter().find_map(|effect| match &effect.action {
            Action::StartRun { resume, .. } => resume.clone(),
            _ => None,
        });
        assert_eq!(resumed, Some(SessionId::new("reviewer's")), "the same reviewer is asked");
        machine.run_starts_silently("a");
        machine.run_ends("a", end);
        assert_eq!((machine.phase("a"), machine.code("a")), (Phase::Blocked, "review_unreadable"), "{words:?}");
        assert_eq!(machine.job("a").delivery.reviews.passes, 0);
        // Checks that come and go start nothing.
        let mut pending = machine.good_pr("a");
        pending.checks = Some(vec![check("build", CheckStatus::Pending)]);
        machine.observe("a", pending);
        machine.lands("a");
        assert_eq!(machine.phase("a"), Phase::Blocked);
        let mut retried = machine.clone();
        retried.operator(OperatorCommand::Retry { ticket: id("a") });
        assert_eq!(retried.phase("a"), Phase::Reviewing);
        let mut pushed = machine.clone();
        pushed.observe("a", at_head(pushed.good_pr("a"), "two"));
        assert_eq!(pushed.phase("a"), Phase::Reviewing, "another head may be readable");
        machine.approve("a");
        machine.lands("a");
        assert_eq!(machine.phase("a"), Phase::Merging, "whoever approves it has read it");
    }
}

#[test]
fn a_reviewer_that_crashes_costs_a_retry_and_no_pass() {
    let mut machine = under_review(with_review());
    machine.run_ends("a", failed(exit()));
    assert_eq!(machine.code("a"), "retry");
    machine.wake();
    assert_eq!(machine.phase("a"), Phase::Reviewing);
    assert_eq!(machine.job("a").delivery.reviews.passes, 0);
    assert_eq!(machine.job("a").rework_cycles, 0);
}

#[test]
fn a_push_takes_the_head_from_under_the_reviewer() {
    let mut machine = under_review(with_review());
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    assert!(
        machine
            .last
            .iter()
            .any(|effect| matches!(effect.action, Action::StopRun { reason: StopReason::Superseded, .. }))
    );
    // It was done all the same, with something to say about the old head.
    machine.run_ends("a", reviewed(&review_text(&commit("one"), &[Severity::P0])));
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    let Stage::Working { work: Work::Review { head }, .. } = machine.stage("a") else {
        panic!("{:?}", machine.stage("a"))
    };
    assert_eq!(*head, commit("theirs"));
    assert!(!machine.job("a").people.remarks.iter().any(|remark| remark.key.kind == RemarkKind::Finding));
}

#[test]
fn a_queued_review_of_a_replaced_head_is_not_begun() {
    let mut policy = with_review();
    policy.agent.max_concurrent = 1;
    let mut machine = Machine::with_pr(policy);
    machine.poll(vec![ticket("a"), ticket("b")]);
    machine.observe("a", machine.good_pr("a"));
    assert_eq!(machine.phase("a"), Phase::Queued, "b has the slot");
    machine.observe("a", at_head(machine.good_pr("a"), "theirs"));
    machine.run_ends("b", failed(exit()));
    let started = machine.last.iter().any(|effect| {
        matches!(&effect.action, Action::StartRun { work: Work::Review { head }, .. } if *head == commit("one"))
    });
    assert!(!started, "{:?}", machine.stage("a"));
}

#[test]
fn our_own_update_with_the_same_change_needs_no_other_review() {
    for same_diff in [true, false] {
        let mut machine = under_review(with_review());
        review_ends(&mut machine, &[]);
        let mut behind = machine.good_pr("a");
        behind.mergeability = dirigent::domain::pr::Mergeability::Behind;
        machine.lands_as("a", behind);
        let is_update = |action: &Action| matches!(action, Action::UpdateBranch { .. });
        machine.succeed(is_update, EffectResult::Updated { head: commit("two"), same_diff });
        machine.lands_as("a", at_head(machine.good_pr("a"), "two"));
        let expected = if same_diff { Phase::Merging } else { Phase::Reviewing };
        assert_eq!(machine.phase("a"), expected, "same diff: {same_diff}");
    }
}

#[test]
fn the_comment_about_a_review_is_the_files_to_say() {
    for (mode, keys) in [
        (ReviewComment::Off, &[] as &[&str]),
        (ReviewComment::Create, &["review:1"]),
        (ReviewComment::Upsert, &["review"]),
    ] {
        let mut policy = with_review();
        policy.review.comment = mode;
        let mut machine = under_review(policy);
        review_ends(&mut machine, &[Severity::P3]);
        machine.lands("a");
        let written: Vec<&str> = machine
            .effects
            .iter()
            .filter_map(|effect| match &effect.action {
                Action::ReviewComment { key, .. } => Some(key.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(written, keys, "{mode:?}");
    }
}

#[test]
fn the_ticket_links_its_pull_request_where_the_file_says_so() {
    for attach in [true, false] {
        let mut policy = policy();
        policy.pr.attach_to_tracker = attach;
        let machine = Machine::with_pr(policy);
        let linked = machine.effects.iter().any(
            |effect| matches!(&effect.action, Action::Comment { key, .. } if key == "pr:#1" || key.starts_with("pr:")),
        );
        assert_eq!(linked, attach);
    }
}

#[test]
fn the_last_review_in_a_text_counts_and_its_parts_may_be_long() {
    let head = commit("one");
    let draft = review_text(&head, &[Severity::P0]);
    let text = format!(
        "I looked at it.\n\n{draft}\n\nOn second thought:\n\n# Review\n- **Head:** `{}`\n- **Findings**: 1\n\n## Findings\n\n### odd-1: Names: a colon\n- Severity: p2\n- Summary: first line\n  and: a second one\n\n  ```md\n  ## not a heading\n  - severity: P0\n  ```\n- Why it matters: because\n- Suggested fix: mend it\n",
        &head.as_str()[..12]
    );
    let findings = review_format::read(&text, &head).unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].id.as_str(), findings[0].title.as_str()), ("odd-1", "Names: a colon"));
    assert_eq!(findings[0].severity, Severity::P2);
    assert!(findings[0].summary.contains("## not a heading") && findings[0].summary.contains("a second one"));
}

#[test]
fn a_heading_in_the_code_of_a_finding_begins_no_review() {
    let head = commit("one");
    let shown = |fence: &str| format!("It breaks.\n  {fence}\n# Review\n- head: 0000000\n- findings: 0\n  {fence}\n");
    for fence in ["```", "~~~", "````"] {
        let review = review_text(&head, &[Severity::P1]).replace("It breaks.\n", &shown(fence));
        for text in
            [review.clone(), format!("`````markdown\n{review}`````\n"), format!("Look:\n```\ncode\n```\n{review}")]
        {
            let findings = review_format::read(&text, &head).unwrap();
            assert_eq!(findings.len(), 1, "{text}");
            assert!(findings[0].summary.contains("# Review"), "{text}");
        }
    }
    // One that stands in a block as a whole is followed by another one.
    let draft = format!("```\n{}```\n", review_text(&head, &[Severity::P0, Severity::P0]));
    let text = format!("{draft}\n{}", review_text(&head, &[Severity::P3]));
    assert_eq!(review_format::read(&text, &head).unwrap()[0].severity, Severity::P3);
}

#[test]
fn what_is_not_a_review_is_said_by_name() {
    let head = commit("one");
    let good = review_text(&head, &[Severity::P1]);
    for (text, expected) in [
        (String::new(), Unreadable::NoReview),
        (good.replace("- head", "- heads"), Unreadable::NoHead),
        (
            good.replace(head.as_str(), &head.as_str()[..6]),
            Unreadable::OtherHead { named: head.as_str()[..6].into(), given: head.short().into() },
        ),
        (good.replace("findings: 1", "findings: some"), Unreadable::NoCount),
        (good.replace("findings: 1", "findings: 2"), Unreadable::OtherCount { said: 2, found: 1 }),
        (good.replace("## F1: It", "## It"), Unreadable::BadHeading { heading: "It is wrong".into() }),
        (
            good.replace("severity: P1", "severity: high"),
            Unreadable::BadSeverity { id: "F1".into(), found: "high".into() },
        ),
        (
            good.replace("- why_it_matters: People wait.\n", ""),
            Unreadable::Lacks { id: "F1".into(), part: "why_it_matters" },
        ),
        (review_text(&head, &[Severity::P1, Severity::P2]).replace("F2", "f1"), Unreadable::SameId { id: "f1".into() }),
    ] {
        assert_eq!(review_format::read(&text, &head), Err(expected), "{text}");
    }
}

proptest! {
    /// Whatever an agent prints, reading it neither panics nor makes up a finding.
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), with_heading in any::<bool>()) {
        let head = commit("one");
        let text = if with_heading { format!("# Review\n- head: {head}\n{text}") } else { text };
        if let Ok(findings) = review_format::read(&text, &head) {
            prop_assert!(text.contains("# Review"));
            prop_assert!(findings.iter().all(|finding| !finding.summary.is_empty() && !finding.title.is_empty()));
        }
    }

    /// What is written in the form is read as it was meant, whatever stands around it, and never for another head.
    #[test]
    fn what_is_written_is_what_is_read(
        severities in prop::collection::vec(0_usize..5, 0..6),
        before in "[a-z \n]{0,60}",
        cut in 0_usize..400,
    ) {
        let head = commit("one");
        let severities: Vec<Severity> = severities.into_iter().map(|index| Severity::ALL[index]).collect();
        let written = review_text(&head, &severities);
        let text = format!("{before}\n{written}");
        let read = review_format::read(&text, &head).unwrap();
        prop_assert_eq!(read.iter().map(|finding| finding.severity).collect::<Vec<_>>(), severities.clone());
        prop_assert!(review_format::read(&text, &commit("two")).is_err());
        // A review that was cut off before its last finding was complete is not a shorter review.
        let end = written.len().saturating_sub(20 + cut);
        if !severities.is_empty() && written.is_char_boundary(end) {
            prop_assert!(review_format::read(&written[..end], &head).is_err());
        }
    }
}

#[test]
fn a_review_survives_a_restart_of_the_runner() {
    let mut machine = under_review(with_review());
    machine.restart();
    machine.poll(vec![ticket("a")]);
    assert_eq!(machine.phase("a"), Phase::Reviewing, "{:?}", machine.stage("a"));
    assert_eq!(machine.job("a").delivery.reviews.passes, 0);
}

/// A conversation about the first finding as the forge shows it: we began it, with an account that a trusted person uses as well.
fn own_thread(machine: &Machine) -> ReviewThread {
    let finding = &machine.job("a").delivery.reviews.findings[0];
    let key = provenance::marked_key(&machine.state.meta.comment_key, &id("a"), &finding.note_key());
    let mut thread = thread(1, false);
    thread.comments[0].body = format!("{}\n{}", finding.title, provenance::marker(&key));
    thread
}

fn is_answer(action: &Action) -> bool {
    matches!(action, Action::AnswerThread { .. })
}

fn with_threads(pr: PullRequest, threads: Vec<ReviewThread>) -> PullRequest {
    PullRequest { threads: Some(threads), ..pr }
}

#[test]
fn our_own_notes_on_lines_are_nobodys_remarks_and_are_resolved_when_they_are_settled() {
    let mut machine = under_review(with_review());
    review_ends(&mut machine, &[Severity::P1]);
    let shown = |machine: &Machine| with_threads(machine.good_pr("a"), vec![own_thread(machine)]);
    machine.observe("a", shown(&machine));
    assert!(
        matches!(machine.stage("a"), Stage::Working { work: Work::Rework { cause }, .. } if cause.trigger == ReworkTrigger::ReviewFinding)
    );
    assert_eq!(
        (machine.job("a").people.remarks.len(), machine.emitted(is_answer)),
        (1, 0),
        "the finding, and no thread"
    );
    machine.run_starts("a");
    machine.progress("a", Activity::Committed { head: commit("two") });
    machine.answers("a", RemarkAnswer::Fixed { text: "mended".into() });
    machine.run_delivers("a", "two");
    for _ in 0..3 {
        machine.observe("a", shown(&machine));
    }
    let answers: Vec<&Action> =
        machine.effects.iter().map(|effect| &effect.action).filter(|one| is_answer(one)).collect();
    assert!(
        matches!(answers[..], [Action::AnswerThread { resolve: true, said: Said::Answer { how, .. }, .. }] if how == "fixed"),
        "once: {answers:?}"
    );
    // A later review that finds nothing settles what was declined.
    let mut machine = under_review(with_review());
    review_ends(&mut machine, &[Severity::P1]);
    let thread = own_thread(&machine);
    machine.observe("a", machine.good_pr("a"));
    machine.run_starts("a");
    machine.run_delivers("a", "two");
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread.clone()]));
    assert!(machine.emitted(is_answer) == 1, "a commit was made");
    machine.run_starts("a");
    review_ends(&mut machine, &[]);
    machine.observe("a", with_threads(machine.good_pr("a"), vec![thread]));
    let last = machine.effects.iter().rev().find(|effect| is_answer(&effect.action)).unwrap();
    assert!(matches!(&last.action, Action::AnswerThread { resolve: true, .. }), "{last:?}");
}

#[test]
fn whoever_has_a_word_in_a_conversation_of_ours_owns_it_even_with_our_words_in_it() {
    let mut machine = under_review(with_review());
    review_ends(&mut machine, &[Severity::P1]);
    let thread = own_thread(&machine);
    let mut quoted = comment(950, TrustLevel::Member, "");
    quoted.body = format!("{}\nI see it differently.", thread.comments[0].body);
    let joined = ReviewThread { comments: vec![thread.comments[0].clone(), quoted], ..thread };
    machine.observe("a", with_threads(machine.good_pr("a"), vec![joined.clone()]));
    let kinds: Vec<RemarkKind> = machine.job("a").people.remarks.iter().map(|remark| remark.key.kind).collect();
    assert_eq!(kinds, [RemarkKind::Finding, RemarkKind::Thread]);
    machine.run_starts("a");
    machine.progress("a", Activity::Committed { head: commit("two") });
    machine.answers("a", RemarkAnswer::Fixed { text: "mended".into() });
    machine.run_delivers("a", "two");
    machine.observe("a", with_threads(machine.good_pr("a"), vec![joined]));
    let resolved = |action: &Action| matches!(action, Action::AnswerThread { resolve: true, .. });
    assert_eq!((machine.emitted(resolved), machine.emitted(is_answer)), (0, 1), "answered, and left to them");
}
