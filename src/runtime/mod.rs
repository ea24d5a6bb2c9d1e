//! The only loop: drives the engine, performs its effects, feeds the results back.
//!
//! Theory of operation. `driver` owns the state. For each event it steps the engine, writes the changed records and the
//! effects to the ledger in one transaction, and only then hands the effects to `effects`, which performs each in a task of
//! its own and sends the result back as an event. `gatekeeper` is asked right before every write. `poller` and `switches`
//! watch the outside, `control` listens to commands, `recovery` settles what an earlier life left,
//! `record` writes a life down, and `replay` feeds it through the engine again.

mod answers;
mod control;
mod crew;
mod driver;
mod effects;
mod gate_watch;
mod gatekeeper;
mod handle;
mod idle;
mod poller;
mod record;
mod recovery;
mod replay;
mod run_task;
mod switches;
mod words;

use crate::domain::time::Timestamp;

pub use control::{Client, ControlError, Listening, Reply, Request, find_ticket, serve};
pub use crew::{BurialOrder, Buried, Crew, GateOrder};
pub use driver::{Driver, DriverError, DriverParts, Until, plan_of};
pub use effects::Adapters;
pub use gatekeeper::Gatekeeper;
pub use handle::{Command, Handle, Message};
pub use poller::{PollPlan, PollerParts, poll};
pub use record::{Line, RecordError, Recorder};
pub use recovery::recover;
pub use replay::{ReplayError, ReplayedStep, replay};
pub use switches::watch_kill_file;
pub use words::Words;

/// The wall clock. Read here and nowhere below.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}
