//! A GitHub of our own on loopback, for tests: REST, GraphQL and git over HTTP, with state, real git repositories behind its pull requests,
//! lag and faults. Every request that reaches it and every answer that it gives is held against GitHub's published contracts (see
//! `tests/contracts`); what breaks them fails the test, whoever did it.
//!
//! A test starts a [`Hub`], plays people with its methods, points the program at `hub.api()`, and looks at what came of it. The hub listens on
//! a thread of its own and ends when it is dropped.
#![allow(dead_code, unused_imports, reason = "each test binary that includes this uses a part of it")]

mod contract;
mod control;
mod deeds;
mod graphql;
mod hub;
mod rest;
mod server;
mod state;
mod verify;

pub use contract::graphql::Question;
pub use contract::rest::RestContract;
pub use deeds::reviews::Line;
pub use hub::Hub;
pub use rest::handles;
pub use server::faults::{ANY_WRITE, Fault, Instead, When};
pub use server::journal::Entry;
pub use state::git::Method;
pub use state::repo::{Gone, Settings};
pub use state::rules::Demands;
pub use state::{Lag, Permission, Thing};
