//! A Linear of our own on loopback, for tests: its GraphQL endpoint with state, history, lag, limits and faults. Every document and its
//! variables are held against Linear's published schema (see `tests/contracts`), and no query may be more complex than half of what
//! Linear allows; what breaks that fails the test.
//!
//! A test starts a [`Linear`], plays people with its methods, points the program at `linear.endpoint()`, and looks at what came of it. It
//! listens on a thread of its own and ends when it is dropped.
#![allow(dead_code, unused_imports, reason = "each test binary that includes this uses a part of it")]

mod board;
mod contract;
mod control;
mod faults;
mod filter;
mod mutation;
mod resolve;
mod server;
mod world;

pub use board::{Actor, Role};
pub use contract::{MOST_COMPLEX, Question};
pub use control::{KEY, Linear};
pub use faults::{Instead, When};
pub use world::{Entry, Lag};
