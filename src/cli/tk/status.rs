//! `status`, `start`, `close`, `reopen`, `done`: change the status of a ticket.

use super::arguments::{Argument, Arguments, only_words};
use super::failure::Failure;
use super::session::{TkCall, TkOutput};
use crate::tracker::tk::timestamp_now;

const VALID: &str = "open in_progress closed";

pub fn status(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let [id, status, ..] = words[..] else {
        return Err(Failure::Usage(format!(
            "Usage: {} status <id> <status>\nValid statuses: {VALID}",
            session.program
        )));
    };
    if !VALID.split(' ').any(|valid| valid == status) {
        return Err(Failure::said(format!("invalid status '{status}'. Must be one of: {VALID}")));
    }
    set(session, id, status)
}

pub fn start(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    set(session, first_word(session, "start", arguments)?, "in_progress")
}

pub fn reopen(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    set(session, first_word(session, "reopen", arguments)?, "open")
}

/// `close <id>`, or `close <id> --status closed|done|failed [message]`.
pub fn close(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut words, mut how) = (Vec::new(), None);
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => words.push(word),
            Argument::Option(option) if option.name == "--status" => how = Some(walk.value(&option)?),
            Argument::Option(option) => return Err(option.unknown()),
        }
    }
    let Some(id) = words.first() else { return Err(usage(session, "close")) };
    let message = words[1..].join(" ");
    match how {
        None => set(session, id, "closed"),
        Some("closed" | "done") => finish(session, id, &message, "DONE", false),
        Some("failed") => finish(session, id, &message, "FAILED", true),
        Some(other) => {
            Err(Failure::said(format!("invalid status '{other}' for close. Must be one of: closed done failed")))
        }
    }
}

/// `done <id> [summary]`: adds the summary as a note and closes the ticket, in one step.
pub fn done(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let Some(id) = words.first() else {
        return Err(Failure::Usage(format!("Usage: {} done <id> [summary]", session.program)));
    };
    finish(session, id, &words[1..].join(" "), "DONE", false)
}

fn set(session: &TkCall<'_>, id: &str, status: &str) -> Result<TkOutput, Failure> {
    let store = session.store()?;
    let id = store.resolve(id)?;
    store.update(&id, |doc| {
        doc.set_status(status);
        Ok(())
    })?;
    Ok(TkOutput::line(format!("Updated {id} -> {status}")))
}

fn finish(session: &TkCall<'_>, id: &str, message: &str, word: &str, failed: bool) -> Result<TkOutput, Failure> {
    let store = session.store()?;
    let id = store.resolve(id)?;
    let note = match (message.is_empty(), failed) {
        (false, _) => Some(format!("{word}: {message}")),
        (true, true) => Some(format!("{word}: closed without success")),
        (true, false) => None,
    };
    store.update(&id, |doc| {
        if failed {
            doc.set_failed();
        } else {
            doc.set_status("closed");
        }
        if let Some(note) = &note {
            doc.add_note(&timestamp_now(), note);
        }
        Ok(())
    })?;
    Ok(TkOutput::line(format!("Updated {id} -> closed")))
}

fn first_word<'a>(session: &TkCall<'_>, command: &str, arguments: &'a [String]) -> Result<&'a str, Failure> {
    only_words(arguments)?.first().copied().ok_or_else(|| usage(session, command))
}

fn usage(session: &TkCall<'_>, command: &str) -> Failure {
    Failure::Usage(format!("Usage: {} {command} <id>", session.program))
}
