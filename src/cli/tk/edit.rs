//! `edit`: opens the ticket's file in the editor; without a terminal it prints the file's path.

use std::ffi::OsString;
use std::path::PathBuf;

use super::arguments::only_words;
use super::failure::Failure;
use super::session::{Successor, TkCall, TkOutput};

pub fn edit(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let words = only_words(arguments)?;
    let Some(id) = words.first() else {
        return Err(Failure::Usage("Usage: ticket edit <id>".into()));
    };
    let store = session.store()?;
    let id = store.resolve(id)?;
    let file = session.shown_path(&store, &id);
    if !session.stdin_is_terminal || !session.stdout_is_terminal {
        return Ok(TkOutput::line(format!("Edit ticket file: {}", file.display())));
    }
    let editor = session.variable("EDITOR").unwrap_or("vi");
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let found = if program.contains('/') { Some(PathBuf::from(program)) } else { session.find_program(program) };
    let Some(program) = found else {
        return Err(Failure::said(format!("the editor '{program}' was not found; set EDITOR")));
    };
    let arguments = words.map(OsString::from).chain([store.path(&id).into_os_string()]).collect();
    Ok(TkOutput::exec(Successor { program, arguments, variables: Vec::new(), stdin: None }))
}
