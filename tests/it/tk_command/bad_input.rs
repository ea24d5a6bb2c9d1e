//! Bad input: a clear sentence on stderr, the documented exit code, nothing written.

use std::fs;

use super::harness::Project;

/// Everything in the project, to show that nothing was written.
fn contents(project: &Project) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(project.store()).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name != ".lock" {
            files.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn ids_with_paths_or_globs_are_refused_by_every_command() {
    let project = Project::with(&[("a-1", "open", ""), ("sole", "open", "")]);
    fs::write(project.root.join("outside.md"), "---\nid: outside\nstatus: open\n---\n# T\n").unwrap();
    let before = contents(&project);
    for id in ["../outside", "a/../a-1", "a-?", "*", "[a]-1", "..", ".lock", "a\u{7}", ""] {
        for command in [
            &["show", id][..],
            &["status", id, "closed"],
            &["start", id],
            &["close", id],
            &["dep", id, "a-1"],
            &["dep", "a-1", id],
            &["undep", id, "a-1"],
            &["link", "a-1", id],
            &["unlink", id, "a-1"],
            &["add-note", id, "x"],
            &["edit", id],
            &["done", id],
            &["claim", id],
            &["dep", "tree", id],
            &["create", "x", "--parent", if id.is_empty() { "*" } else { id }],
        ] {
            let said = project.fails(command);
            assert!(said.starts_with("Error: invalid ticket id "), "{command:?}: {said}");
        }
    }
    assert_eq!(contents(&project), before);
    assert!(fs::read_to_string(project.root.join("outside.md")).unwrap().contains("status: open"));
}

#[test]
fn titles_with_line_ends_or_control_characters_are_refused_and_a_bar_is_harmless() {
    let project = Project::with(&[]);
    for title in ["two\nlines", "bell\u{7}", "tab\there", "esc\u{1b}[31m"] {
        let said = project.fails(&["create", title]);
        assert_eq!(said, "Error: the title must be one line without control characters; nothing was created\n");
    }
    assert!(project.fails(&["create", "x", "-a", "Bo\nstatus: closed"]).contains("assignee"));
    assert!(project.fails(&["create", "x", "--tags", "a\nb"]).contains("tags"));
    assert!(contents(&project).is_empty());
    let id = project.ok(&["create", "a | b", "-p", "1"]);
    assert_eq!(project.ok(&["ready"]), format!("{:<8} [P1][open] - a | b\n", id.trim()));
}

#[test]
fn a_note_with_nul_or_broken_utf8_is_refused() {
    let mut project = Project::with(&[("a", "open", "")]);
    let before = contents(&project);
    for (bytes, word) in [(&b"x\0y"[..], "NUL"), (&b"x\xffy"[..], "UTF-8")] {
        project.stdin = bytes.to_vec();
        assert!(project.fails(&["add-note", "a"]).contains(word));
    }
    assert_eq!(contents(&project), before);
}

#[test]
fn a_broken_file_is_named_and_the_others_are_listed() {
    let project = Project::with(&[("good", "open", "")]);
    project.put("cut", "---\nid: cut\nstatus: open\n");
    project.put("empty", "");
    project.put("plain", "just text\n");
    project.put("no-id", "---\nstatus: open\n---\n# T\n");
    project.put("README", "# About this directory\n");
    for command in [&["ls"][..], &["ready"]] {
        let answer = project.tk(command);
        assert_eq!(answer.code, 0);
        assert_eq!(answer.out.lines().count(), 1, "{}", answer.out);
        for name in ["cut.md", "empty.md", "plain.md", "no-id.md"] {
            assert!(answer.err.contains(name), "{name}: {}", answer.err);
        }
        assert!(!answer.err.contains("README"), "{}", answer.err);
    }
    assert!(project.fails(&["close", "cut"]).contains("cut.md: broken ticket file"));
    assert_eq!(project.read("cut"), "---\nid: cut\nstatus: open\n");
    assert_eq!(project.tk(&["show", "plain"]).out, "just text\n");
}

#[test]
fn a_store_that_is_a_file_says_so() {
    let mut project = Project::empty();
    fs::write(project.store(), "").unwrap();
    for command in [&["ls"][..], &["create", "x"], &["show", "a"]] {
        assert!(project.fails(command).contains("is not a directory"), "{command:?}");
    }
    project.variables.insert("TICKETS_DIR".into(), project.store().display().to_string());
    assert!(project.fails(&["ls"]).contains("is not a directory"));
}

#[test]
fn a_directory_that_cannot_be_written_or_made_says_where() {
    let mut project = Project::with(&[("a", "open", "")]);
    // Not even root can make files here.
    project.variables.insert("TICKETS_DIR".into(), "/proc/self".into());
    let said = project.fails(&["create", "x"]);
    assert!(said.starts_with("Error: could not ") && said.contains("/proc/self"), "{said}");
    project.variables.insert("TICKETS_DIR".into(), "/proc/none/such".into());
    let said = project.fails(&["create", "x"]);
    assert!(said.contains("/proc/none/such"), "{said}");
}

#[test]
fn other_files_in_the_store_are_no_tickets() {
    let project = Project::with(&[("a", "open", "")]);
    fs::create_dir(project.store().join("dir.md")).unwrap();
    fs::write(project.store().join("notes.txt"), "x").unwrap();
    fs::write(project.store().join(".hidden.md"), "x").unwrap();
    let answer = project.tk(&["ls"]);
    assert_eq!(answer.out.lines().count(), 1);
    assert!(answer.err.contains("dir.md"), "{}", answer.err);
}
