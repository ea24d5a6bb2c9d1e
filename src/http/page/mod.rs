//! The dashboard: HTML pages, rendered on the server from the published picture and the ledger. They work without a script; a small script
//! keeps them up to date and sends commands.
//!
//! `health` is the summary at the top, and `needs` lists what a person has to do. `board`, `running`, `landing`, `graph`, `ticket` and
//! `diff` turn the picture into data for the templates of `templates/page/`. Nothing here makes a decision about tickets, and nothing is
//! loaded from other servers.

mod assets;
mod board;
mod dashboard;
mod diff;
mod frame;
mod graph;
mod health;
mod landing;
mod needs;
mod past;
mod peek;
mod receipt;
mod routes;
mod running;
#[cfg(test)]
mod sample;
mod templates;
mod ticket;
mod words;

pub use routes::routes;
