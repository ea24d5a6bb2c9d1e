//! The lines that README.md and docs/api.md tell people to type, typed.

use std::process::{Command, Stdio};

use super::client::ServedBoard;
use crate::support::board::{Board, Runner, text};

/// What stands indented in a page and asks the served quickstart something.
fn lines(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in page.lines() {
        let typed = line.trim_start();
        if found.last().is_some_and(|last| last.ends_with('\\')) {
            let last = found.last_mut().unwrap();
            last.pop();
            last.push_str(typed);
        } else if line.starts_with("    ") && (typed.starts_with("curl") || typed.starts_with("dirigent-post")) {
            found.push(typed.to_owned());
        }
    }
    found
}

#[test]
fn what_the_readme_tells_people_to_type_works_against_the_quickstart() {
    assert!(typed(include_str!("../../../README.md")) >= 2);
}

#[test]
fn what_the_page_of_the_api_tells_people_to_type_works_against_the_quickstart() {
    assert!(typed(include_str!("../../../docs/api.md")) >= 8);
}

/// Types every line of the page in its order, and tells how many there are. Each page has its own quickstart: both answer its question.
fn typed(page: &str) -> usize {
    let outer = Board::new("", "");
    let demo = outer.scratch.dir.path().join("demo");
    let log = outer.scratch.dir.path().join("runner.log");
    let child = outer
        .command(&["quickstart", "--serve", "--port", "0", "--dir", demo.to_str().unwrap()])
        .stderr(std::fs::File::create(&log).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let runner = Runner { child, log };
    let mut address = String::new();
    outer.until("it is served", || {
        let said = runner.log();
        let told = said
            .split("dashboard and API: http://")
            .nth(1)
            .map(|rest| rest.split_whitespace().next().unwrap().to_owned());
        address = told.unwrap_or_default();
        !address.is_empty()
    });
    let served = ServedBoard { board: outer, runner, address };
    served.until("one waits for an answer, and the others are merged", || {
        served.phase("demo-5") == "blocked" && served.phase("demo-4") == "done" && served.phase("demo-3") == "done"
    });
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_dirigent")).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let post = "dirigent-post() { curl -s -X POST -H \"Authorization: Bearer $(dirigent token)\" -H 'Content-Type: application/json' \"$@\"; }";
    let mut typed = 0;
    for line in lines(page) {
        let line = line.replace("localhost:4041", &served.address);
        // Events go on for as long as somebody listens.
        let line = if line.contains("curl -sN") { format!("timeout 120 {line} | head -n 1") } else { line };
        let output = Command::new("bash")
            .args(["-c", &format!("{post}\n{line}")])
            .current_dir(&demo)
            .env_clear()
            .env("PATH", &path)
            .env("HOME", served.board.scratch.dir.path())
            .env("DIRIGENT_HOME", served.board.home())
            .output()
            .unwrap();
        let said = text(&output.stdout);
        assert!(!said.is_empty() && !said.contains("{\"error\""), "{line}\n{said}\n{}", text(&output.stderr));
        assert!(output.status.success(), "{line}: {:?}", output.status);
        typed += 1;
    }
    served.until("the answer was heard", || served.phase("demo-5") == "done");
    served.runner.end();
    typed
}
