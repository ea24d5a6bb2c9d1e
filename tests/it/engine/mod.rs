//! The pure engine, driven through its one door: rules of the lifecycle, every stage against every event, random orders.

mod archive;
mod attempts;
mod board;
mod bots;
mod delivery;
pub mod fixtures;
mod hints;
mod instructions;
mod invariants;
mod keys;
mod landing;
mod let_in;
pub mod machine;
pub mod marks;
mod movers;
mod noticed;
mod queue;
mod quiet;
pub mod random;
mod readings;
mod remarks;
mod restart;
mod reviewing;
mod rework;
mod simulator_regressions;
mod spending;
mod starts;
mod switches;
mod table;
mod worker_moves;

pub use invariants::{broken, newly_broken};
