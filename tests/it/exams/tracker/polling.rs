//! Asking again and again: what is answered must never lose a change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dirigent::domain::hint::Hint;
use dirigent::domain::ids::TicketId;
use dirigent::domain::ticket::{Ticket, state_in};
use dirigent::tracker::{BoardAnswer, Mark, Tracker};

use super::{Candidate, Outcome, list, permit, ticket};

/// Follows the board as the runner does.
struct Follower {
    tracker: Arc<dyn Tracker>,
    states: Vec<String>,
    mark: Option<Mark>,
    view: BTreeMap<TicketId, Ticket>,
}

impl Follower {
    fn new<C: Candidate>(c: &C) -> Self {
        Self { tracker: c.tracker(), states: c.columns().active(), mark: None, view: BTreeMap::new() }
    }

    /// Asks once. Answers whether there was anything new.
    async fn ask(&mut self) -> bool {
        match self.tracker.poll(&self.states, self.mark.as_ref()).await.unwrap().answer {
            BoardAnswer::Listed { tickets, mark } => {
                self.mark = mark;
                let view = tickets.into_iter().map(|ticket| (ticket.id.clone(), ticket)).collect();
                let is_new = self.view != view;
                self.view = view;
                is_new
            }
            BoardAnswer::Changed { tickets, mark } => {
                self.mark = Some(mark);
                for ticket in tickets {
                    self.view.insert(ticket.id.clone(), ticket);
                }
                true
            }
            BoardAnswer::Unchanged => {
                assert!(self.mark.is_some(), "unchanged since when?");
                false
            }
        }
    }

    /// Asks once everything is visible, and holds what it knows against the whole list.
    async fn keep_up<C: Candidate>(&mut self, c: &C) -> bool {
        c.settle().await;
        let is_new = self.ask().await;
        let whole: BTreeMap<TicketId, Ticket> =
            list(c, &self.states).await.into_iter().map(|ticket| (ticket.id.clone(), ticket)).collect();
        let known: BTreeMap<TicketId, Ticket> = self
            .view
            .iter()
            .filter(|(_, ticket)| state_in(&ticket.state, &self.states))
            .map(|(id, ticket)| (id.clone(), ticket.clone()))
            .collect();
        assert_eq!(known, whole, "what is known by polling is what a list says");
        is_new
    }
}

pub async fn unchanged_stands_for_the_same_list<C: Candidate>(c: &C) -> Outcome {
    c.add("One", c.columns().todo, &[]).await;
    c.add("Two", c.columns().doing, &[]).await;
    let mut follower = Follower::new(c);
    assert!(follower.keep_up(c).await);
    for _ in 0..3 {
        assert!(!follower.keep_up(c).await, "nothing happened");
    }
    Ok(())
}

pub async fn every_kind_of_change_is_told<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let id = c.add("One", columns.todo, &["ui"]).await;
    c.add("Another", columns.todo, &[]).await;
    let mut follower = Follower::new(c);
    follower.keep_up(c).await;

    c.add("A third", columns.doing, &[]).await;
    assert!(follower.keep_up(c).await, "a new ticket");
    c.retitle(&id, "One, differently").await;
    assert!(follower.keep_up(c).await, "another title");
    let comment = c.say(&id, "a word").await;
    assert!(follower.keep_up(c).await, "a comment");
    c.reword(&id, &comment, "another word").await;
    assert!(follower.keep_up(c).await, "another text of a comment");
    c.shift(&id, columns.doing).await;
    assert!(follower.keep_up(c).await, "a move within the asked states");
    if c.tracker().capabilities().labels {
        c.tracker().label(&permit(), &id, &["extra".to_owned()], &[]).await.unwrap();
        assert!(follower.keep_up(c).await, "a label of ours");
    }
    c.shift(&id, columns.done).await;
    assert!(follower.keep_up(c).await, "a move out of the asked states");
    c.shift(&id, columns.todo).await;
    assert!(follower.keep_up(c).await, "a move back");
    assert_eq!(ticket(c, &id).await.title, "One, differently");
    Ok(())
}

pub async fn a_mark_outlives_its_adapter<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let mut follower = Follower::new(c);
    follower.keep_up(c).await;
    // The next life asks with the mark that the last one left in the ledger.
    follower.tracker = c.next_life();
    follower.keep_up(c).await;
    c.retitle(&id, "Changed between two lives").await;
    follower.tracker = c.next_life();
    assert!(follower.keep_up(c).await, "a change that no adapter was there to see");
    Ok(())
}

pub async fn an_old_reading_is_followed_by_a_new_one<C: Candidate>(c: &C) -> Outcome {
    let columns = c.columns();
    let id = c.add("Before", columns.todo, &[]).await;
    let mut follower = Follower::new(c);
    follower.keep_up(c).await;
    c.lag().await?;
    let before = ticket(c, &id).await;
    c.retitle(&id, "After").await;
    c.shift(&id, columns.doing).await;
    for _ in 0..4 {
        follower.ask().await;
        let shown = &follower.view[&id];
        let whole = (shown.title.as_str(), shown.state.as_str());
        let was = [("Before", columns.todo), ("After", columns.todo), ("After", columns.doing)];
        assert!(was.contains(&whole), "a ticket as it was at some time, never a mixture: {whole:?}, {before:?}");
    }
    follower.keep_up(c).await;
    assert_eq!(follower.view[&id].title, "After", "the mark of an old answer does not stand for the new one");
    Ok(())
}

pub async fn a_change_is_hinted_at<C: Candidate>(c: &C) -> Outcome {
    let id = c.add("One", c.columns().todo, &[]).await;
    let Some(mut changes) = c.tracker().changes() else { return Ok(()) };
    // A watch may begin with what was there.
    while tokio::time::timeout(Duration::from_millis(300), changes.recv()).await.is_ok() {}
    c.retitle(&id, "Two").await;
    let hint = tokio::time::timeout(Duration::from_secs(30), changes.recv()).await.expect("hinted at in time");
    assert!(matches!(hint, Ok(Hint::Ticket { id: hinted, .. }) if hinted == id), "a hint names the ticket");
    Ok(())
}
