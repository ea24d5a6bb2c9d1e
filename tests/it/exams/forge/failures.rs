//! Errors keep their structure: what has to happen next can be told from each of them.

use std::time::Duration;

use dirigent::domain::ids::{CommitId, PrNumber};
use dirigent::domain::pr::PrState;
use dirigent::forge::ForgeError;

use super::{BRANCH, Candidate, Outcome, look, merge, new_pr, opened, permit};

#[track_caller]
fn assert_auth<T: std::fmt::Debug>(answer: Result<T, ForgeError>) {
    assert!(matches!(answer, Err(ForgeError::Auth(_))), "{answer:?}");
}

pub async fn lost_access_is_told_and_nothing_is_done<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let two = c.work("dirigent/two").await;
    c.settle().await;
    c.lock_out(true).await?;
    let forge = c.forge();
    assert_auth(forge.find_pr(BRANCH).await);
    assert_auth(forge.inspect(pr.number).await);
    assert_auth(forge.push_branch(&permit(), "dirigent/two", &two, None).await);
    assert_auth(forge.open_pr(&permit(), &new_pr(c, "dirigent/two", &two)).await);
    assert_auth(forge.update_branch(&permit(), pr.number, &pr.head).await);
    assert_auth(merge(c, pr.number, &pr.head).await);
    assert_auth(forge.delete_branch(&permit(), BRANCH, &pr.head).await);
    c.lock_out(false).await?;
    assert_eq!(look(c, pr.number).await.state, PrState::Open, "nothing was done");
    assert_eq!(c.head(BRANCH).await, Some(pr.head.clone()));
    assert_eq!(c.forge().find_pr("dirigent/two").await.unwrap(), None);
    merge(c, pr.number, &pr.head).await.unwrap();
    assert_eq!(c.merges(pr.number).await, 1);
    Ok(())
}

pub async fn a_limit_is_told_with_its_end<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let limited = ForgeError::RateLimited { retry_after: Some(Duration::from_secs(90)) };
    c.limit_next(Duration::from_secs(90)).await?;
    assert_eq!(c.forge().inspect(pr.number).await, Err(limited.clone()));
    c.limit_next(Duration::from_secs(90)).await?;
    assert_eq!(merge(c, pr.number, &pr.head).await, Err(limited));
    assert_eq!(c.merges(pr.number).await, 0);
    Ok(())
}

pub async fn what_is_not_there_cannot_be_merged<C: Candidate>(c: &C) -> Outcome {
    let head: CommitId = c.work(BRANCH).await;
    let none = PrNumber(9999);
    let missing = ForgeError::NotFound(none);
    assert_eq!(merge(c, none, &head).await, Err(missing.clone()));
    assert_eq!(c.forge().reopen(&permit(), none).await, Err(missing.clone()));
    assert_eq!(c.forge().update_branch(&permit(), none, &head).await, Err(missing));
    Ok(())
}
