//! `tk` as a real program, called by its name.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::harness::Project;

/// A directory that holds our program as `tk` and `ticket`.
fn installed(project: &Project) -> PathBuf {
    let bin = project.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["tk", "ticket"] {
        symlink(env!("CARGO_BIN_EXE_dirigent"), bin.join(name)).unwrap();
    }
    bin
}

fn command(project: &Project, bin: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(bin.join(program));
    command
        .args(arguments)
        .current_dir(&project.root)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &project.root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn tk(project: &Project, bin: &Path, arguments: &[&str]) -> Output {
    command(project, bin, "tk", arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn it_answers_to_tk_ticket_and_dirigent_tk() {
    let project = Project::with(&[("a", "open", "")]);
    let bin = installed(&project);
    for program in ["tk", "ticket"] {
        let output = command(&project, &bin, program, &["start"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stderr), format!("Usage: {program} start <id>\n"));
    }
    let mut whole = Command::new(env!("CARGO_BIN_EXE_dirigent"));
    let output = whole.args(["tk", "ls"]).current_dir(&project.root).env_clear().output().unwrap();
    assert_eq!(text(&output.stdout), "a        [open] - Title of a\n");
    assert_eq!(tk(&project, &bin, &["claim", "nowhere"]).status.code(), Some(1));
    assert_eq!(tk(&project, &bin, &["claim", "a", "-a", "Bo"]).status.code(), Some(0));
    assert_eq!(tk(&project, &bin, &["claim", "a", "-a", "Cy"]).status.code(), Some(3));
}

#[test]
fn a_note_comes_from_a_pipe_and_a_closed_pipe_is_no_panic() {
    let project = Project::with(&[("a", "open", "")]);
    let bin = installed(&project);
    let mut child = command(&project, &bin, "tk", &["add-note", "a"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"piped\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(project.read("a").ends_with("\n\npiped\n"));

    for number in 0..3000 {
        project.put(
            &format!("t-{number}"),
            &format!("---\nid: t-{number}\nstatus: open\n---\n# A title to fill the pipe\n"),
        );
    }
    let mut child = command(&project, &bin, "tk", &["ls"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn plugins_and_filters_take_over_the_process() {
    let project = Project::with(&[("a", "open", ""), ("b", "closed", "")]);
    let bin = installed(&project);
    let script = |name: &str, text: &str| {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("tk-close", "#!/bin/sh\necho \"plugin $* in $TICKETS_DIR\"\n\"$TK_SCRIPT\" super close \"$1\"\nexit 7\n");
    let output = tk(&project, &bin, &["close", "a", "x y"]);
    assert_eq!(output.status.code(), Some(7));
    let said = project.masked(text(&output.stdout));
    assert_eq!(said, "plugin a x y in <dir>/.tickets\nUpdated a -> closed\n");

    // As `dirigent tk` it is called by a name that nothing has, or something else.
    script("tk-back", "#!/bin/sh\n\"$TK_SCRIPT\" super reopen \"$1\" && \"$TK_SCRIPT\" ls --status open\n");
    let whole = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dirigent"));
        command.args(["tk", "back", "a"]).current_dir(&project.root).env_clear().env("PATH", path);
        let output = command.output().unwrap();
        (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let plugins = project.root.join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::rename(bin.join("tk-back"), plugins.join("tk-back")).unwrap();
    let others = project.root.join("others");
    fs::create_dir(&others).unwrap();
    fs::write(others.join("tk"), "#!/bin/sh\necho another tool\n").unwrap();
    fs::set_permissions(others.join("tk"), fs::Permissions::from_mode(0o755)).unwrap();
    for first in [&others, &bin, &plugins] {
        let path = format!("{}:{}:/usr/bin:/bin", first.display(), plugins.display());
        let (out, err) = whole(&path);
        assert_eq!(out, "Updated a -> open\na        [open] - Title of a\n", "{path}: {err}");
    }
    tk(&project, &bin, &["super", "close", "a"]);

    script("jq", "#!/bin/sh\necho \"jq $*\"\ncat\nexit 4\n");
    let output = tk(&project, &bin, &["query", ".id == \"a\""]);
    assert_eq!(output.status.code(), Some(4), "jq's own exit code");
    assert_eq!(
        text(&output.stdout),
        "jq -c select(.id == \"a\")\n{\"id\":\"a\",\"status\":\"closed\"}\n{\"id\":\"b\",\"status\":\"closed\"}\n"
    );
}

#[test]
fn eighty_processes_on_one_ticket_lose_nothing() {
    let project = Project::with(&[("a", "open", "x-unknown: 'kept'\n")]);
    let bin = installed(&project);
    let children: Vec<Child> = (0..40)
        .flat_map(|number| {
            let note = format!("note {number};");
            let status = if number % 2 == 0 { "start" } else { "reopen" };
            [
                command(&project, &bin, "tk", &["add-note", "a", &note]).spawn().unwrap(),
                command(&project, &bin, "tk", &[status, "a"]).spawn().unwrap(),
            ]
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert!(tk(&project, &bin, &["close", "a"]).status.success());
    let after = project.read("a");
    for number in 0..40 {
        assert_eq!(after.matches(&format!("note {number};")).count(), 1, "{after}");
    }
    assert!(
        after.starts_with("---\nid: a\nstatus: closed\nx-unknown: 'kept'\n---\n# Title of a\n\n\n## Notes\n"),
        "{after}"
    );
}
