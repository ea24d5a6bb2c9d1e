//! Branches and their pull requests: one open one per branch, however often it is asked for.

use dirigent::domain::ids::CommitId;
use dirigent::domain::pr::PrState;
use dirigent::forge::ForgeError;

use super::{BRANCH, Candidate, Outcome, assert_refused, look, merge, new_pr, opened, permit};

pub async fn a_branch_is_pushed_as_often_as_one_likes<C: Candidate>(c: &C) -> Outcome {
    let first = c.work(BRANCH).await;
    for _ in 0..2 {
        c.forge().push_branch(&permit(), BRANCH, &first, None).await.unwrap();
        assert_eq!(c.head(BRANCH).await, Some(first.clone()));
    }
    let number = c.forge().open_pr(&permit(), &new_pr(c, BRANCH, &first)).await.unwrap().number;
    let second = c.work(BRANCH).await;
    assert_ne!(first, second);
    c.forge().push_branch(&permit(), BRANCH, &second, None).await.unwrap();
    let seen = look(c, number).await;
    assert_eq!((seen.head, seen.ref_head), (second.clone(), Some(second)));
    Ok(())
}

pub async fn a_pull_request_is_opened_once_per_branch<C: Candidate>(c: &C) -> Outcome {
    assert_eq!(c.forge().find_pr(BRANCH).await.unwrap(), None);
    let pr = opened(c, BRANCH).await;
    assert_eq!((pr.title.as_str(), pr.base_branch.as_str()), ("Work on dirigent/one", c.base()));
    assert_eq!((&pr.state, pr.draft, pr.labels.as_slice()), (&PrState::Open, false, ["auto".to_owned()].as_slice()));
    let mut again = new_pr(c, BRANCH, &pr.head);
    again.title = "Another title".to_owned();
    assert_eq!(c.forge().open_pr(&permit(), &again).await.unwrap().number, pr.number);
    let other = opened(c, "dirigent/two").await;
    assert_ne!(other.number, pr.number);
    c.settle().await;
    assert_eq!(c.forge().find_pr(BRANCH).await.unwrap().unwrap().number, pr.number);
    Ok(())
}

pub async fn a_pull_request_whose_answer_was_lost_is_opened_once<C: Candidate>(c: &C) -> Outcome {
    for (branch, done) in [("dirigent/done", true), ("dirigent/not-done", false)] {
        let head = c.work(branch).await;
        c.forge().push_branch(&permit(), branch, &head, None).await.unwrap();
        c.lose_next(done).await?;
        let lost = c.forge().open_pr(&permit(), &new_pr(c, branch, &head)).await;
        assert!(matches!(lost, Err(ForgeError::MaybeDone(_))), "{lost:?}");
        c.settle().await;
        assert_eq!(c.forge().find_pr(branch).await.unwrap().is_some(), done);
        let first = c.forge().open_pr(&permit(), &new_pr(c, branch, &head)).await.unwrap();
        let again = c.forge().open_pr(&permit(), &new_pr(c, branch, &head)).await.unwrap();
        assert_eq!(first.number, again.number);
    }
    Ok(())
}

pub async fn a_pull_request_is_opened_once_at_the_same_time<C: Candidate>(c: &C) -> Outcome {
    for round in 0..10 {
        let branch = format!("dirigent/round-{round}");
        let head = c.work(&branch).await;
        c.forge().push_branch(&permit(), &branch, &head, None).await.unwrap();
        let mut openers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (forge, new) = (c.forge(), new_pr(c, &branch, &head));
            openers.spawn(async move { forge.open_pr(&permit(), &new).await.unwrap().number });
        }
        let numbers = openers.join_all().await;
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    }
    Ok(())
}

pub async fn a_merged_branch_can_have_another_pull_request<C: Candidate>(c: &C) -> Outcome {
    let first = opened(c, BRANCH).await;
    merge(c, first.number, &first.head).await.unwrap();
    let second = opened(c, BRANCH).await;
    assert_ne!(first.number, second.number);
    c.settle().await;
    let found = c.forge().find_pr(BRANCH).await.unwrap().unwrap();
    assert_eq!((found.number, found.state), (second.number, PrState::Open), "the open one comes first");
    assert!(matches!(look(c, first.number).await.state, PrState::Merged { .. }), "the first stays merged");
    Ok(())
}

pub async fn a_closed_one_is_not_merged_and_can_come_back<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.close(pr.number).await;
    let closed = look(c, pr.number).await;
    assert_eq!((closed.state, closed.ref_head), (PrState::Closed, c.head(BRANCH).await));
    assert_refused(merge(c, pr.number, &pr.head).await);
    assert_eq!(c.merges(pr.number).await, 0);
    for _ in 0..2 {
        c.forge().reopen(&permit(), pr.number).await.unwrap();
        let back: (PrState, CommitId) = {
            let seen = look(c, pr.number).await;
            (seen.state, seen.head)
        };
        assert_eq!(back, (PrState::Open, pr.head.clone()));
    }
    merge(c, pr.number, &pr.head).await.unwrap();
    assert_refused(c.forge().reopen(&permit(), pr.number).await);
    assert!(matches!(look(c, pr.number).await.state, PrState::Merged { .. }));
    Ok(())
}
