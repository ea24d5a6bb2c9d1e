//! Why a command failed: a message for people and an exit code for scripts.

use std::fmt::Display;
use std::io::Write;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::ledger::{LedgerError, LockError};
use crate::runtime::ControlError;
use crate::runtime::assembly::AssemblyError;
use crate::workflow::{Finding, WorkflowError};

pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
/// The exit code by which a shell reports that a command cannot be run.
pub const SHIELD: u8 = 126;
const INVALID_WORKFLOW: u8 = 3;
const ANOTHER_RUNNER: u8 = 4;
const NO_RUNNER: u8 = 5;
const NOT_FOUND: u8 = 6;
const PROBLEMS: u8 = 7;
const CONTRADICTED: u8 = 8;
const UNPROVEN: u8 = 9;
pub const SOME_BLOCKED: u8 = 10;
pub const SWITCHED_OFF: u8 = 11;
pub const ONLY_OBSERVED: u8 = 12;
pub const OUT_OF_TIME: u8 = 13;

#[derive(Debug)]
pub enum Failure {
    /// A complete message: what failed, where, and how to fix it.
    Plain(String),
    Workflow(Box<WorkflowError>),
    Locked(LockError),
    /// The command line is wrong.
    Usage(String),
    NoRunner(String),
    NotFound(String),
    /// Everything was printed already; only the exit code remains.
    ProblemsFound,
    /// A receipt that was edited or is wrong.
    Contradicted(String),
    /// A receipt that can neither be proven nor disproven.
    Unproven(String),
    /// `run` stopped before all of its tickets were finished.
    Ended(RunEnd),
}

/// The exit code and message of a `run` that stopped by itself with tickets left that are not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    pub code: u8,
    pub text: String,
}

impl Failure {
    pub fn plain(error: impl Display) -> Self {
        Self::Plain(error.to_string())
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Plain(_) => FAILED,
            Self::Usage(_) => USAGE,
            Self::Workflow(_) => INVALID_WORKFLOW,
            Self::Locked(LockError::Held { .. }) => ANOTHER_RUNNER,
            Self::Locked(_) => FAILED,
            Self::NoRunner(_) => NO_RUNNER,
            Self::NotFound(_) => NOT_FOUND,
            Self::ProblemsFound => PROBLEMS,
            Self::Contradicted(_) => CONTRADICTED,
            Self::Unproven(_) => UNPROVEN,
            Self::Ended(end) => end.code,
        }
    }

    /// Returns the message alone, for a list of several failures.
    pub fn text(&self) -> String {
        match self {
            Self::Plain(text)
            | Self::Usage(text)
            | Self::NoRunner(text)
            | Self::NotFound(text)
            | Self::Contradicted(text)
            | Self::Unproven(text) => text.clone(),
            Self::Locked(error) => error.to_string(),
            Self::Workflow(error) => error.to_string(),
            Self::ProblemsFound => String::new(),
            Self::Ended(end) => end.text.clone(),
        }
    }

    pub fn print(&self) {
        match self {
            Self::Plain(text)
            | Self::Usage(text)
            | Self::NoRunner(text)
            | Self::NotFound(text)
            | Self::Contradicted(text)
            | Self::Unproven(text) => say(&format!("dirigent: {text}")),
            Self::Locked(error) => say(&format!("dirigent: {error}")),
            Self::Workflow(error) => print_workflow(error),
            Self::ProblemsFound => {}
            Self::Ended(end) => say(&format!("dirigent: {}", end.text)),
        }
    }
}

/// Writes to stderr. A write error is ignored: the exit code still tells.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints each finding about the workflow file once: the message, its place in the file, and what to do.
fn print_workflow(error: &WorkflowError) {
    match error.findings() {
        [] => print_diagnostic(error),
        [only] => print_diagnostic(&Shown(only)),
        many => {
            say(&format!("dirigent: {} problems in the workflow file ({}):", many.len(), error.class()));
            for finding in many {
                print_diagnostic(&Shown(finding));
            }
        }
    }
}

/// A finding whose message leaves out the hint, because the report prints the hint below it.
#[derive(Debug)]
struct Shown<'a>(&'a Finding);

impl Display for Shown<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0.without_hint())
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.0.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.0.labels()
    }
}

/// Prints an error with its place in the file. Uses colour only on a terminal.
fn print_diagnostic(error: &dyn Diagnostic) {
    use miette::{GraphicalReportHandler, GraphicalTheme};
    let theme =
        if super::output::colour_on_stderr() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    match GraphicalReportHandler::new_themed(theme).render_report(&mut text, error) {
        Ok(()) => say(&text),
        Err(_) => say(&format!("dirigent: {error}")),
    }
}

impl From<WorkflowError> for Failure {
    fn from(error: WorkflowError) -> Self {
        Self::Workflow(Box::new(error))
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::plain(error)
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::Locked(error)
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::NobodyThere { .. } => Self::NoRunner(format!("{error}; start one with `dirigent run`")),
            error => Self::plain(error),
        }
    }
}

impl From<AssemblyError> for Failure {
    fn from(error: AssemblyError) -> Self {
        match error {
            AssemblyError::Socket(error) => error.into(),
            error => Self::plain(error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::plain(error)
    }
}
