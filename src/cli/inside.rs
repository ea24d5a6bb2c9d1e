//! Detects whether this command was started inside a run. There, commands that change something are refused, because a worker must not act
//! as an operator. A nested `dirigent` with its own state folder is allowed: it only operates its own runner.

use crate::launcher::run_mark::{self, Surrounding};
use crate::workflow::resolve::{canonical, dirigent_home, has_own_home};

use super::Failure;
use super::args::{AgentsCommand, CliCommand, SalvageCommand};
use super::context::Context;

/// Returns an error for a command that only people may give, if this process is inside a run.
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

/// Whether this command was deliberately given a state folder (`DIRIGENT_HOME`) other than that of the runner whose run this is.
fn is_apart(context: &Context, run: &Surrounding) -> bool {
    let home = canonical(&dirigent_home(&context.env));
    has_own_home(&context.env) && run.owner.as_ref().is_none_or(|owner| !canonical(owner).starts_with(&home))
}

/// Returns the name of the command if it changes something; `None` for a command that only reads.
fn changes_something(command: &CliCommand) -> Option<&'static str> {
    Some(match command {
        CliCommand::Quickstart(_) => "quickstart",
        // `doctor` records that its checks passed for this configuration.
        CliCommand::Doctor(_) => "doctor",
        CliCommand::Run(_) => "run",
        CliCommand::Pause(_) => "pause",
        CliCommand::Resume(_) => "resume",
        CliCommand::Stop(_) => "stop",
        CliCommand::Retry(_) => "retry",
        CliCommand::Approve(_) => "approve",
        CliCommand::Reject(_) => "reject",
        CliCommand::Message(_) => "message",
        // The keys of `top` pause, stop and retry.
        CliCommand::Top => "top",
        CliCommand::Try(_) => "try",
        CliCommand::Gc(args) if !args.dry_run => "gc",
        CliCommand::Undo(_) => "undo",
        // The token allows its holder to change things.
        CliCommand::Token => "token",
        CliCommand::Salvage(args) => match args.command {
            SalvageCommand::Restore { .. } => "salvage restore",
            SalvageCommand::List { .. } | SalvageCommand::Show { .. } => return None,
        },
        CliCommand::Agents(args) => match args.command {
            Some(AgentsCommand::Test { .. }) => "agents test",
            None => return None,
        },
        // `init` writes a workflow file in the worktree, which is work like any other.
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
        | CliCommand::DeskMcp(_)
        | CliCommand::Config(_)
        | CliCommand::Completion { .. } => return None,
    })
}
