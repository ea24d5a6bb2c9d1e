//! Comments, reviews, conversations, statuses and checks: done once where the forge has them, refused with a sentence where not.

use dirigent::domain::comment::Acknowledgement;
use dirigent::domain::ids::{CommentId, CommitId, TicketId};
use dirigent::domain::job::OurComments;
use dirigent::domain::pr::{CheckStatus, Verdict};
use dirigent::domain::remark::RemarkKind;
use dirigent::engine::provenance::{is_ours, marked_key};
use dirigent::forge::{CommitStatus, LineNote, RemarkPresence};

use super::super::SECRET;
use super::{BRANCH, Candidate, Outcome, assert_refused, look, opened, permit};

/// The ticket that the pull request is for.
fn ticket() -> TicketId {
    TicketId::new("one")
}

fn key() -> String {
    marked_key(SECRET, &ticket(), "gates:1")
}

pub async fn our_comment_is_written_once_and_reworded<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let upsert = async |text: &str| c.forge().upsert_comment(&permit(), number, &key(), text).await;
    if !c.forge().capabilities().conversations {
        assert_refused(upsert("Gates are running.").await);
        return Ok(());
    }
    let first = upsert("Gates are running.").await.unwrap();
    let before = look(c, number).await.comments.unwrap();
    let again = upsert("Gates have passed.").await.unwrap();
    assert_eq!(first, again);
    let after = look(c, number).await.comments.unwrap();
    let ([old], [new]) = (&before[..], &after[..]) else { panic!("{before:?} {after:?}") };
    assert!(new.body.starts_with("Gates have passed."), "{new:?}");
    assert_ne!(old.version(), new.version());
    assert!(is_ours(SECRET, &ticket(), new, &OurComments::new()));
    Ok(())
}

pub async fn a_persons_comment_is_theirs<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let id = c.say(number, "please rename it").await?;
    let comments = look(c, number).await.comments.unwrap();
    let [theirs] = &comments[..] else { panic!("{comments:?}") };
    assert_eq!((&theirs.id, theirs.body.as_str()), (&id, "please rename it"));
    assert_eq!(theirs.author.name, c.person());
    assert!(!is_ours(SECRET, &ticket(), theirs, &OurComments::new()), "whoever's account it is");
    Ok(())
}

pub async fn a_review_has_verdict_author_and_head<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let id = c.review(pr.number, Verdict::ChangesRequested, "not like this").await?;
    c.push(BRANCH).await;
    let reviews = look(c, pr.number).await.reviews.unwrap();
    let [review] = &reviews[..] else { panic!("{reviews:?}") };
    assert_eq!((&review.id, review.verdict, review.body.as_str()), (&id, Verdict::ChangesRequested, "not like this"));
    assert_eq!((review.author.name.as_str(), review.head.as_ref()), (c.person().as_str(), Some(&pr.head)));
    Ok(())
}

pub async fn a_conversation_is_answered_once_and_resolved<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let (forge, none) = (c.forge(), CommentId::new("no-such-conversation"));
    assert_refused(forge.reply_in_thread(&permit(), number, &none, &key(), "Fixed.").await);
    assert_refused(forge.resolve_thread(&permit(), number, &none).await);
    if !forge.capabilities().conversations {
        return Ok(());
    }
    let id = c.converse(number, "why this?").await?;
    c.settle().await;
    let first = forge.reply_in_thread(&permit(), number, &id, &key(), "Because.").await.unwrap();
    let again = forge.reply_in_thread(&permit(), number, &id, &key(), "Because.").await.unwrap();
    assert_eq!(first, again);
    for resolved in [false, true, true] {
        let threads = look(c, number).await.threads.unwrap();
        let [thread] = &threads[..] else { panic!("{threads:?}") };
        assert_eq!((&thread.id, thread.resolved), (&id, resolved));
        let [question, answer] = &thread.comments[..] else { panic!("{thread:?}") };
        assert_eq!((question.body.as_str(), question.author.name.as_str()), ("why this?", c.person().as_str()));
        assert!(is_ours(SECRET, &ticket(), answer, &OurComments::new()));
        forge.resolve_thread(&permit(), number, &id).await.unwrap();
    }
    Ok(())
}

/// One that the change shows, one that it does not, and one in a file that is not there.
pub async fn a_note_on_a_line_is_begun_once_and_only_where_the_change_shows_the_line<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    if !c.forge().capabilities().conversations {
        assert_refused(c.forge().begin_threads(&permit(), pr.number, &pr.head, &[]).await);
        return Ok(());
    }
    let known = c.changed_file(BRANCH);
    let path = known.clone().unwrap_or_else(|| "made/up.txt".to_owned());
    let note = |path: &str, line: u32| LineNote {
        key: marked_key(SECRET, &ticket(), &format!("finding:F{line}:x")),
        path: path.to_owned(),
        line,
        body: format!("It is wrong ({line})."),
    };
    let mut notes = vec![note(&path, 1)];
    if known.is_some() {
        notes.extend([note(&path, 4_000), note("no/such.file", 2)]);
    }
    let begin = async |head: &CommitId| c.forge().begin_threads(&permit(), pr.number, head, &notes).await.unwrap();
    assert_eq!(begin(&CommitId::new("0".repeat(40))).await, 0, "another head");
    assert_eq!((begin(&pr.head).await, begin(&pr.head).await), (1, 0));
    c.settle().await;
    let threads = look(c, pr.number).await.threads.unwrap();
    let [thread] = &threads[..] else { panic!("{threads:?}") };
    assert_eq!((thread.path.as_deref(), thread.line, thread.resolved), (Some(path.as_str()), Some(1), false));
    assert!(is_ours(SECRET, &ticket(), &thread.comments[0], &OurComments::new()), "whoever's account it is");
    Ok(())
}

pub async fn a_reaction_to_a_comment_counts_once<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let react = async |comment: &CommentId| c.forge().react(&permit(), number, comment, Acknowledgement::Seen).await;
    assert_refused(react(&CommentId::new("IC_999999")).await);
    if !c.forge().capabilities().reactions {
        return Ok(());
    }
    let comment = c.say(number, "/dirigent explain").await?;
    c.settle().await;
    for _ in 0..2 {
        react(&comment).await.unwrap();
    }
    assert_eq!(c.reactions(&comment).await?, 1);
    Ok(())
}

pub async fn a_remark_that_was_taken_back_is_gone<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let remarks = [
        (RemarkKind::PrComment, c.say(number, "a word").await?),
        (RemarkKind::Verdict, c.review(number, Verdict::ChangesRequested, "a verdict").await?),
        (RemarkKind::Thread, c.converse(number, "a question").await?),
    ];
    for (kind, id) in &remarks {
        c.settle().await;
        assert_eq!(c.forge().find_remark(number, *kind, id).await, Ok(RemarkPresence::There), "{kind:?}");
        c.delete_remark(number, id).await?;
        c.settle().await;
        assert_eq!(c.forge().find_remark(number, *kind, id).await, Ok(RemarkPresence::Gone), "{kind:?}");
    }
    Ok(())
}

pub async fn a_reviewer_is_asked_once<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    let ask = async || c.forge().request_review(&permit(), number, &c.person()).await;
    if !c.forge().capabilities().conversations {
        assert_refused(ask().await);
        return Ok(());
    }
    for _ in 0..2 {
        ask().await.unwrap();
    }
    assert_eq!(c.reviewers(number).await?, [c.person()]);
    Ok(())
}

pub async fn a_status_is_published_on_its_commit<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let publish = async |passed| {
        let (commit, name) = (pr.head.clone(), "dirigent/gates".to_owned());
        let status = CommitStatus { commit, name, passed, description: "Two of two gates.".to_owned() };
        c.forge().publish_status(&permit(), &status).await
    };
    if !c.forge().capabilities().statuses {
        assert_refused(publish(true).await);
        return Ok(());
    }
    for (passed, status) in [(false, CheckStatus::Failed), (true, CheckStatus::Passed), (true, CheckStatus::Passed)] {
        publish(passed).await.unwrap();
        let checks = look(c, pr.number).await.checks.unwrap();
        let seen: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.status)).collect();
        assert_eq!(seen, [("dirigent/gates", status)]);
    }
    c.push(BRANCH).await;
    assert_eq!(look(c, pr.number).await.checks, Some(Vec::new()), "it was about another commit");
    Ok(())
}

pub async fn a_check_runs_again<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    c.report(number, "flaky", false, "timed out").await;
    let check = look(c, number).await.checks.unwrap().remove(0);
    let rerun = c.forge().rerun_check(&permit(), &check.id).await;
    if !c.forge().capabilities().reruns {
        assert_refused(rerun);
        return Ok(());
    }
    rerun.unwrap();
    assert_eq!(look(c, number).await.checks.unwrap()[0].status, CheckStatus::Pending);
    assert_refused(c.forge().rerun_check(&permit(), "no such check").await);
    Ok(())
}

pub async fn what_is_in_no_queue_can_leave_it<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    c.forge().dequeue(&permit(), number).await.unwrap();
    assert!(!look(c, number).await.in_queue);
    Ok(())
}
