//! The terminal view `dirigent top`: what a key means and what is drawn. It sees published pictures and answers with requests; the
//! terminal itself, the clock and the runner's socket are its caller's (`cli/top`).

mod draw;
mod state;

pub use draw::draw;
pub use state::{TopAction, TopKey, TopState, Wish};
