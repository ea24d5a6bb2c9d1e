//! What `doctor` reports about programs: the commands of the gates, the reviewer, and a runner that is already up.

use std::collections::BTreeMap;

use crate::config::gates::TASK_COMPLETED;
use crate::launcher::find_program;
use crate::runtime::{Client, ControlError, Request, RunnerFolder};
use crate::workflow::Loaded;

use super::doctor::Report;
use super::snapshot_source::Behind;
use crate::ledger::Holder;
use crate::worker::reviewer;

/// Commands that are built into the shell.
const OF_THE_SHELL: [&str; 26] = [
    "!", ":", "[", "[[", "alias", "cd", "case", "command", "eval", "exec", "exit", "export", "false", "for", "if",
    "read", "set", "test", "time", "trap", "true", "ulimit", "umask", "unset", "until", "while",
];

/// Returns the word of a command line that names its program: the first that is not an assignment.
pub fn program_of(command: &str) -> Option<&str> {
    command.split_whitespace().find(|word| !word.contains('='))
}

/// Whether the program is on the path, is built into the shell, or is an expression that only the shell can evaluate.
pub fn can_be_run(program: &str, path: &str) -> bool {
    let plain = !program.contains(['(', '{', '$', '"', '\'', ';', '&', '|', '<', '>', '`']);
    if plain && program.starts_with('/') {
        return find_program(program, path).is_some();
    }
    program.contains(['(', '{', '$', '.', '/', '"', '\'', ';', '&', '|', '<', '>', '`'])
        || OF_THE_SHELL.contains(&program)
        || find_program(program, path).is_some()
}

pub fn gates(path: &str, loaded: &Loaded, report: &mut Report) {
    for gate in &loaded.settings.gates.task {
        match program_of(&gate.run) {
            Some(program) if !can_be_run(program, path) => report.problem(
                "gates",
                format!("`{program}` of gate `{}` is not there, or no program", gate.title()),
                "install it, or correct gates.task: a ticket whose gate cannot be run is blocked",
            ),
            Some(_) => report.ok("gates", format!("{}: {}", gate.title(), gate.run.lines().next().unwrap_or_default())),
            None => report.problem("gates", "a command of gates.task is empty", "name a command, or remove it"),
        }
    }
    let Some(hook) = &loaded.settings.gates.hook else { return };
    match hook.program.as_deref().filter(|program| !can_be_run(program, path)) {
        Some(program) => report.problem(
            "gates",
            format!("`{program}` is not there, and {} needs it", hook.path.display()),
            "install it, or remove the script: a ticket that it cannot judge is blocked",
        ),
        None => report.ok("gates", format!("{TASK_COMPLETED}: {}", hook.path.display())),
    }
}

/// Reports whether the reviewer that the workflow file names exists.
pub fn reviewer(environment: &BTreeMap<String, String>, loaded: &Loaded, report: &mut Report) {
    let (review, home) = (&loaded.settings.review, &loaded.settings.workspace.home);
    let Some(name) = review.agent.as_deref().filter(|_| review.enabled) else { return };
    let runtime = review.runtime.unwrap_or(loaded.settings.worker.runtime);
    match reviewer::file(runtime, name, home, environment) {
        Some(path) => report.ok("review", format!("{name}: {}", path.display())),
        None => report.warn(
            "review",
            format!("there is no reviewer `{name}` for {} (review.agent): the built-in one reviews", runtime.name()),
            format!("write .dirigent/agents/{name}.md, correct the name, or remove the key; docs/reviewing.md has the other places"),
        ),
    }
}

pub fn runner(place: &RunnerFolder, report: &mut Report) {
    match Client::new(&place.socket).ask(&Request::Snapshot) {
        Ok(_) => {
            let pid = Holder::named_in(&place.state_dir).map(|holder| format!(" (pid {})", holder.pid));
            report.ok("runner", format!("one is at work here{}", pid.unwrap_or_default()));
        }
        Err(ControlError::NobodyThere { .. }) => report.ok("runner", "none is at work here"),
        Err(ControlError::NoAnswer { .. }) => {
            let silent = Behind::silent(place);
            report.warn("runner", silent.name(), silent.what_to_do().unwrap_or_default());
        }
        Err(error) => report.warn("runner", error.to_string(), "look at its log, or start it again"),
    }
}
