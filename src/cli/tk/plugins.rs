//! Plugins: programs named `tk-X` or `ticket-X` on the `PATH` provide the command `X`.
//!
//! A `tk-X` replaces a built-in command of the same name, as in the public tool. The public tool ships some of its own commands as
//! `ticket-X`; these do not replace the built-in ones.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::OWN_PATH;
use super::failure::Failure;
use super::session::{Successor, TkCall, TkOutput};
use crate::tracker::tk::{StoreError, discovery};

/// Commands that the public tool ships as plugins and that are built in here.
const BUNDLED_ELSEWHERE: [&str; 5] = ["ls", "list", "query", "edit", "migrate-beads"];

pub fn find(session: &TkCall<'_>, command: &str) -> Option<PathBuf> {
    if command.is_empty() || command.contains('/') || matches!(command, "help" | "--help" | "-h" | "super") {
        return None;
    }
    session.find_program(&format!("tk-{command}")).or_else(|| {
        let shipped = BUNDLED_ELSEWHERE.contains(&command);
        if shipped { None } else { session.find_program(&format!("ticket-{command}")) }
    })
}

pub fn run(
    session: &TkCall<'_>,
    plugin: PathBuf,
    arguments: &[OsString],
    own_path: &Path,
) -> Result<TkOutput, Failure> {
    let mut variables = vec![(OWN_PATH, own_path.as_os_str().to_owned())];
    match discovery::find(session.tickets_dir(), &session.cwd) {
        Ok(_) if session.tickets_dir().is_some() => {}
        Ok(dir) => variables.push(("TICKETS_DIR", dir.into_os_string())),
        Err(StoreError::NoStore) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(TkOutput::exec(Successor { program: plugin, arguments: arguments.to_vec(), variables, stdin: None }))
}

/// Returns the name and description of every plugin, for `help`. The description is read from the plugin's file; the plugin is not run.
pub fn described(session: &TkCall<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let path = session.variables.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    for prefix in ["tk-", "ticket-"] {
        for dir in std::env::split_paths(&path) {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(command) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else { continue };
                if find(session, command).is_some_and(|plugin| plugin == entry.path()) {
                    found.entry(command.to_owned()).or_insert_with(|| description(&entry.path()));
                }
            }
        }
    }
    found
}

fn description(plugin: &Path) -> String {
    const LOOK_AT: u64 = 4096;
    let lines = File::open(plugin).map(|file| BufReader::new(file.take(LOOK_AT)).lines());
    let mut head = lines.into_iter().flatten().take(10).map_while(Result::ok);
    head.find_map(|line| line.strip_prefix("# tk-plugin:").map(|text| text.trim().to_owned()))
        .unwrap_or_else(|| "(no description)".to_owned())
}
