//! What every tracker has to be able to do.

pub mod comments;
pub mod failures;
pub mod polling;
pub mod reading;
pub mod writing;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dirigent::domain::comment::{Comment, TrustLevel};
use dirigent::domain::ids::{CommentId, TicketId};
use dirigent::domain::ticket::Ticket;
use dirigent::domain::time::Timestamp;
use dirigent::tracker::{Found, Tracker, TrackerError};

use super::permit;

pub use super::{Cannot, Gaps, Outcome};

/// A tracker with the board behind it and the people before it.
#[async_trait]
pub trait Candidate: Send + Sync + Sized {
    const CANNOT: Gaps;
    /// A standing, besides that of whoever owns everything, that lets somebody's words count here.
    const STANDING: TrustLevel = TrustLevel::Maintain;
    /// Whether the tracker names whoever moved a ticket, or says nothing about it at all.
    const NAMES_MOVERS: bool = true;

    /// An empty board of its own.
    async fn fresh() -> Self;

    fn tracker(&self) -> Arc<dyn Tracker>;

    /// Another adapter for the same board: the next life of the runner.
    fn next_life(&self) -> Arc<dyn Tracker>;

    fn columns(&self) -> Columns;

    /// The name that a person's writings carry.
    fn person(&self) -> String;

    /// The time by the tracker's clock.
    fn now(&self) -> Timestamp;

    /// Lets everything that was done become visible. Where nothing lags there is nothing to wait for.
    async fn settle(&self) {}

    async fn add(&self, title: &str, state: &str, labels: &[&str]) -> TicketId;
    async fn retitle(&self, id: &TicketId, title: &str);
    async fn shift(&self, id: &TicketId, state: &str);
    async fn delete(&self, id: &TicketId);
    async fn say(&self, id: &TicketId, text: &str) -> CommentId;
    async fn reword(&self, id: &TicketId, comment: &CommentId, text: &str);
    async fn unsay(&self, id: &TicketId, comment: &CommentId);

    async fn grant(&self, _login: &str, _trust: TrustLevel) -> Outcome {
        Err(Cannot("give somebody another permission"))
    }

    /// Lets a ticket be missing from complete answers.
    async fn hide(&self, _id: &TicketId) -> Outcome {
        Err(Cannot("hide a ticket that is there"))
    }

    /// Lets a ticket be there and not be understood.
    async fn garble(&self, id: &TicketId) -> Outcome;

    /// Lets every listing fail before its end.
    async fn break_listings(&self, broken: bool) -> Outcome;

    /// The next write's answer is lost, and so is the request unless it was `done`.
    async fn lose_next(&self, _done: bool) -> Outcome {
        Err(Cannot("lose an answer"))
    }

    /// From now on, nothing becomes visible before it settles.
    async fn lag(&self) -> Outcome {
        Err(Cannot("show the board as it was a while ago"))
    }

    async fn lock_out(&self, _out: bool) -> Outcome {
        Err(Cannot("refuse our access"))
    }

    /// The next call is told to come back after this time.
    async fn limit_next(&self, _wait: Duration) -> Outcome {
        Err(Cannot("limit our requests"))
    }

    /// How many reactions the comment has.
    async fn reactions(&self, _comment: &CommentId) -> Result<usize, Cannot> {
        Err(Cannot("show reactions"))
    }

    /// Address and title of each link.
    async fn links(&self, _id: &TicketId) -> Result<Vec<(String, String)>, Cannot> {
        Err(Cannot("show links"))
    }
}

/// The names of three columns; the first two are worked on.
pub struct Columns {
    pub todo: &'static str,
    pub doing: &'static str,
    pub done: &'static str,
}

impl Columns {
    fn active(&self) -> Vec<String> {
        vec![self.todo.to_owned(), self.doing.to_owned()]
    }
}

/// Every check, one test each.
macro_rules! tracker_exam {
    ($candidate:ty) => {
        papers! {
            $candidate, $crate::exams::tracker;
            reading: {
                lists_all_tickets_of_the_asked_states,
                a_listing_that_breaks_off_is_an_error,
                a_ticket_by_its_id_is_whole,
                nothing_asked_is_nothing_answered,
                a_deleted_ticket_is_gone_and_hides_no_other,
                a_hidden_ticket_is_not_gone_and_hides_no_other,
                an_unreadable_ticket_hides_no_other,
                says_who_we_are_and_what_others_may,
                says_whether_it_can_be_reached,
            }
            polling: {
                unchanged_stands_for_the_same_list,
                every_kind_of_change_is_told,
                a_mark_outlives_its_adapter,
                an_old_reading_is_followed_by_a_new_one,
                a_change_is_hinted_at,
            }
            comments: {
                comments_have_authors_and_versions,
                written_or_changed_since_then,
                a_comment_is_written_once_per_key,
                a_comment_whose_answer_was_lost_is_written_once,
                a_comment_is_written_once_at_the_same_time,
                an_edit_keeps_the_comment_and_its_key,
                a_comment_that_somebody_deleted_is_gone,
                a_comment_of_somebody_else_is_left_alone,
                ours_is_told_from_a_persons,
                a_copied_mark_is_not_ours,
            }
            writing: {
                a_ticket_is_moved_only_from_where_it_was_expected,
                a_move_whose_answer_was_lost_is_found_done,
                labels_are_added_and_removed_whatever_their_spelling,
                a_reaction_counts_once,
                a_link_is_attached_once,
                a_ticket_is_created_once_per_key,
                a_ticket_whose_answer_was_lost_is_created_once,
                a_ticket_is_created_once_at_the_same_time,
            }
            failures: {
                lost_access_is_told_and_nothing_is_done,
                a_limit_is_told_with_its_end,
                what_is_not_there_cannot_be_written_to,
            }
        }
    };
}

/// What the tracker says about a ticket once everything is visible.
async fn find(c: &impl Candidate, id: &TicketId) -> Found {
    c.settle().await;
    let mut found = c.tracker().fetch_by_ids(std::slice::from_ref(id)).await.unwrap();
    assert_eq!(found.len(), 1, "one answer per id: {found:?}");
    let (of, found) = found.remove(0);
    assert_eq!(of, *id);
    found
}

async fn ticket(c: &impl Candidate, id: &TicketId) -> Ticket {
    match find(c, id).await {
        Found::Ticket(ticket) => ticket,
        other => panic!("{id} is {other:?}"),
    }
}

async fn comments(c: &impl Candidate, id: &TicketId) -> Vec<Comment> {
    c.settle().await;
    c.tracker().comments(id, None).await.unwrap()
}

async fn list(c: &impl Candidate, states: &[String]) -> Vec<Ticket> {
    c.settle().await;
    c.tracker().fetch_by_states(states).await.unwrap()
}

/// Without order.
fn ids(tickets: &[Ticket]) -> Vec<TicketId> {
    let mut ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id.clone()).collect();
    ids.sort();
    ids
}

/// A refusal that tells a person something.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, TrackerError>) {
    match answer {
        Err(TrackerError::Refused(sentence)) => assert!(sentence.contains(' '), "not a sentence: {sentence:?}"),
        other => panic!("not refused: {other:?}"),
    }
}
