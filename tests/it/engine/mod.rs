//! The pure engine, driven through its one door: rules of the lifecycle, every stage against every event, random orders.

mod archive;
mod attempts;
mod board;
mod delivery;
pub mod fixtures;
mod invariants;
mod keys;
mod landing;
pub mod machine;
mod noticed;
mod quiet;
pub mod random;
mod readings;
mod remarks;
mod restart;
mod rework;
mod simulator_regressions;
mod spending;
mod starts;
mod switches;
mod table;

pub use invariants::{broken, newly_broken};
