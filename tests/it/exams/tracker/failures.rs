//! Errors keep their structure: what has to happen next can be told from each of them.

use std::time::Duration;

use dirigent::domain::ids::TicketId;
use dirigent::tracker::TrackerError;

use super::{Candidate, Outcome, comments, permit, ticket};

#[track_caller]
fn assert_auth<T: std::fmt::Debug>(answer: Result<T, TrackerError>) {
    assert!(matches!(answer, Err(TrackerError::Auth(_))), "{answer:?}");
}

pub async fn lost_access_is_told_and_nothing_is_done<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let id = c.add("One", columns.todo, &[]).await;
    c.settle().await;
    c.lock_out(true).await?;
    let (tracker, states, allowed) = (c.tracker(), columns.active(), permit());
    assert_auth(tracker.whoami().await);
    assert_auth(tracker.fetch_by_states(&states).await);
    assert_auth(tracker.poll(&states, None).await);
    assert_auth(tracker.fetch_by_ids(std::slice::from_ref(&id)).await);
    assert_auth(tracker.comments(&id, None).await);
    assert_auth(tracker.comment(&allowed, &id, "started:1", "Started.", c.now()).await);
    assert_auth(tracker.move_ticket(&allowed, &id, columns.doing, &[]).await);
    assert_auth(tracker.label(&allowed, &id, &["agent".to_owned()], &[]).await);
    assert_auth(tracker.probe().await);
    c.lock_out(false).await?;
    let after = ticket(c, &id).await;
    assert_eq!((after.state.as_str(), after.labels.len()), (columns.todo, 0), "nothing was done");
    let written = c.tracker().comment(&allowed, &id, "started:1", "Started.", c.now()).await.unwrap();
    assert!(!written.existed);
    Ok(())
}

pub async fn a_limit_is_told_with_its_end<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    c.settle().await;
    let limited = TrackerError::RateLimited { retry_after: Some(Duration::from_secs(90)) };
    c.limit_next(Duration::from_secs(90)).await?;
    assert_eq!(c.tracker().fetch_by_states(&c.columns().active()).await, Err(limited.clone()));
    c.limit_next(Duration::from_secs(90)).await?;
    assert_eq!(c.tracker().comment(&permit(), &id, "started:1", "Started.", c.now()).await, Err(limited));
    assert!(comments(c, &id).await.is_empty(), "nothing was done");
    Ok(())
}

pub async fn what_is_not_there_cannot_be_written_to<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    c.delete(&id).await;
    c.settle().await;
    let (tracker, allowed) = (c.tracker(), permit());
    let gone = |id: &TicketId| Err(TrackerError::NotFound(id.clone()));
    assert_eq!(tracker.comment(&allowed, &id, "started:1", "Started.", c.now()).await.map(|_| ()), gone(&id));
    assert_eq!(tracker.move_ticket(&allowed, &id, c.columns().done, &[]).await.map(|_| ()), gone(&id));
    assert_eq!(tracker.label(&allowed, &id, &["agent".to_owned()], &[]).await, gone(&id));
    assert_eq!(tracker.comments(&id, None).await.map(|_| ()), gone(&id));
    Ok(())
}
