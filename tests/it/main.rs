//! The integration tests, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent_protocols;
mod architecture;
mod bad_input;
mod commands_at_wrong_times;
mod conformance;
mod drills;
mod end_to_end;
mod engine;
mod engine_ledger;
mod foreign_bytes;
#[path = "../github/mod.rs"]
mod github;
mod launcher;
mod ledger;
mod local_forge;
mod loopback_github;
mod memory_adapters;
mod messages_to_people;
mod mutations;
mod replay;
mod resources;
mod supervision;
mod support;
mod tk_command;
mod tk_store;
mod worker;
mod workflow;
mod workspace;
