//! Checks the result of a run: gates (verification commands) on the exact commit, and claims against what git shows. This module
//! takes no decisions; the engine does.

pub mod claims;
pub mod hook;
pub mod task;

pub use task::{GateError, Gates};
