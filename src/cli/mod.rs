//! The command line: parse, call, word the result. One file a command.

mod agents;
mod archive;
mod args;
mod assemble;
mod bundle;
mod config;
mod connect;
mod doctor;
mod explain;
mod failure;
mod gc;
mod hook;
mod init;
mod landing;
mod live;
mod logs;
mod open_files;
mod operate;
mod output;
mod place;
mod programs;
mod quickstart;
mod replay;
mod run;
mod salvage;
mod snapshot_source;
mod status;
pub mod tk;
mod transcript_view;
mod undo;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
pub use failure::Failure;

/// The whole program. Called as `tk` or `ticket` it is the ticket command.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if let Some(rest) = tk_arguments(&arguments) {
        return tk::run(rest);
    }
    if arguments.get(1).is_some_and(|word| word == "hook") && arguments.get(2).is_none_or(|word| word != "--help") {
        let event = arguments.get(2).map(|event| event.to_string_lossy()).unwrap_or_default();
        return hook::hook(&event);
    }
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; clap knows which stream each belongs on.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    match dispatch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The ticket command's own argument list, its name first, when it is called as `tk`, `ticket` or `dirigent tk`. Kept
/// apart from the rest: scripts rely on every byte of it.
fn tk_arguments(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let name = std::path::Path::new(arguments.first()?).file_name()?;
    if name == "tk" || name == "ticket" {
        return Some(arguments.to_vec());
    }
    (arguments.get(1)? == "tk").then(|| arguments[1..].to_vec())
}

fn dispatch(args: Args) -> Result<(), Failure> {
    let context = place::Context::new(args.workflow)?;
    match args.command {
        Command::Quickstart(args) => quickstart::quickstart(&context, &args),
        Command::Init(args) => init::init(&context, &args),
        Command::Doctor(args) => doctor::doctor(&context, &args),
        Command::Run(args) => run::run(&context, &args),
        Command::Status(args) => status::status(&context, &args),
        Command::Explain(args) => explain::explain(&context, &args),
        Command::Pause(args) => operate::pause(&context, &args),
        Command::Resume(args) => operate::resume(&context, &args),
        Command::Stop(args) => operate::stop(&context, &args),
        Command::Retry(args) => operate::retry(&context, &args),
        Command::Approve(args) => operate::approve(&context, &args),
        Command::Message(args) => operate::message(&context, &args),
        Command::Logs(args) => logs::logs(&context, &args),
        Command::Gc(args) => gc::gc(&context, &args),
        Command::Salvage(args) => salvage::salvage(&context, &args),
        Command::Undo(args) => undo::undo(&context, &args),
        Command::Agents(args) => agents::agents(&context, &args),
        Command::Replay(args) => replay::replay(&args),
        Command::Config(args) => config::config(&context, &args),
        // Served before anything else can fail.
        Command::Hook { .. } | Command::Tk { .. } => Ok(()),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "dirigent", &mut std::io::stdout());
            Ok(())
        }
    }
}
