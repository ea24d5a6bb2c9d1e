//! Merges: the expected head into the expected base, once.

use dirigent::domain::ids::CommitId;
use dirigent::domain::pr::{MergeMethod, Mergeability, PrState};
use dirigent::forge::{ForgeError, MergeOrder, Merged};

use super::{BRANCH, Candidate, Outcome, look, merge, opened, permit};

pub async fn merges_once<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let before = c.head(c.base()).await;
    let first = merge(c, pr.number, &pr.head).await.unwrap();
    let landed = c.head(c.base()).await;
    assert_ne!(landed, before);
    assert_eq!(first, Merged::Done { commit: landed.clone() }, "the commit on the base");
    assert_eq!(merge(c, pr.number, &pr.head).await.unwrap(), first, "merged already is a success");
    assert_eq!((c.merges(pr.number).await, c.head(c.base()).await), (1, landed.clone()));
    let seen = look(c, pr.number).await;
    assert_eq!((seen.state, seen.head), (PrState::Merged { commit: landed }, pr.head));
    Ok(())
}

pub async fn merges_once_at_the_same_time<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let mut mergers = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (expected_head, expected_base) = (pr.head.clone(), c.base().to_owned());
        let order = MergeOrder {
            number: pr.number,
            expected_head,
            expected_base,
            method: MergeMethod::Squash,
            trailers: Vec::new(),
        };
        let forge = c.forge();
        mergers.spawn(async move { forge.merge(&permit(), &order).await.unwrap() });
    }
    let merged = mergers.join_all().await;
    assert!(merged.iter().all(|one| *one == merged[0]), "{merged:?}");
    assert_eq!(c.merges(pr.number).await, 1);
    Ok(())
}

pub async fn merges_by_every_method<C: Candidate>(c: &C) -> Outcome {
    for (branch, method) in [
        ("dirigent/squash", MergeMethod::Squash),
        ("dirigent/merge", MergeMethod::Merge),
        ("dirigent/rebase", MergeMethod::Rebase),
    ] {
        let pr = opened(c, branch).await;
        let (expected_head, expected_base) = (pr.head.clone(), c.base().to_owned());
        let order = MergeOrder { number: pr.number, expected_head, expected_base, method, trailers: Vec::new() };
        let merged = c.forge().merge(&permit(), &order).await.unwrap();
        assert_eq!(merged.commit().cloned(), c.head(c.base()).await, "{method:?}");
        assert!(matches!(look(c, pr.number).await.state, PrState::Merged { .. }), "{method:?}");
    }
    Ok(())
}

pub async fn merges_only_the_expected_head<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let base = c.head(c.base()).await;
    let actual = c.push(BRANCH).await;
    let moved = ForgeError::HeadMoved { expected: pr.head.clone(), actual: actual.clone() };
    assert_eq!(merge(c, pr.number, &pr.head).await, Err(moved));
    assert_eq!((c.merges(pr.number).await, c.head(c.base()).await), (0, base));
    merge(c, pr.number, &actual).await.unwrap();
    assert_eq!(c.merges(pr.number).await, 1);
    Ok(())
}

pub async fn merges_only_into_the_expected_base<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let base = c.head(c.base()).await;
    let (expected_head, expected_base) = (pr.head.clone(), "release".to_owned());
    let order = MergeOrder {
        number: pr.number,
        expected_head,
        expected_base,
        method: MergeMethod::Squash,
        trailers: Vec::new(),
    };
    let refused = c.forge().merge(&permit(), &order).await;
    let other = ForgeError::OtherBase { expected: "release".to_owned(), actual: c.base().to_owned() };
    assert_eq!(refused, Err(other));
    assert_eq!((c.merges(pr.number).await, c.head(c.base()).await), (0, base));
    assert_eq!(look(c, pr.number).await.state, PrState::Open);
    Ok(())
}

pub async fn a_changed_base_branch_is_not_merged_into<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.retarget(pr.number, "release").await?;
    assert_eq!(look(c, pr.number).await.base_branch, "release");
    let refused = merge(c, pr.number, &pr.head).await;
    let other = ForgeError::OtherBase { expected: c.base().to_owned(), actual: "release".to_owned() };
    assert_eq!(refused, Err(other));
    assert_eq!(c.merges(pr.number).await, 0);
    Ok(())
}

pub async fn a_merge_whose_answer_was_lost_is_one_merge<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.lose_next(false).await?;
    let lost = merge(c, pr.number, &pr.head).await;
    assert!(matches!(lost, Err(ForgeError::MaybeDone(_))), "{lost:?}");
    assert_eq!(look(c, pr.number).await.state, PrState::Open, "nothing was done");
    c.lose_next(true).await?;
    let lost = merge(c, pr.number, &pr.head).await;
    assert!(matches!(lost, Err(ForgeError::MaybeDone(_))), "{lost:?}");
    assert!(matches!(look(c, pr.number).await.state, PrState::Merged { .. }));
    assert!(matches!(merge(c, pr.number, &pr.head).await, Ok(Merged::Done { .. })));
    assert_eq!(c.merges(pr.number).await, 1);
    Ok(())
}

pub async fn a_conflict_names_its_files<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let files = c.contradict(BRANCH).await;
    let base = c.head(c.base()).await;
    // A forge may have to work it out first.
    look(c, pr.number).await;
    assert_eq!(look(c, pr.number).await.mergeability, Mergeability::Conflicting { files: files.clone() });
    let conflict = ForgeError::Conflict { files };
    assert_eq!(merge(c, pr.number, &pr.head).await, Err(conflict.clone()));
    assert_eq!(c.forge().update_branch(&permit(), pr.number, &pr.head).await, Err(conflict));
    assert_eq!((c.head(c.base()).await, c.head(BRANCH).await), (base, Some(pr.head)), "nothing was moved");
    assert_eq!(c.merges(pr.number).await, 0);
    Ok(())
}

pub async fn a_branch_is_deleted_only_where_it_was_merged<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    merge(c, pr.number, &pr.head).await.unwrap();
    let later: CommitId = c.push(BRANCH).await;
    let moved = ForgeError::HeadMoved { expected: pr.head.clone(), actual: later.clone() };
    assert_eq!(c.forge().delete_branch(&permit(), BRANCH, &pr.head).await, Err(moved));
    assert_eq!(c.head(BRANCH).await, Some(later.clone()), "what came after the merge is kept");
    for _ in 0..2 {
        c.forge().delete_branch(&permit(), BRANCH, &later).await.unwrap();
        assert_eq!(c.head(BRANCH).await, None);
    }
    let seen = look(c, pr.number).await;
    assert!(matches!(seen.state, PrState::Merged { .. }), "it stays merged");
    assert_eq!(seen.ref_head, None, "git has no such branch any more");
    Ok(())
}
