//! `add-note`, and its other name `comment`: append a note to a ticket.

use super::failure::Failure;
use super::session::{TkCall, TkOutput};
use crate::tracker::tk::timestamp_now;

pub fn add_note(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let Some((id, words)) = arguments.split_first() else {
        return Err(Failure::Usage("Usage: ticket add-note <id> [note text]".into()));
    };
    if id.starts_with('-') {
        return Err(Failure::UnknownOption(id.clone()));
    }
    let store = session.store()?;
    let id = store.resolve(id)?;
    let text = text(session, words)?;
    store.update(&id, |doc| {
        doc.add_note(&timestamp_now(), &text);
        Ok(())
    })?;
    Ok(TkOutput { noted: Some((id.to_string(), text)), ..TkOutput::line(format!("Note added to {id}")) })
}

/// Returns the words joined by blanks, or stdin if there are none.
pub fn text(session: &TkCall<'_>, words: &[String]) -> Result<String, Failure> {
    if !words.is_empty() {
        return Ok(words.join(" "));
    }
    if session.stdin_is_terminal {
        return Err(Failure::said("no note provided"));
    }
    stdin_text(session)
}

/// Returns all of stdin, without line ends at its end.
pub fn stdin_text(session: &TkCall<'_>) -> Result<String, Failure> {
    let bytes = (session.read_stdin)().map_err(|error| Failure::said(format!("could not read stdin: {error}")))?;
    if bytes.contains(&0) {
        return Err(Failure::said("the text on stdin holds a NUL byte; nothing was written"));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::said("the text on stdin is not UTF-8; nothing was written"))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
