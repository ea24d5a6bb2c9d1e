//! Moves, labels, reactions, links and new tickets: each of them can be repeated.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::ticket::{NewTicket, same_state};
use dirigent::tracker::{Acknowledgement, Move, TrackerError};

use super::{Candidate, Outcome, assert_refused, list, permit, ticket};

async fn shift<C: Candidate>(c: &C, id: &TicketId, state: &str, from: &[&str]) -> Result<Move, TrackerError> {
    let from: Vec<String> = from.iter().map(|state| (*state).to_owned()).collect();
    c.tracker().move_ticket(&permit(), id, state, &from).await
}

pub async fn a_ticket_is_moved_only_from_where_it_was_expected<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let id = c.add("One", columns.todo, &[]).await;
    c.settle().await;
    let spelt = format!(" {}", columns.todo.to_uppercase());
    let moved = shift(c, &id, columns.doing, &[columns.done, &spelt]).await;
    assert!(matches!(moved, Ok(Move::Moved(_))), "{moved:?}");
    let seen = ticket(c, &id).await;
    assert!(same_state(&seen.state, columns.doing), "{}", seen.state);
    if let Some(by) = seen.state_changed.and_then(|change| change.by) {
        match C::NAMES_MOVERS {
            true => assert_eq!(by.name, c.tracker().whoami().await.unwrap().login, "the move is told as ours"),
            false => assert_eq!(by.trust, TrustLevel::Stranger, "nobody's words count for it"),
        }
    }
    assert_eq!(shift(c, &id, columns.doing, &[columns.todo]).await, Ok(Move::Already));
    assert_eq!(shift(c, &id, &columns.doing.to_uppercase(), &[]).await, Ok(Move::Already));

    c.shift(&id, columns.done).await;
    c.settle().await;
    match shift(c, &id, columns.todo, &[columns.doing]).await {
        Ok(Move::Elsewhere(actual)) => assert!(same_state(&actual, columns.done), "{actual}"),
        other => panic!("{other:?}"),
    }
    assert!(same_state(&ticket(c, &id).await.state, columns.done), "it was left alone");
    let moved = shift(c, &id, columns.todo, &[]).await;
    assert!(matches!(moved, Ok(Move::Moved(_))), "nothing was expected: {moved:?}");
    Ok(())
}

pub async fn a_move_whose_answer_was_lost_is_found_done<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let id = c.add("One", columns.todo, &[]).await;
    c.settle().await;
    c.lose_next(true).await?;
    let lost = shift(c, &id, columns.doing, &[columns.todo]).await;
    assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
    assert!(same_state(&ticket(c, &id).await.state, columns.doing));
    assert_eq!(shift(c, &id, columns.doing, &[columns.todo]).await, Ok(Move::Already));
    c.lose_next(false).await?;
    let lost = shift(c, &id, columns.done, &[columns.doing]).await;
    assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
    assert!(same_state(&ticket(c, &id).await.state, columns.doing), "nothing was done");
    Ok(())
}

pub async fn labels_are_added_and_removed_whatever_their_spelling<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &["Bug"]).await;
    c.settle().await;
    let label = async |add: &[&str], remove: &[&str]| {
        let owned = |all: &[&str]| all.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>();
        c.tracker().label(&permit(), &id, &owned(add), &owned(remove)).await
    };
    if !c.tracker().capabilities().labels {
        assert_refused(label(&["agent"], &[]).await);
        return Ok(());
    }
    for _ in 0..2 {
        label(&["Agent", " agent ", "BUG"], &["nobody has this one"]).await.unwrap();
        assert_eq!(ticket(c, &id).await.labels, ["bug", "agent"]);
    }
    for _ in 0..2 {
        label(&["later"], &[" AGENT", "bug"]).await.unwrap();
        assert_eq!(ticket(c, &id).await.labels, ["later"]);
    }
    Ok(())
}

pub async fn a_reaction_counts_once<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let comment = c.say(&id, "look at this").await;
    c.settle().await;
    let react = async |comment: &CommentId| c.tracker().react(&permit(), &id, comment, Acknowledgement::Seen).await;
    if !c.tracker().capabilities().reactions {
        assert_refused(react(&comment).await);
        return Ok(());
    }
    for _ in 0..2 {
        react(&comment).await.unwrap();
    }
    assert_eq!(c.reactions(&comment).await?, 1);
    Ok(())
}

pub async fn a_link_is_attached_once<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    c.settle().await;
    let url = "https://example.invalid/pull/1";
    let attach = async |title: &str| c.tracker().attach_link(&permit(), &id, url, title).await;
    if !c.tracker().capabilities().links {
        assert_refused(attach("Pull request 1").await);
        return Ok(());
    }
    attach("Pull request 1").await.unwrap();
    attach("Pull request 1, merged").await.unwrap();
    assert_eq!(c.links(&id).await?, [(url.to_owned(), "Pull request 1, merged".to_owned())]);
    Ok(())
}

fn follow_up(after: &TicketId) -> NewTicket {
    NewTicket {
        title: "Follow up".into(),
        description: "What was left over.".into(),
        labels: vec!["Later".into(), " later".into()],
        priority: Some(2),
        parent: Some(after.clone()),
        blocked_by: vec![after.clone()],
    }
}

pub async fn a_ticket_is_created_once_per_key<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let before = c.add("Before", columns.todo, &[]).await;
    c.settle().await;
    let new = follow_up(&before);
    let first = c.tracker().create_ticket(&permit(), &new, "follow up 1").await.unwrap();
    let again = c.next_life().create_ticket(&permit(), &new, "follow up 1").await.unwrap();
    let other = c.tracker().create_ticket(&permit(), &new, "follow up 10").await.unwrap();
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_eq!(list(c, &columns.active()).await.len(), 3);
    let made = ticket(c, &first).await;
    assert_eq!(made.title, "Follow up");
    assert_eq!(made.description.as_deref(), Some("What was left over."));
    assert_eq!((made.labels.as_slice(), made.priority), (["later".to_owned()].as_slice(), Some(2)));
    assert_eq!(made.parent.as_ref(), Some(&before));
    let [blocker] = &made.blocked_by[..] else { panic!("{:?}", made.blocked_by) };
    assert_eq!((&blocker.id, blocker.failed), (&before, false));
    assert!(same_state(blocker.state.as_deref().unwrap(), columns.todo));
    c.shift(&before, columns.done).await;
    let blocker = ticket(c, &first).await.blocked_by.remove(0);
    assert!(same_state(&blocker.state.unwrap(), columns.done), "what it waits for has moved on");
    Ok(())
}

pub async fn a_ticket_whose_answer_was_lost_is_created_once<C: Candidate>(c: &C) -> Outcome {
    let before = c.add("Before", c.columns().todo, &[]).await;
    c.settle().await;
    for (key, done) in [("done", true), ("not done", false)] {
        c.lose_next(done).await?;
        let lost = c.tracker().create_ticket(&permit(), &follow_up(&before), key).await;
        assert!(matches!(lost, Err(TrackerError::MaybeDone(_))), "{lost:?}");
        c.settle().await;
        c.tracker().create_ticket(&permit(), &follow_up(&before), key).await.unwrap();
    }
    assert_eq!(list(c, &c.columns().active()).await.len(), 3);
    Ok(())
}

pub async fn a_ticket_is_created_once_at_the_same_time<C: Candidate>(c: &C) -> Outcome {
    let before = c.add("Before", c.columns().todo, &[]).await;
    c.settle().await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (tracker, new) = (c.tracker(), follow_up(&before));
        writers.spawn(async move { tracker.create_ticket(&permit(), &new, "one").await.unwrap() });
    }
    let made = writers.join_all().await;
    assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
    assert_eq!(list(c, &c.columns().active()).await.len(), 2);
    Ok(())
}
