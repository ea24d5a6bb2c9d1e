//! The planted faults stay plantable: every patch under `tests/mutations/` fits the source as it is, and the tests that are to notice
//! them can be built without the rest of the program. Whether they do is what `tests/mutations/run.sh` shows.

use std::path::Path;
use std::process::Command;

/// Faults of the engine are tried in a package that holds nothing but these.
const IN_THE_PACKAGE: [&str; 3] = ["domain", "engine", "config::policy"];

/// Every line of the program's sources in a folder that names a part of the program.
fn names_in(folder: &Path, found: &mut Vec<(String, String)>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            names_in(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for named in text.split("dirigent::").skip(1) {
            let part: String = named.chars().take_while(|c| c.is_ascii_lowercase() || "_:".contains(*c)).collect();
            found.push((path.display().to_string(), part));
        }
    }
}

#[test]
fn the_engines_tests_need_no_other_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["tests/it/engine", "tests/simulator"] {
        names_in(&root.join(folder), &mut found);
    }
    assert!(found.len() > 100, "the names were not found");
    for (file, part) in found {
        let there = IN_THE_PACKAGE.iter().any(|room| part == *room || part.starts_with(&format!("{room}::")));
        assert!(there, "{file} needs dirigent::{part}: tests/mutations/run.sh could show nothing any more");
    }
}

#[test]
fn every_planted_fault_still_applies_and_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("tests/mutations");
    let table = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut patches: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    patches.retain(|path| path.extension().is_some_and(|ending| ending == "patch"));
    assert!(patches.len() >= 12, "the patches were not found in {}", folder.display());
    for patch in patches {
        let name = patch.file_stem().unwrap().to_string_lossy().into_owned();
        // Outside a repository git looks at the files alone, wherever this source lies.
        let checked = Command::new("git")
            .args(["apply", "--check"])
            .arg(&patch)
            .current_dir(root)
            .env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{name} no longer fits; write the same fault into the new line: {said}");
        assert!(table.contains(&name), "{name} is missing in tests/mutations/README.md");
    }
}
