//! The dashboard: pages for people, made on the server from the published picture and from what is written down. They are whole
//! without a script; a small one keeps them live and sends what people ask for.
//!
//! `health` is the one glance, `needs` what a person has to do; `board`, `running`, `landing`, `graph`, `ticket` and `diff` turn
//! the picture into what the templates of `templates/page/` show. Nothing here decides anything, and nothing is fetched from
//! elsewhere.

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
