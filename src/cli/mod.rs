//! The command line: parses the arguments, calls the command, prints the result. One file per command.

mod agents;
mod archive;
mod args;
mod bundle;
mod completion;
mod config;
mod connect;
mod context;
mod desk_mcp;
mod doctor;
mod explain;
mod failure;
mod gc;
mod github_setup;
mod hook;
mod init;
mod inside;
mod keyboard;
mod landing;
mod live;
mod logging;
mod logins;
mod logs;
mod many;
mod models;
mod open_files;
mod operate;
mod output;
mod outside;
mod programs;
mod quickstart;
mod receipt;
mod recent_lines;
mod replay;
mod review;
mod run;
mod run_outcome;
mod salvage;
mod scripts;
mod snapshot_source;
mod status;
pub mod tk;
mod token;
mod top;
mod transcript_reader;
mod transcript_view;
mod undo;
mod unseen;
mod would;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::launcher::shield;
use crate::workspace::remote::askpass;

use args::{Args, CliCommand};
pub use failure::Failure;

/// Runs the program. Under the name `tk` or `ticket` it is the ticket command.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if let Some(socket) = std::env::var_os(askpass::VARIABLE) {
        return answer_git(&socket, &arguments);
    }
    if let Some(rest) = tk_arguments(&arguments) {
        return tk::run(rest);
    }
    if arguments.get(1).is_some_and(|word| word == shield::COMMAND) {
        return run_shielded(&arguments);
    }
    if arguments.get(1).is_some_and(|word| word == "hook") && arguments.get(2).is_none_or(|word| word != "--help") {
        let event = arguments.get(2).map(|event| event.to_string_lossy()).unwrap_or_default();
        return hook::hook(&event, context::Context::new(None, &[]).ok().as_ref());
    }
    if let Some(rest) = arguments_of_plugin(&arguments) {
        return tk::run(rest);
    }
    if arguments.get(1).is_some_and(|word| word == completion::COMMAND) {
        let words: Vec<String> = arguments.iter().skip(2).map(|word| word.to_string_lossy().into_owned()).collect();
        return completion::complete(&words);
    }
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are not errors; clap knows which stream each belongs on.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    match dispatch(args) {
        Ok(code) => code,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Acts as git's askpass program for the runner's own git: fetches the user name or password from the runner's socket and prints it.
fn answer_git(socket: &OsString, arguments: &[OsString]) -> ExitCode {
    let question = arguments.get(1).map(|question| question.to_string_lossy()).unwrap_or_default();
    match askpass::ask(std::path::Path::new(socket), &question) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Shields the runner's state from a run and then becomes the run's command. Only the launcher calls it, inside a new namespace.
fn run_shielded(arguments: &[OsString]) -> ExitCode {
    let Err(error) = shield::enter(arguments.get(2..).unwrap_or_default());
    eprintln!("dirigent: the runner's state cannot be shielded from a run: {error}");
    ExitCode::from(failure::SHIELD)
}

/// Returns the arguments of the ticket command, beginning with its name, if the program was called as `tk`, `ticket` or `dirigent tk`.
/// They are not parsed by clap, because scripts depend on the exact behaviour of `tk`.
fn tk_arguments(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let name = std::path::Path::new(arguments.first()?).file_name()?;
    if name == "tk" || name == "ticket" {
        return Some(arguments.to_vec());
    }
    (arguments.get(1)? == "tk").then(|| arguments[1..].to_vec())
}

/// Returns the same for a call by a plugin of `tk`, which has the path of this program in a variable. The runner's own helpers are started
/// by the same path and may have inherited the variable.
fn arguments_of_plugin(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (called_as, rest) = arguments.split_first()?;
    let by_plugin = std::env::var_os(tk::OWN_PATH).is_some_and(|path| path == *called_as);
    let is_helper = rest.first().is_some_and(|word| word == "desk-mcp");
    (by_plugin && !is_helper).then(|| [OsString::from("tk")].into_iter().chain(rest.iter().cloned()).collect())
}

/// Returns an error if options that choose or change the workflow were given to a command that reads no workflow file.
fn refuse_workflow(args: &Args, command: &str) -> Result<(), Failure> {
    let option = match (&args.workflow, args.overrides.is_empty()) {
        (Some(_), _) => "--workflow",
        (None, false) => "--set",
        (None, true) => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "{option} has no effect on `dirigent {command}`, which reads no workflow file; leave it out"
    )))
}

/// Carries out a command that exits in its own way. Returns `None` for any other command.
fn with_own_exit(args: &Args) -> Result<Option<ExitCode>, Failure> {
    match &args.command {
        CliCommand::Tk { arguments } => {
            refuse_workflow(args, "tk")?;
            let called: Vec<OsString> = [OsString::from("tk")].into_iter().chain(arguments.iter().cloned()).collect();
            Ok(Some(tk::run(called)))
        }
        CliCommand::Hook { event } => {
            // A hook never fails: without a context it still answers the agent.
            let context = context::Context::new(args.workflow.clone(), &args.overrides);
            let context = context.inspect_err(Failure::print).ok();
            Ok(Some(hook::hook(event.as_deref().unwrap_or_default(), context.as_ref())))
        }
        CliCommand::DeskMcp(desk) => {
            refuse_workflow(args, "desk-mcp")?;
            desk_mcp::serve(desk).map(Some)
        }
        _ => Ok(None),
    }
}

fn dispatch(args: Args) -> Result<ExitCode, Failure> {
    output::choose_colour(args.color);
    match with_own_exit(&args)? {
        Some(code) => Ok(code),
        None => usual_command(args).map(|()| ExitCode::SUCCESS),
    }
}

fn usual_command(args: Args) -> Result<(), Failure> {
    let overrides: Vec<String> = args.overrides.into_iter().chain(args.command.overrides()).collect();
    let context = context::Context::new(args.workflow, &overrides)?;
    inside::refuse_workers(&context, &args.command)?;
    match args.command {
        CliCommand::Quickstart(args) => quickstart::quickstart(&context, &args),
        CliCommand::Init(args) => init::init(&context, &args),
        CliCommand::Doctor(args) => doctor::doctor(&context, &args),
        CliCommand::Run(args) => run::run(&context, &args),
        CliCommand::Status(args) => status::status(&context, &args),
        CliCommand::Top => top::top(&context),
        CliCommand::Explain(args) => explain::explain(&context, &args),
        CliCommand::Pause(args) => operate::pause(&context, &args),
        CliCommand::Resume(args) => operate::resume(&context, &args),
        CliCommand::Stop(args) => operate::stop(&context, &args),
        CliCommand::Retry(args) => operate::retry(&context, &args),
        CliCommand::Approve(args) => operate::approve(&context, &args),
        CliCommand::Reject(args) => operate::reject(&context, &args),
        CliCommand::Message(args) => operate::message(&context, &args),
        CliCommand::Diff(args) => review::diff(&context, &args),
        CliCommand::Try(args) => review::try_out(&context, &args),
        CliCommand::Logs(args) => logs::logs(&context, &args),
        CliCommand::Gc(args) => gc::gc(&context, &args),
        CliCommand::Salvage(args) => salvage::salvage(&context, &args),
        CliCommand::Receipt(args) => receipt::receipt(&context, &args),
        CliCommand::Undo(args) => undo::undo(&context, &args),
        CliCommand::Agents(args) => agents::agents(&context, &args),
        CliCommand::Replay(args) => replay::replay(&args),
        CliCommand::Token => token::token(&context),
        CliCommand::Config(args) => config::config(&context, &args),
        // `with_own_exit` handles these before it comes here.
        CliCommand::Hook { .. } | CliCommand::DeskMcp(_) | CliCommand::Tk { .. } => Ok(()),
        CliCommand::Completion { shell } => completion::completion(shell),
    }
}

/// Runs async work on a single-threaded runtime, for commands that make a few calls.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
