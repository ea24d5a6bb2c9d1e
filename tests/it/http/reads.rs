//! What can be looked at.

use super::{APPROVED, ASKS, ENDLESS, GOOD, ServedBoard};
use crate::support::board::{Board, MERGE, text};

#[test]
fn spec_13_7_the_state_has_the_shape_that_the_specification_recommends() {
    let served = ServedBoard::new(ENDLESS, MERGE, |board| board.ticket("t-1", "Work on"));
    served.until("it works", || served.get("/api/v1/state").json()["running"][0]["last_message"].is_string());
    let state = served.get("/api/v1/state").json();
    assert_eq!(state["counts"]["running"], 1);
    let running = &state["running"][0];
    assert_eq!((&running["issue_id"], &running["issue_identifier"]), (&"t-1".into(), &"t-1".into()));
    for field in ["state", "turn_count", "last_event", "started_at", "last_event_at", "session_id"] {
        assert!(running.get(field).is_some(), "{field}: {running}");
    }
    for field in ["input_tokens", "output_tokens", "total_tokens"] {
        assert!(running["tokens"][field].is_u64() && state["codex_totals"][field].is_u64(), "{field}: {state}");
    }
    assert!(state["codex_totals"]["seconds_running"].is_number() && state["rate_limits"].is_null(), "{state}");
    assert!(state["retrying"].as_array().unwrap().is_empty());
    assert!(state["generated_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(state["tickets"][0]["phase"], "implementing");

    let ticket = served.get("/api/v1/t-1").json();
    assert_eq!((&ticket["issue_identifier"], &ticket["status"]), (&"t-1".into(), &"running".into()));
    assert_eq!(ticket["attempts"], serde_json::json!({ "restart_count": 0, "current_retry_attempt": 0 }));
    assert!(ticket["running"]["turn_count"].is_u64() && ticket["retry"].is_null(), "{ticket}");
    assert!(ticket["logs"]["codex_session_logs"][0]["url"].as_str().unwrap().starts_with("/api/v1/runs/"), "{ticket}");
    assert!(!ticket["recent_events"].as_array().unwrap().is_empty() && ticket["tracked"].is_object(), "{ticket}");
    served.runner.end();
}

#[test]
fn a_ticket_that_is_over_still_tells_its_story() {
    let served = ServedBoard::new(GOOD, MERGE, |board| board.ticket("t-1", "Do it"));
    served.until("it is merged", || served.phase("t-1") == "done");
    let ticket = served.get("/api/v1/t-1").json();
    let story: Vec<&str> =
        ticket["story"].as_array().unwrap().iter().map(|line| line["code"].as_str().unwrap()).collect();
    assert!(story.len() > 3, "{ticket}");
    assert_eq!(ticket["runs"][0]["outcome"], "done");
    assert_eq!(ticket["ticket"]["merged_by_us"], true);
    served.runner.end();
}

#[test]
fn health_is_told_without_a_name_and_readiness_says_what_is_missing() {
    let served = ServedBoard::new(GOOD, MERGE, |board| board.ticket("t-1", "Do it"));
    assert_eq!(served.get("/healthz").json()["status"], "ok");
    served.until("it is ready", || served.get("/readyz").status == 200);
    std::fs::rename(served.board.repo().join(".tickets"), served.board.repo().join(".tickets.away")).unwrap();
    served.until("it is not ready any more", || served.get("/readyz").status == 503);
    assert_eq!(served.get("/readyz").json()["why"], "the board cannot be read");
    assert_eq!(served.get("/healthz").status, 200, "that is another question");
    std::fs::rename(served.board.repo().join(".tickets.away"), served.board.repo().join(".tickets")).unwrap();
    served.until("it is ready again", || served.get("/readyz").status == 200);
    served.runner.end();
}

#[test]
fn no_path_and_no_secret_of_the_machine_is_in_an_answer() {
    let canary = "canary-0123456789-token";
    let agent = "tk blocked \"see $PWD and canary-0123456789-token\"\n";
    let more = format!("server: {{port: 0, tokens: {{ada: $CANARY}}}}\n{APPROVED}");
    let served = ServedBoard::with(agent, &more, &[("CANARY", canary)], |board| board.ticket("t-1", "Ask"));
    // Others of this board need it too, to read the file.
    let blocked = || served.get("/api/v1/t-1").body.contains("\"phase\":\"blocked\"");
    served.until("it asks", blocked);
    let place = served.board.scratch.dir.path().display().to_string();
    for path in ["/api/v1/state", "/api/v1/t-1", "/readyz", "/api/v1/nobody", &format!("/api/v1/{place}")] {
        let answer = served.get(path);
        assert!(!answer.body.contains(&place), "{path}: {}", answer.body);
        assert!(!answer.body.contains(canary) && !answer.headers.contains(canary), "{path}: {}", answer.body);
        assert!(answer.header("server").is_none(), "{}", answer.headers);
    }
    assert!(served.get("/api/v1/t-1").body.contains("<workspaces>"), "{}", served.get("/api/v1/t-1").body);
}

#[test]
fn the_port_of_the_command_line_wins_and_zero_takes_a_free_one() {
    let board = Board::new(ASKS, MERGE);
    board.ticket("t-1", "Ask");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    board.workflow(&format!("{MERGE}server: {{port: {port}}}\n"));
    let refused = board.fails(&["run", "--plain"], 1);
    let program = std::fs::read_to_string("/proc/self/comm").unwrap();
    let said = format!("127.0.0.1:{port} is in use already by `{}` (pid {})", program.trim(), std::process::id());
    assert!(refused.contains(&said), "{refused}");
    assert!(board.worktrees().is_empty(), "nothing was begun");
    let output = board.run(&["run", "--once", "--plain", "--port", "0"]);
    assert!(text(&output.stderr).contains("dashboard and API: http://127.0.0.1:"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains(&format!(":{port} ")), "{}", text(&output.stderr));
    drop(taken);
}

#[test]
fn a_refresh_needs_no_token_and_shows_what_is_new() {
    let more = format!("{MERGE}polling: {{interval_ms: 3600000}}\n");
    let served = ServedBoard::new(ASKS, "", |board| {
        let front = format!(
            "---\ntracker: {{kind: tk}}\n{more}server: {{port: 0}}\nworker: {{runtime: exec}}\nexec: {{command: sh ./agent.sh}}\n---\n"
        );
        board.scratch.write("WORKFLOW.md", &front);
        board.ticket("t-1", "Ask");
    });
    let answer = served.post_with("/api/v1/refresh", "", "");
    assert_eq!(answer.status, 202, "{answer:?}");
    let said = answer.json();
    assert_eq!(said["queued"], true);
    assert!(said["coalesced"].is_boolean() && said["requested_at"].is_string(), "{said}");
    assert_eq!(said["operations"], serde_json::json!(["poll", "reconcile"]));
    let coalesced = || served.post_with("/api/v1/refresh", "", "").json()["coalesced"] == true;
    // Asked at once, and seldom enough for the limit on requests.
    let asked_at_once = || {
        std::thread::sleep(std::time::Duration::from_secs(1));
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(coalesced)).collect();
            asked.into_iter().map(|one| one.join().unwrap()).filter(|one| *one).count()
        })
    };
    served.until("one poll answers several requests", || asked_at_once() > 0);
    served.until("the next one has a poll of its own", || !coalesced());
    served.runner.end();
}

#[test]
fn metrics_are_served_where_the_file_says_so() {
    let served = ServedBoard::new(GOOD, MERGE, |board| board.ticket("t-1", "Do it"));
    assert_eq!(served.get("/metrics").status, 404);
    served.runner.end();
    let more = format!("{MERGE}observability: {{metrics: true}}\n");
    let served = ServedBoard::new(GOOD, &more, |board| board.ticket("t-1", "Do it"));
    served.until("it is merged", || served.phase("t-1") == "done");
    let page = served.get("/metrics");
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let value = |name: &str| {
        let line =
            page.body.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {}", page.body));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(value("dirigent_runs_total{outcome=\"done\",kind=\"implement\",runtime=\"exec\"}") >= 1.0);
    assert!(value("dirigent_tickets{phase=\"done\"}") >= 1.0);
    assert!(value("dirigent_calls_total{lane=\"tracker\",result=\"ok\"}") >= 1.0);
    assert!(
        value("dirigent_pass_seconds_count") > 1.0
            && value("dirigent_phase_seconds_count{phase=\"implementing\"}") >= 1.0
    );
    served.runner.end();
}
