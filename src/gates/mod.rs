//! Checks what a run says: commands on the exact commit, and claims against what git shows. Decides nothing.

pub mod claims;
pub mod hook;
pub mod task;

pub use task::{GateError, Gates};
