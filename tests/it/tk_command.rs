//! The `tk` command as people, scripts and workers call it.

mod bad_input;
mod desk;
mod discovery;
mod extensions;
mod harness;
mod import;
mod in_a_worker;
mod processes;
mod transcripts;
