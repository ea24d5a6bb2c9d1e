//! What the simulator shares with the tests of the engine: plain data to start from, and the invariants.

#[path = "../it/engine/fixtures.rs"]
#[expect(dead_code, reason = "the engine's own tests use the rest")]
pub mod fixtures;
#[path = "../it/engine/invariants.rs"]
mod invariants;

pub use invariants::{broken, newly_broken};
