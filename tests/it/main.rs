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
mod exams;
mod foreign_bytes;
#[path = "../github/mod.rs"]
mod github;
mod github_board;
mod github_forge;
mod lanes;
mod launcher;
mod ledger;
#[path = "../linear/mod.rs"]
mod linear;
mod linear_tracker;
mod local_forge;
mod login_environment;
mod loopback_github;
mod memory_adapters;
mod messages_to_people;
mod mutations;
mod operator_boundary;
mod replay;
mod resources;
mod supervision;
mod support;
mod tk_command;
mod tk_store;
mod worker;
mod worker_environment;
mod workflow;
mod workspace;
