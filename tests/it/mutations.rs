//! The planted faults stay plantable: every patch under `tests/mutations/` fits the source as it is. Whether the tests notice
//! them is what `tests/mutations/run.sh` shows.

use std::path::Path;
use std::process::Command;

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
