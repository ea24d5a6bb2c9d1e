//! `ls`, `ready`, `blocked`, `closed`: list tickets, one line each.

use std::time::SystemTime;

use serde_json::Value;

use super::arguments::{Argument, Arguments, tags};
use super::failure::Failure;
use super::json;
use super::session::{TkCall, TkOutput};
use super::tickets::{Tickets, by_priority, shown_status};
use crate::tracker::tk::{Record, Store};

const RECENT: usize = 20;

#[derive(Debug, Default)]
struct Filter {
    status: Option<String>,
    assignee: Option<String>,
    tags: Vec<String>,
    limit: Option<usize>,
    json: bool,
}

/// Which option a list takes in addition to the common ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Status,
    Limit,
    None,
}

impl Filter {
    fn parse(arguments: &[String], extra: Extra) -> Result<Self, Failure> {
        let mut filter = Self::default();
        let mut walk = Arguments::new(arguments);
        while let Some(argument) = walk.next() {
            let option = match argument {
                Argument::Option(option) => option,
                Argument::Word(word) => return Err(Failure::UnknownOption(word.to_owned())),
            };
            match option.name {
                "-a" | "--assignee" => filter.assignee = Some(walk.value(&option)?.to_owned()),
                "-T" | "-t" | "--tag" | "--tags" => {
                    filter.tags.extend(tags(walk.value(&option)?).map(str::to_owned));
                }
                "--json" => {
                    option.plain()?;
                    filter.json = true;
                }
                "--status" if extra == Extra::Status => filter.status = Some(walk.value(&option)?.to_owned()),
                "--limit" if extra == Extra::Limit => {
                    let text = walk.value(&option)?;
                    let limit = text
                        .parse()
                        .map_err(|_| Failure::said(format!("--limit takes a whole number, not '{text}'")))?;
                    filter.limit = Some(limit);
                }
                _ => return Err(option.unknown()),
            }
        }
        Ok(filter)
    }

    fn admits(&self, record: &Record) -> bool {
        let status =
            self.status.as_deref().is_none_or(|wanted| record.status == wanted || shown_status(record) == wanted);
        let assignee = self.assignee.as_deref().is_none_or(|wanted| record.assignee.as_deref().unwrap_or("") == wanted);
        status && assignee && self.tags.iter().all(|tag| record.tags.contains(tag))
    }
}

pub fn ls(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let filter = Filter::parse(arguments, Extra::Status)?;
    let tickets = Tickets::load(session, &session.store()?)?;
    let chosen = tickets.records.iter().filter(|record| filter.admits(record)).collect();
    Ok(answer(&tickets, &filter, chosen, |record, line| {
        head(line, record);
        push(line, &["[", &record.status, "] - ", record.title_or_empty()]);
        if !record.deps.is_empty() {
            push(line, &[" <- [", &record.deps.join(", "), "]"]);
        }
    }))
}

pub fn ready(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let filter = Filter::parse(arguments, Extra::None)?;
    let tickets = Tickets::load(session, &session.store()?)?;
    let mut chosen: Vec<&Record> =
        tickets.records.iter().filter(|record| filter.admits(record) && tickets.is_ready(record)).collect();
    chosen.sort_unstable_by(|a, b| by_priority(a, b));
    Ok(answer(&tickets, &filter, chosen, |record, line| {
        head(line, record);
        push(line, &["[P", &record.priority, "][", &record.status, "] - ", record.title_or_empty()]);
    }))
}

pub fn blocked(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let filter = Filter::parse(arguments, Extra::None)?;
    let tickets = Tickets::load(session, &session.store()?)?;
    let mut chosen: Vec<&Record> =
        tickets.records.iter().filter(|record| filter.admits(record) && tickets.is_blocked(record)).collect();
    chosen.sort_unstable_by(|a, b| by_priority(a, b));
    Ok(answer(&tickets, &filter, chosen, |record, line| {
        let waits: Vec<String> = tickets
            .unmet(record)
            .into_iter()
            .map(|dep| match tickets.get(dep) {
                Some(other) if other.has_failed() => format!("{dep} (failed)"),
                _ => dep.to_owned(),
            })
            .collect();
        head(line, record);
        push(line, &["[P", &record.priority, "][", &record.status, "] - ", record.title_or_empty()]);
        push(line, &[" <- [", &waits.join(", "), "]"]);
    }))
}

pub fn closed(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let filter = Filter::parse(arguments, Extra::Limit)?;
    let store = session.store()?;
    let tickets = Tickets::load(session, &store)?;
    let mut chosen: Vec<&Record> = tickets
        .records
        .iter()
        .filter(|record| filter.admits(record) && (record.is_closed() || record.status == "done"))
        .collect();
    newest_first(&store, &mut chosen);
    chosen.truncate(filter.limit.unwrap_or(RECENT));
    Ok(answer(&tickets, &filter, chosen, |record, line| {
        head(line, record);
        push(line, &["[", &record.status, "] - ", record.title_or_empty()]);
    }))
}

/// Sorts by the time of the last change of the file, the newest first; with the same time by id.
pub fn newest_first(store: &Store, records: &mut [&Record]) {
    records.sort_by_cached_key(|record| {
        let modified = std::fs::metadata(store.path(&record.id)).and_then(|meta| meta.modified());
        (std::cmp::Reverse(modified.unwrap_or(SystemTime::UNIX_EPOCH)), record.id.clone())
    });
}

fn answer(
    tickets: &Tickets,
    filter: &Filter,
    chosen: Vec<&Record>,
    write_line: impl Fn(&Record, &mut String),
) -> TkOutput {
    let reply = if filter.json {
        json::reply(&Value::Array(chosen.into_iter().map(|record| json::ticket(tickets, record)).collect()))
    } else {
        let mut text = String::with_capacity(chosen.len() * 64);
        for record in chosen {
            write_line(record, &mut text);
            text.push('\n');
        }
        TkOutput::text(text)
    };
    reply.warn(tickets.warnings.iter().cloned())
}

/// Writes the id, padded to eight columns, and a blank.
fn head(line: &mut String, record: &Record) {
    line.push_str(&record.id);
    for _ in record.id.chars().count()..8 {
        line.push(' ');
    }
    line.push(' ');
}

fn push(line: &mut String, parts: &[&str]) {
    for part in parts {
        line.push_str(part);
    }
}
