//! Whole runs with real processes and real git.

pub mod bench;
mod conversation;
mod desk;
mod endings;
mod floods;
mod gates;
