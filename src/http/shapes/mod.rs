//! The types of the API's responses: the shapes that Symphony's specification recommends, plus Dirigent's own fields. The schema in
//! `openapi.json` is generated from them. Times are RFC 3339.

mod state;
mod ticket;

pub use state::{ChangeEvent, StateAnswer, state_answer};
pub use ticket::{RunAnswer, StoryLine, TicketAnswer, TicketShape, TokenCounts, ticket_answer, ticket_shape};

use crate::domain::time::Timestamp;

/// Formats a time as RFC 3339 in UTC, with milliseconds.
pub fn time(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
