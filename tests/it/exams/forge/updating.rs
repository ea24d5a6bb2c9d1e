//! The base brought into a branch, and what is ours on the page of a pull request.

use dirigent::domain::pr::PrState;
use dirigent::forge::{ForgeError, PrChange, Updated};

use super::{BRANCH, Candidate, Outcome, look, merge, opened, permit};

pub async fn the_base_is_brought_into_the_branch<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let forge = c.forge();
    let nothing = forge.update_branch(&permit(), pr.number, &pr.head).await.unwrap();
    assert_eq!(nothing, Updated { head: pr.head.clone(), same_diff: true }, "it has the base already");
    c.advance_base().await;
    let updated = forge.update_branch(&permit(), pr.number, &pr.head).await.unwrap();
    assert_ne!(updated.head, pr.head);
    assert!(updated.same_diff);
    assert_eq!(c.head(BRANCH).await, Some(updated.head.clone()), "the new head is the branch's");
    let seen = look(c, pr.number).await;
    assert_eq!((&seen.head, seen.shows_true_head()), (&updated.head, true));
    let again = forge.update_branch(&permit(), pr.number, &updated.head).await.unwrap();
    assert_eq!(again, updated);
    merge(c, pr.number, &updated.head).await.unwrap();
    let after = forge.update_branch(&permit(), pr.number, &updated.head).await.unwrap();
    assert_eq!(after.head, updated.head, "a merged one is left alone");
    assert!(matches!(look(c, pr.number).await.state, PrState::Merged { .. }));
    Ok(())
}

pub async fn an_update_that_changes_the_change_says_so<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.absorb(BRANCH).await;
    let updated = c.forge().update_branch(&permit(), pr.number, &pr.head).await.unwrap();
    assert_ne!(updated.head, pr.head);
    assert!(!updated.same_diff, "the base has a part of it now");
    Ok(())
}

pub async fn the_same_change_is_what_git_calls_so<C: Candidate>(c: &C) -> Outcome {
    let other = opened(c, "dirigent/two").await;
    let pr = opened(c, BRANCH).await;
    for (branch, pr, same) in [(BRANCH, pr, true), ("dirigent/two", other, false)] {
        let before = c.diff(branch).await?;
        if same {
            c.advance_base().await
        } else {
            c.absorb(branch).await
        }
        let updated = c.forge().update_branch(&permit(), pr.number, &pr.head).await.unwrap();
        assert_eq!(updated.same_diff, same, "{branch}");
        assert_eq!(before == c.diff(branch).await?, same, "{branch}");
    }
    Ok(())
}

pub async fn only_the_expected_head_is_updated<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    c.advance_base().await;
    let actual = c.push(BRANCH).await;
    let moved = ForgeError::HeadMoved { expected: pr.head.clone(), actual: actual.clone() };
    assert_eq!(c.forge().update_branch(&permit(), pr.number, &pr.head).await, Err(moved));
    assert_eq!(c.head(BRANCH).await, Some(actual));
    Ok(())
}

pub async fn title_text_draft_and_labels_are_changed<C: Candidate>(c: &C) -> Outcome {
    let pr = opened(c, BRANCH).await;
    let change = PrChange {
        title: Some("A better title".to_owned()),
        body: Some("What was really done.".to_owned()),
        draft: Some(true),
        add_labels: vec!["Waiting".to_owned(), "auto".to_owned()],
    };
    if let Err(ForgeError::Refused(sentence)) = c.forge().update_pr(&permit(), pr.number, &change).await {
        assert!(sentence.contains(' '), "not a sentence: {sentence:?}");
        return Ok(());
    }
    c.append(pr.number, "\nA person's own note.").await?;
    for _ in 0..2 {
        c.forge().update_pr(&permit(), pr.number, &change).await.unwrap();
        let seen = look(c, pr.number).await;
        assert_eq!((seen.title.as_str(), seen.draft), ("A better title", true));
        assert_eq!(seen.labels, ["auto", "waiting"]);
        let body = c.body(pr.number).await?;
        assert!(!body.contains("What was done."), "{body}");
        assert_eq!(body.matches("What was really done.").count(), 1, "{body}");
        assert_eq!(body.matches("A person's own note.").count(), 1, "what a person wrote stays: {body}");
    }
    c.forge().update_pr(&permit(), pr.number, &PrChange { draft: Some(false), ..PrChange::default() }).await.unwrap();
    let seen = look(c, pr.number).await;
    assert_eq!((seen.title.as_str(), seen.draft), ("A better title", false), "what is not named is left alone");
    Ok(())
}
