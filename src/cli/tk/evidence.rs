//! `evidence` of a worker: parses its arguments.

use super::arguments::{Argument, Arguments};
use super::failure::Failure;
use super::notes;
use super::session::TkCall;
use crate::domain::evidence::{EvidenceKind, FileAction};

/// The most bytes of a command's output that are sent; only its end is kept.
const MAX_OUTPUT: usize = 64 * 1024;

#[derive(Default)]
struct Given<'a> {
    kind: Option<&'a str>,
    command: Option<&'a str>,
    exit_code: Option<&'a str>,
    output: Option<String>,
    path: Option<&'a str>,
    action: Option<&'a str>,
    passed: Option<&'a str>,
    failed: Option<&'a str>,
    words: Vec<&'a str>,
}

pub fn parse(session: &TkCall<'_>, arguments: &[String]) -> Result<EvidenceKind, Failure> {
    let mut given = Given::default();
    let mut walk = Arguments::new(arguments);
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => given.words.push(word),
            Argument::Option(option) => {
                let value = walk.value(&option)?;
                match option.name {
                    "--type" | "-t" => given.kind = Some(value),
                    "--command" => given.command = Some(value),
                    "--exit-code" => given.exit_code = Some(value),
                    "--output" if value == "-" => given.output = Some(notes::stdin_text(session)?),
                    "--output" => given.output = Some(value.to_owned()),
                    "--path" => given.path = Some(value),
                    "--action" => given.action = Some(value),
                    "--passed" => given.passed = Some(value),
                    "--failed" => given.failed = Some(value),
                    "--text" => given.words.push(value),
                    _ => return Err(option.unknown()),
                }
            }
        }
    }
    given.kind(session)
}

impl Given<'_> {
    fn kind(self, session: &TkCall<'_>) -> Result<EvidenceKind, Failure> {
        let words = Some(self.words.join(" ")).filter(|words| !words.is_empty());
        match self.kind {
            Some("command") => Ok(EvidenceKind::Command {
                command: needed("--command", self.command.map(str::to_owned).or(words))?,
                output: tail(self.output.unwrap_or_default()),
                exit_code: number("--exit-code", Some(needed("--exit-code", self.exit_code.map(str::to_owned))?))?,
            }),
            Some("file") => Ok(EvidenceKind::File {
                action: match self.action.unwrap_or("modified") {
                    "created" => FileAction::Created,
                    "modified" => FileAction::Modified,
                    "deleted" => FileAction::Deleted,
                    other => {
                        let sentence = format!("--action is created, modified or deleted, not '{other}'");
                        return Err(Failure::said(sentence));
                    }
                },
                path: needed("--path", self.path.map(str::to_owned).or(words))?,
            }),
            Some("test") => Ok(EvidenceKind::Test {
                passed: number("--passed", Some(needed("--passed", self.passed.map(str::to_owned))?))?,
                failed: number("--failed", self.failed.map(str::to_owned))?,
            }),
            Some("note") => {
                let text = match words {
                    Some(text) => text,
                    None => notes::text(session, &[])?,
                };
                Ok(EvidenceKind::Note { text })
            }
            Some(other) => {
                Err(Failure::said(format!("unknown evidence type '{other}'. Must be one of: command file test note")))
            }
            None => {
                Err(Failure::Usage(format!("Usage: {} evidence --type command|file|test|note ...", session.program)))
            }
        }
    }
}

fn needed(option: &str, value: Option<String>) -> Result<String, Failure> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| Failure::said(format!("this evidence needs {option}")))
}

fn number<T: std::str::FromStr + Default>(option: &str, value: Option<String>) -> Result<T, Failure> {
    match value {
        None => Ok(T::default()),
        Some(text) => text.parse().map_err(|_| Failure::said(format!("{option} takes a whole number, not '{text}'"))),
    }
}

fn tail(output: String) -> String {
    if output.len() <= MAX_OUTPUT {
        return output;
    }
    let start = (output.len() - MAX_OUTPUT..output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(0);
    format!("...{}", &output[start..])
}
