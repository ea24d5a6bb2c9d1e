//! The embedded tracker: `.tickets/*.md` files in the format of the public `tk` command.
//!
//! Reads and writes those files. The command in `cli/tk` uses the same `store`; `adapter` is the board as the engine sees it. This
//! module prints nothing for people and does not decide what is dispatched.

mod adapter;
mod board;
pub mod discovery;
mod document;
mod draft;
mod edit;
mod error;
mod index;
mod journal;
mod names;
mod notes;
mod record;
mod replace;
mod store;
mod ticket;
mod watch;

pub use adapter::TkTracker;
pub use document::Document;
pub use draft::Draft;
pub use error::StoreError;
pub use names::{check_id, prefix_for};
pub use notes::TicketNote;
pub use record::Record;
pub use store::{BrokenFile, Listing, LockedStore, Store, id_of_file, timestamp_now};
pub use ticket::NAMELESS;
