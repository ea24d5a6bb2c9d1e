//! A recorded run decides the same when it is replayed, and a bundle for a bug report holds no secret.

use super::support::board::{Board, MERGE, text};

const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

/// The decisions about a ticket as the ledger has them.
fn decided(board: &Board, id: &str) -> Vec<String> {
    let story: serde_json::Value = serde_json::from_str(&board.ok(&["explain", id, "--json"])).unwrap();
    story["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap().to_owned()).collect()
}

fn replayed(steps: &serde_json::Value, id: &str) -> Vec<String> {
    steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["notes"].as_array().unwrap())
        .filter(|note| note["ticket"] == id)
        .map(|note| note["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_recorded_run_decides_the_same_again() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.ticket("t-2", "Two");
    board.ok(&["run", "--once", "--record", "run.jsonl"]);
    // A second life in the same file, after a line that a crash cut off.
    let path = board.repo().join("run.jsonl");
    let mut recording = std::fs::read_to_string(&path).unwrap();
    recording.push_str("{\"line\":\"event\",\"at\":1");
    std::fs::write(&path, recording).unwrap();
    board.ticket("t-3", "Three");
    board.ok(&["run", "--once", "--record", "run.jsonl"]);

    let told: serde_json::Value = serde_json::from_str(&board.ok(&["replay", "run.jsonl", "--json"])).unwrap();
    assert_eq!(told["different"], 0, "{told}");
    for id in ["t-1", "t-2", "t-3"] {
        assert!(!decided(&board, id).is_empty());
        assert_eq!(replayed(&told, id), decided(&board, id), "{id}");
    }
    let words = board.ok(&["replay", "run.jsonl"]);
    for part in ["-> merge_pr for t-1", "came onto the board", "every decision is the recorded one"] {
        assert!(words.contains(part), "{part} is not in\n{words}");
    }
}

#[test]
fn a_changed_decision_and_a_broken_recording_are_told() {
    let board = Board::new(GOOD, MERGE);
    board.ticket("t-1", "One");
    board.ok(&["run", "--once", "--record", "run.jsonl"]);
    let path = board.repo().join("run.jsonl");
    let recording = std::fs::read_to_string(&path).unwrap();
    assert!(recording.contains("came onto the board"));
    std::fs::write(&path, recording.replace("came onto the board", "went off the board")).unwrap();
    let output = board.run(&["replay", "run.jsonl"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stdout).contains("(not as recorded)"), "{}", text(&output.stdout));

    let first_part_lost: String = recording.lines().skip(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, first_part_lost).unwrap();
    assert!(board.fails(&["replay", "run.jsonl"], 1).contains("first part is missing"));
    std::fs::write(&path, "something else\nand more\n").unwrap();
    assert!(board.fails(&["replay", "run.jsonl"], 1).contains("line 1 is not a line of a recording"));
    assert!(board.fails(&["replay", "nosuch.jsonl"], 1).contains("nosuch.jsonl cannot be opened"));
}

#[test]
fn a_bundle_holds_what_a_report_needs_and_no_secret() {
    const CANARIES: [&str; 3] = ["canary-3f1c09de77aa-one", "canary-\"99b2\\04-two", "canary-55e07d41-three"];
    // The agent says one of them aloud, so that it is in tickets, ledger, log and recording.
    let agent = format!("tk comment 'I found {} and {}'\n{GOOD}", CANARIES[0], "Y2FuYXJ5LTU1ZTA3ZDQxLXRocmVl");
    let more = format!("{MERGE}server: {{token: $SERVER_VALUE}}\n");
    let board = Board::new(&agent, &more);
    board.ticket("t-1", &format!("Use {}", CANARIES[0]));
    let run = |args: &[&str]| {
        let output = board
            .command(args)
            .env("SERVER_VALUE", CANARIES[0])
            .env("MY_API_TOKEN", CANARIES[1])
            .env("OTHER_SECRET", CANARIES[2])
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    };
    run(&["run", "--once", "--record", "run.jsonl"]);
    let recording = std::fs::read_to_string(board.repo().join("run.jsonl")).unwrap();
    assert!(!recording.contains(CANARIES[0]), "the recording holds a secret of the configuration");
    assert!(recording.contains("I found"));

    run(&["doctor", "--bundle", "report.tar", "--events", "run.jsonl"]);
    let out = board.scratch.dir.path().join("unpacked");
    std::fs::create_dir(&out).unwrap();
    let tar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(board.repo().join("report.tar"))
        .arg("-C")
        .arg(&out)
        .output()
        .unwrap();
    assert!(tar.status.success(), "{}", text(&tar.stderr));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("ledger.jsonl").contains("Use ***"), "{}", read("ledger.jsonl"));
    assert!(read("events.jsonl").contains("I found ***"));
    assert!(read("config.json").contains("server.token"));
    assert!(read("doctor.json").contains("\"verdict\""));
    assert!(read("version.txt").starts_with("dirigent "));
    assert!(read("events.jsonl").contains("came onto the board"));
    for entry in std::fs::read_dir(&out).unwrap().flatten() {
        let packed = std::fs::read_to_string(entry.path()).unwrap();
        for secret in CANARIES.iter().copied().chain(["Y2FuYXJ5LTU1ZTA3ZDQxLXRocmVl", "99b2"]) {
            assert!(!packed.contains(secret), "{} holds {secret}", entry.path().display());
        }
    }
}
