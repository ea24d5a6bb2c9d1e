//! The repository's own scripts in `.dirigent/hooks/`, each for the event in its name (docs/hooks.md). They are looked up in the user's
//! work tree when the workflow file is read, not in the tree of the change, because a change must not choose its own checks.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::config::gates::{HookScript, TASK_COMPLETED};
use crate::config::problem::Problem;
use crate::config::workspace::WorkspaceMode;

/// Events of the contract for which this version calls no script.
const NOT_CALLED: [&str; 2] = ["on_idle", "on_task_failed"];
/// Events whose script would have to pass before a merge. This version does not call them.
const GUARDS: [&str; 2] = ["on_wave_completed", "on_final"];

pub fn folder(home: &Path) -> PathBuf {
    home.join(".dirigent/hooks")
}

/// Writes the scripts that were found into the settings.
pub fn take_in(settings: &mut Settings) {
    let folder = folder(&settings.workspace.home);
    let worktrees = settings.workspace.mode == WorkspaceMode::Worktree;
    settings.gates.hook = scripts(&folder, TASK_COMPLETED).into_iter().next().filter(|_| worktrees);
    let there = |name: &&&str| !scripts(&folder, name).is_empty();
    settings.gates.guards_without_caller = GUARDS.iter().filter(there).map(|name| (*name).to_owned()).collect();
}

/// Returns warnings about scripts that are never called, and about several scripts for one event.
pub fn doubts(settings: &Settings) -> Vec<Problem> {
    let folder = folder(&settings.workspace.home);
    let mut doubts = Vec::new();
    let mut doubt = |message: String, help: &str| doubts.push(Problem::new("gates", message).with_help(help));
    for name in NOT_CALLED {
        for script in scripts(&folder, name) {
            doubt(
                format!("{} is not called: this version calls `{TASK_COMPLETED}` only", script.path.display()),
                "remove it, or do what it does in `hooks.after_run`",
            );
        }
    }
    for name in GUARDS {
        for script in scripts(&folder, name) {
            doubt(
                format!(
                    "{} is not called: this version has no waves; while it is there, nothing is merged",
                    script.path.display()
                ),
                "remove it, or name what it checks under `gates.task`",
            );
        }
    }
    let found = scripts(&folder, TASK_COMPLETED);
    if let [first, others @ ..] = found.as_slice() {
        for other in others {
            let message = format!("{} is not called: {} is, too", other.path.display(), first.path.display());
            doubt(message, "keep one of them");
        }
        if settings.workspace.mode == WorkspaceMode::Directory {
            let message = format!("{} is not called: `workspace.mode` is `directory`", first.path.display());
            doubt(message, "check the work in `hooks.after_run`");
        }
    }
    doubts
}

/// Returns the scripts for an event. The first one is the one that is called.
fn scripts(folder: &Path, name: &str) -> Vec<HookScript> {
    let with = |ending: &str, program: Option<&str>| {
        let path = folder.join(format!("{name}{ending}"));
        let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let runs_itself = found.permissions().mode() & 0o111 != 0;
        (program.is_some() || runs_itself).then(|| HookScript { program: program.map(str::to_owned), path })
    };
    let kinds = [("", None), (".js", Some("node")), (".mjs", Some("node")), (".sh", Some("bash"))];
    kinds.into_iter().filter_map(|(ending, program)| with(ending, program)).collect()
}

/// Returns a text that changes when a script appears or disappears.
pub fn mark(settings: &Settings) -> String {
    let folder = folder(&settings.workspace.home);
    let all = [TASK_COMPLETED].into_iter().chain(NOT_CALLED).chain(GUARDS);
    all.flat_map(|name| scripts(&folder, name)).map(|script| format!("{}\n", script.path.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_name_and_ending() {
        let home = tempfile::tempdir().unwrap();
        let at = folder(home.path());
        std::fs::create_dir_all(&at).unwrap();
        let mut settings = Settings::default();
        settings.workspace.home = home.path().to_owned();
        take_in(&mut settings);
        assert!(settings.gates.hook.is_none() && doubts(&settings).is_empty());
        std::fs::write(at.join("on_task_completed"), "not a program").unwrap();
        take_in(&mut settings);
        assert!(settings.gates.hook.is_none(), "nobody can run it");
        std::fs::write(at.join("on_task_completed.sh"), "true").unwrap();
        std::fs::write(at.join("on_task_completed.mjs"), "").unwrap();
        take_in(&mut settings);
        let hook = settings.gates.hook.clone().unwrap();
        assert_eq!((hook.program.as_deref(), hook.argv().len()), (Some("node"), 2));
        assert!(doubts(&settings)[0].message.contains("on_task_completed.sh is not called"));
        assert_eq!(settings.gates.task_names(), [TASK_COMPLETED]);
        let before = mark(&settings);
        std::fs::write(at.join("on_final.sh"), "true").unwrap();
        std::fs::write(at.join("on_idle.js"), "").unwrap();
        assert_ne!(mark(&settings), before);
        take_in(&mut settings);
        assert_eq!(settings.guards_not_in_force(), [".dirigent/hooks/on_final"]);
        assert_eq!(doubts(&settings).len(), 3);
    }
}
