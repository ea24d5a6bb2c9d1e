//! `replay`: feeds a recorded run through the engine again and compares every decision.

use std::fs::File;
use std::io::BufReader;

use serde_json::{Value, json};

use crate::runtime::{ReplayedStep, replay as replayed};

use super::Failure;
use super::args::ReplayArgs;
use super::output;

pub fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let file = File::open(&args.file)
        .map_err(|error| Failure::plain(format!("{} cannot be opened: {error}", args.file.display())))?;
    let steps = replayed(BufReader::new(file)).map_err(Failure::plain)?;
    let different = steps.iter().filter(|step| step.differs).count();
    if args.json {
        output::print_json(&json!({ "steps": steps, "different": different }))?;
    } else {
        let told: Vec<String> = steps.iter().filter(|step| is_told(step)).map(tell).collect();
        let events = steps.len();
        let end = match different {
            0 => format!("{events} events; every decision is the recorded one"),
            some => format!("{events} events; {some} decisions are NOT the recorded ones"),
        };
        output::print(&[told.join("\n").as_str(), end.as_str()].join("\n"))?;
    }
    if different == 0 { Ok(()) } else { Err(Failure::ProblemsFound) }
}

/// Whether a step is shown. Most events change nothing and are left out.
fn is_told(step: &ReplayedStep) -> bool {
    step.differs || !step.notes.is_empty() || !step.effects.is_empty()
}

fn tell(step: &ReplayedStep) -> String {
    let mark = if step.differs { " (not as recorded)" } else { "" };
    let mut lines = vec![format!("{}  {}{mark}", output::time(step.at), name_of(&step.event, "event"))];
    lines.extend(step.notes.iter().map(|note| {
        let ticket = note.ticket.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
        format!("    {ticket}{}", note.text)
    }));
    lines.extend(step.effects.iter().map(|effect| {
        let ticket = effect.ticket.as_ref().map(|id| format!(" for {id}")).unwrap_or_default();
        format!("    -> {}{ticket}", effect.action.kind().name())
    }));
    lines.join("\n")
}

/// Returns the value of the tag field of a serialized record, such as the kind of an event.
fn name_of(record: &impl serde::Serialize, tag: &str) -> String {
    match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => fields.get(tag).and_then(Value::as_str).unwrap_or("?").to_owned(),
        _ => "?".to_owned(),
    }
}
