//! What `doctor` reports about scripts that the agent and the gates are started with. They must be in the base commit: a worktree has only
//! what is committed there, not other files of the user's work tree.

use crate::config::workspace::WorkspaceMode;
use crate::runtime::assembly;
use crate::workflow::Loaded;

use super::Failure;
use super::block_on;
use super::doctor::Report;

/// Programs whose first argument that is not an option is a script.
const INTERPRETERS: [&str; 9] = ["sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl"];

pub fn in_base(loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    if settings.workspace.mode == WorkspaceMode::Directory {
        return;
    }
    let Ok(workspaces) = assembly::workspaces(settings) else { return };
    let agent = (format!("{}.command", settings.worker.runtime.name()), settings.command(settings.worker.runtime));
    let gates = settings.gates.task.iter().map(|gate| (format!("gate `{}`", gate.title()), gate.run.as_str()));
    // A hook may create a script that is not in git.
    let made_later = settings.hooks.after_create.is_some() || settings.hooks.before_run.is_some();
    for (whose, command) in std::iter::once(agent).chain(gates) {
        let Some(script) = script_of(command) else { continue };
        let base = &settings.workspace.base;
        let there = block_on(async { workspaces.base_has(base, script).await.map_err(Failure::plain) });
        // A base that cannot be read is reported by another check.
        if there.unwrap_or(true) {
            continue;
        }
        let what = format!("`{script}` of {whose} is not in the base commit ({base}), and every run starts from that");
        match made_later {
            true => report.warn("scripts", what, "commit it, unless one of your hooks makes it"),
            false => report.problem("scripts", what, format!("commit it to {base}, or name it by an absolute path")),
        }
    }
}

/// Returns the script of a command line if it is a relative path: its program, or the script that it passes to an interpreter.
fn script_of(command: &str) -> Option<&str> {
    let mut words = command.lines().next()?.split_whitespace().skip_while(|word| word.contains('='));
    let program = words.next()?;
    let script = if INTERPRETERS.contains(&program) { words.find(|word| !word.starts_with('-'))? } else { program };
    let relative = !script.starts_with(['/', '~', '$', '"', '\'', '-']) && !script.contains(['$', '*', ';', '(', '`']);
    // `sh -c 'make'` is not a script, and `make` is on the path.
    let is_path = script.contains('/') || (script != program && script.contains('.'));
    (relative && is_path && !command.contains(" -c ") && !script.contains("../")).then_some(script)
}

#[cfg(test)]
mod tests {
    use super::script_of;

    #[test]
    fn the_script_of_a_command_line_is_found() {
        for (command, script) in [
            ("sh ./agent.sh", Some("./agent.sh")),
            ("bash -eu agent.sh --fast", Some("agent.sh")),
            ("./check.sh", Some("./check.sh")),
            ("A=1 tools/run x", Some("tools/run")),
            ("python3 -m pytest", None),
            ("sh -c 'make test'", None),
            ("make test", None),
            ("/opt/agent", None),
            ("claude", None),
            ("$HOME/agent", None),
            ("", None),
        ] {
            assert_eq!(script_of(command), script, "{command}");
        }
    }
}
