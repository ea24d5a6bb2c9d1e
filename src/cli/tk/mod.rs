//! The `tk` command: tickets as files for people and scripts; inside a worker, the way to talk to the runner.
//!
//! Arguments are parsed by hand, because error texts and exit codes are a contract with scripts written for the public tool `tk`. A
//! command returns a `TkOutput`; only `process` prints it, and nothing here starts an async runtime.

mod arguments;
mod board;
mod claim;
mod completion;
mod create;
mod cycles;
pub(in crate::cli) mod desk;
mod edit;
mod evidence;
mod failure;
mod graph;
mod help;
mod import;
mod json;
mod lists;
mod noted;
mod notes;
mod plugins;
mod process;
mod query;
mod relations;
mod session;
mod show;
mod status;
mod tags;
mod tickets;
mod tree;

use std::ffi::OsString;
use std::path::Path;

pub use failure::Failure;
pub use process::run;
pub use session::{Successor, TkCall, TkOutput};

use create::Dialect;

/// The variable in which plugins get the path by which they can call this program.
pub const OWN_PATH: &str = "TK_SCRIPT";

/// Performs one call. `arguments` do not include the program's name. `own_path` is the program's path, by which plugins can call it.
pub fn call(session: &TkCall<'_>, arguments: &[OsString], own_path: &Path) -> Result<TkOutput, Failure> {
    let (bypass, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "super" => (true, rest),
        _ => (false, arguments),
    };
    let Some((command, raw)) = arguments.split_first() else {
        return Ok(if desk::is_worker(session) { help::worker_help(session) } else { help::help(session) });
    };
    let command = text(command)?;
    if desk::is_worker(session) {
        return desk::run(session, command, &texts(raw)?);
    }
    if !bypass && let Some(plugin) = plugins::find(session, command) {
        return plugins::run(session, plugin, raw, own_path);
    }
    built_in(session, command, &texts(raw)?)
}

fn built_in(session: &TkCall<'_>, command: &str, arguments: &[String]) -> Result<TkOutput, Failure> {
    match command {
        "create" => create::create(session, arguments, Dialect::Public),
        "add" => create::create(session, arguments, Dialect::Design),
        "status" => status::status(session, arguments),
        "start" => status::start(session, arguments),
        "close" => status::close(session, arguments),
        "reopen" => status::reopen(session, arguments),
        "done" => status::done(session, arguments),
        "claim" => claim::claim(session, arguments),
        "dep" => match arguments.split_first() {
            Some((word, rest)) if word == "tree" => tree::dep_tree(session, rest),
            Some((word, rest)) if word == "cycle" => cycles::dep_cycle(session, rest),
            _ => relations::dep(session, arguments),
        },
        "tag" => tags::tag(session, arguments),
        "undep" => relations::undep(session, arguments),
        "link" => relations::link(session, arguments),
        "unlink" => relations::unlink(session, arguments),
        "ls" | "list" => lists::ls(session, arguments),
        "ready" => lists::ready(session, arguments),
        "blocked" => lists::blocked(session, arguments),
        "closed" => lists::closed(session, arguments),
        "show" => show::show(session, arguments),
        "add-note" | "comment" => notes::add_note(session, arguments),
        "edit" => edit::edit(session, arguments),
        "query" => query::query(session, arguments),
        "board" => board::board(session, arguments),
        "graph" => graph::graph(session, arguments),
        "import" => import::import(session, arguments),
        "migrate-beads" => import::migrate_beads(session, arguments),
        "completion" => completion::completion(session, arguments),
        "__complete" => Ok(completion::candidates(session, arguments)),
        "evidence" | "plan" => {
            Err(Failure::said(format!("'{} {command}' is for workers: it needs a runner to talk to", session.program)))
        }
        "help" | "--help" | "-h" => Ok(help::help(session)),
        unknown => {
            let help = help::help(session);
            let meant =
                completion::nearest(unknown).map(|near| format!("\nDid you mean '{near}'?")).unwrap_or_default();
            Err(Failure::Usage(format!(
                "Unknown command: {unknown}{meant}\n{}",
                String::from_utf8_lossy(&help.out).trim_end()
            )))
        }
    }
}

fn text(argument: &OsString) -> Result<&str, Failure> {
    argument
        .to_str()
        .ok_or_else(|| Failure::said(format!("the argument '{}' is not UTF-8", argument.to_string_lossy())))
}

fn texts(arguments: &[OsString]) -> Result<Vec<String>, Failure> {
    arguments.iter().map(|argument| text(argument).map(str::to_owned)).collect()
}
