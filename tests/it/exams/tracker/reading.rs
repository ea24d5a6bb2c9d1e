//! Tickets by their states and by their ids, and who stands where.

use dirigent::domain::comment::TrustLevel;
use dirigent::domain::ids::TicketId;
use dirigent::tracker::{CommentFound, Found};

use super::{Candidate, Outcome, find, ids, list, ticket};

/// More than the page of any tracker holds.
const MANY: usize = 120;

pub async fn lists_all_tickets_of_the_asked_states<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let mut wanted = Vec::new();
    for number in 0..MANY {
        let state = if number % 2 == 0 { columns.todo } else { columns.doing };
        wanted.push(c.add(&format!("Ticket {number}"), state, &[]).await);
    }
    let done = c.add("Finished", columns.done, &[]).await;
    wanted.sort();
    // As somebody may have written them into the workflow.
    let spelt = [format!(" {} ", columns.todo.to_uppercase()), columns.doing.to_lowercase()];
    assert_eq!(ids(&list(c, &spelt).await), wanted, "every page, each ticket once");
    assert_eq!(ids(&list(c, &[columns.done.to_owned()]).await), [done]);
    assert!(list(c, &["no such state".to_owned()]).await.is_empty());
    Ok(())
}

pub async fn a_listing_that_breaks_off_is_an_error<C: Candidate>(c: &C) -> Outcome {
    let states = c.columns().active();
    let id = c.add("Here", c.columns().todo, &[]).await;
    c.settle().await;
    c.break_listings(true).await?;
    let tracker = c.tracker();
    assert!(tracker.fetch_by_states(&states).await.is_err());
    assert!(tracker.poll(&states, None).await.is_err());
    c.break_listings(false).await?;
    assert_eq!(ids(&list(c, &states).await), [id]);
    Ok(())
}

pub async fn a_ticket_by_its_id_is_whole<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("Whole", c.columns().done, &["Bug", "ui"]).await;
    c.say(&id, "first").await;
    c.say(&id, "second").await;
    let found = ticket(c, &id).await;
    assert_eq!((found.id, found.title.as_str()), (id, "Whole"));
    assert_eq!(found.state.to_lowercase(), c.columns().done.to_lowercase(), "in whatever state it is");
    assert_eq!(found.labels, ["bug", "ui"]);
    let comments = found.comments.expect("a ticket that was asked for brings its comments");
    let texts: Vec<&str> = comments.iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!(texts, ["first", "second"], "oldest first");
    Ok(())
}

pub async fn nothing_asked_is_nothing_answered<C: Candidate>(c: &C) -> Outcome {
    c.add("Here", c.columns().todo, &[]).await;
    c.settle().await;
    assert!(c.tracker().fetch_by_states(&[]).await.unwrap().is_empty());
    assert!(c.tracker().fetch_by_ids(&[]).await.unwrap().is_empty());
    Ok(())
}

pub async fn a_deleted_ticket_is_gone_and_hides_no_other<C: Candidate>(c: &C) -> Outcome {
    let stays = c.add("Stays", c.columns().todo, &[]).await;
    let goes = c.add("Goes", c.columns().todo, &[]).await;
    assert!(matches!(find(c, &goes).await, Found::Ticket(_)));
    c.delete(&goes).await;
    match find(c, &goes).await {
        Found::Gone(why) => assert!(!why.is_empty()),
        other => panic!("{other:?}"),
    }
    // One that never was may come to be.
    let never = TicketId::new("no-such-ticket-9999");
    assert!(matches!(find(c, &never).await, Found::Gone(_) | Found::NotVisible));
    let together = c.tracker().fetch_by_ids(&[never, goes, stays.clone()]).await.unwrap();
    assert_eq!(together.len(), 3, "{together:?}");
    let there: Vec<&TicketId> =
        together.iter().filter(|(_, found)| matches!(found, Found::Ticket(_))).map(|(id, _)| id).collect();
    assert_eq!(there, [&stays]);
    assert_eq!(ids(&list(c, &c.columns().active()).await), [stays]);
    Ok(())
}

pub async fn a_hidden_ticket_is_not_gone_and_hides_no_other<C: Candidate>(c: &C) -> Outcome {
    let stays = c.add("Stays", c.columns().todo, &[]).await;
    let hidden = c.add("Hidden", c.columns().todo, &[]).await;
    let word = c.say(&hidden, "not like this").await;
    c.settle().await;
    c.hide(&hidden).await?;
    assert_eq!(find(c, &hidden).await, Found::NotVisible);
    let found = c.tracker().find_comment(&hidden, &word).await;
    assert_ne!(found, Ok(CommentFound::Gone), "nobody took it back");
    assert!(matches!(find(c, &stays).await, Found::Ticket(_)));
    assert_eq!(ids(&list(c, &c.columns().active()).await), [stays]);
    Ok(())
}

pub async fn an_unreadable_ticket_hides_no_other<C: Candidate>(c: &C) -> Outcome {
    let fine = c.add("Fine", c.columns().todo, &[]).await;
    let broken = c.add("Broken", c.columns().todo, &[]).await;
    c.settle().await;
    c.garble(&broken).await?;
    match find(c, &broken).await {
        Found::Unreadable(why) => assert!(!why.is_empty()),
        other => panic!("{other:?}"),
    }
    let both = c.tracker().fetch_by_ids(&[broken, fine.clone()]).await.unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.iter().any(|(id, found)| *id == fine && matches!(found, Found::Ticket(_))), "{both:?}");
    assert_eq!(ids(&list(c, &c.columns().active()).await), [fine]);
    Ok(())
}

pub async fn says_who_we_are_and_what_others_may<C: Candidate>(c: &C) -> Outcome {
    let us = c.tracker().whoami().await.unwrap();
    assert!(!us.login.trim().is_empty());
    c.grant("keeper", C::STANDING).await?;
    c.settle().await;
    assert_eq!(c.tracker().permission("keeper").await.unwrap(), C::STANDING);
    c.grant("keeper", TrustLevel::Stranger).await?;
    c.settle().await;
    assert_eq!(c.tracker().permission("keeper").await.unwrap(), TrustLevel::Stranger, "it was taken back");
    assert_eq!(c.tracker().permission("passer-by").await.unwrap(), TrustLevel::Stranger);
    Ok(())
}

pub async fn says_whether_it_can_be_reached<C: Candidate>(c: &C) -> Outcome {
    assert!(c.tracker().probe().await.unwrap().contains(' '), "a sentence for `doctor`");
    c.break_listings(true).await?;
    assert!(c.tracker().probe().await.is_err());
    Ok(())
}
