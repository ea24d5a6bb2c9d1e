//! Notifications: told once, also across a restart; tried again; never under a switch; without secrets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{ASKS, GOOD};
use crate::support::board::{Board, MERGE};

/// A receiver on loopback that answers each request with the next of these codes, then with 200. Ends with the test's process.
struct PostBox {
    url: String,
    got: Arc<Mutex<Vec<Value>>>,
}

impl PostBox {
    fn answering(codes: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?key=canary-url-secret", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, mut codes) = (got.clone(), Vec::from(codes).into_iter());
        std::thread::spawn(move || {
            for stream in listener.incoming().take(50) {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let code = codes.next().unwrap_or(200);
                if code == 200 {
                    kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                }
                let _ = write!(stream, "HTTP/1.1 {code} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<Value> {
        self.got.lock().unwrap().clone()
    }
}

fn workflow(entry: &str) -> String {
    format!("{MERGE}observability:\n  notify:\n    - {entry}\n")
}

fn once(board: &Board, receiver: &PostBox) -> String {
    let output = board.command(&["run", "--once", "--plain"]).env("PLACE", &receiver.url).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_blocked_ticket_is_told_once_also_after_a_restart_and_after_a_failure() {
    let board = Board::new(ASKS, &workflow("{when: [blocked, done], to: webhook, url: $PLACE}"));
    board.ticket("t-1", "Paint the door");
    let receiver = PostBox::answering(&[500]);
    let log = once(&board, &receiver);
    let got = receiver.got();
    assert_eq!(got.len(), 1, "{got:#?}\n{log}");
    let notice = &got[0];
    assert_eq!(
        (&notice["event"], &notice["key"], &notice["title"]),
        (&"blocked".into(), &"t-1".into(), &"Paint the door".into())
    );
    assert!(notice["text"].as_str().unwrap().contains("which colour?"), "{notice:#}");
    assert!(!log.contains("canary-url-secret"), "{log}");
    once(&board, &receiver);
    assert_eq!(receiver.got().len(), 1, "a restart tells it again");
    let worker = board.scratch.git(["log", "--all", "-p"]);
    assert!(!worker.contains("canary-url-secret"));
}

#[test]
fn slack_gets_a_text_and_only_what_was_asked_for() {
    let board = Board::new(GOOD, &workflow("{when: [done], to: slack, url: $PLACE}"));
    board.ticket("t-1", "Paint the door");
    let receiver = PostBox::answering(&[]);
    once(&board, &receiver);
    let got = receiver.got();
    assert_eq!(got.len(), 1, "{got:#?}");
    assert_eq!(got[0].as_object().unwrap().len(), 1);
    let said = got[0]["text"].as_str().unwrap();
    assert!(said.starts_with("t-1 Paint the door: is done"), "{said}");
}

#[test]
fn a_command_gets_it_on_stdin_and_a_template_of_the_team_words_it() {
    let board = Board::new(ASKS, &workflow("{when: [blocked], to: command, command: 'cat > ../told.json'}"));
    board.scratch.write(".dirigent/templates/notification.md", "{{key}} needs somebody\n");
    board.ticket("t-1", "Paint the door");
    board.run(&["run", "--once", "--plain"]);
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(board.scratch.dir.path().join("told.json")).unwrap()).unwrap();
    assert_eq!(told["text"], "t-1 needs somebody");
}

#[test]
fn under_a_switch_nothing_is_told_until_it_is_gone() {
    let board = Board::new(ASKS, &workflow("{when: [blocked], to: webhook, url: $PLACE}"));
    board.ticket("t-1", "Paint the door");
    let receiver = PostBox::answering(&[503, 503, 503]);
    // The switch is pulled as soon as the receiver was asked for the first time.
    let mut child = board
        .command(&["run", "--plain"])
        .env("PLACE", &receiver.url)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    board.until("it is blocked", || board.phase("t-1") == "blocked");
    board.scratch.write(".dirigent/pause", "");
    board.until("the switch is seen", || board.status(&[])["switches"].to_string().contains("file"));
    let before = receiver.got().len();
    std::fs::remove_file(board.repo().join(".dirigent/pause")).unwrap();
    board.until("it is told", || receiver.got().len() == 1);
    assert!(before <= 1);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_receiver_that_takes_too_long_is_left_alone() {
    let entry = "{when: [blocked], to: command, command: 'sleep 1000', timeout_ms: 300}";
    let board = Board::new(ASKS, &workflow(entry));
    board.ticket("t-1", "Paint the door");
    let output = board.run(&["run", "--once", "--plain", "-v"]);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("was still running after 300 ms"), "{log}");
}

#[test]
fn in_observe_mode_nobody_is_told() {
    let entry = "{when: [blocked, waiting, failed], to: webhook, url: $PLACE}";
    let board = Board::new(ASKS, &workflow(entry));
    board.ticket("t-1", "Paint the door");
    let receiver = PostBox::answering(&[]);
    // The receiver is known, and has been told everything, before the ticket is blocked.
    board.workflow(&workflow(entry).replace("mode: merge", "mode: observe"));
    once(&board, &receiver);
    assert_eq!(receiver.got(), Vec::<Value>::new());
}

#[test]
fn a_receiver_that_cannot_be_used_is_told_at_once() {
    for (entry, says) in [
        ("{when: [], to: webhook, url: 'https://x'}", "nobody would be told anything"),
        ("{when: [done], to: slack}", "has no `url`"),
        ("{when: [done], to: command}", "has no `command`"),
        ("{when: [done], to: command, command: x, url: 'https://x'}", "is not used by this receiver"),
        ("{when: [done], to: webhook, url: 'ftp://x'}", "is not an address of the web"),
        ("{when: [doen], to: command, command: x}", "did you mean `done`?"),
    ] {
        let board = Board::new(GOOD, &workflow(entry));
        let said = board.fails(&["status"], 3);
        assert!(said.contains(says), "{entry}: {says} is not in\n{said}");
    }
}
