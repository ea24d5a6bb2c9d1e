//! The pure state machine: events in, effects out. No clock, no randomness, no async, no IO, no logging.
//!
//! [`step::step`] is the only entry point. It hands the event to its handler (`reconcile` for the board, `pull_requests` for looks at pull
//! requests, `runs` for workers, `outbox` for the results of effects), lets `phases` decide every change of a job's stage, and then
//! settles: stops what must stop, merges what is ready, starts what may start. `permit` is the check that the runtime makes before it
//! performs anything.

mod answers;
mod archive;
pub mod assess;
mod budget;
mod columns;
pub mod conditions;
mod decided;
mod delivery;
mod directories;
mod dispatch;
mod due;
pub mod effect;
pub mod event;
mod fingerprint;
mod finish;
pub mod hindrance;
mod hints;
mod instructions;
pub mod jobs;
mod landing;
mod limits;
mod merge_line;
mod outbox;
pub mod outbox_store;
mod people;
pub mod permit;
mod phases;
mod picture;
mod preview;
pub mod provenance;
mod pull_requests;
mod quota;
mod reconcile;
mod relations;
mod remarks;
mod restore;
mod retry;
pub mod review_format;
mod reviewing;
pub mod route;
pub mod run_store;
mod runs;
pub mod select;
mod settle;
pub mod state;
mod step;
mod timetable;
mod view;
mod worker_moves;
mod workflow_change;
mod workpad;

pub use archive::unknown_tickets;
pub use due::next_due;
pub use outbox::{WORKPAD, circumstances};
pub use people::{holding, is_so_already, objection, where_it_stands};
pub use picture::{Picture, snapshot};
pub use preview::{Preview, preview};
pub use step::step;
pub use view::reason;
