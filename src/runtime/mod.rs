//! The only loop of the program: drives the engine, performs its effects and feeds the results back.
//!
//! `assembly` puts a runner together, once. `driver` owns the state. For each event it steps the engine, writes the changed records and the
//! effects to the ledger in one transaction, and only then hands the effects to `performer`. That performs each effect in a task of its
//! own, through the lane (the bounded queue) of its adapter (`lanes`), and sends the result back as an event. `gatekeeper` gives or refuses
//! the permit right before every write. `poller` and `switches` watch the outside. `control` takes commands, from people alone (`peer`
//! tells them from workers; `http` uses it too). `recovery` settles what an earlier process left, `record` writes down everything that the
//! driver does, and `replay` feeds such a recording through the engine again.

mod answers;
pub mod assembly;
mod control;
mod deliveries;
mod driver;
mod folder;
mod gate_watch;
mod gatekeeper;
mod handle;
mod host;
mod idle;
mod lanes;
mod meters;
mod peer;
mod performer;
mod pictures;
mod poller;
mod record;
mod recovery;
mod replay;
mod run_service;
mod switches;
mod ticket_source;

use crate::domain::time::Timestamp;

pub use control::{Client, ControlError, Listening, Reply, Request, carry_out, find_ticket, serve};
pub use deliveries::{Deliveries, DeliverySource};
pub use driver::{Driver, DriverError, DriverParts, Until, plan_of};
pub use folder::RunnerFolder;
pub use gate_watch::{Halt, HaltReceiver};
pub use gatekeeper::Gatekeeper;
pub use handle::{Command, Handle, InForce, Message, News};
pub use host::{GateOrder, KeptReceipt, ReceiptOrder, RunHost};
pub use lanes::{GateLimits, Lanes};
pub use meters::{BOUNDS, Counters, Distribution, Histogram, Meters};
pub use peer::{RefusalLog, Standing, standing_over_tcp};
pub use performer::Adapters;
pub use pictures::{Published, Snapshots};
pub use poller::{PollPlan, PollerParts, poll};
pub use record::{RecordError, RecordLine, Recorder};
pub use recovery::recover;
pub use replay::{ReplayError, ReplayedStep, replay};
pub use switches::watch_kill_file;

/// Returns the time of the wall clock. The engine reads no clock; it gets this time with each event.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}
