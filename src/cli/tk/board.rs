//! `board`: shows the tickets in columns: ready, in progress, blocked, closed.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Map, Value};

use super::arguments::{Argument, Arguments, tags};
use super::failure::Failure;
use super::json as typed;
use super::lists::newest_first;
use super::session::{TkCall, TkOutput};
use super::tickets::{Tickets, by_priority, shown_status};
use crate::tracker::tk::Record;

const RECENTLY_CLOSED: usize = 10;
const DEFAULT_WIDTH: u16 = 100;
const MIN_WIDTH: u16 = 40;

pub fn board(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut as_json, mut wanted_tags) = (false, Vec::new());
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => return Err(Failure::UnknownOption(word.to_owned())),
            Argument::Option(option) => match option.name {
                "--json" => {
                    option.plain()?;
                    as_json = true;
                }
                "-T" | "-t" | "--tag" | "--tags" => wanted_tags.extend(tags(walk.value(&option)?)),
                _ => return Err(option.unknown()),
            },
        }
    }
    let store = session.store()?;
    let tickets = Tickets::load(session, &store)?;
    let shown = |record: &&Record| wanted_tags.iter().all(|tag| record.tags.iter().any(|own| own == tag));
    let column = |wanted: &dyn Fn(&Record) -> bool| -> Vec<&Record> {
        let mut records: Vec<&Record> = tickets.records.iter().filter(shown).filter(|record| wanted(record)).collect();
        records.sort_unstable_by(|a, b| by_priority(a, b));
        records
    };
    let mut closed = column(&|record| !record.is_active());
    let closed_count = closed.len();
    newest_first(&store, &mut closed);
    closed.truncate(RECENTLY_CLOSED);
    let columns = [
        ("ready", "Ready", column(&|record| record.status == "open" && tickets.is_ready(record))),
        ("in_progress", "In progress", column(&|record| record.status == "in_progress")),
        ("blocked", "Blocked", column(&|record| record.status == "open" && tickets.is_blocked(record))),
        ("closed", "Closed", closed),
    ];
    let reply = if as_json {
        let listed = |records: &[&Record]| records.iter().map(|record| typed::ticket(&tickets, record)).collect();
        let object: Map<String, Value> =
            columns.iter().map(|(key, _, records)| ((*key).to_owned(), Value::Array(listed(records)))).collect();
        typed::reply(&Value::Object(object))
    } else {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width(session));
        table.set_header(columns.iter().map(|(key, title, records)| {
            let count = if *key == "closed" { closed_count } else { records.len() };
            format!("{title} ({count})")
        }));
        table.add_row(columns.iter().map(|(key, _, records)| {
            let cards: Vec<String> = records.iter().map(|record| card(&tickets, record, key)).collect();
            cards.join("\n")
        }));
        TkOutput::line(table.to_string())
    };
    Ok(reply.warn(tickets.warnings.iter().cloned()))
}

fn card(tickets: &Tickets, record: &Record, column: &str) -> String {
    let detail = match column {
        "blocked" => format!(" <- {}", tickets.unmet(record).join(", ")),
        "in_progress" => record.assignee.as_deref().map(|who| format!(" @{who}")).unwrap_or_default(),
        "closed" if shown_status(record) == "failed" => " (failed)".to_owned(),
        _ => String::new(),
    };
    let priority = if column == "closed" { String::new() } else { format!("P{} ", record.priority) };
    let title: String = record.title_or_empty().chars().filter(|c| !c.is_control()).collect();
    format!("{priority}{} {title}{detail}", record.id)
}

fn width(session: &TkCall<'_>) -> u16 {
    let named = session.variable("COLUMNS").and_then(|columns| columns.parse().ok());
    let measured =
        || session.stdout_is_terminal.then(|| crossterm::terminal::size().ok().map(|(width, _)| width)).flatten();
    named.or_else(measured).unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}
