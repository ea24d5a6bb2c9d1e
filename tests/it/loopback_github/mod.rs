//! The loopback GitHub is itself tested: it keeps GitHub's contracts, and it does what it is told to.

mod accounts;
mod client;
mod contract;
mod drift;
mod every_operation;
mod faults;
mod graphql;
mod lag;
mod landing;
mod limits;
mod transport;
