//! `completion`: a completion script for the shell. The script contains commands and options. It gets ticket keys from the hidden command
//! `__complete` each time Tab is pressed, so they are always up to date.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::domain::phase::Phase;
use crate::domain::snapshot::JobView;

use super::Failure;
use super::args::Args;
use super::context::Context;
use super::output;
use super::snapshot_source;
use super::tk;

/// The hidden command with which the scripts ask for candidates.
pub const COMMAND: &str = "__complete";
/// Commands that take one ticket as their first word.
const ONE: [&str; 7] = ["status", "explain", "message", "diff", "try", "undo", "logs"];
/// Commands that take several tickets.
const MANY: [&str; 6] = ["pause", "resume", "stop", "retry", "approve", "reject"];
/// Global options that take a value; they may stand before a command or between its words.
const WORKFLOW: &str = "--workflow";
const SET: &str = "--set";
const WITH_VALUE: [&str; 3] = [WORKFLOW, SET, "--color"];

pub fn completion(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "dirigent", &mut script);
    let script = String::from_utf8_lossy(&script);
    output::print(with_tickets(shell, &script).trim_end())
}

/// `__complete WORD...`: prints what the last word can become, one candidate per line, with the ticket's title after a tab. Prints
/// nothing on errors, because an error message would disturb typing.
pub fn complete(words: &[String]) -> ExitCode {
    let Some(line) = Typed::read(words) else { return ExitCode::SUCCESS };
    if let Some((first, rest)) = line.words.split_first()
        && first == "tk"
    {
        let asked = ["tk", "__complete"].into_iter().map(str::to_owned).chain(rest.iter().cloned());
        return tk::run(asked.map(Into::into).collect());
    }
    let told = Context::new(line.workflow, &line.overrides).map(|context| candidates(&context, &line.words));
    let _ = output::print_part(&told.unwrap_or_default());
    ExitCode::SUCCESS
}

/// A command line that is being typed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    workflow: Option<PathBuf>,
    overrides: Vec<String>,
    /// The words besides global options and their values. The last one is to be completed.
    words: Vec<String>,
}

impl Typed {
    /// Returns `None` if the last word belongs to a global option. The value of an option is the next word or follows `=`, which bash gives
    /// as a word of its own.
    fn read(words: &[String]) -> Option<Self> {
        let mut line = Self::default();
        let mut left = words.iter().map(String::as_str).peekable();
        while let Some(word) = left.next() {
            let (name, glued) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            if !WITH_VALUE.contains(&name) {
                line.words.push(word.to_owned());
                continue;
            }
            let value = glued.or_else(|| {
                left.next_if_eq(&"=");
                left.next()
            });
            left.peek()?;
            match (name, value) {
                (WORKFLOW, Some(value)) => line.workflow = Some(in_home(value)),
                (SET, Some(value)) => line.overrides.push(value.to_owned()),
                _ => {}
            }
        }
        Some(line)
    }
}

/// Returns the path with `~/` replaced, which a shell does only when the command is run.
fn in_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

fn candidates(context: &Context, words: &[String]) -> String {
    let Some(((command, before), last)) =
        words.split_last().and_then(|(last, before)| Some((before.split_first()?, last.as_str())))
    else {
        return String::new();
    };
    if before.last().is_some_and(|word| word == "--phase") {
        let phases = Phase::ALL.into_iter().map(Phase::name).filter(|name| name.starts_with(last));
        return phases.map(|name| format!("{name}\n")).collect();
    }
    let named = before.iter().filter(|word| !word.starts_with('-')).count();
    let takes_more = MANY.contains(&command.as_str()) || ONE.contains(&command.as_str()) && named == 0;
    if !takes_more || last.starts_with('-') {
        return String::new();
    }
    let Ok(seen) = snapshot_source::now(context) else { return String::new() };
    let jobs = seen.snapshot.jobs.iter().filter(|job| job.key.contains(last) && !before.contains(&job.key));
    let jobs = jobs.filter(|job| is_for(command, job));
    jobs.map(|job| format!("{}\t{}\n", job.key, output::harmless(&job.title).replace(['\t', '\n'], " "))).collect()
}

/// Whether the command could do something with the ticket in its present phase.
fn is_for(command: &str, job: &JobView) -> bool {
    match command {
        "approve" | "reject" => job.phase == Phase::WaitingForHuman,
        "retry" => job.phase == Phase::Blocked || job.retry_at.is_some(),
        "message" | "pause" | "resume" => !job.phase.is_terminal(),
        "stop" => job.run.is_some(),
        "diff" | "try" => job.head.is_some(),
        _ => true,
    }
}

fn with_tickets(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH}"),
        Shell::Zsh => format!("{}\n{ZSH}", zsh_words(script)),
        Shell::Fish => {
            let many = [ONE.as_slice(), MANY.as_slice(), &["tk"]].concat().join(" ");
            format!("{script}\n{}", FISH.replace("{commands}", &many))
        }
        _ => script.to_owned(),
    }
}

/// Makes ticket arguments complete to tickets: in the zsh script that clap generates they complete to files.
fn zsh_words(script: &str) -> String {
    let is_ticket = |line: &str| {
        ["ticket", "tickets", "words", "arguments", "name"].iter().any(|name| {
            let after = line.trim_start().trim_start_matches(['\'', '"', '*', ':']);
            after.strip_prefix(name).is_some_and(|rest| rest.starts_with(" -- ") || rest.starts_with(':'))
        })
    };
    let changed = |line: &str| match line.strip_suffix(":_default' \\") {
        Some(start) if is_ticket(line) => format!("{start}:_dirigent_tickets' \\"),
        _ => line.to_owned(),
    };
    script.lines().map(changed).collect::<Vec<_>>().join("\n")
}

const BASH: &str = r#"_dirigent_tickets() {
    local IFS=$'\n' word="${COMP_WORDS[COMP_CWORD]}"
    if [[ COMP_CWORD -ge 2 && "$word" != -* ]]; then
        local found=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
        if [[ ${#found[@]} -gt 0 ]]; then
            COMPREPLY=("${found[@]}")
            return
        fi
    fi
    unset IFS
    _dirigent "$@"
}
complete -F _dirigent_tickets -o bashdefault -o default dirigent
"#;

const ZSH: &str = r#"_dirigent_tickets() {
    local -a found typed
    local line
    # What clap's own script leaves of the words depends on the command.
    typed=(${(z)LBUFFER})
    [[ $LBUFFER == *[[:space:]] ]] && typed+=("")
    for line in ${(f)"$(dirigent __complete "${(@)typed[2,-1]}" 2>/dev/null)"}; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe 'ticket' found
}
"#;

const FISH: &str = r#"complete -c dirigent -n "__fish_seen_subcommand_from {commands}" -f -a '(dirigent __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Option<(Option<String>, Vec<String>, Vec<String>)> {
        let line = Typed::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())?;
        Some((line.workflow.map(|path| path.display().to_string()), line.overrides, line.words))
    }

    #[test]
    fn global_options_are_read_wherever_they_stand() {
        let wanted = Some((Some("X".to_owned()), Vec::new(), vec!["retry".to_owned(), "t".to_owned()]));
        for words in [
            &["--workflow", "X", "retry", "t"][..],
            &["--workflow=X", "retry", "t"],
            &["--workflow", "=", "X", "retry", "t"],
            &["retry", "--workflow", "X", "t"],
            &["--color", "never", "--workflow", "X", "retry", "t"],
        ] {
            assert_eq!(typed(words), wanted, "{words:?}");
        }
        let (_, overrides, words) = typed(&["--set", "a.b=c", "--set=d=e", "stop", ""]).unwrap();
        assert_eq!((overrides.join(" "), words.join(" ")), ("a.b=c d=e".to_owned(), "stop ".to_owned()));
    }

    #[test]
    fn the_value_of_a_global_option_is_no_ticket() {
        for words in [&["status", "t-1", "--workflow", "W"][..], &["retry", "--set", "a=b"], &["retry", "--color=al"]] {
            assert_eq!(typed(words), None, "{words:?}");
        }
        assert_eq!(typed(&[]), Some((None, Vec::new(), Vec::new())));
    }
}
