//! Looks: each part is complete or unknown, and the head is what git says.

use dirigent::domain::ids::PrNumber;
use dirigent::domain::pr::{CheckStatus, PrState};
use dirigent::forge::ForgeError;
use dirigent::forge::memory::LookPart;

use super::{BRANCH, Candidate, Outcome, look, opened, permit};

pub async fn a_look_is_complete<C: Candidate>(c: &C) -> Outcome {
    let opened = opened(c, BRANCH).await;
    let pr = look(c, opened.number).await;
    assert!(pr.is_complete(), "{pr:?}");
    assert!(pr.required_checks.is_some());
    assert!(pr.shows_true_head());
    assert_eq!((pr.number, &pr.head), (opened.number, &opened.head));
    assert_eq!(pr.base, c.head(c.base()).await, "the base as it is now");
    assert!(!pr.in_queue);
    Ok(())
}

pub async fn an_unknown_number_hides_no_other<C: Candidate>(c: &C) -> Outcome {
    let one = opened(c, BRANCH).await.number;
    let two = opened(c, "dirigent/two").await.number;
    c.settle().await;
    let none = PrNumber(9999);
    let looks = c.forge().inspect_many(&[one, none, two]).await;
    assert_eq!(looks.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [one, none, two]);
    for (number, look) in looks {
        match look {
            Ok(look) => assert_eq!(look.pr.number, number),
            Err(error) => assert_eq!((number, error), (none, ForgeError::NotFound(none))),
        }
    }
    assert!(c.forge().inspect_many(&[]).await.is_empty());
    Ok(())
}

pub async fn a_part_that_was_not_read_is_unknown<C: Candidate>(c: &C) -> Outcome {
    let number = opened(c, BRANCH).await.number;
    for part in LookPart::ALL {
        c.withhold(number, part).await?;
        let pr = look(c, number).await;
        let known = [
            (LookPart::RefHead, pr.ref_head.is_some()),
            (LookPart::Checks, pr.checks.is_some()),
            (LookPart::RequiredChecks, pr.required_checks.is_some()),
            (LookPart::Reviews, pr.reviews.is_some()),
            (LookPart::Threads, pr.threads.is_some()),
            (LookPart::Comments, pr.comments.is_some()),
        ];
        for (other, known) in known {
            assert_eq!(known, other != part, "{other:?} when {part:?} was not read");
        }
        // Where the required ones cannot be read, every check is one.
        assert_eq!(pr.is_complete(), part == LookPart::RequiredChecks, "{part:?}");
    }
    Ok(())
}

pub async fn the_head_is_what_git_says<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.settle().await;
    c.lag().await?;
    let ours = c.work(BRANCH).await;
    c.forge().push_branch(&permit(), BRANCH, &ours, None).await.unwrap();
    let theirs = c.push(BRANCH).await;
    let (mut late, mut looks) = (0, 0);
    for _ in 0..6 {
        let seen = c.forge().inspect(pr.number).await.unwrap();
        assert_eq!(seen.ref_head.as_ref(), Some(&theirs), "git does not lag");
        assert!([&pr.head, &ours, &theirs].contains(&&seen.head), "a head that the branch once had");
        assert_eq!(seen.shows_true_head(), seen.head == theirs);
        late += usize::from(!seen.shows_true_head());
        looks += 1;
    }
    assert!(late > 0, "none of {looks} looks lagged");
    let settled = look(c, pr.number).await;
    assert_eq!((&settled.head, settled.shows_true_head()), (&theirs, true));
    Ok(())
}

pub async fn a_head_has_the_checks_that_were_run_on_it<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.report(pr.number, "build", true, "").await;
    c.report(pr.number, "lint", false, "a line is too long").await;
    let mut checks = look(c, pr.number).await.checks.unwrap();
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.status)).collect();
    assert_eq!(seen, [("build", CheckStatus::Passed), ("lint", CheckStatus::Failed)]);
    let log = match &checks[1].log_tail {
        Some(log) => log.clone(),
        None => c.forge().check_log(&checks[1].id).await.unwrap(),
    };
    assert!(log.contains("a line is too long"), "{log:?}");
    let next = c.push(BRANCH).await;
    let seen = look(c, pr.number).await;
    assert_eq!((seen.head, seen.checks), (next, Some(Vec::new())), "nothing has run on the new head");
    Ok(())
}

pub async fn a_merge_by_hand_is_seen<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let other = opened(c, "dirigent/two").await;
    c.merge_by_hand(pr.number).await;
    assert!(matches!(look(c, pr.number).await.state, PrState::Merged { .. }));
    assert_eq!(look(c, other.number).await.state, PrState::Open);
    let base = c.head(c.base()).await;
    super::merge(c, pr.number, &pr.head).await.unwrap();
    assert_eq!(c.head(c.base()).await, base, "merged already is a success, and nothing is merged again");
    Ok(())
}
