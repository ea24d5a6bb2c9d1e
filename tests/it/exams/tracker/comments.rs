//! Comments: each written once, told apart by who wrote them, and in which version.

use dirigent::domain::comment::Comment;
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::job::OurComments;
use dirigent::engine::provenance::{is_ours, marked_key};
use dirigent::tracker::{CommentFound, Edited, TrackerError, Written};

use super::super::SECRET;
use super::{Candidate, Outcome, assert_refused, comments, permit};

async fn write<C: Candidate>(c: &C, id: &TicketId, key: &str, text: &str) -> Result<Written, TrackerError> {
    c.tracker().comment(&permit(), id, &marked_key(SECRET, id, key), text, c.now()).await
}

async fn comment<C: Candidate>(c: &C, id: &TicketId, comment: &CommentId) -> Comment {
    let all = comments(c, id).await;
    let found = all.iter().find(|known| known.id == *comment);
    found.unwrap_or_else(|| panic!("{comment} is not in {all:?}")).clone()
}

pub async fn comments_have_authors_and_versions<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let first = c.say(&id, "please hurry").await;
    let second = c.say(&id, "no, wait").await;
    let before = comments(c, &id).await;
    assert_eq!(before.iter().map(|known| &known.id).collect::<Vec<_>>(), [&first, &second], "oldest first");
    assert!(before.iter().all(|known| known.author.name == c.person() && !known.author.ourselves), "{before:?}");
    c.reword(&id, &first, "take your time").await;
    let after = comments(c, &id).await;
    assert_eq!(after.iter().map(|known| &known.id).collect::<Vec<_>>(), [&first, &second], "an edit moves nothing");
    assert_eq!(after[0].body, "take your time");
    assert_ne!(after[0].version(), before[0].version(), "an edit is another version");
    assert_eq!(after[1].version(), before[1].version());
    Ok(())
}

pub async fn written_or_changed_since_then<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let old = c.say(&id, "old").await;
    let since = c.now();
    let new = c.say(&id, "new").await;
    c.reword(&id, &old, "old, but changed").await;
    c.settle().await;
    let changed: Vec<CommentId> =
        c.tracker().comments(&id, Some(since)).await.unwrap().into_iter().map(|known| known.id).collect();
    assert_eq!(changed, [old, new]);
    Ok(())
}

pub async fn a_comment_is_written_once_per_key<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let first = write(c, &id, "started:1", "Started.").await.unwrap();
    let again = write(c, &id, "started:1", "Started.").await.unwrap();
    let worded_otherwise = write(c, &id, "started:1", "Begun.").await.unwrap();
    assert_eq!((first.existed, again.existed, worded_otherwise.existed), (false, true, true));
    assert_eq!((&first.id, &first.id), (&again.id, &worded_otherwise.id));
    let other = write(c, &id, "started:10", "Started again.").await.unwrap();
    assert!(!other.existed, "a key that only begins the same is another one");
    let texts = comments(c, &id).await;
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(comment(c, &id, &first.id).await.body.starts_with("Started."), "what was there stays");
    Ok(())
}

pub async fn a_comment_whose_answer_was_lost_is_written_once<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    for (key, done) in [("done", true), ("not done", false)] {
        c.lose_next(done).await?;
        let lost = write(c, &id, key, "Started.").await;
        assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
        // It is looked for before it is repeated, after it had time to become visible.
        c.settle().await;
        let repeated = write(c, &id, key, "Started.").await.unwrap();
        assert_eq!(repeated.existed, done, "{key}");
    }
    assert_eq!(comments(c, &id).await.len(), 2);
    Ok(())
}

pub async fn a_comment_is_written_once_at_the_same_time<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    c.settle().await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (tracker, id, now) = (c.tracker(), id.clone(), c.now());
        writers.spawn(async move { tracker.comment(&permit(), &id, "workpad", "Plan", now).await.unwrap() });
    }
    let written = writers.join_all().await;
    assert_eq!(written.iter().filter(|written| !written.existed).count(), 1, "{written:?}");
    assert!(written.iter().all(|one| one.id == written[0].id), "{written:?}");
    assert_eq!(comments(c, &id).await.len(), 1);
    Ok(())
}

pub async fn an_edit_keeps_the_comment_and_its_key<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let made = write(c, &id, "workpad", "Plan A").await.unwrap();
    let before = comment(c, &id, &made.id).await;
    for _ in 0..2 {
        let edited = c.tracker().edit_comment(&permit(), &id, &made.id, "Plan B\n\nwith a second part").await;
        assert_eq!(edited, Ok(Edited::Done));
    }
    let after = comment(c, &id, &made.id).await;
    assert!(after.body.starts_with("Plan B\n\nwith a second part"), "{after:?}");
    assert_ne!(after.version(), before.version());
    assert!(is_ours(SECRET, &id, &after, &OurComments::new()), "an edit does not make it somebody else's");
    let again = write(c, &id, "workpad", "Plan C").await.unwrap();
    assert_eq!(again, Written { id: made.id, existed: true });
    assert_eq!(comments(c, &id).await.len(), 1);
    Ok(())
}

pub async fn a_comment_that_somebody_deleted_is_gone<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let made = write(c, &id, "workpad", "Plan").await.unwrap();
    let theirs = c.say(&id, "a remark").await;
    let stays = c.say(&id, "another remark").await;
    c.settle().await;
    for one in [&made.id, &theirs] {
        assert_eq!(c.tracker().find_comment(&id, one).await, Ok(CommentFound::There));
        c.unsay(&id, one).await;
        c.settle().await;
        assert_eq!(c.tracker().find_comment(&id, one).await, Ok(CommentFound::Gone));
    }
    assert_eq!(c.tracker().find_comment(&id, &stays).await, Ok(CommentFound::There), "the others keep their ids");
    let edited = c.tracker().edit_comment(&permit(), &id, &made.id, "Plan B").await;
    assert_eq!(edited, Ok(Edited::Gone));
    assert_eq!(comments(c, &id).await.len(), 1, "an edit does not bring it back");
    let anew = write(c, &id, "workpad", "Plan C").await.unwrap();
    assert!(!anew.existed);
    assert_eq!(comments(c, &id).await.len(), 2);
    Ok(())
}

pub async fn a_comment_of_somebody_else_is_left_alone<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let theirs = c.say(&id, "my own words").await;
    c.settle().await;
    assert_refused(c.tracker().edit_comment(&permit(), &id, &theirs, "not my words").await);
    assert_eq!(comment(c, &id, &theirs).await.body, "my own words");
    Ok(())
}

pub async fn ours_is_told_from_a_persons<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let ours = write(c, &id, "started:1", "Started.").await.unwrap().id;
    let theirs = c.say(&id, "stop it").await;
    let forged = c.say(&id, "go on\n<!-- dirigent:started:2#0000000000000000 -->").await;
    assert!(is_ours(SECRET, &id, &comment(c, &id, &ours).await, &OurComments::new()));
    assert!(!is_ours(SECRET, &id, &comment(c, &id, &theirs).await, &OurComments::new()), "whoever's account it is");
    assert!(!is_ours(SECRET, &id, &comment(c, &id, &forged).await, &OurComments::new()), "a marker without our code");
    Ok(())
}

pub async fn a_copied_mark_is_not_ours<C: Candidate>(c: &C) -> Outcome {
    let one = c.add("One", c.columns().todo, &[]).await;
    let two = c.add("Two", c.columns().todo, &[]).await;
    let ours = write(c, &one, "started:1", "Started.").await.unwrap().id;
    let text = comment(c, &one, &ours).await.body;
    let copied = c.say(&two, &text).await;
    assert!(!is_ours(SECRET, &two, &comment(c, &two, &copied).await, &OurComments::new()));
    Ok(())
}
