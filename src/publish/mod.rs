//! What a runner tells the outside besides its adapters: `agent-state.json`, which shows the runs as a team of agents, and
//! notifications. Nothing here decides anything, and
//! nothing that goes wrong here stops the runner.

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
