//! The built binary with issues and pull requests on a GitHub of our own: from a label to the closed issue, through a red check and a
//! reviewer's question. It is one way, written once; the tables let something happen at each of its steps.

mod features;
mod foundations;
mod journey;
mod own_clone;
mod rights;
pub mod scene;
mod tables;
mod triggers;
mod undo;
mod webhooks;
mod worker_access;
