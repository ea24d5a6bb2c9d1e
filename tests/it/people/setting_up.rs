//! What people read while they set up a repository: the answers of `init`, `doctor`, `config show` and `agents` on a machine that has git and
//! a shell and nothing else. Kept as snapshots, so that a change of words is seen in review.

use super::{settled, text};
use crate::support::board::{Board, MERGE};

/// What doctor says of the machine itself.
const OF_THE_MACHINE: [&str; 5] = ["open files", "login shell", "processes", "disk", "receipts"];

/// A board without a workflow file, and a folder with the only programs that are found.
fn fresh() -> (Board, std::path::PathBuf) {
    let board = Board::new("", MERGE);
    std::fs::remove_file(board.repo().join("WORKFLOW.md")).unwrap();
    let bare = board.scratch.dir.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    for program in ["git", "sh"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|file| file.is_file())
            .unwrap();
        std::os::unix::fs::symlink(found, bare.join(program)).unwrap();
    }
    (board, bare)
}

/// What the command says on both streams, without what differs from place to place.
fn said(board: &Board, programs: &std::path::Path, args: &[&str]) -> String {
    let output = board.command(args).env("PATH", programs).output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    let code = if code == 0 { String::new() } else { format!("(exit code {code})\n") };
    let place = board.scratch.dir.path().display().to_string();
    let said = format!("$ dirigent {}\n{}{}{code}", args.join(" "), text(&output.stdout), text(&output.stderr));
    without_hashes(&said.replace(&place, "PLACE"))
}

/// The folder of a repository is named after it and a hash of its path.
fn without_hashes(said: &str) -> String {
    let mut parts = said.split("repo-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut out, part| {
        let hash = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let rest = if hash == 8 { format!("HASH{}", &part[8..]) } else { part.to_owned() };
        out.push_str("repo-");
        out.push_str(&rest);
        out
    })
}

/// Doctor's words without those about the machine, and without how many warnings there are in all.
fn of_the_repository(said: &str) -> String {
    let mut out = String::new();
    let mut left_out = false;
    for line in said.lines() {
        let finding = ["ok  ", "warning", "PROBLEM"].iter().find_map(|level| line.strip_prefix(level));
        if let Some(rest) = finding {
            left_out = OF_THE_MACHINE.iter().any(|subject| rest.trim_start().starts_with(subject));
        }
        if !line.starts_with("  ") && finding.is_none() {
            left_out = false;
        }
        if !left_out {
            out.push_str(line.split_once(", with ").filter(|_| finding.is_none()).map_or(line, |(start, _)| start));
            out.push('\n');
        }
    }
    settled(&out)
}

#[test]
fn a_repository_is_set_up_in_words() {
    let (board, programs) = fresh();
    insta::assert_snapshot!("setting_up_init", said(&board, &programs, &["init"]));
    let doctor = of_the_repository(&said(&board, &programs, &["doctor"]));
    insta::assert_snapshot!("setting_up_doctor", doctor);
    insta::assert_snapshot!("setting_up_config", said(&board, &programs, &["config", "show"]));
    insta::assert_snapshot!("setting_up_agents", said(&board, &programs, &["agents"]));
    // A second `init` overwrites nothing, and doctor names what is wrong.
    let again = said(&board, &programs, &["init"]);
    let file = std::fs::read_to_string(board.repo().join("WORKFLOW.md")).unwrap();
    std::fs::write(board.repo().join("WORKFLOW.md"), file.replace("base_branch: main", "base_branch: trunk")).unwrap();
    let doctor = of_the_repository(&said(&board, &programs, &["doctor"]));
    insta::assert_snapshot!("setting_up_mistakes", format!("{again}\n{doctor}"));
}
