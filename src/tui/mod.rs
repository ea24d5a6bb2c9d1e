//! What a terminal shows: the view `dirigent top` (what a key means, what is drawn) and the live table of `run`. Both read published
//! snapshots and return requests. The terminal itself, the clock and the runner's socket are used only by the callers.

mod compact;
mod draw;
mod rows;
mod state;
mod troubles;

pub use compact::{CompactView, compact};
pub use draw::draw;
pub use rows::{order, rows};
pub use state::{TopAction, TopKey, TopState, Wish};
pub use troubles::{banner, caps, troubles};
