//! Typed settings, one file per section: type, default, validation.
//!
//! The type of a section is the only place that defines its keys: the loader deserializes into it, `config schema` is generated from
//! it, and `config show` serializes it. Nothing here reads a file, the environment or a clock.

pub mod acp;
pub mod agent;
pub mod budget;
pub mod claude;
pub mod codex;
pub mod exec;
pub mod foreign;
pub mod gates;
pub mod guards;
pub mod hooks;
pub mod ledger;
pub mod merge;
pub mod notify;
pub mod observability;
pub mod orchestration;
pub mod pi;
pub mod policy;
pub mod polling;
pub mod pr;
pub mod problem;
pub mod review;
pub mod rollout;
pub mod server;
pub mod settings;
pub mod tracker;
pub mod waves;
pub mod wire;
pub mod worker;
pub mod workspace;

pub use settings::Settings;
