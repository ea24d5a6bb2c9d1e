//! Whole runs with real processes and real git.

mod bad_agents;
pub mod bench;
mod conversation;
mod desk;
mod desk_only;
mod endings;
mod floods;
mod gates;
mod launch_keys;
mod occupied;
