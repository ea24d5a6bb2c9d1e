//! What agents printed, what it comes to, and what there is to judge.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::{APPROVED, GOOD, ServedBoard};
use crate::support::board::{MERGE, PATIENCE};

fn run_of(served: &ServedBoard, key: &str) -> String {
    let ticket = served.get(&format!("/api/v1/{key}")).json();
    let live = ticket["ticket"]["run"]["id"].as_str();
    live.or(ticket["runs"][0]["id"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_log_is_told_whole_in_ranges_and_without_secrets() {
    let agent = format!("echo 'the secret is canary-0123456789-token'\necho \"I am in $PWD\"\nseq 1 3000\n{GOOD}");
    let more = format!("server: {{port: 0, tokens: {{ada: $CANARY}}}}\n{MERGE}");
    let served = ServedBoard::with(&agent, &more, &[("CANARY", "canary-0123456789-token")], |board| {
        board.ticket("t-1", "Do it")
    });
    served.until("it is merged", || served.phase("t-1") == "done");
    let run = run_of(&served, "t-1");
    let path = format!("/api/v1/runs/{run}/log");
    let whole = served.get(&path);
    assert_eq!(whole.status, 200);
    assert!(whole.header("content-type").unwrap().starts_with("text/plain"));
    assert!(whole.body.contains(" out 1\n") && whole.body.contains(" out 3000\n"), "{}", whole.body.len());
    assert!(!whole.body.contains("canary") && whole.body.contains("the secret is *****"), "{}", &whole.body[..300]);
    let place = served.board.scratch.dir.path().display().to_string();
    assert!(!whole.body.contains(&place));
    for (range, expected) in [
        ("bytes=0-99", &whole.body[..100]),
        ("bytes=57-1057", &whole.body[57..1058]),
        ("bytes=-100", &whole.body[whole.body.len() - 100..]),
    ] {
        let part = served.get_with(&path, &format!("Range: {range}\r\n"));
        assert_eq!((part.status, part.body.as_str()), (206, expected), "{range}");
        assert!(part.header("content-range").unwrap().ends_with(&format!("/{}", whole.body.len())));
    }
    let beyond = served.get_with(&path, "Range: bytes=99999999-\r\n");
    assert_eq!((beyond.status, beyond.error().as_str()), (416, "bad_range"));
    for wrong in ["nobody", "..%2f..%2f..%2fetc", "%2e%2e", &format!("{run}x")] {
        let answer = served.get(&format!("/api/v1/runs/{wrong}/log"));
        assert_eq!((answer.status, answer.error().as_str()), (404, "run_not_found"), "{wrong}");
    }
    let transcript = served.get(&format!("/api/v1/transcript/{run}?last=3")).json();
    let lines = transcript["lines"].as_array().unwrap();
    assert!(lines.len() == 3 && transcript["cut"] == true && transcript["live"] == false, "{transcript}");
    assert!(lines.iter().all(|line| line["at"].is_string() && line["kind"].is_string()), "{transcript}");
    assert_eq!(served.get(&format!("/api/v1/transcript/{run}?last=x")).status, 400);
    served.runner.end();
}

/// Wherever a text is cut for people, in time or in length, no part of a secret is left that would help anybody.
#[test]
fn no_part_of_a_secret_is_told_where_something_is_cut_off() {
    let canary = "canary-0123456789-token";
    let key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA04up8hoqzS1\nqW3Zr5PAj1lO0Yk2tZ8cXw9mQ\n-----END KEY-----\n";
    let agent = format!(
        "cat <<'KEY'\n{key}KEY\n\
         many() {{ head -c \"$1\" /dev/zero | tr '\\0' x; }}\n\
         echo \"$(many 3980) {canary}\"\n\
         tk comment \"$(many 110) {canary}\"\n\
         echo \"$(many 484) {canary}\"\n\
         printf 'and it is canary-01234567'\n\
         while [ ! -e \"$HOME/go\" ]; do sleep 0.1; done\n\
         echo '89-token'\ntk blocked \"$(many 280) {canary}\"\n"
    );
    let more = format!(
        "server: {{port: 0, tokens: {{ada: $CANARY}}}}\npolling: {{interval_ms: 500, webhook: {{github: {{secret: $KEY}}}}}}\n{MERGE}"
    );
    let board = crate::support::board::Board::new(&agent, "");
    board.scratch.write(
        "WORKFLOW.md",
        &format!(
            "---\ntracker: {{kind: tk}}\n{more}worker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n---\n"
        ),
    );
    board.ticket("t-1", &format!("{} {canary}", "Paint the door ".repeat(4)));
    let runner = board.start_with(&[("CANARY", canary), ("KEY", key)]);
    let served = ServedBoard::of(board, runner);
    let host = served.address.clone();
    let told = |path: &str, headers: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        super::client::raw(&host, request.as_bytes()).body
    };
    let hold = |what: &str, text: &str| {
        for secret in [canary, "MIIEpAIBAAKCAQEA04up8hoqzS1", "qW3Zr5PAj1lO0Yk2tZ8cXw9mQ"] {
            let part = (0..=secret.len() - 12).map(|at| &secret[at..at + 12]).find(|part| text.contains(part));
            assert!(part.is_none(), "{what} tells {part:?}: {text}");
        }
    };
    let look = |served: &ServedBoard| {
        let run = run_of(served, "t-1");
        let log = format!("/api/v1/runs/{run}/log");
        let whole = told(&log, "");
        hold("the log", &whole);
        for range in (0..whole.len()).step_by(7).map(|at| format!("Range: bytes={at}-{}\r\n", at + 300)).take(40) {
            hold(&range, &told(&log, &range));
        }
        for back in 1..60 {
            hold("the end of the log", &told(&log, &format!("Range: bytes=-{back}\r\n")));
        }
        for path in [
            "/api/v1/state",
            "/api/v1/t-1",
            &format!("/api/v1/transcript/{run}"),
            "/",
            "/tickets/t-1",
            "/phases/blocked",
        ] {
            hold(path, &told(path, ""));
        }
        hold("the events", &super::client::Events::open(&host, "").read().unwrap().data.to_string());
        for args in [["logs", run.as_str()].as_slice(), &["logs", &run, "--verbose"], &["logs", &run, "--json"]] {
            let output = served.board.command(args).env("CANARY", canary).env("KEY", key).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            hold("logs", &String::from_utf8_lossy(&output.stdout));
        }
    };
    served.until("it waits", || told("/api/v1/t-1", "").contains("xxxxx"));
    look(&served);
    std::fs::write(served.board.scratch.dir.path().join("go"), "").unwrap();
    served.until("it asks", || served.phase("t-1") == "blocked");
    look(&served);
    let state = std::fs::read_to_string(served.board.repo().join(".bkit/agent-state.json")).unwrap();
    hold("agent-state.json", &state);
    served.runner.end();
}

#[test]
fn a_log_is_followed_until_its_run_is_over() {
    let agent = format!("echo begun\nwhile [ ! -e \"$HOME/go\" ]; do sleep 0.1; done\necho gone on\n{GOOD}");
    let served = ServedBoard::new(&agent, MERGE, |board| board.ticket("t-1", "Do it"));
    served.until("it works", || served.get("/api/v1/t-1").body.contains("begun"));
    let run = run_of(&served, "t-1");
    let host = &served.address;
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(
            format!("GET /api/v1/runs/{run}/log?follow=true HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .unwrap();
    let mut told = String::new();
    let mut buffer = [0; 4096];
    while !told.contains(" out begun") {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert!(!told.contains("gone on"));
    let live = served.get(&format!("/api/v1/transcript/{run}")).json();
    assert!(
        live["live"] == true && live["lines"].as_array().unwrap().iter().any(|line| line["text"] == "begun"),
        "{live}"
    );
    std::fs::write(served.board.scratch.dir.path().join("go"), "").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("gone on"), "{}", String::from_utf8_lossy(&rest));
    served.runner.end();
}

#[test]
fn all_commits_of_merged_work_are_shown_after_a_merge_that_only_moved_the_base_forward() {
    let agent = "set -eu\nfor n in 1 2; do echo $n > work-$n.txt; git add -A; git commit -qm \"Step $n\"; done\ntk done 'both'\n";
    let merge = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass, require_human_approval: false, method: rebase}\n";
    let served = ServedBoard::new(agent, merge, |board| board.ticket("t-1", "Do it"));
    served.until("it is merged", || served.phase("t-1") == "done");
    let ticket = served.get("/api/v1/t-1").json();
    assert_eq!(ticket["ticket"]["merged_commit"], ticket["ticket"]["head"], "{ticket}");
    let diff = served.get("/api/v1/t-1/diff").json();
    let files: Vec<&str> =
        diff["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["work-1.txt", "work-2.txt"], "{diff}");
    let shown = served.board.ok(&["diff", "t-1", "--stat"]);
    assert!(shown.contains("work-1.txt") && shown.contains("work-2.txt"), "{shown}");
    served.runner.end();
}

#[test]
fn what_is_to_be_judged_is_shown_and_old_trees_are_removed_when_asked() {
    let served = ServedBoard::new(GOOD, &format!("{APPROVED}workspace: {{keep: always}}\n"), |board| {
        board.ticket("t-1", "Do it")
    });
    served.until("it waits for approval", || served.phase("t-1") == "waiting_for_human");
    let diff = served.get("/api/v1/t-1/diff").json();
    assert_eq!(diff["files"], json!([{ "path": "t-1.txt", "added": 1, "removed": 0 }]));
    assert!(diff["patch"].as_str().unwrap().contains("+work\n") && diff["cut"] == false, "{diff}");
    let ticket = served.get("/api/v1/t-1").json();
    assert_eq!(diff["head"], ticket["ticket"]["head"], "what is approved is what was shown");
    let plain = served.get_with("/api/v1/t-1/diff", "Accept: text/x-diff\r\n");
    assert!(plain.body.starts_with("diff --git a/t-1.txt b/t-1.txt"), "{}", plain.body);
    assert_eq!(served.get("/api/v1/nobody/diff").error(), "issue_not_found");

    let trees = served.get("/api/v1/workspaces").json();
    let tree = &trees["workspaces"][0];
    assert!(tree["key"] == "t-1" && tree["live"] == false && tree["exists"] == true, "{trees}");
    assert!(!tree["name"].as_str().unwrap().contains('/'), "{trees}");
    let young = served.post("/api/v1/workspaces/cleanup", &json!({ "max_age_ms": 0 })).json();
    assert_eq!(young["workspaces"][0]["action"], "kept", "a run may have made it a moment ago: {young}");
    assert_eq!(served.board.worktrees().len(), 1);
    assert_eq!(served.post("/api/v1/pause", &json!({})).status, 200);
    assert_eq!(served.post("/api/v1/workspaces/cleanup", &json!({})).status, 409, "everything is stopped");
    assert_eq!(served.post("/api/v1/workspaces/cleanup", &json!({ "dry_run": true })).status, 200);
    assert_eq!(served.post_with("/api/v1/workspaces/cleanup", "Content-Type: application/json\r\n", "{}").status, 401);
    served.runner.end();
}
