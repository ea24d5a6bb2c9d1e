//! What can be typed, with examples.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(
    name = "dirigent",
    version,
    about = "Turns an issue board into merged work, and can be left alone.",
    after_help = "Examples:
  dirigent quickstart                a sample board, worked to the end, in under a minute
  dirigent init && dirigent doctor   set up this repository and check it
  dirigent run                       work the board until told to stop
  dirigent run --once                work what is there now, then end
  dirigent status                    where every ticket stands
  dirigent explain app-x3f9          why this ticket is where it is
  dirigent tk create 'Fix the door'  make a ticket; `dirigent tk help` lists the rest
  mkdir -p .dirigent && touch .dirigent/pause
                                     stop everything at once

Exit codes: 0 done · 1 failed · 2 wrong usage · 3 WORKFLOW.md is not valid · 4 another runner is at work
            5 no runner is up · 6 no such ticket or run · 7 doctor found problems"
)]
pub struct Args {
    /// The workflow file [default: WORKFLOW.md here or in the nearest folder above, up to the repository's top]
    #[arg(long, global = true, value_name = "PATH")]
    pub workflow: Option<PathBuf>,
    /// Override a key of the workflow file for this invocation, any number of times; never for secrets
    #[arg(long = "set", global = true, value_name = "KEY.PATH=VALUE")]
    pub overrides: Vec<String>,
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Make a sample repository with five tickets and work them to the end: no keys, no network
    Quickstart(QuickstartArgs),
    /// Write a commented WORKFLOW.md for this repository; never overwrites
    Init(InitArgs),
    /// Check configuration, git, agent, tracker, workspace, switches and disk
    Doctor(DoctorArgs),
    /// Work the board
    Run(RunArgs),
    /// Show where every ticket stands
    Status(StatusArgs),
    /// Tell why a ticket is where it is, and what would move it
    Explain(ExplainArgs),
    /// Stop everything (or one ticket) at once; nothing is forgotten
    Pause(MaybeTicketArgs),
    /// Go on where it was paused
    Resume(MaybeTicketArgs),
    /// Stop a ticket's run and keep the ticket aside; without a ticket, end the runner
    Stop(MaybeTicketArgs),
    /// Start a ticket again, with fresh counters
    Retry(TicketArgs),
    /// Approve the work of a ticket as it is now
    Approve(ApproveArgs),
    /// Ask for changes to the work of a ticket
    Reject(RejectArgs),
    /// Say something to the agent that works on a ticket
    Message(MessageArgs),
    /// Show what an agent printed
    Logs(LogsArgs),
    /// Remove what finished runs left behind, and branches of closed tickets that hold nothing unmerged
    Gc(GcArgs),
    /// Uncommitted work that was saved from runs that did not end well
    Salvage(SalvageArgs),
    /// Take back what was done for a ticket
    Undo(TicketArgs),
    /// List the agents that are known and installed, or try one out
    Agents(AgentsArgs),
    /// Feed a recorded run through the engine again and show every decision
    Replay(ReplayArgs),
    /// Tickets as files: create, list, show, note, close and more (`dirigent tk help`)
    #[command(disable_help_flag = true)]
    Tk {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// For agents that call hooks: reads the hook's JSON on stdin, records a teammate of the run, never fails
    Hook {
        /// subagent-start, subagent-stop, teammate-idle, task-completed or stop
        event: Option<String>,
    },
    /// For agents that speak MCP: the worker's `tk` as tools, on stdin and stdout
    DeskMcp {
        /// Offer follow-up tickets, too
        #[arg(long)]
        follow_ups: bool,
    },
    /// Show the effective configuration, or its schema
    Config(ConfigArgs),
    /// Print a completion script for your shell
    Completion { shell: clap_complete::Shell },
}

#[derive(Debug, clap::Args)]
pub struct QuickstartArgs {
    /// Where to make the sample repository [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent init
  dirigent init --agent 'my-agent --non-interactive'")]
pub struct InitArgs {
    /// The command that does the work: gets the prompt on stdin, works in its current folder
    #[arg(long, value_name = "COMMAND")]
    pub agent: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent doctor
  dirigent doctor --fix
  dirigent doctor --bundle report.tar
  dirigent doctor --bundle report.tar --events run.jsonl")]
pub struct DoctorArgs {
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
    /// Make what is missing and can be made, such as labels on GitHub, after asking
    #[arg(long)]
    pub fix: bool,
    /// Do not ask before making it
    #[arg(long, requires = "fix")]
    pub yes: bool,
    /// Pack findings, configuration, ledger and log into a tar file for a bug report; secrets are cut out
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// A recording of `run --record` that goes into the bundle too
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub events: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent run --record run.jsonl
  dirigent replay run.jsonl
  dirigent replay run.jsonl --json

Exit code 7 when the engine decides otherwise than it did in the recorded run.")]
pub struct ReplayArgs {
    /// A file written by `run --record`
    pub file: PathBuf,
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent run
  dirigent run path/to/WORKFLOW.md
  dirigent run --once --plain | tee run.log")]
pub struct RunArgs {
    /// The workflow file [default: WORKFLOW.md here or in the nearest folder above]
    #[arg(value_name = "WORKFLOW")]
    pub path: Option<PathBuf>,
    /// End when nothing runs and nothing can go on without somebody outside
    #[arg(long)]
    pub once: bool,
    /// Log lines instead of the live table, also on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Add every event and decision to this file, for `dirigent replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent status
  dirigent status app-x3f9 --verbose
  dirigent status --format json
  dirigent status --field counts.running
  dirigent status --watch")]
pub struct StatusArgs {
    /// Only this ticket
    pub ticket: Option<String>,
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
    /// The same as --format json
    #[arg(long)]
    pub json: bool,
    /// Print one value, named by a dotted path
    #[arg(long, value_name = "A.B")]
    pub field: Option<String>,
    /// More columns, and tickets that were given back
    #[arg(long, short)]
    pub verbose: bool,
    /// Every ticket that ever was, also those that are over and archived
    #[arg(long)]
    pub all: bool,
    /// Show it again every second until interrupted
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The ticket's key or id, or a part that fits only one
    pub ticket: String,
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct TicketArgs {
    /// The ticket's key or id, or a part that fits only one
    pub ticket: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent approve demo-3
  dirigent approve demo-3 --head 1a2b3c4d5e6f   refuses if somebody pushed since
  dirigent approve demo-3 --anyway              also overrules the remarks that stand against it")]
pub struct ApproveArgs {
    /// The ticket's key or id, or a part that fits only one
    pub ticket: String,
    /// The commit that you looked at, in full
    #[arg(long, value_name = "COMMIT")]
    pub head: Option<String>,
    /// Overrule the remarks that stand against it now, and nothing that comes later
    #[arg(long)]
    pub anyway: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  dirigent reject demo-3 'use another file name'")]
pub struct RejectArgs {
    /// The ticket's key or id
    pub ticket: String,
    /// What has to change
    #[arg(required = true, num_args = 1..)]
    pub text: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct MaybeTicketArgs {
    /// The ticket's key or id [default: everything]
    pub ticket: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct MessageArgs {
    /// The ticket's key or id
    pub ticket: String,
    /// What to say
    #[arg(required = true, num_args = 1..)]
    pub text: Vec<String>,
    /// Interrupt the running turn first
    #[arg(long)]
    pub urgent: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent logs                 the newest run
  dirigent logs app-x3f9        the newest run of a ticket
  dirigent logs -f app-x3f9     and what is still to come")]
pub struct LogsArgs {
    /// A ticket or a run [default: the newest run]
    pub name: Option<String>,
    /// Go on as the run goes on
    #[arg(long, short)]
    pub follow: bool,
    /// Every line of the prompt too
    #[arg(long, short)]
    pub verbose: bool,
    /// One JSON object a line, times in milliseconds since the epoch
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent gc --dry-run
  dirigent gc --max-age 7d")]
pub struct GcArgs {
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Only what is older: 30m, 12h, 7d
    #[arg(long, default_value = "1d", value_parser = parse_age)]
    pub max_age: std::time::Duration,
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct SalvageArgs {
    #[command(subcommand)]
    pub command: SalvageCommand,
}

#[derive(Debug, Subcommand)]
pub enum SalvageCommand {
    /// List saved work, newest last
    List {
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
    /// Show what saved work changes
    Show {
        /// A run, the end of its id, or a ticket (the newest of its runs)
        run: String,
    },
    /// Put saved work on a branch
    Restore {
        /// A run, the end of its id, or a ticket (the newest of its runs)
        run: String,
        /// The branch to put it on [default: a new one, salvage/<run>]
        #[arg(long, value_name = "NAME")]
        branch: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  dirigent agents               known agents, installed versions, what each can do
  dirigent agents --json
  dirigent agents test codex    one whole run of the installed client against a scripted model: no keys, no network"
)]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Run the installed client on a ticket of its own against a scripted model on loopback
    #[command(after_help = "Examples:
  dirigent agents test claude
  dirigent agents test codex-exec --json")]
    Test {
        /// An agent's name, as `dirigent agents` lists it
        name: String,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every effective value and where it came from; secrets masked
    Show {
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
    /// The JSON Schema of the front matter
    Schema,
}

fn parse_age(text: &str) -> Result<std::time::Duration, String> {
    let explain = || format!("`{text}` is no age; write for example 30m, 12h or 7d");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(explain)?);
    let number: u64 = number.parse().map_err(|_| explain())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(explain()),
    };
    Ok(std::time::Duration::from_secs(number.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;

    use super::Args;

    fn word() -> impl Strategy<Value = String> {
        let known = [
            "run",
            "--once",
            "--plain",
            "--record",
            "status",
            "--field",
            "--format",
            "json",
            "explain",
            "gc",
            "--max-age",
            "7d",
            "99999999999999999999d",
            "d",
            "salvage",
            "restore",
            "--branch",
            "message",
            "--urgent",
            "logs",
            "-f",
            "replay",
            "doctor",
            "--bundle",
            "--events",
            "config",
            "show",
            "completion",
            "bash",
            "--workflow",
            "--set",
            "agent.max_turns=3",
            "--help",
            "--",
            "-",
            "",
        ];
        prop_oneof![3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,12}"]
    }

    proptest! {
        #[test]
        fn whatever_is_typed_is_understood_or_refused(words in prop::collection::vec(word(), 0..8)) {
            if let Err(error) = Args::try_parse_from(std::iter::once("dirigent".to_owned()).chain(words)) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
