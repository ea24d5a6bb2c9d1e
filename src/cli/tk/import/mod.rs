//! `import`: imports tickets from other systems. Existing tickets are never overwritten, so an import can be repeated.

mod beads;
mod csv;
mod github;
mod linear;

use std::collections::BTreeSet;
use std::path::Path;

use super::arguments::only_words;
use super::failure::Failure;
use super::notes::stdin_text;
use super::session::{TkCall, TkOutput};
use crate::tracker::tk::{Document, Draft, check_id, timestamp_now};

/// One ticket of another system, translated.
#[derive(Debug, Default)]
struct Foreign {
    id: String,
    draft: Draft,
    links: Vec<String>,
    /// Whether the ticket was closed in the other system without being done.
    cancelled: bool,
    /// Notes as (time, text), oldest first.
    notes: Vec<(String, String)>,
}

impl Foreign {
    fn new(id: String, title: &str) -> Self {
        let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let title = if title.trim().is_empty() { "Untitled" } else { title.trim() };
        Self { id, draft: Draft::new(title, timestamp_now()), ..Self::default() }
    }
}

pub fn import(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let (source, file) = match words[..] {
        [source] => (source, None),
        [source, file] => (source, Some(file)),
        _ => return Err(usage(session)),
    };
    match source {
        "beads" => {
            let text = match file {
                Some(file) => read(session, file)?,
                None => beads_file(session)?,
            };
            store(session, "beads", beads::parse(&text, beads::Statuses::Mapped)?, "Imported")
        }
        "github" => store(session, source, github::parse(&read(session, file.unwrap_or("-"))?)?, "Imported"),
        "linear-csv" => store(session, "linear", linear::parse(&read(session, file.unwrap_or("-"))?)?, "Imported"),
        _ => Err(usage(session)),
    }
}

/// `migrate-beads`: like `import beads`, but keeps unknown statuses, as the public tool does.
pub fn migrate_beads(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let text = match only_words(arguments)?[..] {
        [] => beads_file(session)?,
        [file] => read(session, file)?,
        _ => {
            return Err(Failure::Usage(format!(
                "Usage: {} migrate-beads [FILE]  (default .beads/issues.jsonl)",
                session.program
            )));
        }
    };
    store(session, "beads", beads::parse(&text, beads::Statuses::Verbatim)?, "Migrated")
}

fn usage(session: &TkCall<'_>) -> Failure {
    Failure::Usage(format!(
        "Usage: {0} import beads [FILE]       (default .beads/issues.jsonl)\n       {0} import github [FILE]      (JSON of `gh issue list --json ...`; default stdin)\n       {0} import linear-csv [FILE]  (Linear's CSV export; default stdin)",
        session.program
    ))
}

fn beads_file(session: &TkCall<'_>) -> Result<String, Failure> {
    let path = session.cwd.join(".beads/issues.jsonl");
    if !path.is_file() {
        return Err(Failure::said(".beads/issues.jsonl not found"));
    }
    read(session, ".beads/issues.jsonl")
}

fn read(session: &TkCall<'_>, file: &str) -> Result<String, Failure> {
    if file == "-" {
        return stdin_text(session);
    }
    let path = session.cwd.join(Path::new(file));
    std::fs::read_to_string(&path).map_err(|error| Failure::said(format!("could not read {file}: {error}")))
}

fn store(session: &TkCall<'_>, from: &str, tickets: Vec<Foreign>, verb: &str) -> Result<TkOutput, Failure> {
    // All files are rendered before the first one is written, so that a malformed ticket does not leave half an import.
    let files = tickets.iter().map(file).collect::<Result<Vec<_>, _>>()?;
    let store = session.store_or_new()?;
    let locked = store.lock()?;
    let listing = store.list()?;
    let known: BTreeSet<&str> = listing.records.iter().filter_map(|record| record.external_ref.as_deref()).collect();
    let (mut text, mut count) = (String::new(), 0);
    for (ticket, content) in tickets.iter().zip(&files) {
        let there = !ticket.draft.external_ref.is_empty() && known.contains(ticket.draft.external_ref.as_str());
        if there || !locked.create_as(&ticket.id, content)? {
            text.push_str(&format!("Skipped: {} (already there)\n", ticket.id));
        } else {
            count += 1;
            text.push_str(&format!("{verb}: {}\n", ticket.id));
        }
    }
    text.push_str(&format!("{verb} {count} tickets from {from}\n"));
    Ok(TkOutput::text(text))
}

fn file(ticket: &Foreign) -> Result<Vec<u8>, Failure> {
    let malformed = |why: String| Failure::said(format!("ticket {} could not be written: {why}", ticket.id));
    check_id(&ticket.id)?;
    let mut doc = Document::parse(ticket.draft.render(&ticket.id).into_bytes())
        .map_err(|broken| malformed(broken.sentence().to_owned()))?;
    for link in &ticket.links {
        doc.list_add("links", link);
    }
    if ticket.cancelled {
        doc.set_word("resolution", "cancelled");
    }
    for (time, text) in &ticket.notes {
        doc.add_note(time, text);
    }
    Ok(doc.into_bytes())
}

/// Returns the text on one line, for a value of the front matter.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Returns names as the elements of a list in the front matter.
fn tags<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let clean = |name: &str| one_line(name).replace([',', '[', ']', '"', '\''], "-");
    names.into_iter().map(clean).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns the time in the spelling of ticket files; `None` if the text is not a time.
fn time(text: &str) -> Option<String> {
    let parsed: jiff::Timestamp = text.trim().parse().ok()?;
    Some(parsed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Returns the ids that a ticket file can hold.
fn references(ids: Vec<String>) -> Vec<String> {
    ids.into_iter().filter(|id| check_id(id).is_ok() && !id.contains(',')).collect()
}
