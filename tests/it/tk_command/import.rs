//! Tickets from elsewhere.

use std::fs;

use super::harness::Project;

const BEADS: &str = r#"{"id":"bd-1","title":"First","status":"open","priority":0,"issue_type":"bug","created_at":"2026-01-02T03:04:05.678+01:00","description":"why","design":"how","acceptance_criteria":"when","notes":"remember","labels":["x","y, z"],"dependencies":[{"issue_id":"bd-1","depends_on_id":"bd-2","type":"blocks"},{"issue_id":"bd-1","depends_on_id":"bd-3","type":"related"},{"issue_id":"bd-1","depends_on_id":"bd-4","type":"parent-child"}],"comments":[{"author":"Bo","text":"hm","created_at":"2026-01-03T00:00:00Z"}]}

{"id":"bd-2","title":"Second\nline","status":"blocked"}
"#;

#[test]
fn beads() {
    let project = Project::empty();
    assert_eq!(project.fails(&["migrate-beads"]), "Error: .beads/issues.jsonl not found\n");
    fs::create_dir(project.root.join(".beads")).unwrap();
    fs::write(project.root.join(".beads/issues.jsonl"), BEADS).unwrap();
    project.plays(
        r#"
    $ tk migrate-beads
    Migrated: bd-1
    Migrated: bd-2
    Migrated 2 tickets from beads
    $ tk migrate-beads
    Skipped: bd-1 (already there)
    Skipped: bd-2 (already there)
    Migrated 0 tickets from beads
    "#,
    );
    assert_eq!(
        project.read("bd-1"),
        "---\nid: bd-1\nstatus: open\ndeps: [bd-2]\nlinks: [bd-3]\ncreated: 2026-01-02T03:04:05.678+01:00\ntype: bug\npriority: 0\nparent: bd-4\ntags: [x, y- z]\n---\n# First\n\nwhy\n\n## Design\n\nhow\n\n## Acceptance Criteria\n\nwhen\n\n\n## Notes\n\n**2026-01-02T02:04:05Z**\n\nremember\n\n**2026-01-03T00:00:00Z**\n\nBo: hm\n"
    );
    assert!(project.read("bd-2").contains("\nstatus: blocked\n"), "foreign statuses stay as they are");
    assert!(project.read("bd-2").ends_with("# Second line\n\n"));

    let named = Project::empty();
    fs::write(named.root.join("issues.jsonl"), BEADS).unwrap();
    assert!(named.ok(&["migrate-beads", "issues.jsonl"]).ends_with("Migrated 2 tickets from beads\n"));
    assert!(named.fails(&["migrate-beads", "nothing.jsonl"]).contains("could not read nothing.jsonl"));
    assert!(named.fails(&["migrate-beads", "a", "b"]).contains("Usage: tk migrate-beads [FILE]"));

    let other = Project::empty();
    fs::write(other.root.join("issues.jsonl"), BEADS).unwrap();
    other.ok(&["import", "beads", "issues.jsonl"]);
    assert!(other.read("bd-2").contains("\nstatus: open\n"));
}

#[test]
fn github() {
    let mut project = Project::empty();
    project.stdin = br#"[
      {"number": 7, "title": "Crash", "body": "It\r\ncrashes\r\n", "state": "OPEN", "labels": [{"name": "Bug"}, {"name": "ui"}],
       "assignees": [{"login": "bo"}], "createdAt": "2026-01-02T03:04:05Z",
       "comments": [{"author": {"login": "cy"}, "body": "me too", "createdAt": "2026-01-03T00:00:00Z"}]},
      {"number": 8, "title": "No", "body": null, "state": "closed", "state_reason": "not_planned", "comments": 3},
      {"number": 9, "title": "A pull request", "pull_request": {"url": "x"}}
    ]"#
    .to_vec();
    project.plays(
        r#"
    $ tk import github
    Imported: gh-7
    Imported: gh-8
    Imported 2 tickets from github
    $ tk import github -
    Skipped: gh-7 (already there)
    Skipped: gh-8 (already there)
    Imported 0 tickets from github
    "#,
    );
    assert_eq!(
        project.read("gh-7"),
        "---\nid: gh-7\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-01-02T03:04:05Z\ntype: bug\npriority: 2\nassignee: bo\nexternal-ref: gh-7\ntags: [Bug, ui]\n---\n# Crash\n\nIt\ncrashes\n\n\n## Notes\n\n**2026-01-03T00:00:00Z**\n\ncy: me too\n"
    );
    let closed = project.read("gh-8");
    assert!(closed.contains("\nstatus: closed\n") && closed.contains("\nresolution: cancelled\n"), "{closed}");
}

#[test]
fn linear_csv() {
    let project = Project::empty();
    fs::write(
        project.root.join("export.csv"),
        "\u{feff}ID,Team,Title,Description,Status,Priority,Assignee,Labels,Created,Completed,Canceled,Parent issue,Related to,Blocked by\r\n\
         ENG-1,Eng,\"One, \"\"quoted\"\"\",\"two\r\nlines\",In Progress,Urgent,bo@example.invalid,\"ui, bug\",2026-01-02T03:04:05.000Z,,,ENG-9,ENG-3,\"ENG-2, ENG-4\"\r\n\
         ENG-2,Eng,Two,,Done,No priority,,,2026-01-02T03:04:05.000Z,2026-01-03T00:00:00Z,,,,\r\n\
         ENG-3,Eng,Three,,Canceled,Low,,,,,2026-01-03T00:00:00Z,,,\r\n",
    )
    .unwrap();
    assert!(project.ok(&["import", "linear-csv", "export.csv"]).ends_with("Imported 3 tickets from linear\n"));
    assert_eq!(
        project.read("ENG-1"),
        "---\nid: ENG-1\nstatus: in_progress\ndeps: [ENG-2, ENG-4]\nlinks: [ENG-3]\ncreated: 2026-01-02T03:04:05Z\ntype: task\npriority: 0\nassignee: bo@example.invalid\nexternal-ref: ENG-1\nparent: ENG-9\ntags: [ui, bug]\n---\n# One, \"quoted\"\n\ntwo\nlines\n\n"
    );
    assert!(project.read("ENG-2").contains("\nstatus: closed\n") && project.read("ENG-2").contains("\npriority: 4\n"));
    assert!(project.read("ENG-3").contains("\nresolution: cancelled\n"));
}

#[test]
fn what_cannot_be_imported_is_said_and_nothing_is_written() {
    let mut project = Project::empty();
    project.stdin = b"{}".to_vec();
    assert!(project.fails(&["import", "github"]).starts_with("Error: this is not a JSON array of GitHub issues"));
    project.stdin = b"Name,Title\nx,y\n".to_vec();
    assert!(project.fails(&["import", "linear-csv"]).contains("no 'id' column"));
    project.stdin = b"ID,Title\nx,\"open\n".to_vec();
    assert!(project.fails(&["import", "linear-csv"]).contains("line 2"));
    project.stdin = b"{\"id\":\"ok-1\",\"title\":\"x\"}\n{\"id\":3}\n".to_vec();
    assert!(project.fails(&["import", "beads", "-"]).contains("line 2"));
    project.stdin = b"ID,Title\nok-1,fine\n../../evil,y\n".to_vec();
    assert!(project.fails(&["import", "linear-csv"]).contains("invalid ticket id '../../evil'"));
    assert!(project.fails(&["import", "beads", "nowhere.jsonl"]).contains("nowhere.jsonl"));
    assert!(project.fails(&["import", "trello"]).starts_with("Usage: tk import beads"));
    let made = fs::read_dir(project.store()).map(|entries| entries.count()).unwrap_or(0);
    assert_eq!(made, 0, "all or nothing");
}
