//! `show`: prints a ticket's file as it is, followed by its relations to other tickets.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::arguments::{only_words, take_json};
use super::failure::Failure;
use super::json as typed;
use super::session::{Successor, TkCall, TkOutput};
use super::tickets::Tickets;
use crate::tracker::tk::{Document, Record, Store, TicketNote};

pub fn show(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let (as_json, rest) = take_json(arguments);
    let words = only_words(&rest)?;
    let Some(word) = words.first() else {
        return Err(Failure::Usage("Usage: ticket show <id>".into()));
    };
    let store = session.store()?;
    let id = store.resolve(word)?;
    let tickets = Tickets::load(session, &store)?;
    let raw = store.raw(&id)?;
    let relations = Relations::of(&tickets, &id);
    if as_json {
        let doc = store.document(&id)?;
        return Ok(typed::reply(&whole(session, &store, &tickets, &doc, &id, &relations)));
    }
    let out = with_parent_title(raw, &tickets);
    let out = relations.append(out, &tickets);
    // The named ticket is shown even if its file is broken, so a warning about this file is left out.
    let own = store.path(&id).display().to_string();
    let warnings = tickets.warnings.iter().filter(|warning| !warning.contains(&own)).cloned();
    paged(session, TkOutput { out, ..TkOutput::default() }.warn(warnings))
}

/// The computed sections that follow the file.
struct Relations {
    blockers: Vec<String>,
    blocking: Vec<String>,
    children: Vec<String>,
    linked: Vec<String>,
}

impl Relations {
    fn of(tickets: &Tickets, id: &str) -> Self {
        let own = tickets.get(id);
        let ids = |wanted: &dyn Fn(&Record) -> bool| -> Vec<String> {
            tickets.records.iter().filter(|record| wanted(record)).map(|record| record.id.clone()).collect()
        };
        let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        Self {
            blockers: own.map(|record| owned(tickets.unmet(record))).unwrap_or_default(),
            blocking: ids(&|record| !record.is_closed() && record.deps.iter().any(|dep| dep == id)),
            children: ids(&|record| record.parent.as_deref() == Some(id)),
            linked: own.map(|record| record.links.clone()).unwrap_or_default(),
        }
    }

    fn append(&self, mut out: Vec<u8>, tickets: &Tickets) -> Vec<u8> {
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        for (heading, ids) in [
            ("Blockers", &self.blockers),
            ("Blocking", &self.blocking),
            ("Children", &self.children),
            ("Linked", &self.linked),
        ] {
            if !ids.is_empty() {
                out.extend_from_slice(format!("\n## {heading}\n\n").as_bytes());
                for id in ids {
                    out.extend_from_slice(format!("- {}\n", tickets.describe(id)).as_bytes());
                }
            }
        }
        out
    }
}

/// Inserts the parent's title after its id in the front matter.
fn with_parent_title(raw: Vec<u8>, tickets: &Tickets) -> Vec<u8> {
    let Ok(doc) = Document::parse(raw.clone()) else { return raw };
    let parent = doc.word("parent").and_then(|parent| tickets.get(&parent));
    let (Some(title), Some(end)) = (parent.and_then(|record| record.title.as_deref()), doc.value_end("parent")) else {
        return raw;
    };
    let mut out = raw[..end].to_vec();
    out.extend_from_slice(format!("  # {title}").as_bytes());
    out.extend_from_slice(&raw[end..]);
    out
}

fn whole(
    session: &TkCall<'_>,
    store: &Store,
    tickets: &Tickets,
    doc: &Document,
    id: &str,
    relations: &Relations,
) -> Value {
    let mut value = typed::ticket(tickets, &Record::read(id, doc));
    let related = |ids: &[String]| -> Vec<Value> {
        ids.iter()
            .map(|other| match tickets.get(other) {
                Some(record) => {
                    json!({ "id": other, "status": super::tickets::shown_status(record), "title": record.title })
                }
                None => json!({ "id": other, "status": null, "title": null }),
            })
            .collect()
    };
    let more = json!({
        "file": session.shown_path(store, id).display().to_string(),
        "description": doc.description(),
        "notes": doc.notes().iter().map(note).collect::<Vec<_>>(),
        "blockers": related(&relations.blockers),
        "blocking": related(&relations.blocking),
        "children": related(&relations.children),
        "linked": related(&relations.linked),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn note(note: &TicketNote) -> Value {
    json!({ "id": note.id, "created": note.timestamp, "text": note.text, "by_dirigent": note.key.is_some() })
}

/// Passes the output to the pager if stdout is a terminal and a pager is set.
fn paged(session: &TkCall<'_>, reply: TkOutput) -> Result<TkOutput, Failure> {
    let pager = session.variable("TICKET_PAGER").or_else(|| session.variable("PAGER"));
    let (Some(pager), true) = (pager, session.stdout_is_terminal) else { return Ok(reply) };
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return Ok(reply) };
    let found =
        if program.contains('/') { Some(Path::new(program).to_path_buf()) } else { session.find_program(program) };
    let Some(program) = found else { return Ok(reply) };
    let arguments = words.map(OsString::from).collect();
    let stdin = handed_over(&reply.out)?;
    let exec = Successor { program, arguments, variables: Vec::new(), stdin: Some(stdin) };
    Ok(TkOutput { warnings: reply.warnings, ..TkOutput::exec(exec) })
}

/// Returns an unnamed temporary file with these bytes, which the next program gets as its stdin.
pub fn handed_over(bytes: &[u8]) -> Result<std::fs::File, Failure> {
    let written = tempfile::tempfile().and_then(|mut file| {
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    });
    written.map_err(|error| Failure::said(format!("could not write a temporary file: {error}")))
}
