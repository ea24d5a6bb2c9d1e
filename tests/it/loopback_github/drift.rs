//! The contract files are what GitHub's published packages give.

use std::path::Path;
use std::process::Command;

/// Needs the packages: `sh tests/contracts/install.sh PREFIX`, then `DIRIGENT_CONTRACTS_PREFIX=PREFIX`.
#[test]
fn the_contract_files_are_what_the_packages_give() {
    let Some(prefix) = std::env::var_os("DIRIGENT_CONTRACTS_PREFIX") else {
        eprintln!("skipped: DIRIGENT_CONTRACTS_PREFIX is not set, so GitHub's packages are not here to compare with");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/trim.mjs");
    let output = Command::new("node").arg(script).arg("check").arg(&prefix).output();
    let output = match output {
        Ok(output) => output,
        Err(missing) => {
            eprintln!("skipped: node cannot be started: {missing}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}
