//! Dirigent turns an issue board into finished work.
//!
//! The scheduler is a pure state machine (`engine`): it takes events and returns effects. Everything that touches the outside world is
//! an adapter around it. `runtime` is the only loop: it steps the engine, writes the new records and effects to the `ledger` (the
//! database) in one transaction, performs the effects, and feeds their results back.

// This module comes first because the modules below use its macro.
#[macro_use]
mod failpoint;

pub mod agent;
pub mod cli;
pub mod config;
pub mod domain;
pub mod engine;
pub mod forge;
pub mod gates;
pub mod github;
pub mod http;
pub mod launcher;
pub mod ledger;
pub mod publish;
pub mod runtime;
pub mod tracker;
pub mod tui;
pub mod worker;
pub mod workflow;
pub mod workspace;
