//! The loopback GitHub is itself tested: it keeps GitHub's contracts, and it does what it is told to.

mod client;
mod contract;
