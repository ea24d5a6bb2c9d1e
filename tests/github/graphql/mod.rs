//! GraphQL.
use super::contract::graphql::Question;
use super::server::caller::Caller;
use super::server::exchange::Answer;
use super::state::World;
pub fn answer(_: &mut World, _: &Question, _: &Caller) -> Answer {
    Answer::general(500, "not yet")
}
