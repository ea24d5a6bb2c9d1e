//! What a person has to know first: what stops everything, what fails, what is doubtful. It is the heading of `status`, of `top` and of
//! the live table.

use crate::domain::job::SwitchSource;
use crate::domain::snapshot::{CapView, LaneView, Snapshot, SwitchView};
use crate::domain::time::Timestamp;

/// How serious a concern is; decides the colour in which it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Everything is stopped, or a person has to repair something.
    Grave,
    Doubtful,
    /// Only information; nothing is wrong.
    Told,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    pub weight: Weight,
    pub text: String,
}

/// Lists everything in the snapshot that a person has to know first. `time` formats a point in time.
pub fn troubles(picture: &Snapshot, time: fn(Timestamp) -> String) -> Vec<Concern> {
    let mut found = Vec::new();
    let mut add = |weight, text| found.push(Concern { weight, text });
    if let Some(error) = &picture.ledger_error {
        add(Weight::Grave, format!("STOPPED: nothing is changed until the ledger can be written: {error}"));
    }
    for switch in &picture.switches {
        let weight = if stops_all(switch) { Weight::Grave } else { Weight::Doubtful };
        add(weight, banner(switch, time));
    }
    if let Some(error) = &picture.tracker.last_error {
        add(Weight::Grave, format!("the board could not be read: {error}"));
    }
    for text in picture.lanes.iter().filter_map(|lane| lane_trouble(lane, time)) {
        add(Weight::Grave, text);
    }
    if let Some(error) = &picture.workflow.reload_error {
        add(Weight::Grave, format!("WORKFLOW.md as it is now is not in force: {error}"));
    }
    for warning in &picture.workflow.warnings {
        add(Weight::Doubtful, format!("WORKFLOW.md {warning}"));
    }
    for ticket in &picture.tracker.left_out {
        add(Weight::Doubtful, format!("left out: {ticket}"));
    }
    for pool in &picture.pools {
        if let Some(until) = pool.paused_until {
            let text = format!("the usage limit of `{}` is reached until {}", pool.pool, time(until));
            add(Weight::Doubtful, text);
        }
    }
    if let Some(usage) = &picture.tracker.usage {
        add(Weight::Told, format!("the board: {usage}"));
    }
    if !picture.totals.daily_budget.is_empty() {
        add(Weight::Told, format!("today: {}", caps(&picture.totals.daily_budget)));
    }
    found
}

fn stops_all(switch: &SwitchView) -> bool {
    matches!(switch.source, SwitchSource::File | SwitchSource::PauseAll)
}

/// Describes a pulled switch. The text for a switch of one ticket says that only this ticket is stopped.
pub fn banner(switch: &SwitchView, time: fn(Timestamp) -> String) -> String {
    let (source, subject, since) = (switch.source.name(), &switch.subject, time(switch.since));
    match switch.source {
        SwitchSource::File | SwitchSource::PauseAll => format!("STOPPED: {source} ({subject}) since {since}"),
        SwitchSource::PauseTicket => format!("only {subject} is paused (dirigent pause {subject}) since {since}"),
        SwitchSource::TicketLabel | SwitchSource::PrLabel => {
            format!("only {subject} is held ({source}) since {since}")
        }
    }
}

/// Says what is wrong with the calls to one adapter (its lane is the queue of these calls). `None` if nothing is.
fn lane_trouble(lane: &LaneView, time: fn(Timestamp) -> String) -> Option<String> {
    let name = &lane.lane;
    let error = lane.last_error.as_deref().unwrap_or("it said no more");
    if lane.locked_out {
        return Some(format!("the {name} refuses our access, and everything for it waits: {error}; mend the token"));
    }
    if let Some(until) = lane.paused_until {
        return Some(format!("calls to the {name} wait until {}: {error}", time(until)));
    }
    // Errors of the board are already listed by the caller.
    lane.last_error
        .as_ref()
        .filter(|_| name != "tracker")
        .map(|error| format!("the last call to the {name} failed: {error}"))
}

/// Formats what is spent of each cap: `runs 3 of 5, cost 1.20 USD of 10 USD`.
pub fn caps(caps: &[CapView]) -> String {
    let one = |cap: &CapView| format!("{} {} of {}", cap.what, cap.spent, cap.cap);
    caps.iter().map(one).collect::<Vec<_>>().join(", ")
}
