//! What the public tool does not have: `--json`, `claim`, `board`, `graph`, completion, plugins by our rules.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::harness::Project;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn lists_as_json_are_typed_and_escaped() {
    let project = Project::with(&[
        ("a", "open", "priority: 1\ntags: [x, y]\ndeps: [f, ghost]\n"),
        ("f", "closed", "resolution: failed\n"),
    ]);
    project.put("q", "---\nid: q\nstatus: open\nassignee: Q \"uote\"\n---\n# A \"title\" \\ with | all\n");
    let all = json(&project.ok(&["ls", "--json"]));
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0]["priority"], json!(1));
    assert_eq!(all[0]["tags"], json!(["x", "y"]));
    assert_eq!(all[0]["ready"], json!(false));
    assert_eq!(all[0]["waiting_for"], json!([{"id": "f", "status": "failed"}, {"id": "ghost", "status": null}]));
    assert_eq!(all[1]["status"], "closed");
    assert_eq!(all[1]["state"], "failed");
    assert_eq!(all[2]["title"], "A \"title\" \\ with | all");
    assert_eq!(all[2]["assignee"], "Q \"uote\"");
    assert_eq!(json(&project.ok(&["ready", "--json"]))[0]["id"], "q");
    assert_eq!(json(&project.ok(&["blocked", "--json"]))[0]["id"], "a");
    assert_eq!(json(&project.ok(&["closed", "--json"]))[0]["id"], "f");
    assert_eq!(json(&project.ok(&["dep", "cycle", "--json"])), json!({"cycles": []}));
    let tree = json(&project.ok(&["dep", "tree", "a", "--json"]));
    assert_eq!(tree["nodes"][1], json!({"id": "f", "depth": 1, "status": "failed", "title": "Title of f"}));
}

#[test]
fn show_as_json_has_body_notes_and_relations() {
    let project = Project::with(&[("a", "open", "deps: [b]\n"), ("b", "open", "parent: a\n")]);
    project.ok(&["add-note", "a", "hello"]);
    let shown = json(&project.ok(&["show", "a", "--json"]));
    assert_eq!(shown["notes"][0]["text"], "hello");
    assert_eq!(shown["notes"][0]["by_dirigent"], json!(false));
    assert_eq!(shown["blockers"], json!([{"id": "b", "status": "open", "title": "Title of b"}]));
    assert_eq!(shown["children"][0]["id"], "b");
    assert_eq!(shown["description"], "");
    assert!(shown["file"].as_str().unwrap().ends_with("a.md"));
}

#[test]
fn claim_tells_won_lost_and_not_ready_by_its_exit_code() {
    let project = Project::with(&[
        ("free", "open", "x: kept\n"),
        ("hers", "open", "assignee: Bo\n"),
        ("hers2", "in_progress", "assignee: Bo\n"),
        ("waits", "open", "deps: [free]\n"),
        ("over", "closed", ""),
        ("after", "open", "deps: [bad]\n"),
        ("bad", "closed", "resolution: failed\n"),
    ]);
    project.plays(
        r#"
    $ tk claim free
    Claimed free for Al Ice
    $ tk claim free
    Claimed free for Al Ice
    $ tk claim free -a Bo
    ! Error: free belongs to Al Ice
    ? 3
    $ tk claim hers
    ! Error: hers belongs to Bo
    ? 3
    $ tk claim hers2
    ! Error: hers2 belongs to Bo
    ? 3
    $ tk claim hers -a Bo
    Claimed hers for Bo
    $ tk claim waits
    ! Error: waits waits for free
    ? 4
    $ tk claim after
    ! Error: after waits for bad
    ? 4
    $ tk claim over
    ! Error: over is closed, not open
    ? 4
    $ tk claim nowhere
    ! Error: ticket 'nowhere' not found
    ? 1
    $ tk claim
    ! Usage: tk claim <id> [-a NAME]
    !        tk claim --next [-T TAG] [-a NAME]
    ? 1
    $ tk claim --next
    ! Error: no ticket is ready to be claimed
    ? 4
    "#,
    );
    assert_eq!(
        project.read("free"),
        "---\nassignee: Al Ice\nid: free\nstatus: in_progress\nx: kept\n---\n# Title of free\n\n"
    );
    project.ok(&["close", "free"]);
    assert_eq!(project.ok(&["claim", "--next"]), "Claimed waits for Al Ice\n");
}

#[test]
fn an_empty_tag_is_no_tag() {
    let project = Project::with(&[("a", "open", "tags: [x]\n"), ("b", "open", "")]);
    for list in ["", ",", " , "] {
        assert!(project.ok(&["board", "-T", list]).contains("Ready (2)"), "{list:?}");
    }
    assert!(project.ok(&["board", "-T", "x,"]).contains("Ready (1)"));
    assert_eq!(project.ok(&["claim", "--next", "-T", "x,"]), "Claimed a for Al Ice\n");
    assert_eq!(project.ok(&["claim", "--next", "-T", ""]), "Claimed b for Al Ice\n");
    assert!(
        project.fails(&["claim", "a", "-T", "x"]).contains("Usage: tk claim"),
        "a tag chooses nothing where the ticket is named"
    );
}

#[test]
fn one_ticket_is_claimed_once_and_next_gives_each_claimer_another() {
    let project = Project::with(&[("a", "open", ""), ("b", "open", ""), ("c", "open", ""), ("d", "open", "")]);
    let take = |arguments: Vec<String>| {
        let project = &project;
        move || {
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            project.tk(&words).code
        }
    };
    let codes: Vec<u8> =
        run_at_once((0..16).map(|n| take(vec!["claim".into(), "a".into(), "-a".into(), format!("w{n}")])));
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1);
    assert!(codes.iter().all(|code| matches!(code, 0 | 3)), "{codes:?}");
    let codes = run_at_once((0..8).map(|n| take(vec!["claim".into(), "--next".into(), "-a".into(), format!("w{n}x")])));
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 3);
    assert_eq!(codes.iter().filter(|code| **code == 4).count(), 5);
}

fn run_at_once<F: FnOnce() -> u8 + Send>(calls: impl Iterator<Item = F>) -> Vec<u8> {
    std::thread::scope(|scope| {
        let running: Vec<_> = calls.map(|call| scope.spawn(call)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn the_board_has_columns() {
    let mut project = Project::with(&[
        ("r-1", "open", "priority: 0\n"),
        ("p-1", "in_progress", "assignee: Bo\n"),
        ("b-1", "open", "deps: [r-1]\n"),
        ("c-1", "closed", "resolution: failed\n"),
    ]);
    project.variables.insert("COLUMNS".into(), "120".into());
    let board = project.ok(&["board"]);
    for part in [
        "Ready (1)",
        "In progress (1)",
        "Blocked (1)",
        "Closed (1)",
        "P0 r-1 Title of r-1",
        "@Bo",
        "<- r-1",
        "(failed)",
    ] {
        assert!(board.contains(part), "{part}:\n{board}");
    }
    assert!(board.lines().all(|line| line.chars().count() <= 120), "{board}");
    let columns = json(&project.ok(&["board", "--json"]));
    assert_eq!(columns["blocked"][0]["id"], "b-1");
    assert_eq!(project.fails(&["board", "--wide"]), "Unknown option: --wide\n");
}

#[test]
fn the_graph_marks_the_critical_path_in_every_form() {
    let project = Project::with(&[
        ("a", "open", ""),
        ("b", "open", "deps: [a]\n"),
        ("c", "open", "deps: [b, done]\n"),
        ("d", "open", "deps: [a]\n"),
        ("done", "closed", ""),
        ("lone", "open", ""),
    ]);
    project.put("q", "---\nid: q\nstatus: open\ndeps: [d]\n---\n# Say \"hi\" <now>\n");
    project.plays(
        r#"
    $ tk graph
    Wave 1
    * a [open] Title of a
      lone [open] Title of lone
    Wave 2
    * b [open] Title of b <- [a]
      d [open] Title of d <- [a]
    Wave 3
    * c [open] Title of c <- [b]
      q [open] Say "hi" <now> <- [d]
    Critical path (3): a -> b -> c
    $ tk graph c --all --format dot
    digraph tickets {
      rankdir=LR;
      node [shape=box];
      "a" [label="a [open] Title of a", color=red, penwidth=2];
      "b" [label="b [open] Title of b", color=red, penwidth=2];
      "c" [label="c [open] Title of c", color=red, penwidth=2];
      "done" [label="done [closed] Title of done"];
      "a" -> "b" [color=red, penwidth=2];
      "b" -> "c" [color=red, penwidth=2];
      "done" -> "c";
    }
    $ tk graph q -f mermaid
    graph LR
      t0["a [open] Title of a"]
      t1["d [open] Title of d"]
      t2["q [open] Say #quot;hi#quot; #lt;now#gt;"]
      t0 --> t1
      t1 --> t2
      classDef critical stroke:#d33,stroke-width:3px
      class t0,t1,t2 critical
      linkStyle 0,1 stroke:#d33,stroke-width:3px
    $ tk graph --format png
    ! Error: unknown format 'png'. Must be one of: text dot mermaid
    ? 1
    "#,
    );
    let graph = json(&project.ok(&["graph", "--json"]));
    assert_eq!(graph["critical_path"], json!(["a", "b", "c"]));
    project.ok(&["dep", "a", "b"]);
    let knotted = project.ok(&["graph"]);
    assert!(knotted.contains("Cycle: a -> b -> a"), "{knotted}");
}

#[test]
fn ids_complete_with_their_titles() {
    let project = Project::with(&[("ab-1", "open", ""), ("ab-2", "closed", ""), ("xy-1", "open", "")]);
    project.plays(
        "
    $ tk __complete show ab
    ab-1\tTitle of ab-1
    ab-2\tTitle of ab-2
    $ tk __complete close \"\"
    ab-1\tTitle of ab-1
    xy-1\tTitle of xy-1
    $ tk __complete status ab-1 in
    in_progress
    $ tk __complete re
    ready
    reopen
    $ tk __complete dep tree xy
    xy-1\tTitle of xy-1
    ",
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(project.ok(&["completion", shell]).contains("tk __complete"), "{shell}");
    }
    assert_eq!(project.fails(&["completion", "csh"]), "Usage: tk completion bash|zsh|fish\n");
    assert_eq!(Project::empty().ok(&["__complete", "show", "a"]), "", "no store, no noise");
}

fn plugin(dir: &std::path::Path, name: &str, text: &str) {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn plugins_are_found_and_told_where_the_store_is() {
    let mut project = Project::with(&[("a", "open", "")]);
    let bin = project.root.join("bin");
    plugin(&bin, "tk-hello", "#!/bin/sh\n# tk-plugin: Says hello\n");
    plugin(&bin, "ticket-hello", "#!/bin/sh\n");
    plugin(&bin, "ticket-greet", "#!/bin/sh\n");
    plugin(&bin, "ticket-ls", "#!/bin/sh\n");
    plugin(&bin, "tk-start", "#!/bin/sh\n");
    plugin(&bin, "tk-help", "#!/bin/sh\n");
    fs::write(bin.join("tk-plain"), "not executable").unwrap();
    project.variables.insert("PATH".into(), bin.display().to_string());

    let exec = project.tk(&["hello", "x", "--y"]).then.unwrap();
    assert_eq!(exec.program, bin.join("tk-hello"), "tk-X before ticket-X");
    assert_eq!(exec.arguments, ["x", "--y"]);
    assert!(exec.variables.contains(&("TK_SCRIPT", "/bin/tk".into())));
    assert!(exec.variables.contains(&("TICKETS_DIR", project.store().into_os_string())));
    assert_eq!(project.tk(&["greet"]).then.unwrap().program, bin.join("ticket-greet"));
    assert_eq!(project.tk(&["start", "a"]).then.unwrap().program, bin.join("tk-start"), "plugins win over built-ins");
    assert_eq!(project.ok(&["super", "start", "a"]), "Updated a -> in_progress\n");
    assert!(project.tk(&["ls"]).then.is_none(), "the public tool's own ticket-ls does not replace ours");
    assert!(project.fails(&["plain"]).starts_with("Unknown command: plain"));
    let help = project.ok(&["help"]);
    assert!(help.contains("hello") && help.contains("Says hello"), "{help}");
    assert!(help.contains("greet") && help.contains("(no description)"), "{help}");

    project.variables.insert("TICKETS_DIR".into(), "missing".into());
    assert_eq!(project.fails(&["hello"]), "Error: tickets directory 'missing' does not exist\n");
    project.variables.remove("TICKETS_DIR");
    fs::remove_dir_all(project.store()).unwrap();
    let exec = project.tk(&["hello"]).then.unwrap();
    assert!(exec.variables.iter().all(|(name, _)| *name != "TICKETS_DIR"), "no store, nothing said");
}

#[test]
fn show_goes_to_the_pager_of_a_terminal() {
    use std::io::Read;
    let mut project = Project::with(&[("a", "open", "")]);
    project.variables.insert("PAGER".into(), "/bin/less -R".into());
    assert!(project.tk(&["show", "a"]).then.is_none(), "not without a terminal");
    project.terminal = true;
    let exec = project.tk(&["show", "a"]).then.unwrap();
    assert_eq!((exec.program.to_str(), exec.arguments), (Some("/bin/less"), vec!["-R".into()]));
    let mut text = String::new();
    exec.stdin.unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, project.read("a"));
}

/// Only what must change does: other tags, quoting, line ends and the rest of the file stay.
#[test]
fn tags_are_put_on_and_taken_off_by_the_byte() {
    let project = Project::with(&[("a", "open", "")]);
    for (before, after) in [
        ("tags: [x, \"y z\"]", "tags: [\"y z\", new]"),
        ("tags:\r\n  - x\r\n  - other # why", "tags:\r\n  - other # why\r\n  - new"),
        ("tags: [x]", "tags: [new]"),
        ("custom: 'kept'", "tags: [new]\r\ncustom: 'kept'"),
    ] {
        let file = |tags: &str| format!("---\r\nid: a\r\nstatus: open\r\n{tags}\r\n---\r\n# T\r\n\r\nbody  \r\nno end");
        project.put("a", &file(before));
        let said = project.ok(&["tag", "a", "+new", "-x"]);
        assert!(said.starts_with("Updated a: "), "{said}");
        let (found, wanted) = (project.read("a"), file(after));
        // A new list may stand anywhere in the front matter.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
            if before.starts_with("custom") {
                lines.sort();
            }
            lines
        };
        assert_eq!(sorted(&found), sorted(&wanted), "from {before:?}: {found:?}");
        let again = project.ok(&["tag", "a", "new", "-x"]);
        assert!(again.starts_with("Nothing to change"), "{again}");
        assert_eq!(project.read("a"), found, "a change that is none touched the file");
    }
    for bad in [
        &["tag"][..],
        &["tag", "a"],
        &["tag", "a", "+"],
        &["tag", "a", "+x,y"],
        &["tag", "a", "+x", "-x"],
        &["tag", "a", "+a b"],
    ] {
        project.fails(bad);
    }
}
