//! The walls of the house: who imports whom, what stays out of the pure rooms, how long a file may be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 800;

fn sources() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(&root).unwrap().to_owned(), text);
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

/// What is compiled into the program: everything before the tests of a file.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn room(path: &Path) -> String {
    path.iter().next().unwrap().to_string_lossy().into_owned()
}

/// The first names of all `crate::` paths in a text.
fn imports(text: &str) -> Vec<String> {
    text.match_indices("crate::")
        .map(|(at, _)| &text[at + "crate::".len()..])
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

/// Who may import what, besides itself. The design page draws the arrows; a new edge needs a reason here.
fn allowed(room: &str) -> Option<&'static [&'static str]> {
    Some(match room {
        "domain" => &[],
        "config" => &["domain"],
        "engine" => &["domain", "config"],
        "agent" => &["domain", "config"],
        // What the GitHub tracker and the GitHub forge have in common, below both.
        "github" => &["domain"],
        "tracker" => &["domain", "config", "github"],
        "launcher" => &["domain", "config"],
        "workspace" => &["domain", "config"],
        // The local forge is git in this repository: it uses the workspace's git.
        "forge" => &["domain", "config", "workspace", "github"],
        // The ledger stores the engine's plain data.
        "ledger" => &["domain", "engine"],
        "gates" => &["domain", "config", "launcher", "workspace"],
        // The workflow words what the engine wants said, which is plain data.
        "workflow" => &["domain", "config", "engine"],
        // The worker asks the engine one pure question: whether its ticket is still to be worked on.
        "worker" => &["domain", "config", "engine", "workflow", "agent", "launcher", "workspace", "gates"],
        "runtime" => &[
            "domain",
            "config",
            "engine",
            "worker",
            "workflow",
            "tracker",
            "forge",
            "github",
            "ledger",
            "gates",
            "workspace",
            "launcher",
        ],
        // What goes outside is cut clean of secrets, and a run's folder is the worker's to know.
        // Notifications are worded by templates, need a permit, and may be commands.
        "publish" => &["domain", "config", "engine", "runtime", "launcher", "worker", "workflow", "workspace"],
        // Pictures in, requests out. What is written down, transcripts and diffs are read in their own rooms.
        "http" => &["domain", "config", "engine", "runtime", "ledger", "launcher", "agent", "worker", "workspace"],
        // A picture in, requests out.
        "tui" => &["domain", "runtime"],
        _ => return None,
    })
}

#[test]
fn rooms_import_only_what_the_house_allows() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let room = room(&path);
        let Some(allowed) = allowed(&room) else { continue };
        for import in imports(program(&text)) {
            if import != room && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{}: crate::{import}", path.display()));
            }
        }
    }
    // `agent/session` uses the launcher's child.
    wrong.retain(|edge| !(edge.starts_with("agent/") && edge.ends_with("crate::launcher")));
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

/// The names that a room takes from the engine.
fn engine_names(room_name: &str) -> Vec<String> {
    let sources = sources();
    let of_room = sources.iter().filter(|(path, _)| room(path) == room_name);
    of_room
        .flat_map(|(_, text)| {
            let text = program(text);
            text.match_indices("crate::engine::").map(|(at, _)| {
                let rest = text[at + "crate::engine::".len()..].split(';').next().unwrap();
                rest.to_owned()
            })
        })
        .collect()
}

#[test]
fn workflow_and_worker_take_no_more_from_the_engine_than_they_need() {
    assert_eq!(engine_names("workflow"), ["effect::Said"]);
    assert!(
        engine_names("worker").iter().all(|name| ["select", "provenance"].contains(&name.as_str())),
        "{:?}",
        engine_names("worker")
    );
}

#[test]
fn no_boxed_closure_leads_from_room_to_room() {
    // The command line is the last room: nobody could call back into it but itself.
    for (path, text) in sources().iter().filter(|(path, _)| room(path) != "cli") {
        assert!(!program(text).contains("dyn Fn"), "{} boxes a closure; make it a trait or a call", path.display());
    }
}

/// The public types of a file's top level.
fn public_types(text: &str) -> Vec<&str> {
    let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    program(text)
        .lines()
        .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)))
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .collect()
}

#[test]
fn one_name_means_one_type_in_the_whole_house() {
    // The two boards and forges in memory misbehave in ways of their own, each told in its own room.
    let known = ["Fault"];
    let sources = sources();
    let mut rooms: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in &sources {
        for name in public_types(text) {
            rooms.entry(name).or_default().insert(room(path));
        }
    }
    rooms.retain(|name, rooms| rooms.len() > 1 && !known.contains(name));
    assert!(rooms.is_empty(), "public types of the same name: {rooms:#?}");
}

#[test]
fn every_file_of_engine_and_runtime_is_on_the_map() {
    let map = include_str!("../../ARCHITECTURE.md");
    for path in sources().keys().filter(|path| ["engine", "runtime"].contains(&room(path).as_str())) {
        let inside = path.strip_prefix(room(path)).unwrap();
        let name = if inside.ends_with("mod.rs") { inside.parent().unwrap() } else { inside };
        let name = name.with_extension("").display().to_string();
        let file = name.rsplit('/').next().unwrap();
        assert!(map.contains(&format!("`{file}`")) || name.is_empty(), "ARCHITECTURE.md does not name `{file}`");
    }
}

#[test]
fn the_stage_of_a_job_is_written_in_one_place() {
    let written = |code: &str| code.contains("job.stage = ") || code.contains("&mut job.stage");
    let place = Path::new("engine/phases/moves.rs");
    let sources = sources();
    assert!(written(program(&sources[place])), "the test looks for what is not written there");
    for (path, text) in sources.iter().filter(|(path, _)| *path != place) {
        assert!(!written(program(text)), "{} writes a job's stage", path.display());
    }
}

#[test]
fn the_engine_sees_only_the_policy_of_the_configuration() {
    for (path, text) in sources().iter().filter(|(path, _)| room(path) == "engine") {
        for (at, _) in text.match_indices("crate::config::") {
            assert!(text[at..].starts_with("crate::config::policy"), "{}: only config::policy", path.display());
        }
    }
}

#[test]
fn the_pure_rooms_have_no_clock_no_io_and_no_waiting() {
    let forbidden = [
        "async ",
        ".await",
        "tokio",
        "tracing",
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "rand::",
        "println!",
        "eprintln!",
        "jiff::Timestamp::now",
    ];
    for (path, text) in sources().iter().filter(|(path, _)| matches!(room(path).as_str(), "engine" | "domain")) {
        let code: String =
            program(text).lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        for word in forbidden {
            assert!(!code.contains(word), "{} holds `{word}`", path.display());
        }
    }
}

/// The settings alone know neither the forge in use nor the local day: whoever judges or shows real tickets asks the assembly.
#[test]
fn only_the_assembly_makes_the_policy_of_real_tickets() {
    // The words about the agents, and the board of a self test, depend on neither.
    let known = ["runtime/assembly/adapters.rs", "workflow/in_force.rs", "cli/agents/self_test.rs"];
    for (path, text) in sources() {
        let name = path.display().to_string();
        if room(&path) != "config" && !known.contains(&name.as_str()) {
            assert!(!program(&text).contains("settings.policy("), "{name} makes a policy of its own");
        }
    }
}

#[test]
fn only_the_gate_issues_permits_and_only_the_command_line_goes_without() {
    for (path, text) in sources() {
        let code = program(&text);
        let name = path.display().to_string();
        if code.contains("Permit::issue(") {
            assert_eq!(name, "engine/permit.rs", "{name} issues permits of its own");
        }
        if code.contains("by_hand()") && name != "engine/permit.rs" {
            assert_eq!(room(&path), "cli", "{name} goes without the gate");
        }
    }
}

#[test]
fn adapters_that_write_are_called_in_one_file_alone() {
    // Every one of these takes a permit, and a permit comes only from the gate: see the test above. The calls themselves
    // stand in one file, so that nobody has to look further. `undo` is a person's own command: it has the permit that only the command line
    // may ask for.
    let writes = [
        ".comment(&permit",
        ".edit_comment(&permit",
        ".move_ticket(&permit",
        ".create_ticket(&permit",
        ".label(&permit",
        ".react(&permit",
        ".upsert_comment(&permit",
        ".begin_threads(&permit",
        ".push_branch(&permit",
        ".open_pr(&permit",
        ".reopen(&permit",
        ".merge(&permit",
        ".update_branch(&permit",
        ".keep_receipt(&permit",
        ".delete_branch(&permit",
    ];
    for (path, text) in sources().iter().filter(|(path, _)| room(path) != "forge" && room(path) != "tracker") {
        for call in writes {
            if program(text).contains(call) {
                let path = path.display().to_string();
                let known = ["runtime/performer/write.rs", "cli/undo.rs"];
                assert!(known.contains(&path.as_str()), "{call} is called in {path}");
            }
        }
    }
    let traits = [
        (
            "tracker/mod.rs",
            ["comment", "edit_comment", "move_ticket", "label", "react", "attach_link", "create_ticket"].as_slice(),
        ),
        (
            "forge/mod.rs",
            [
                "push_branch",
                "open_pr",
                "reopen",
                "merge",
                "dequeue",
                "update_branch",
                "update_pr",
                "upsert_comment",
                "react",
                "begin_threads",
                "reply_in_thread",
                "resolve_thread",
                "request_review",
                "publish_status",
                "rerun_check",
                "keep_receipt",
                "delete_branch",
            ]
            .as_slice(),
        ),
    ];
    let sources = sources();
    for (file, methods) in traits {
        let text = &sources[Path::new(file)];
        for method in methods {
            let at = text.find(&format!("async fn {method}(")).unwrap_or_else(|| panic!("{file} has no {method}"));
            let signature = text[at..].split(';').next().unwrap();
            assert!(signature.contains("permit: &Permit"), "{file}: {method} takes no permit");
        }
    }
}

#[test]
fn processes_are_started_in_few_places() {
    for (path, text) in sources() {
        let code = program(&text);
        if code.contains("process::Command") || code.contains("Command::new(") {
            let name = path.display().to_string();
            let may = name.starts_with("launcher/") || name.starts_with("workspace/") || name.starts_with("cli/tk/");
            assert!(may, "{name} starts processes");
        }
    }
}

#[test]
fn every_module_says_what_it_owns_and_none_is_too_long() {
    for (path, text) in sources() {
        assert!(text.starts_with("//!"), "{} has no module comment", path.display());
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines", path.display());
    }
}
