//! What a runner tells the outside world apart from its adapters: `agent-state.json`, which shows the runs as a team of agents, and
//! notifications. Nothing here takes decisions, and no failure here stops the runner.

mod carried_over;
pub mod notify;
mod publisher;
mod team_picture;
mod team_state;
mod team_state_file;

pub use carried_over::{RECORD, TeammateReport};
pub use publisher::{Publication, publish};
pub use team_picture::{TeamIdentity, TeamPicture};
pub use team_state::{
    PdcaPhase, TeamMessage, TeamProgress, TeamState, Teammate, TeammateStatus, json_schema_text, time_text,
};
pub use team_state_file::TeamStateFile;
