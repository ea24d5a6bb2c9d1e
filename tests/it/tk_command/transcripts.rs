//! One transcript for each command of the public tool: outputs, messages and exit codes that scripts rely on.

use super::harness::Project;

#[test]
fn create() {
    let project = Project::empty();
    project.plays(
        r#"
    $ tk create "First | ticket"
    <id>
    $ tk create
    <id>
    ! warning: <id> has no title; a runner leaves it alone until it has a title or a description
    $ tk create one two
    <id>
    $ tk create --bogus x
    ! Unknown option: --bogus
    ? 1
    $ tk create -- x
    ! Unknown option: --
    ? 1
    $ tk create x -d
    ! Error: option '-d' needs a value
    ? 1
    $ tk create x --parent nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    "#,
    );
    let titles: Vec<String> = project
        .ok(&["ls"])
        .lines()
        .map(|line| line.split_once(" - ").unwrap().1.to_owned())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    assert_eq!(titles, ["First | ticket", "Untitled", "two"], "several words: the last one is the title");
}

#[test]
fn create_writes_every_field_in_the_formats_order() {
    let project = Project::with(&[("ma-par1", "open", "")]);
    let id = project.ok(&[
        "create",
        "Title text",
        "-d",
        "why",
        "--design",
        "how",
        "--acceptance",
        "when",
        "-p",
        "0",
        "-t",
        "bug",
        "-a",
        "Bo",
        "--external-ref",
        "gh-1",
        "--parent",
        "par",
        "--tags",
        "a,b,c",
    ]);
    let text = project.masked(&project.read(id.trim()));
    assert_eq!(
        text,
        "---\nid: <id>\nstatus: open\ndeps: []\nlinks: []\ncreated: <time>\ntype: bug\npriority: 0\nassignee: Bo\nexternal-ref: gh-1\nparent: <id>\ntags: [a, b, c]\n---\n# Title text\n\nwhy\n\n## Design\n\nhow\n\n## Acceptance Criteria\n\nwhen\n\n"
    );
    let id = project.ok(&["create", "Plain"]);
    let text = project.masked(&project.read(id.trim()));
    assert_eq!(
        text,
        "---\nid: <id>\nstatus: open\ndeps: []\nlinks: []\ncreated: <time>\ntype: task\npriority: 2\nassignee: Al Ice\n---\n# Plain\n\n"
    );
    let id = project.ok(&["create", "Nobody's", "-a", ""]);
    assert!(!project.read(id.trim()).contains("assignee"));
}

#[test]
fn status_start_close_reopen() {
    let project = Project::with(&[("a-1", "open", ""), ("a-12", "open", "")]);
    project.plays(
        r#"
    $ tk status a-1 in_progress
    Updated a-1 -> in_progress
    $ tk status -12 closed
    ! Unknown option: -12
    ? 1
    $ tk status 12 closed
    Updated a-12 -> closed
    $ tk status nowhere bogus
    ! Error: invalid status 'bogus'. Must be one of: open in_progress closed
    ? 1
    $ tk status a-1
    ! Usage: tk status <id> <status>
    ! Valid statuses: open in_progress closed
    ? 1
    $ tk start a-1
    Updated a-1 -> in_progress
    $ tk start a-1 and more
    Updated a-1 -> in_progress
    $ tk start
    ! Usage: tk start <id>
    ? 1
    $ tk close a-1
    Updated a-1 -> closed
    $ tk close
    ! Usage: tk close <id>
    ? 1
    $ tk close a-1 --force
    ! Unknown option: --force
    ? 1
    $ tk reopen a-1
    Updated a-1 -> open
    $ tk reopen
    ! Usage: tk reopen <id>
    ? 1
    $ tk reopen nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    $ tk reopen a-
    ! Error: ambiguous ID 'a-' matches multiple tickets
    ! Candidates: a-1, a-12
    ? 1
    "#,
    );
    assert_eq!(project.read("a-1"), "---\nid: a-1\nstatus: open\n---\n# Title of a-1\n\n");
}

#[test]
fn dep_and_undep_match_whole_ids() {
    let project = Project::with(&[
        ("ab-1", "open", ""),
        ("ab-12", "open", ""),
        ("z", "open", "deps: []\n"),
        ("orphan", "open", "deps: [gone-7]\n"),
    ]);
    project.plays(
        r#"
    $ tk dep z ab-12
    Added dependency: z -> ab-12
    $ tk dep z ab-1
    Added dependency: z -> ab-1
    $ tk dep z ab-1
    Dependency already exists
    $ tk undep z ab-1
    Removed dependency: z -/-> ab-1
    $ tk undep z ab-1
    Dependency not found
    ? 1
    $ tk undep orphan gone
    Removed dependency: orphan -/-> gone-7
    $ tk dep z nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    $ tk dep z
    ! Usage: ticket dep <id> <dependency-id>
    !        ticket dep tree <id>  - show dependency tree
    !        ticket dep cycle      - find dependency cycles
    ? 1
    $ tk undep z
    ! Usage: ticket undep <id> <dependency-id>
    ? 1
    $ tk dep ab-12 z
    Added dependency: ab-12 -> z
    ! Warning: this closes a dependency cycle: ab-12 -> z -> ab-12
    "#,
    );
    assert!(project.read("z").contains("\ndeps: [ab-12]\n"));
    assert!(project.read("orphan").contains("\ndeps: []\n"));
}

#[test]
fn dep_tree() {
    let project = Project::with(&[
        ("r", "open", "deps: [a, b, ghost]\n"),
        ("a", "open", "deps: [c]\n"),
        ("b", "closed", "deps: []\n"),
        ("c", "open", "deps: [b]\n"),
        ("d1", "open", "deps: [d1x]\n"),
        ("d1x", "open", "deps: [d1]\n"),
    ]);
    project.plays(
        r#"
    $ tk dep tree r
    r [open] Title of r
    └── a [open] Title of a
        └── c [open] Title of c
            └── b [closed] Title of b
    $ tk dep tree --full r
    r [open] Title of r
    ├── a [open] Title of a
    │   └── c [open] Title of c
    │       └── b [closed] Title of b
    └── b [closed] Title of b
    $ tk dep tree d1
    d1 [open] Title of d1
    └── d1x [open] Title of d1x
    $ tk dep tree
    ! Usage: ticket dep tree [--full] <id>
    ? 1
    $ tk dep tree nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    $ tk dep tree --half r
    ! Unknown option: --half
    ? 1
    "#,
    );
}

#[test]
fn dep_tree_sorts_by_depth_then_id_and_is_quick_on_ladders() {
    let mut tickets = vec![("root".to_owned(), "deps: [z, b, a]\n".to_owned())];
    tickets.push(("a".into(), "deps: [deep]\n".into()));
    tickets.push(("b".into(), String::new()));
    tickets.push(("z".into(), String::new()));
    tickets.push(("deep".into(), "deps: [l0a, l0b]\n".into()));
    for layer in 0..40 {
        for side in ["a", "b"] {
            let deps = if layer == 39 { String::new() } else { format!("deps: [l{0}a, l{0}b]\n", layer + 1) };
            tickets.push((format!("l{layer}{side}"), deps));
        }
    }
    let owned: Vec<(&str, &str, &str)> =
        tickets.iter().map(|(id, more)| (id.as_str(), "open", more.as_str())).collect();
    let project = Project::with(&owned);
    let tree = project.ok(&["dep", "tree", "root"]);
    let first: Vec<&str> = tree.lines().take(5).collect();
    assert_eq!(
        first,
        [
            "root [open] Title of root",
            "├── b [open] Title of b",
            "├── z [open] Title of z",
            "└── a [open] Title of a",
            "    └── deep [open] Title of deep"
        ]
    );
    assert_eq!(tree.lines().count(), 5 + 80);
}

#[test]
fn dep_cycle() {
    let project = Project::with(&[
        ("a", "open", "deps: [b]\n"),
        ("b", "in_progress", "deps: [c]\n"),
        ("c", "open", "deps: [a]\n"),
        ("into", "open", "deps: [a]\n"),
        ("self", "open", "deps: [self]\n"),
        ("x", "closed", "deps: [y]\n"),
        ("y", "open", "deps: [x]\n"),
    ]);
    project.plays(
        r#"
    $ tk dep cycle
    Cycle 1: a -> b -> c -> a
      a        [open] Title of a
      b        [in_progress] Title of b
      c        [open] Title of c
    
    Cycle 2: self -> self
      self     [open] Title of self
    "#,
    );
    project.ok(&["undep", "c", "a"]);
    project.ok(&["undep", "self", "self"]);
    project.plays("$ tk dep cycle\nNo dependency cycles found");
}

#[test]
fn link_and_unlink() {
    let project = Project::with(&[("a", "open", "links: []\n"), ("b", "open", ""), ("c", "open", "links: [x-9]\n")]);
    project.plays(
        r#"
    $ tk link a b
    Added 2 link(s) between 2 tickets
    $ tk link a b
    All links already exist
    $ tk link a b c
    Added 4 link(s) between 3 tickets
    $ tk unlink a b
    Removed link: a <-> b
    $ tk unlink a b
    Link not found
    ? 1
    $ tk unlink c x-9
    Removed link: c <-> x-9
    $ tk link a
    ! Usage: ticket link <id> <id> [id...]
    ? 1
    $ tk link a a
    ! Error: a is named twice; a ticket cannot be linked to itself
    ? 1
    $ tk link a nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    $ tk unlink a
    ! Usage: ticket unlink <id> <target-id>
    ? 1
    "#,
    );
    assert!(project.read("a").contains("\nlinks: [c]\n"));
    assert!(project.read("b").contains("\nlinks: [c]\n"), "{}", project.read("b"));
    assert!(project.read("c").contains("\nlinks: [a, b]\n"));
}

#[test]
fn ls_and_its_filters() {
    let project = Project::with(&[
        ("a-1", "open", "assignee: Bo\ntags: [team, ui]\n"),
        ("b-1", "closed", "deps: [a-1, a-2]\ntags: [team]\n"),
        ("a-very-long-id", "in_progress", ""),
        ("d-1", "closed", "resolution: failed\n"),
    ]);
    project.plays(
        r#"
    $ tk ls
    a-1      [open] - Title of a-1
    a-very-long-id [in_progress] - Title of a-very-long-id
    b-1      [closed] - Title of b-1 <- [a-1, a-2]
    d-1      [closed] - Title of d-1
    $ tk list --status=open
    a-1      [open] - Title of a-1
    $ tk ls --status closed
    b-1      [closed] - Title of b-1 <- [a-1, a-2]
    d-1      [closed] - Title of d-1
    $ tk ls --status failed
    d-1      [closed] - Title of d-1
    $ tk ls -a Bo
    a-1      [open] - Title of a-1
    $ tk ls --assignee=Bo
    a-1      [open] - Title of a-1
    $ tk ls -T team
    a-1      [open] - Title of a-1
    b-1      [closed] - Title of b-1 <- [a-1, a-2]
    $ tk list -t team,ui
    a-1      [open] - Title of a-1
    $ tk ls -t team -t ui
    a-1      [open] - Title of a-1
    $ tk ls --tags team --tag=ui
    a-1      [open] - Title of a-1
    $ tk ls -T tea
    $ tk ls --colour
    ! Unknown option: --colour
    ? 1
    $ tk ls extra
    ! Unknown option: extra
    ? 1
    $ tk ls -T
    ! Error: option '-T' needs a value
    ? 1
    "#,
    );
}

#[test]
fn ready_and_blocked() {
    let project = Project::with(&[
        ("c-1", "closed", ""),
        ("d-1", "done", ""),
        ("f-1", "closed", "resolution: failed\n"),
        ("r-1", "open", "priority: 10\n"),
        ("r-2", "in_progress", "priority: 2\ndeps: [c-1]\n"),
        ("r-3", "open", "priority: 0\ntags: [x]\nassignee: Bo\n"),
        ("r-4", "open", "priority: high\n"),
        ("b-1", "open", "deps: [c-1, r-1, ghost]\n"),
        ("b-2", "open", "priority: 1\ndeps: [f-1]\n"),
        ("b-3", "open", "deps:\n  - r-1\n"),
        ("b-4", "open", "deps: [d-1]\n"),
    ]);
    project.plays(
        r#"
    $ tk ready
    r-3      [P0][open] - Title of r-3
    r-2      [P2][in_progress] - Title of r-2
    r-1      [P10][open] - Title of r-1
    r-4      [Phigh][open] - Title of r-4
    $ tk ready -T x
    r-3      [P0][open] - Title of r-3
    $ tk ready -a Bo
    r-3      [P0][open] - Title of r-3
    $ tk blocked
    b-2      [P1][open] - Title of b-2 <- [f-1 (failed)]
    b-1      [P2][open] - Title of b-1 <- [r-1, ghost]
    b-3      [P2][open] - Title of b-3 <- [r-1]
    b-4      [P2][open] - Title of b-4 <- [d-1]
    $ tk blocked --assignee Nobody
    $ tk ready --status open
    ! Unknown option: --status
    ? 1
    "#,
    );
}

#[test]
fn closed_lists_the_newest_first_without_a_window() {
    let project = Project::with(&[]);
    for number in 0..130 {
        let id = format!("n-{number:03}");
        let status = if number < 25 { "closed" } else { "open" };
        project.put(&id, &format!("---\nid: {id}\nstatus: {status}\n---\n# T\n"));
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + number);
        let file = std::fs::File::options().write(true).open(project.store().join(format!("{id}.md"))).unwrap();
        file.set_modified(time).unwrap();
    }
    let lines = |arguments: &[&str]| project.ok(arguments).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&["closed"]).len(), 20);
    assert_eq!(
        lines(&["closed", "--limit=3"]),
        ["n-024    [closed] - T", "n-023    [closed] - T", "n-022    [closed] - T"]
    );
    assert_eq!(lines(&["closed", "--limit", "1"]).len(), 1);
    assert_eq!(project.fails(&["closed", "--limit=x"]), "Error: --limit takes a whole number, not 'x'\n");
}

#[test]
fn show() {
    let project = Project::with(&[
        ("a", "open", "deps: [b, c, ghost]\nlinks: [l]\nparent: p\n"),
        ("b", "closed", ""),
        ("c", "open", ""),
        ("l", "open", ""),
        ("p", "open", ""),
        ("w", "open", "deps: [a]\n"),
        ("w2", "closed", "deps: [a]\n"),
        ("kid", "closed", "parent: a\n"),
    ]);
    project.plays(
        "
    $ tk show a
    ---
    id: a
    status: open
    deps: [b, c, ghost]
    links: [l]
    parent: p  # Title of p
    ---
    # Title of a


    ## Blockers

    - c [open] Title of c
    - ghost [] 

    ## Blocking

    - w [open] Title of w

    ## Children

    - kid [closed] Title of kid

    ## Linked

    - l [open] Title of l
    $ tk show
    ! Usage: ticket show <id>
    ? 1
    $ tk show nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    ",
    );
    project.put("raw", "---\r\nid: raw\r\nstatus: open\r\n---\r\n# T\r\n\r\n---\r\nstatus: x");
    assert_eq!(project.ok(&["show", "raw"]), "---\r\nid: raw\r\nstatus: open\r\n---\r\n# T\r\n\r\n---\r\nstatus: x\n");
}

#[test]
fn add_note() {
    let mut project = Project::with(&[("a", "open", "")]);
    project.stdin = b"from\nstdin\n\n".to_vec();
    project.plays(
        r#"
    $ tk add-note a one two
    Note added to a
    $ tk add-note a
    Note added to a
    $ tk comment a said
    Note added to a
    $ tk add-note
    ! Usage: ticket add-note <id> [note text]
    ? 1
    $ tk add-note nowhere x
    ! Error: ticket 'nowhere' not found
    ? 1
    "#,
    );
    project.terminal = true;
    assert_eq!(project.fails(&["add-note", "a"]), "Error: no note provided\n");
    assert_eq!(
        project.masked(&project.read("a")),
        "---\nid: a\nstatus: open\n---\n# Title of a\n\n\n## Notes\n\n**<time>**\n\none two\n\n**<time>**\n\nfrom\nstdin\n\n**<time>**\n\nsaid\n"
    );
}

#[test]
fn edit() {
    let mut project = Project::with(&[("a", "open", "")]);
    project.plays(
        r#"
    $ tk edit a
    Edit ticket file: <dir>/.tickets/a.md
    $ tk edit
    ! Usage: ticket edit <id>
    ? 1
    $ tk edit nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    "#,
    );
    project.terminal = true;
    project.variables.insert("EDITOR".into(), "/bin/ed -s".into());
    let exec = project.tk(&["edit", "a"]).then.unwrap();
    assert_eq!(exec.program.to_str(), Some("/bin/ed"));
    assert_eq!(exec.arguments, ["-s".into(), project.store().join("a.md").into_os_string()]);
}

#[test]
fn query() {
    let project = Project::with(&[]);
    project.put("a", "---\nid: a\nstatus: open\ndeps: [x, y]\nlinks: []\npriority: 2\nassignee: Q \"uote\"\nforgejo-issue: 12\n---\n# T\n");
    project.put("b", "---\nid: b\ndeps:\n  - x\n---\n# T\n");
    project.plays(
        r#"
    $ tk query
    {"id":"a","status":"open","deps":["x","y"],"links":[],"priority":"2","assignee":"Q \"uote\"","forgejo-issue":"12"}
    {"id":"b","deps":["x"]}
    "#,
    );
    let answer = project.tk(&["query", ".status == \"open\""]);
    assert_eq!(answer.code, 127);
    assert!(answer.err.contains("jq"), "{}", answer.err);
}

#[test]
fn help_and_unknown_commands() {
    let project = Project::empty();
    for arguments in [&["help"][..], &["--help"], &["-h"], &[]] {
        assert!(project.ok(arguments).contains("Usage: tk <command> [args]"));
    }
    let said = project.fails(&["frobnicate"]);
    assert!(said.starts_with("Unknown command: frobnicate\n") && said.contains("Usage: tk"), "{said}");
    assert!(project.fails(&["super", "frobnicate"]).starts_with("Unknown command: frobnicate\n"));
}

#[test]
fn the_design_dialect() {
    let project = Project::empty();
    let id = project.ok(&["add", "-d", "Implement auth middleware", "-t", "team,worker:alice", "--start", "Auth"]);
    let id = id.trim();
    let text = project.masked(&project.read(id));
    assert!(text.contains("\nstatus: in_progress\n") && text.contains("\nassignee: alice\n"), "{text}");
    assert!(text.contains("\ntype: task\n") && text.contains("\ntags: [team, worker:alice]\n"), "{text}");
    assert!(text.ends_with("# Auth\n\nImplement auth middleware\n\n"), "{text}");
    assert_eq!(project.ok(&["comment", id, "half way"]), format!("Note added to {id}\n"));
    assert_eq!(project.ok(&["list", "-t", "team"]).lines().count(), 1);
    assert_eq!(project.ok(&["list", "-t", "other"]), "");
    assert_eq!(project.ok(&["done", id, "it", "works"]), format!("Updated {id} -> closed\n"));
    let text = project.read(id);
    assert!(text.contains("\nstatus: closed\n") && text.ends_with("\n\nDONE: it works\n"), "{text}");

    let other = project.ok(&["add", "Other"]);
    let other = other.trim();
    assert_eq!(
        project.ok(&["close", other, "--status", "failed", "no", "luck"]),
        format!("Updated {other} -> closed\n")
    );
    let text = project.read(other);
    assert!(text.contains("\nstatus: closed\n") && text.contains("\nresolution: failed\n"), "{text}");
    assert!(text.ends_with("\n\nFAILED: no luck\n"), "{text}");
    assert_eq!(
        project.fails(&["close", other, "--status", "odd"]),
        "Error: invalid status 'odd' for close. Must be one of: closed done failed\n"
    );
    project.ok(&["reopen", other]);
    assert!(!project.read(other).contains("resolution"));
}
