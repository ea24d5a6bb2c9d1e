//! Shell completion of commands and ids. The scripts call the hidden command `__complete`, so they are always up to date.

use super::failure::Failure;
use super::session::{TkCall, TkOutput};
use super::tickets::Tickets;

const COMMANDS: [&str; 30] = [
    "add",
    "add-note",
    "blocked",
    "board",
    "claim",
    "close",
    "closed",
    "comment",
    "completion",
    "create",
    "dep",
    "done",
    "edit",
    "graph",
    "help",
    "import",
    "link",
    "list",
    "ls",
    "migrate-beads",
    "query",
    "ready",
    "reopen",
    "show",
    "start",
    "status",
    "super",
    "tag",
    "undep",
    "unlink",
];

/// Returns the command that is spelled most like the typed one; `None` if none is similar enough.
pub fn nearest(typed: &str) -> Option<&'static str> {
    let likeness = |command: &&str| strsim::damerau_levenshtein(typed, command);
    COMMANDS.into_iter().min_by_key(likeness).filter(|near| likeness(near) <= 1 + near.len() / 5)
}

pub fn completion(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let script = match arguments.first().map(String::as_str) {
        Some("bash") => BASH,
        Some("zsh") => ZSH,
        Some("fish") => FISH,
        _ => return Err(Failure::Usage(format!("Usage: {} completion bash|zsh|fish", session.program))),
    };
    Ok(TkOutput::text(script.replace("{tk}", &session.program)))
}

/// `__complete WORD...`: returns what the last word can become, one candidate per line, with the ticket's title after a tab.
pub fn candidates(session: &TkCall<'_>, words: &[String]) -> TkOutput {
    let (before, last) = match words.split_last() {
        Some((last, before)) => (before, last.as_str()),
        None => (&[][..], ""),
    };
    let fixed = |choices: &[&str]| -> String {
        choices.iter().filter(|choice| choice.starts_with(last)).map(|choice| format!("{choice}\n")).collect()
    };
    let before: Vec<&str> = before.iter().map(String::as_str).filter(|word| *word != "super").collect();
    let text = match before[..] {
        [] => fixed(&COMMANDS),
        ["completion"] => fixed(&["bash", "zsh", "fish"]),
        ["import"] => fixed(&["beads", "github", "linear-csv"]),
        ["status", _] => fixed(&["open", "in_progress", "closed"]),
        ["dep"] => fixed(&["tree", "cycle"]) + &ids(session, last, false),
        ["create" | "add" | "ls" | "list" | "ready" | "blocked" | "closed" | "board" | "query" | "help", ..] => {
            String::new()
        }
        ["start" | "close" | "done" | "claim"] => ids(session, last, true),
        _ => ids(session, last, false),
    };
    TkOutput::text(text)
}

/// Lists the ids that contain `part`. A store that cannot be read gives no candidates, because an error would disturb typing.
fn ids(session: &TkCall<'_>, part: &str, only_active: bool) -> String {
    let Ok(tickets) = session.store().and_then(|store| Tickets::load(session, &store)) else { return String::new() };
    let wanted =
        tickets.records.iter().filter(|record| record.id.contains(part) && (!only_active || record.is_active()));
    wanted
        .map(|record| {
            let title: String = record.title_or_empty().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("{}\t{title}\n", record.id)
        })
        .collect()
}

const BASH: &str = r#"# bash completion: eval "$({tk} completion bash)"
_tk_complete() {
    local IFS=$'\n'
    COMPREPLY=($({tk} __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -F _tk_complete tk ticket
"#;

const ZSH: &str = r#"# zsh completion: eval "$({tk} completion zsh)"
_tk_complete() {
    local -a found
    local line
    for line in ${(f)"$({tk} __complete ${words[2,CURRENT]} 2>/dev/null)"}; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe 'ticket' found
}
compdef _tk_complete tk ticket
"#;

const FISH: &str = r#"# fish completion: {tk} completion fish | source
complete -c tk -f -a '({tk} __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
complete -c ticket -f -a '({tk} __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"#;
