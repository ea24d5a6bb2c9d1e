//! Whether we were started inside of a run. There, whatever changes something is refused: a worker is never an operator. A nested
//! `dirigent` with a state folder of its own is another matter: it operates only what is its own.

use crate::launcher::run_mark::{self, Surrounding};
use crate::workflow::resolve::{canonical, dirigent_home, has_own_home};

use super::Failure;
use super::args::{AgentsCommand, CliCommand, SalvageCommand};
use super::context::Context;

/// Refuses what only people may do.
pub fn refuse_workers(context: &Context, command: &CliCommand) -> Result<(), Failure> {
    let Some(name) = changes_something(command) else { return Ok(()) };
    let runs = run_mark::surroundings();
    let Some(run) = runs.iter().find(|run| !is_apart(context, run)) else { return Ok(()) };
    let home = dirigent_home(&context.env);
    Err(Failure::Plain(format!(
        "`dirigent {name}` is refused: this is inside run {}, and a worker, a gate or a hook is never an operator\n  \
         fix: say on the ticket what is needed (`tk comment`, `tk blocked`); for a dirigent of your own, set DIRIGENT_HOME to a \
         folder other than {}",
        run.run,
        home.display()
    )))
}

/// Our state is not that of the runner whose run this is, and somebody said so on purpose.
fn is_apart(context: &Context, run: &Surrounding) -> bool {
    let home = canonical(&dirigent_home(&context.env));
    has_own_home(&context.env) && run.owner.as_ref().is_none_or(|owner| !canonical(owner).starts_with(&home))
}

/// The name of a command that is not only for looking.
fn changes_something(command: &CliCommand) -> Option<&'static str> {
    Some(match command {
        CliCommand::Quickstart(_) => "quickstart",
        // It records that this configuration may be worked with.
        CliCommand::Doctor(_) => "doctor",
        CliCommand::Run(_) => "run",
        CliCommand::Pause(_) => "pause",
        CliCommand::Resume(_) => "resume",
        CliCommand::Stop(_) => "stop",
        CliCommand::Retry(_) => "retry",
        CliCommand::Approve(_) => "approve",
        CliCommand::Reject(_) => "reject",
        CliCommand::Message(_) => "message",
        // Its keys pause, stop and retry.
        CliCommand::Top => "top",
        CliCommand::Try(_) => "try",
        CliCommand::Gc(args) if !args.dry_run => "gc",
        CliCommand::Undo(_) => "undo",
        CliCommand::Salvage(args) => match args.command {
            SalvageCommand::Restore { .. } => "salvage restore",
            SalvageCommand::List { .. } | SalvageCommand::Show { .. } => return None,
        },
        CliCommand::Agents(args) => match args.command {
            Some(AgentsCommand::Test { .. }) => "agents test",
            None => return None,
        },
        // A workflow file in the worktree is work like any other.
        CliCommand::Init(_)
        | CliCommand::Gc(_)
        | CliCommand::Status(_)
        | CliCommand::Explain(_)
        | CliCommand::Diff(_)
        | CliCommand::Logs(_)
        | CliCommand::Receipt(_)
        | CliCommand::Replay(_)
        | CliCommand::Tk { .. }
        | CliCommand::Hook { .. }
        | CliCommand::DeskMcp { .. }
        | CliCommand::Config(_)
        | CliCommand::Completion { .. } => return None,
    })
}
