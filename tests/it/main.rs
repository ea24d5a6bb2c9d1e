//! The integration tests, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent_protocols;
mod architecture;
mod bad_input;
mod conformance;
mod drills;
mod engine;
mod engine_ledger;
mod foreign_bytes;
mod launcher;
mod ledger;
mod local_forge;
mod memory_adapters;
mod mutations;
mod replay;
mod resources;
mod shown_by;
mod supervision;
mod support;
mod tk_command;
mod tk_store;
mod told;
mod typed;
mod worker;
mod workflow;
mod workspace;
