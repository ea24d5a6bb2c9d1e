//! Plain data that all modules share: ids, tickets, jobs, runs, pull requests, usage, evidence.
//!
//! Depends on serde only. Nothing here waits, reads a clock, touches a file or knows a vendor's format.

pub mod basis;
pub mod branch;
pub mod comment;
pub mod condition;
pub mod evidence;
pub mod failure;
pub mod finding;
pub mod fingerprint;
pub mod hash;
pub mod hint;
pub mod ids;
pub mod instruction;
pub mod job;
pub mod lane;
pub mod loopback;
pub mod permit;
pub mod phase;
pub mod pr;
pub mod reason;
pub mod reason_offline;
pub mod remark;
pub mod route;
pub mod run;
pub mod seldom;
pub mod service;
pub mod snapshot;
pub mod statement;
pub mod ticket;
pub mod time;
pub mod usage;
pub mod words;
