//! Whole runs with real processes and real git.

pub mod bench;
mod conversation;
mod desk;
mod desk_only;
mod endings;
mod floods;
mod gates;
