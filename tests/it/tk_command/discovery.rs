//! Which store a call works on: sub-directory, worktree, `TICKETS_DIR`, none.

use std::fs;

use super::harness::Project;

#[test]
fn from_a_sub_directory_the_store_above_is_used_and_the_prefix_is_of_the_directory() {
    let mut project = Project::with(&[("a", "open", "")]);
    let sub = project.root.join("src/deep_er");
    fs::create_dir_all(&sub).unwrap();
    project.cwd = sub;
    assert_eq!(project.ok(&["ls"]).lines().count(), 1);
    let id = project.ok(&["create", "from below"]);
    assert!(id.starts_with("de-"), "{id}");
    assert!(project.store().join(format!("{}.md", id.trim())).is_file());
}

#[test]
fn in_a_worktree_its_own_copy_wins_unless_the_variable_names_another() {
    let mut project = Project::with(&[("a", "open", "")]);
    let repository = git2::Repository::open(&project.root).unwrap();
    let mut index = repository.index().unwrap();
    index.add_path(std::path::Path::new(".tickets/a.md")).unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::now("Al Ice", "al@example.invalid").unwrap();
    repository.commit(Some("HEAD"), &author, &author, "tickets", &tree, &[]).unwrap();
    let worktree = project.root.parent().unwrap().join("worktree");
    repository.worktree("worktree", &worktree, None).unwrap();

    project.cwd = worktree.clone();
    project.ok(&["close", "a"]);
    assert!(fs::read_to_string(worktree.join(".tickets/a.md")).unwrap().contains("status: closed"));
    assert!(project.read("a").contains("status: open"));

    project.variables.insert("TICKETS_DIR".into(), project.store().display().to_string());
    project.ok(&["start", "a"]);
    assert!(project.read("a").contains("status: in_progress"));
}

#[test]
fn the_variable_may_be_relative_and_create_makes_it() {
    let mut project = Project::with(&[("a", "open", "")]);
    project.variables.insert("TICKETS_DIR".into(), "tasks/here".into());
    assert_eq!(project.fails(&["ls"]), "Error: tickets directory 'tasks/here' does not exist\n");
    let id = project.ok(&["create", "x"]);
    assert!(project.root.join("tasks/here").join(format!("{}.md", id.trim())).is_file());
    assert_eq!(project.ok(&["edit", id.trim()]), format!("Edit ticket file: tasks/here/{}.md\n", id.trim()));
    project.variables.insert("TICKETS_DIR".into(), String::new());
    assert_eq!(project.ok(&["ls"]), "a        [open] - Title of a\n");
}

#[test]
fn without_a_store_only_create_works() {
    let project = Project::empty();
    let sentence = "Error: no .tickets directory found (searched parent directories)\nRun 'tk create' to initialize, or set TICKETS_DIR env var\n";
    for command in [
        &["ls"][..],
        &["ready"],
        &["blocked"],
        &["closed"],
        &["show", "a"],
        &["start", "a"],
        &["add-note", "a", "x"],
        &["query"],
        &["dep", "cycle"],
        &["board"],
        &["graph"],
    ] {
        assert_eq!(project.fails(command), sentence, "{command:?}");
    }
    assert!(!project.store().exists());
    project.ok(&["create", "x"]);
    assert_eq!(project.ok(&["ls"]).lines().count(), 1);
}

#[test]
fn an_empty_store_lists_nothing_and_is_no_error() {
    let project = Project::with(&[]);
    for command in ["ls", "ready", "blocked", "closed", "query"] {
        assert_eq!(project.ok(&[command]), "", "{command}");
    }
    assert_eq!(project.ok(&["dep", "cycle"]), "No dependency cycles found\n");
}
