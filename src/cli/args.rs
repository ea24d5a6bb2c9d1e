//! The command line of `dirigent`: commands, options and examples. Doc comments here are the texts of `--help`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::output::ColourChoice;
use crate::domain::phase::Phase;

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
            5 no runner is up · 6 no such ticket or run · 7 doctor found problems
of `run --once` and `run --until-idle` besides:
            10 some tickets are blocked or failed · 11 a switch stopped everything · 12 observe mode: nothing was started
            13 the time of --timeout was over"
)]
pub struct Args {
    /// The workflow file [default: WORKFLOW.md here or in the nearest folder above, up to the repository's top]
    #[arg(long, global = true, value_name = "PATH")]
    pub workflow: Option<PathBuf>,
    /// Override a key of the workflow file for this invocation, any number of times; never for secrets
    #[arg(long = "set", global = true, value_name = "KEY.PATH=VALUE")]
    pub overrides: Vec<String>,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: ColourChoice,
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
    /// Show the board on the whole terminal, live, with keys to act on it
    Top,
    /// Tell why a ticket is where it is, and what would move it on
    Explain(ExplainArgs),
    /// Stop everything (or one ticket) at once; nothing is forgotten
    Pause(SwitchArgs),
    /// Go on where things were paused
    Resume(SwitchArgs),
    /// Stop a ticket's run and set the ticket aside; without a ticket, end the runner
    Stop(SwitchArgs),
    /// Start tickets again, with fresh counters
    Retry(RetryArgs),
    /// Approve the work of a ticket as it is now
    Approve(ApproveArgs),
    /// Ask for changes to the work of a ticket
    Reject(RejectArgs),
    /// Say something to the agent that works on a ticket
    Message(MessageArgs),
    /// Show what a ticket's head has beyond the base branch
    Diff(DiffArgs),
    /// Check a ticket's head out in a throw-away tree, and print its path
    Try(TicketArgs),
    /// Show what an agent printed
    Logs(LogsArgs),
    /// Remove what finished runs left behind, and branches of closed tickets that hold nothing unmerged
    Gc(GcArgs),
    /// List, show or restore uncommitted work of runs that did not end well
    Salvage(SalvageArgs),
    /// Show or verify what was checked before a commit was merged
    Receipt(ReceiptArgs),
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
    DeskMcp(DeskMcpArgs),
    /// Print the token that the API wants for anything that changes something
    Token,
    /// Show the effective configuration, or its schema
    Config(ConfigArgs),
    /// Print a completion script for your shell
    Completion { shell: clap_complete::Shell },
}

impl CliCommand {
    /// Returns the override of a workflow key that an option of this command stands for, such as `server.port=0` for `--port 0`.
    pub fn overrides(&self) -> Option<String> {
        let port = match self {
            Self::Run(args) => args.port,
            Self::Quickstart(args) => args.serve.then_some(args.port),
            _ => None,
        };
        port.map(|port| format!("server.port={port}"))
    }
}

#[derive(Debug, clap::Args)]
pub struct DeskMcpArgs {
    /// Offer follow-up tickets, too
    #[arg(long)]
    pub follow_ups: bool,
    /// Offer only what a reviewer needs
    #[arg(long)]
    pub read_only: bool,
    /// Offer the tracker's own API, as the tool with this name
    #[arg(long, value_name = "TOOL", hide = true)]
    pub api: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct QuickstartArgs {
    /// Where to make the sample repository [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Serve the API and the dashboard, and stay up until told to stop
    #[arg(long)]
    pub serve: bool,
    /// With --serve: the port; 0 takes any free one
    #[arg(long, value_name = "PORT", requires = "serve", default_value_t = 4041)]
    pub port: u16,
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
    /// Create what is missing and can be created, such as labels on GitHub, after asking
    #[arg(long)]
    pub fix: bool,
    /// Do not ask first
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
  dirigent run --once --plain | tee run.log
  dirigent run --until-idle --timeout 30m -q   in a script; its exit code tells what came of it")]
pub struct RunArgs {
    /// The workflow file [default: WORKFLOW.md here or in the nearest folder above]
    #[arg(value_name = "WORKFLOW")]
    pub path: Option<PathBuf>,
    /// Do what can be done now, then end; do not wait for the next attempt of a ticket that failed
    #[arg(long, group = "ends", conflicts_with = "until_idle")]
    pub once: bool,
    /// End when nothing runs and nothing can go on without somebody outside; wait for next attempts
    #[arg(long, group = "ends")]
    pub until_idle: bool,
    /// With --until-idle: do not wait for next attempts, as --once does not
    #[arg(long, requires = "ends")]
    pub no_retry: bool,
    /// Serve the API and the dashboard at this port, whatever server.port says; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Shut down in good order after this long: 90s, 30m, 2h
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub timeout: Option<std::time::Duration>,
    /// What log lines look like [default: observability.log]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log: Option<LogChoice>,
    /// Print only warnings and errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also print what only helps to find a fault
    #[arg(long, short)]
    pub verbose: bool,
    /// Print log lines instead of the live table, even on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Add every event and decision to this file, for `dirigent replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogChoice {
    /// One short line for people
    Text,
    /// Lines with every field
    Full,
    /// One JSON object per line
    Json,
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
    /// All tickets there have ever been, archived ones included
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

/// Which tickets are meant, when they are not named one by one.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Selection {
    /// Every ticket that the command is for
    #[arg(long)]
    pub all: bool,
    /// Every ticket in this phase, as `status` names it
    #[arg(long, value_name = "PHASE", value_parser = parse_phase)]
    pub phase: Option<Phase>,
    /// Every ticket with this reason, as `status --json` names it
    #[arg(long, value_name = "REASON")]
    pub cause: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent approve demo-3
  dirigent approve demo-3 demo-4
  dirigent approve --all
  dirigent approve demo-3 --head 1a2b3c4d5e6f   refuses if somebody pushed since
  dirigent approve demo-3 --anyway              also overrules the remarks that stand against it")]
pub struct ApproveArgs {
    /// Keys or ids of tickets, or parts that fit only one
    #[arg(value_name = "TICKET")]
    pub tickets: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// The commit that you looked at, or at least seven characters of its name; for one ticket
    #[arg(long, value_name = "COMMIT")]
    pub head: Option<String>,
    /// Overrule the remarks that stand against it now, but nothing that comes later
    #[arg(long)]
    pub anyway: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent reject demo-3 'use another file name'
  dirigent reject demo-3 demo-4 -m 'use another file name'
  dirigent reject --all 'the tests are missing'")]
pub struct RejectArgs {
    /// The ticket and what has to change; tickets alone with -m, words alone with --all, --phase or --cause
    #[arg(value_name = "TICKET TEXT", num_args = 0..)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// What has to change, for several tickets
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent retry demo-3
  dirigent retry --phase blocked
  dirigent retry --cause no_new_evidence")]
pub struct RetryArgs {
    /// Keys or ids of tickets, or parts that fit only one
    #[arg(value_name = "TICKET")]
    pub tickets: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
}

#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// Keys or ids of tickets, or parts that fit only one [default: everything]
    #[arg(value_name = "TICKET")]
    pub tickets: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent diff demo-3
  dirigent diff demo-3 --stat
  dirigent diff demo-3 --tool    with the tool that git is set up with (git config diff.tool)")]
pub struct DiffArgs {
    /// The ticket's key or id, or a part that fits only one
    pub ticket: String,
    /// Files and how much of each
    #[arg(long, conflicts_with = "tool")]
    pub stat: bool,
    /// Open git's own tool for differences
    #[arg(long)]
    pub tool: bool,
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
  dirigent logs -f app-x3f9     the same, and go on as the run does")]
pub struct LogsArgs {
    /// A ticket or a run [default: the newest run]
    pub name: Option<String>,
    /// Follow the run as it goes on
    #[arg(long, short)]
    pub follow: bool,
    /// Show every line as it was printed, and the whole prompt
    #[arg(long, short)]
    pub verbose: bool,
    /// One JSON object per line, times in milliseconds since the epoch
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dirigent gc --dry-run
  dirigent gc --max-age 7d")]
pub struct GcArgs {
    /// Only say what would be removed
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
#[command(after_help = "Examples:
  dirigent receipt show HEAD      what was checked, on which head, by which command, with which result
  dirigent receipt verify HEAD    0: it holds; 6: there is none; 8: it was edited or is wrong; 9: nothing proves it")]
pub struct ReceiptArgs {
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// Show the receipt of a commit
    Show(ReceiptOfArgs),
    /// Check the receipt of a commit: its signature, the runner's own copy, the commit itself
    Verify(ReceiptOfArgs),
}

#[derive(Debug, clap::Args)]
pub struct ReceiptOfArgs {
    /// The merged commit, in any form that git knows
    pub commit: String,
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

fn parse_phase(text: &str) -> Result<Phase, String> {
    let said = text.trim().to_lowercase().replace([' ', '-'], "_");
    let known = |phase: &Phase| phase.name() == said || phase.words().replace(' ', "_") == said;
    Phase::ALL.into_iter().find(known).ok_or_else(|| {
        let names: Vec<&str> = Phase::ALL.into_iter().map(Phase::name).collect();
        format!("there is no phase `{text}`; there is {}", names.join(", "))
    })
}

fn parse_age(text: &str) -> Result<std::time::Duration, String> {
    let explain = || format!("`{text}` is not an age; write for example 30m, 12h or 7d");
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
